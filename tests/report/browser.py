"""A headless Chromium, driven through ChromeDriver's HTTP interface: no library is needed."""

from __future__ import annotations

import base64
import json
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
DRIVER = shutil.which("chromedriver")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
)


class Browser:
    """One window; a context manager."""

    def __enter__(self) -> Browser:
        self.folder = tempfile.mkdtemp()
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.base = f"http://127.0.0.1:{port}"
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self.process = subprocess.Popen([str(DRIVER), f"--port={port}"], **quiet)
        self._wait()
        options = {"binary": CHROMIUM, "args": [*FLAGS, f"--user-data-dir={self.folder}"]}
        wanted = {
            "browserName": "chrome",
            "goog:chromeOptions": options,
            "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"},
        }
        made = self._call("POST", "/session", {"capabilities": {"alwaysMatch": wanted}})
        self.base += f"/session/{made['sessionId']}"
        return self

    def __exit__(self, *error: Any) -> None:
        try:
            self._call("DELETE", "")
        finally:
            self.process.terminate()
            self.process.wait(20)
            shutil.rmtree(self.folder, ignore_errors=True)

    def _wait(self) -> None:
        for _ in range(200):
            try:
                if self._call("GET", "/status")["ready"]:
                    return
            except (urllib.error.URLError, ConnectionError):
                time.sleep(0.1)
        raise RuntimeError("ChromeDriver does not answer")

    def _call(self, method: str, path: str, body: Any = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.base + path, data, method=method)
        with urllib.request.urlopen(request, timeout=120) as answer:
            return json.load(answer)["value"]

    def protocol(self, command: str, **parameters: Any) -> Any:
        """Run a command of the DevTools protocol."""
        body = {"cmd": command, "params": parameters}
        return self._call("POST", "/goog/cdp/execute", body)

    def show(self, path: Path, width: int, height: int, scheme: str, media: str = "") -> None:
        """Open a page in a window of a size, light or dark."""
        self.resize(width, height, scheme, media)
        self._call("POST", "/url", {"url": path.as_uri()})

    def resize(self, width: int, height: int, scheme: str, media: str = "") -> None:
        """Show the same page in another size, light or dark."""
        feature = {"name": "prefers-color-scheme", "value": scheme}
        self.protocol("Emulation.setEmulatedMedia", media=media, features=[feature])
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self.protocol("Emulation.setDeviceMetricsOverride", **size)

    def run(self, script: str) -> Any:
        """Run a script in the page and return its value."""
        return self._call("POST", "/execute/sync", {"script": script, "args": []})

    def press(self, selector: str, key: str) -> None:
        """Press a key while an element has the focus."""
        found = self._call("POST", "/element", {"using": "css selector", "value": selector})
        (element,) = found.values()
        self._call("POST", f"/element/{element}/value", {"text": key})

    def picture(self, path: Path, height: int | None = None, top: int = 0) -> None:
        """Save a screenshot, of the window or of so many pixels from ``top``."""
        options: dict[str, Any] = {}
        if height is not None:
            width = self.run("return window.innerWidth")
            clip = {"x": 0, "y": top, "width": width, "height": height, "scale": 1}
            options = {"clip": clip, "captureBeyondViewport": True}
        made = self.protocol("Page.captureScreenshot", format="png", **options)
        path.write_bytes(base64.b64decode(made["data"]))

    def console(self) -> list[str]:
        """Return what was written to the console since the last call."""
        return [entry["message"] for entry in self._call("POST", "/se/log", {"type": "browser"})]

    def requests(self) -> list[str]:
        """Return the addresses asked for since the last call."""
        entries = self._call("POST", "/se/log", {"type": "performance"})
        messages = [json.loads(entry["message"])["message"] for entry in entries]
        return [
            message["params"]["request"]["url"]
            for message in messages
            if message["method"] == "Network.requestWillBeSent"
        ]
