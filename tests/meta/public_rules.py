"""Rules about public names, as functions from a module to a list of violations."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable
from enum import Enum
from pathlib import Path
from types import ModuleType
from typing import Any


def sort_key(name: str) -> tuple[int, list[tuple[int, str]]]:
    """Order names as the linter does (RUF022): CONSTANTS, Classes, the rest; digits as numbers."""
    kind = 0 if len(name) > 1 and name.isupper() else 1 if name[:1].isupper() else 2
    pieces = re.findall(r"\d+|\D+", name)
    return kind, [(int(p), "") if p.isdigit() else (-1, p) for p in pieces]


def public_packages(folder: Path) -> list[str]:
    """Return the dotted names of the package in ``folder`` and of those in it without underscore.

    Nothing is imported: a package that is broken fails its own tests, not the search for it.
    """
    found = [path.parent.relative_to(folder.parent).parts for path in folder.rglob("__init__.py")]
    return sorted(".".join(parts) for parts in found if not any(p[0] == "_" for p in parts))


def _names_defined(module: ModuleType) -> set[str]:
    """Return the names without an underscore that the module's namespace holds, less modules."""
    return {
        name
        for name, value in vars(module).items()
        if not name.startswith("_")
        and not inspect.ismodule(value)
        and type(value).__module__ != "__future__"
    }


def face_violations(module: ModuleType) -> list[str]:
    """Check that ``__all__`` exists, is sorted, holds only real names and leaves none out."""
    if not hasattr(module, "__all__"):
        return [f"{module.__name__} has no __all__"]
    listed = list(module.__all__)
    found = []
    if listed != sorted(set(listed), key=sort_key):
        found.append(f"{module.__name__}.__all__ is not sorted or has doubles")
    found += [
        f"{module.__name__}.{name} is listed but does not exist"
        for name in listed
        if not hasattr(module, name)
    ]
    found += [
        f"{module.__name__}.{name} can be reached but is not listed"
        for name in sorted(_names_defined(module) - set(listed))
    ]
    return found


def public_objects(module: ModuleType) -> dict[str, Any]:
    """Return the functions and classes that ``__all__`` lists, by their full name."""
    listed = {name: getattr(module, name, None) for name in getattr(module, "__all__", ())}
    return {
        f"{module.__name__}.{name}": value
        for name, value in listed.items()
        if inspect.isroutine(value) or inspect.isclass(value)
    }


def docstring_violations(name: str, value: Any) -> list[str]:
    """Check that a function or class has its own docstring, with a runnable example.

    Errors and warnings need no example: they are raised, not called.
    """
    text = vars(value).get("__doc__") if inspect.isclass(value) else value.__doc__
    if not text:
        return [f"{name} has no docstring"]
    if inspect.isclass(value) and issubclass(value, BaseException):
        return []
    clean = inspect.cleandoc(text)  # a line that is not indented as the others spoils them all
    section = re.search(r"^Examples\n--------\n(.*)", clean, re.MULTILINE | re.DOTALL)
    if section is None:
        return [f"{name} has no Examples section at its left margin"]
    if ">>> " not in section[1]:
        return [f"{name} has an Examples section without an example"]
    return []


_ENTRY = re.compile(r"^(\*{0,2}\w+(?:, \*{0,2}\w+)*)(?: : .*)?$")


def described(text: str) -> dict[str, bool]:
    """Return the entries of the sections of parameters and attributes, and whether each has words.

    An entry is a line ``name : type`` or ``a, b : type`` at the left margin; its words are the
    indented lines below it.
    """
    lines, found, section = inspect.cleandoc(text).splitlines(), {}, ""
    names: list[str] = []
    for line, below in zip(lines, [*lines[1:], ""], strict=True):
        if below and set(below) == {"-"} and len(below) >= 4:
            section, names = line, []
        elif section not in ("Parameters", "Other Parameters", "Attributes"):
            continue
        elif entry := _ENTRY.match(line):
            names = [name.lstrip("*") for name in entry[1].split(", ")]
            found |= {name: found.get(name, False) for name in names}
        elif line.startswith("    ") and names:
            found |= dict.fromkeys(names, True)
    return found


def _made_by_people(value: Any) -> bool:
    """Say whether somebody calls it: no protocol, error, mapping or enumeration."""
    if not inspect.isclass(value):
        return True
    if issubclass(value, BaseException | Enum | dict):
        return False
    return not getattr(value, "_is_protocol", False)


def parameter_violations(name: str, value: Any, elsewhere: Iterable[str] = ()) -> list[str]:
    """Return the parameters of a function or class that its docstring does not describe.

    Nor the texts ``elsewhere``, which may describe them in its place.
    """
    if not _made_by_people(value):
        return []
    words = described(value.__doc__ or "")
    for text in elsewhere:
        words = {**described(text), **{key: True for key, found in words.items() if found}}
    asked = [p for p in inspect.signature(value).parameters if p[0] != "_"]
    return [
        f"{name}: {parameter} {'has no words' if parameter in words else 'is left out'}"
        for parameter in asked
        if parameter != "self" and not words.get(parameter, False)
    ]


def public_methods(name: str, value: Any) -> dict[str, Any]:
    """Return the methods that a class has from its own library, by their full name."""
    if not inspect.isclass(value):
        return {}
    bound = {key: getattr(value, key) for base in _own_bases(value) for key in vars(base)}
    return {
        f"{name}.{key}": method
        for key, method in bound.items()
        if key[0] != "_" and hasattr(method, "__code__")
    }


def _own_bases(value: type) -> list[type]:
    """Return the class and those of its bases that are of the same library."""
    own = value.__module__.partition(".")[0]
    return [base for base in value.__mro__ if base.__module__.partition(".")[0] == own]


def _follows(value: type, protocol: Any) -> bool:
    """Say whether a class has all methods of what is a protocol."""
    if not getattr(protocol, "_is_protocol", False):
        return False
    asked = [key for key, method in vars(protocol).items() if inspect.isfunction(method)]
    return all(hasattr(value, key) for key in asked)


def method_violations(name: str, value: Any, others: Iterable[Any] = ()) -> list[str]:
    """Return the parameters of the methods of a class that nothing describes.

    What a method says nothing of may be described by the method of the same name of a base class,
    or of a protocol among ``others`` all methods of which the class has.
    """
    found = []
    for full, method in public_methods(name, value).items():
        key = full.rpartition(".")[2]
        bases = [*_own_bases(value), *(other for other in others if _follows(value, other))]
        texts = [vars(base)[key].__doc__ or "" for base in bases if key in vars(base)]
        found += parameter_violations(full, method, texts)
    return found


def undocumented(packages: list[ModuleType], page: str, internal: Iterable[str]) -> list[str]:
    """Return the packages that neither the API page names nor the list of internal ones.

    The first one is the root; a package that only holds names of the root needs no page of its own.
    """
    listed = {*page.split(), *internal}
    known = set(getattr(packages[0], "__all__", ()))
    return [
        f"{package.__name__} is not on the API page"
        for package in packages
        if package.__name__ not in listed
        and (package is packages[0] or not set(getattr(package, "__all__", ())) <= known)
    ]
