"""What a fit reports to: the progress line of ``verbose``, and scikit-learn's callbacks."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar, cast

from lssvm._core.arrays import OnEvent
from lssvm._core.errors import Stopped
from lssvm._core.progress import Listener, Progress

__all__ = ["CallbackSupportMixin", "callback_of", "reports"]

Method = TypeVar("Method")
Fit = TypeVar("Fit", bound=Callable[..., Any])

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # scikit-learn before 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stands for scikit-learn's mixin where there is none: nothing can be registered."""

    def with_callbacks(method: Method) -> Method:
        """Return the method as it is."""
        return method


def reports(fit: Fit) -> Fit:
    """Let callbacks of scikit-learn (1.9 and later) follow a fit and its tuning.

    While `fit` runs, the estimator has a `_listener`, which `callback_of` hands to the fit: every
    evaluation of the tuning is a task of its own, so that a progress bar moves and a callback can
    stop the tuning (what is best so far is then used).
    """

    @with_callbacks
    @functools.wraps(fit)
    def reported(model: Any, *args: Any, **kwargs: Any) -> Any:
        model.__dict__.pop("_listener", None)
        if not hasattr(model, "_skl_callbacks") and not hasattr(model, "_parent_callback_ctx"):
            return fit(model, *args, **kwargs)
        given = inspect.signature(fit).bind(model, *args, **kwargs).arguments
        X, y = given.get("X"), given.get("y")
        context = model._init_callback_context(max_subtasks=None)
        context.call_on_fit_task_begin(estimator=model, X=X, y=y)
        model._listener = _CallbackListener(model, context, X, y)
        try:
            fitted = fit(model, *args, **kwargs)
        finally:
            model._listener.close()
            del model._listener
        context.call_on_fit_task_end(estimator=model, X=X, y=y, reconstruction_attributes={})
        return fitted

    return cast(Fit, reported)


def callback_of(estimator: Any) -> Listener:
    """Return what the fit of an estimator reports its events to."""
    progress = Progress(int(getattr(estimator, "verbose", 0)))
    callbacks: _CallbackListener | None = getattr(estimator, "_listener", None)
    if callbacks is None:
        return Listener(progress)
    listeners: tuple[OnEvent, ...] = (progress, callbacks)

    def both(event: dict[str, Any]) -> None:
        for listener in listeners:
            listener(event)

    return Listener(both, lambda: callbacks.stopped)


class _CallbackListener:
    """Turns the events of a search into tasks of scikit-learn's callbacks."""

    def __init__(self, model: Any, context: Any, X: Any, y: Any) -> None:
        self.model, self.context, self.data = model, context, {"X": X, "y": y}
        self.search: Any = None
        self.stopped = False
        self._done = 0
        self._room: int | None = 0  # evaluations that are left in the plan, None: no plan

    def __call__(self, event: dict[str, Any]) -> None:
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
            raise Stopped("a callback has asked for a stop")

    def _open(self, planned: int | None) -> None:
        self._room = planned
        self.search = self.context.subcontext(task_name="tune", max_subtasks=planned)
        self.search.call_on_fit_task_begin(estimator=self.model, **self.data)

    def close(self) -> None:
        """End the task of the search."""
        if self.search is not None:
            search, self.search = self.search, None
            search.call_on_fit_task_end(estimator=self.model, **self.data)
