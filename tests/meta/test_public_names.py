"""The public face is closed, sorted, documented, and every part of it has an example."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import Protocol

import pytest
from sklearn.base import BaseEstimator
from tests.meta.public_rules import (
    docstring_violations,
    face_violations,
    method_violations,
    parameter_violations,
    public_methods,
    public_objects,
    public_packages,
    sort_key,
    undocumented,
)
from tests.meta.tree import ROOT, SOURCE

PACKAGES = public_packages(SOURCE / "lssvm")
PAGES = (ROOT / "docs" / "api.rst").read_text(encoding="utf-8").split()
INTERNAL = {  # packages without a promise: nobody outside imports from them
    f"lssvm.{name}"
    for name in "backends explanations fitting greedy local tasks uncertainty".split()
}
MOST_NAMES = 130  # only ever lowered
DOCUMENTED = [name for name in PACKAGES if name in PAGES]


def module(**names: object) -> ModuleType:
    made = ModuleType("made")
    vars(made).update(names)
    return made


def example() -> None:
    """Do nothing.

    Examples
    --------
    >>> example()
    """


def no_example() -> None:
    """Do nothing."""


def empty_example() -> None:
    """Do nothing.

    Examples
    --------
    Call it.
    """


def badly_indented() -> None:
    r"""Do nothing with a \
long line.

    Examples
    --------
    >>> badly_indented()
    """


class Base:
    """Have an example.

    Examples
    --------
    >>> _ = Base()
    """


class Inherited(Base):
    pass


class Failure(Exception):
    """Need no example."""


@pytest.mark.parametrize("package", PACKAGES)
def test_the_face_of_a_package_is_closed_and_sorted(package):
    assert face_violations(import_module(package)) == []


@pytest.mark.parametrize("package", sorted({*PACKAGES} - INTERNAL))
def test_everything_public_has_a_docstring_with_an_example(package):
    objects = public_objects(import_module(package))
    assert [line for name in objects for line in docstring_violations(name, objects[name])] == []


@pytest.mark.parametrize("package", DOCUMENTED)
def test_every_parameter_is_described(package):
    objects = public_objects(import_module(package))
    assert [line for name in objects for line in parameter_violations(name, objects[name])] == []


@pytest.mark.parametrize("package", DOCUMENTED)
def test_every_parameter_of_a_method_is_described(package):
    """By the method, or by that of a base class or of a protocol of the package it follows."""
    objects = public_objects(import_module(package))
    others = list(objects.values())
    assert [x for name in objects for x in method_violations(name, objects[name], others)] == []


def described_well(a, *others, b=1):
    """Be called.

    Parameters
    ----------
    a, b : int
        Numbers.
    *others : int
        More of them.

    Returns
    -------
    c : int
    """


def described_badly(a, b, c):
    """Be called.

    Parameters
    ----------
    a : int
    b : int
        A number.
    """


def test_a_parameter_without_words_is_found():
    assert parameter_violations("f", described_well) == []
    found = ["f: a has no words", "f: c is left out"]
    assert parameter_violations("f", described_badly) == found
    assert parameter_violations("E", Failure) == []


def test_methods_are_those_of_the_library():
    class Legs:
        def stand(self, hours):
            """Stand."""

    class Walker(Legs, BaseEstimator):
        """Walk."""

        def walk(self, steps):
            """Walk some steps."""

        @classmethod
        def of(cls, legs):
            """Make one."""

        def _rest(self, hours):
            """Nobody calls this."""

    found = public_methods("Walker", Walker)
    assert list(found) == ["Walker.walk", "Walker.of", "Walker.stand"]
    assert parameter_violations("Walker.of", found["Walker.of"]) == ["Walker.of: legs is left out"]


class Walks(Protocol):
    def walk(self, steps):
        """Walk some steps.

        Parameters
        ----------
        steps : int
            How many.
        """

    def run(self, miles):
        """Run.

        Parameters
        ----------
        miles : float
        """


class Person:
    def walk(self, steps):
        """Walk."""

    def run(self, miles):
        """Run."""

    def rest(self, hours):
        """Rest.

        Parameters
        ----------
        hours : float
            How long.
        """


class Sleeper(Person):
    def rest(self, hours, deeply):
        """Sleep."""

    def run(self, miles):
        """Dream of it.

        Parameters
        ----------
        miles : float
            How far.
        """


class Robot:
    def walk(self, steps):
        """Walk."""


def test_a_base_class_or_a_protocol_describes_for_a_method():
    found = ["P.walk: steps is left out", "P.run: miles is left out"]
    assert method_violations("P", Person) == found
    assert method_violations("P", Person, [Person, no_example]) == found
    assert method_violations("P", Person, [Walks]) == ["P.run: miles has no words"]
    # What a method says itself stays said, whatever the others do not say.
    assert method_violations("S", Sleeper, [Walks]) == ["S.rest: deeply is left out"]


def test_a_protocol_that_is_not_followed_describes_nothing():
    assert method_violations("R", Robot, [Walks]) == ["R.walk: steps is left out"]
    assert method_violations("W", Walks) == ["W.run: miles has no words"]
    assert method_violations("f", example) == []


def test_every_package_is_on_the_api_page():
    page = (ROOT / "docs" / "api.rst").read_text(encoding="utf-8")
    assert undocumented([import_module(name) for name in PACKAGES], page, INTERNAL) == []
    assert not INTERNAL & set(page.split())


def test_about_a_hundred_names_are_public():
    names = {name for package in DOCUMENTED for name in public_objects(import_module(package))}
    assert len(names) <= MOST_NAMES, sorted(names)


def test_the_walk_reaches_the_public_packages_and_their_parts():
    assert PACKAGES[0] == "lssvm"
    assert "lssvm.datasets" in PACKAGES
    assert "lssvm._core" not in PACKAGES
    assert "lssvm.datasets.load_ripley" in public_objects(import_module("lssvm.datasets"))


@pytest.mark.parametrize(
    ("made", "problem"),
    [
        (module(f=1), "has no __all__"),
        (module(__all__=["g", "f"], f=1, g=1), "not sorted"),
        (module(__all__=["f", "f"], f=1), "not sorted or has doubles"),
        (module(__all__=["f", "g"], f=1), "made.g is listed but does not exist"),
        (module(__all__=["f"], f=1, g=1), "made.g can be reached but is not listed"),
    ],
)
def test_an_open_face_is_found(made, problem):
    (found,) = face_violations(made)
    assert problem in found


def test_a_closed_face_is_not():
    made = module(__all__=["f"], f=1, _g=1, submodule=ModuleType("made.submodule"))
    assert face_violations(made) == []


def test_names_are_sorted_as_the_linter_sorts_them():
    names = ["load", "Matern", "f10", "RBF", "f2", "NARX", "Kernel", "LSSVC"]
    expected = ["LSSVC", "NARX", "RBF", "Kernel", "Matern", "f2", "f10", "load"]
    assert sorted(names, key=sort_key) == expected


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (lambda: None, "has no docstring"),
        (no_example, "has no Examples section"),
        (empty_example, "without an example"),
        (badly_indented, "no Examples section at its left margin"),
        (Inherited, "has no docstring"),
    ],
)
def test_a_missing_example_is_found(value, problem):
    (found,) = docstring_violations("made.f", value)
    assert problem in found


@pytest.mark.parametrize("value", [example, Base, Failure])
def test_a_present_example_is_not(value):
    assert docstring_violations("made.f", value) == []


def test_only_functions_and_classes_are_asked_for_an_example():
    made = module(__all__=["CONSTANT", "f", "part"], CONSTANT=1, f=example, part=ModuleType("p"))
    assert list(public_objects(made)) == ["made.f"]


def test_a_package_that_the_api_page_forgets_is_found():
    root, part, inner = ModuleType("made"), ModuleType("made.part"), ModuleType("made.inner")
    root.__all__, part.__all__, inner.__all__ = ["fit"], ["fit", "step"], ["fit"]
    packages = [root, part, inner]
    assert undocumented(packages, "made\n made.part", ()) == []
    assert undocumented(packages, "made", ["made.part"]) == []
    assert undocumented(packages, "made\n made.parts", ()) == ["made.part is not on the API page"]
    assert undocumented(packages, "made.part", ()) == ["made is not on the API page"]
