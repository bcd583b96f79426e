"""The names of the searches."""

from __future__ import annotations

from lssvm._core.errors import InvalidInputError
from lssvm.tuning.annealing import CoupledAnnealing
from lssvm.tuning.circulant_search import CirculantSearch
from lssvm.tuning.grid import GridSearch, ShrinkingGridSearch
from lssvm.tuning.path import PathSearch
from lssvm.tuning.search import Search

SEARCHES: dict[str, type[Search]] = {
    "path": PathSearch,
    "grid": GridSearch,
    "shrinking": ShrinkingGridSearch,
    "csa": CoupledAnnealing,
    "circulant": CirculantSearch,
}


def make_search(search: str | Search) -> Search:
    """Return the search of that name with its default settings, or the instance itself.

    Parameters
    ----------
    search : {"path", "grid", "shrinking", "csa", "circulant"} or Search
        A name or an instance.

    Returns
    -------
    Search

    Examples
    --------
    >>> from lssvm.tuning.choice import make_search
    >>> make_search("shrinking")
    ShrinkingGridSearch(i_max=3)
    """
    if isinstance(search, Search):
        return search
    if isinstance(search, str) and search in SEARCHES:
        return SEARCHES[search]()
    names = ", ".join(repr(name) for name in SEARCHES)
    raise InvalidInputError(
        f"search={search!r} is not known: give one of {names}, or an instance such as "
        "PathSearch(n_C=30)."
    )
