"""Where things are in this repository, and the texts in it."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src"
TESTS = ROOT / "tests"
BIBLIOGRAPHY = ROOT / "docs" / "references.bib"

_BINARY = {".gz", ".ico", ".jpg", ".lssvm", ".npz", ".onnx", ".parquet", ".pdf", ".png"}
_NOT_OURS = {".git", ".venv", "__pycache__", "_build", "auto_examples", "demo-output", "dist"}


def module_name(path: Path) -> str:
    """Return the dotted name of a module file under src."""
    parts = list(path.relative_to(SOURCE).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def package_sources() -> dict[str, str]:
    """Return the source text of every module of the package, by dotted name."""
    paths = sorted((SOURCE / "lssvm").rglob("*.py"))
    return {module_name(path): path.read_text(encoding="utf-8") for path in paths}


def package_folders() -> set[str]:
    """Return the names of the folders of the package that hold modules."""
    return {p.parent.name for p in (SOURCE / "lssvm").glob("*/*.py")}


def tracked_texts() -> dict[str, str]:
    """Return every text file that is, or would be, under version control, by relative path."""
    names: list[str] = []
    if shutil.which("git") and (ROOT / ".git").exists():
        command = ["git", "-C", str(ROOT), "ls-files", "-co", "--exclude-standard", "-z"]
        answer = subprocess.run(command, capture_output=True, text=True, check=False)
        names = [name for name in answer.stdout.split("\0") if name]
    if not names:  # a copy without history
        names = [str(p.relative_to(ROOT)) for p in ROOT.rglob("*") if p.is_file()]
    paths = [ROOT / n for n in names if not _NOT_OURS & set(Path(n).parts)]
    return {
        str(path.relative_to(ROOT)): path.read_text(encoding="utf-8")
        for path in paths
        if path.is_file() and path.suffix not in _BINARY
    }
