"""Types of signatures and of lists of parameters as links to the pages of our own classes."""

from __future__ import annotations

import inspect
import re
from importlib import import_module
from pathlib import Path

API = Path(__file__).resolve().parent / "api.rst"


def public_classes() -> dict[str, str]:
    """Return the classes of the documented packages: name, and where its page is."""
    found: dict[str, str] = {}
    for package in re.findall(r"^   (lssvm[\w.]*)$", API.read_text(encoding="utf-8"), re.MULTILINE):
        module = import_module(package)
        for name in module.__all__:
            if inspect.isclass(getattr(module, name)):
                found.setdefault(name, f"{package}.{name}")
    return found


PAGES = public_classes()
_WORD = re.compile(r"[A-Za-z_][\w.]*")


def keep_own_types(app, obj, bound_method):
    """Leave the types of a signature that speak of our classes; those of arrays say little."""
    function = getattr(obj, "__func__", obj)
    while inspect.isfunction(function):
        function.__annotations__ = {
            name: text
            for name, text in inspect.get_annotations(function).items()
            if isinstance(text, str)
            and (words := set(_WORD.findall(text)))
            and words & PAGES.keys()
            and not words & {"Any", "Callable"}
        }
        function = getattr(function, "__wrapped__", None)


def keep_own_types_of_properties(app, what, name, obj, skip, options):
    """Do the same for properties, which have no signature."""
    keep_own_types(app, getattr(obj, "fget", getattr(obj, "func", None)), True)


def find_page(app, env, node, contnode):
    """Resolve a name of a class, wherever it is defined, to the page that it has."""
    if node.get("refdomain") != "py":
        return None
    target = PAGES.get(node["reftarget"].rpartition(".")[2])
    if target is None or node["reftarget"].startswith(("numpy.", "sklearn.", "scipy.")):
        return None
    return env.domains["py"].resolve_xref(
        env, node["refdoc"], app.builder, "class", target, node, contnode
    )


def setup(app):
    app.connect("autodoc-before-process-signature", keep_own_types)
    app.connect("autodoc-skip-member", keep_own_types_of_properties)
    app.connect("missing-reference", find_page)
    return {"parallel_read_safe": True}
