"""Progress for people and for scikit-learn's callbacks.

From version 1.9 on scikit-learn has a protocol for callbacks: ``model.set_callbacks(...)`` takes
objects that hear of the beginning and the end of the tasks of a fit, and may ask for a stop. The
tasks of a fit are its searches ("tune"), and of a search its evaluations ("evaluate"), one for each
pair of C and gamma. With an older scikit-learn there is no ``set_callbacks``, and nothing else
changes.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from lssvm._core.progress import Progress

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # scikit-learn before 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stands for a class that this version of scikit-learn does not have."""

    def with_callbacks(method: Any) -> Any:
        """Return the method as it is."""
        return method


class Listened(CallbackSupportMixin):
    """Base of the estimators that callbacks can listen to."""


Fit = TypeVar("Fit", bound=Callable[..., Any])


def reports(fit: Fit) -> Fit:
    """Decorate a ``fit``: callbacks hear of its beginning and its end."""

    @with_callbacks  # type: ignore[untyped-decorator]
    @functools.wraps(fit)
    def reported(model: Any, *args: Any, **kwargs: Any) -> Any:
        model.__dict__.pop("_told", None)
        if not hasattr(model, "_skl_callbacks") and not hasattr(model, "_parent_callback_ctx"):
            return fit(model, *args, **kwargs)
        given = inspect.signature(fit).bind(model, *args, **kwargs).arguments
        X, y = given.get("X"), given.get("y")
        context = model._init_callback_context(max_subtasks=None)
        context.call_on_fit_task_begin(estimator=model, X=X, y=y)
        model._told = Told(model, context, X, y)
        try:
            fitted = fit(model, *args, **kwargs)
        finally:
            model._told.close()
            del model._told
        context.call_on_fit_task_end(estimator=model, X=X, y=y, reconstruction_attributes={})
        return fitted

    return reported  # type: ignore[no-any-return]


def told(model: Any) -> Callable[[dict[str, Any]], None]:
    """Return the function that gets the events of a search, for ``verbose`` and callbacks."""
    progress = Progress(int(getattr(model, "verbose", 0)))
    more: Told | None = getattr(model, "_told", None)
    if more is None:
        return progress

    def both(event: dict[str, Any]) -> None:
        progress(event)
        more(event)

    return both


def was_stopped(model: Any) -> bool:
    """Say whether a callback, rather than the user at the keyboard, has stopped the last search."""
    more: Told | None = getattr(model, "_told", None)
    return more is not None and more.stopped


class Told:
    """Turns events of searches into tasks of callbacks.

    Parameters
    ----------
    model : estimator
    context : CallbackContext
        Of the fit.
    X, y
        As the fit was given them.
    """

    def __init__(self, model: Any, context: Any, X: Any, y: Any) -> None:
        self.model, self.context, self.data = model, context, {"X": X, "y": y}
        self.search: Any = None
        self.stopped = False
        self._done = 0
        self._room: int | None = 0  # evaluations that are left in the plan, None: no plan

    def __call__(self, event: dict[str, Any]) -> None:
        """Report new evaluations; raise KeyboardInterrupt where a stop is asked for."""
        if "n_evaluations" not in event:  # rows read, steps taken
            return
        if event["stage"] in ("done", "interrupted"):
            self.close()
            return
        if self.search is None:
            self.stopped, self._done = False, 0
            self._open(int(event["planned"]))
        stop = False
        while self._done < event["n_evaluations"] and not stop:
            if self._room is not None and self._room < 1:  # more than were planned
                self.close()
                self._open(None)
            task = self.search.subcontext(task_name="evaluate")
            task.call_on_fit_task_begin(estimator=self.model, **self.data)
            stop = task.call_on_fit_task_end(estimator=self.model, **self.data)
            self._done += 1
            self._room = None if self._room is None else self._room - 1
        if stop:
            self.stopped = True
            raise KeyboardInterrupt("a callback has asked for a stop")

    def _open(self, planned: int | None) -> None:
        self._room = planned
        self.search = self.context.subcontext(task_name="tune", max_subtasks=planned)
        self.search.call_on_fit_task_begin(estimator=self.model, **self.data)

    def close(self) -> None:
        """End the task of a search, where one has begun."""
        if self.search is not None:
            search, self.search = self.search, None
            search.call_on_fit_task_end(estimator=self.model, **self.data)
