"""What all estimators share: a fitted one has a record, from which predictions are computed."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from functools import partial
from threading import RLock
from typing import Any, Self, TypeVar, cast
from weakref import WeakKeyDictionary

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, MultiOutputMixin, RegressorMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from lssvm._core.arrays import AnyArray, Array, BoolArray, FloatArray, OnEvent, like
from lssvm._core.errors import InvalidInputError, Stopped
from lssvm._core.progress import Listener, Progress
from lssvm._core.random import RandomState
from lssvm.backends.host import Host, host_of
from lssvm.codes import Code, Coding
from lssvm.data.preparation import PreparedTable
from lssvm.estimators.opening import Inputs, open_rows
from lssvm.explanations import Explanation
from lssvm.fitting.explaining import (
    ExplainOptions,
    Groups,
    explain,
    plain_columns,
    table_columns,
)
from lssvm.fitting.record import Fit, Posteriors, Scaling
from lssvm.kernels.factory import KernelChoice
from lssvm.kernels.metric import MetricKernel
from lssvm.preparation import TablePreparation
from lssvm.tasks import Classes, Numbers
from lssvm.tuning.searches import check_option
from lssvm.uncertainty import Probabilities, Residuals, calibrate, check_coverage
from lssvm.uncertainty.probabilities import METHODS

Method = TypeVar("Method")
FitMethod = TypeVar("FitMethod", bound=Callable[..., Any])

try:
    from sklearn.callback import CallbackSupportMixin as CallbackSupportMixin
    from sklearn.callback import with_callbacks
except ImportError:  # scikit-learn before 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stands for scikit-learn's mixin where there is none: nothing can be registered."""

    def with_callbacks(method: Method) -> Method:
        """Return the method as it is."""
        return method


_LOCKS: WeakKeyDictionary[Any, RLock] = WeakKeyDictionary()
_LOCKS_LOCK = RLock()


def lock_of(estimator: BaseEstimator) -> RLock:
    """Return the lock that updates of an estimator take; it is not pickled with it."""
    with _LOCKS_LOCK:
        return _LOCKS.setdefault(estimator, RLock())


def reports(fit: FitMethod) -> FitMethod:
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
        arguments = inspect.signature(fit).bind(model, *args, **kwargs).arguments
        X, y = arguments.get("X"), arguments.get("y")
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

    return cast(FitMethod, reported)


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
        if event["n_evaluations"] < self._done:  # another stage, which counts its own
            self.close()
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


Computed = TypeVar("Computed")


class KernelEstimator(CallbackSupportMixin, BaseEstimator):
    """Base of the estimators: publishes a record, and opens the rows to predict."""

    C: Any
    fit_intercept: Any
    device: Any = None
    kernel: Any
    gamma: Any = "scale"
    memory_budget: Any
    n_jobs: int | None
    random_state: RandomState
    verbose: int
    record_: Fit[Any]
    dual_coef_: Any
    n_features_in_: int
    feature_names_in_: AnyArray
    preparation_: PreparedTable
    preparations_: dict[Scaling, TablePreparation]  # of models for tables

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "record_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        choice = self._kernel_choice()
        tags.input_tags.pairwise = choice.precomputed
        tags.input_tags.sparse = choice.accepts_sparse and not tags.array_api_support
        return tags

    def _kernel_choice(self) -> KernelChoice:
        return KernelChoice.of(self)

    def _host(self) -> Host:
        return host_of(self)

    def _forget_fit(self) -> None:
        """Remove what an earlier fit has left, so that a fit that fails leaves no fitted model."""
        for name in [n for n in vars(self) if n.endswith("_") and not n.startswith("_")]:
            delattr(self, name)

    def _publish(self, fit: Fit[Any], namespace_of: Array | None = None) -> Self:
        """Keep the record, and set what follows from it as attributes.

        Arrays are published in the namespace and on the device of ``namespace_of``.
        """
        published: dict[str, Any] = {} if fit.tuning is None else fit.tuning.published()
        published |= fit.state.published(fit)
        if isinstance(fit.task, Classes):
            published |= {"classes_": fit.task.classes, "code_": fit.task.code}
        if isinstance(self.kernel, MetricKernel):
            metric = self.kernel.metric
            full = isinstance(metric, str) and metric == "full"
            published["metric_"] = fit.main.metric.published(fit.main.model.n_features, full=full)
        if "none" in fit.prepared:
            self.preparation_ = fit.prepared["none"]
        for name, value in published.items():
            setattr(self, name, value if name == "classes_" else like(value, namespace_of))
        self._cache: dict[str, Any] = {}
        self.record_ = fit  # last: from here on the model is fitted
        return self

    def _inputs(self, X: Any, method: str = "predict") -> Inputs:
        """Return the rows that a method was called with, checked."""
        check_is_fitted(self)
        return open_rows(self, X).inputs(method)

    def _once(self, name: str, what: str, compute: Callable[[Fit[Any]], Computed]) -> Computed:
        """Return what is computed at its first use, where the fit has kept enough."""
        if name not in self._cache:
            self.record_.need("prediction", what)
            self._cache[name] = compute(self.record_)
        return cast(Computed, self._cache[name])

    def explain(
        self,
        X: Any,
        background: Any = None,
        *,
        groups: Groups | None = None,
        n_background: int | None = None,
        n_permutations: int | None = None,
        interactions: bool = False,
        random_state: RandomState = None,
    ) -> Explanation:
        """Return what every column adds to the outputs of rows: Shapley values.

        Parameters
        ----------
        X : what `predict` takes
            Rows to explain.
        background : the same or None, default=None
            Rows that absent columns take their values from, at most ``n_background`` of them (drawn
            at random). None: rows of the basis, that is
            support vectors or prototypes.
        groups : dict from str to list, or None, default=None
            Columns, by name or number, that are explained as one, such as the levels of a category
            that was encoded before; the
            columns of text of a scan are put together anyhow.
        n_background : int or None, default=None
            Background rows at most; None: 10 to 100, as many as a few seconds allow.
        n_permutations : int or None, default=None
            Orders of the columns for every row and background row, if values are sampled; None:
            2 to 10, as many as a few seconds allow.
        interactions : bool, default=False
            Also return the interactions of pairs of columns, if values are exact.
        random_state : int, Generator, RandomState or None, default=None
            Draws background rows and orders; None is a fixed seed.

        Returns
        -------
        lssvm.explanations.Explanation
            Of the predictions, or the decision values of a classifier; values and base values
            add up to it.

        Notes
        -----
        Interventional Shapley values ([Janzing2020]_), averaged over the background rows. Exact for
        the kernels "rbf" and "laplacian", with one gamma or one for every feature, for "linear" and
        "nonstationary": n B m triples of rows, background rows and support vectors cost O(d^1.5) to
        O(d^2) each (`lssvm.explanations.expansion`). Other kernels, and decision values that count
        votes, are sampled by orders of the columns (`lssvm.explanations.expansion`); ``errors`` of
        the result are their standard errors.

        Examples
        --------
        >>> import numpy as np
        >>> from lssvm import LSSVR
        >>> X = np.random.default_rng(0).normal(size=(80, 2))
        >>> model = LSSVR(C=100.0, gamma=0.1).fit(X, 3 * X[:, 0] - X[:, 1])
        >>> model.explain([[1.0, 1.0]], background=[[0.0, 0.0]]).values.round(1)
        array([[ 3., -1.]])
        """
        sampling = (n_background, n_permutations, interactions, random_state)
        options = ExplainOptions(groups, *sampling, self.verbose)
        rows, host = self._inputs(X, "explain"), self._host()
        features, against = rows.features(), None
        if background is not None:
            against = self._inputs(background, "explain").features()
        if self.record_.prepared:
            columns = table_columns(rows.data.read().table, self.record_.any_prepared)
        else:
            columns = plain_columns(features["none"], getattr(self, "feature_names_in_", None))
        return explain(self.record_, features, against, columns, options, host, rows.backend)


def _calibrates(model: KernelClassifier) -> bool:
    return Coding.of(model.multiclass).calibration is not None


class KernelClassifier(ClassifierMixin, KernelEstimator):
    """Methods of classifiers: decisions, probabilities, sets of classes."""

    multiclass: Any = "auto"
    class_weight: Any
    classes_: AnyArray
    code_: Code

    def _check_coding(self, *fixed: str) -> None:
        """Refuse what cannot be decoded or calibrated; some values cannot be chosen here."""
        coding, usual = Coding.of(self.multiclass), Coding()
        if coding.calibration is not None:
            check_option("calibration", coding.calibration, METHODS)
        for name in fixed:
            check_option(name, getattr(coding, name), (getattr(usual, name),))

    @property
    def _task(self) -> Classes:
        task = self.record_.task
        assert isinstance(task, Classes)
        return task

    def decision_function(self, X: Any) -> Any:
        """Return the outputs as scores.

        Parameters
        ----------
        X : array-like of shape (n, d), Scan, Dask array or data frame
            What `fit` takes, without a target.

        Returns
        -------
        array of shape (n,) for two classes, else (n, n_classes)
            For two classes positive on the side of the second; else the higher the likelier.
        """
        rows, task = self._inputs(X, "decision_function"), self._task
        empty = np.empty((0, task.n_classes) if task.n_classes > 2 else 0)
        return rows.apply(self.record_, task.scores, empty, "decision_function")

    def predict(self, X: Any) -> Any:
        """Return the classes.

        Parameters
        ----------
        X : array-like of shape (n, d)
            New rows.

        Returns
        -------
        array of shape (n,)
        """
        return self._predict_classes(X)

    def _predict_classes(self, X: Any, out: Any = None) -> Any:
        rows, task = self._inputs(X), self._task
        if out is not None:
            return rows.write(self.record_, task.predict, out)
        return rows.apply(self.record_, task.predict, task.classes[:0], "predict")

    @available_if(_calibrates)
    def predict_proba(self, X: Any) -> Any:
        """Return probabilities of the classes.

        Parameters
        ----------
        X : array-like of shape (n, d)
            New rows.

        Returns
        -------
        array of shape (n, n_classes)

        Notes
        -----
        Scores of rows that the model had not seen when it scored them are turned into
        probabilities by a sigmoid [Platt2000]_ or a monotone function: the scores of
        cross-validation if C or gamma were tuned, otherwise leave-one-out scores in closed form.
        Those of more than two classes are coupled from pairs [Wu2004]_ or normalised. The class
        of `predict` is the most probable one, unless decisions of a model for tables follow
        ``scoring``.
        """
        return self._probability_rows(X, class_probabilities, "predict_proba")

    @available_if(_calibrates)
    def predict_log_proba(self, X: Any) -> Any:
        """Return logarithms of `predict_proba`, shape (n, n_classes).

        Parameters
        ----------
        X : array-like of shape (n, d)
            New rows.
        """
        return self._probability_rows(X, _log_probabilities, "predict_log_proba")

    def _probability_rows(self, X: Any, work: Callable[..., FloatArray], method: str) -> Any:
        rows = self._inputs(X, method)
        work = partial(work, self._probabilities(), self._task)
        return rows.apply(self.record_, work, np.empty((0, self._task.n_classes)), method)

    @available_if(_calibrates)
    def predict_set(self, X: Any, coverage: float = 0.9) -> Any:
        """Return sets of classes that contain the right one with a given probability.

        Parameters
        ----------
        X : array-like of shape (n, d)
            New rows.
        coverage : float, default=0.9
            Between 0 and 1.

        Returns
        -------
        bool array of shape (n, n_classes)
            Which classes are in the set of a row; the predicted one always is.
        """
        coverage = check_coverage(coverage)
        rows = self._inputs(X, "predict_set")
        self.record_.need("prediction", "Prediction sets")
        work = partial(_class_sets, self._probabilities(), self._task, coverage)
        empty = np.empty((0, self._task.n_classes), dtype=bool)
        return rows.apply(self.record_, work, empty, "predict_set")

    def _probabilities(self) -> Probabilities:
        """Return the calibration, which is computed at its first use."""

        def compute(fit: Fit[Any]) -> Probabilities:
            assert fit.calibration is not None
            held_out = fit.calibration.out_of_fold(fit, self._host())
            method = Coding.of(self.multiclass).calibration or "auto"
            return calibrate(held_out, self._task.code, self._task.decoding, method)

        known = self.record_.calibrated
        if isinstance(known, Probabilities):
            return known
        return self._once("probabilities", "Probabilities", compute)


def class_probabilities(probabilities: Probabilities, task: Classes, raw: FloatArray) -> FloatArray:
    """Return the probabilities (n, n_classes) of outputs (n, k)."""
    return probabilities.of(np.asarray(raw, dtype=np.float64), task.decide(raw))


def _log_probabilities(probabilities: Probabilities, task: Classes, raw: FloatArray) -> FloatArray:
    p = class_probabilities(probabilities, task, raw)
    return np.asarray(np.log(np.maximum(p, np.finfo(np.float64).tiny)))


def _class_sets(
    probabilities: Probabilities, task: Classes, coverage: float, raw: FloatArray
) -> BoolArray:
    return probabilities.sets(np.asarray(raw, dtype=np.float64), task.decide(raw), coverage)


class KernelRegressor(MultiOutputMixin, RegressorMixin, KernelEstimator):
    """Methods of regressors with a posterior: predictions, standard deviations, intervals."""

    @property
    def _task(self) -> Numbers:
        task = self.record_.task
        assert isinstance(task, Numbers)
        return task

    def predict(self, X: Any, return_std: bool = False, return_cov: bool = False) -> Any:
        """Return predictions, with standard deviations or covariances on request.

        Parameters
        ----------
        X : array-like of shape (n, d)
            New rows.
        return_std : bool, default=False
            Also return the standard deviation of the function at every row.
        return_cov : bool, default=False
            Also return the covariance of the function between all rows.

        Returns
        -------
        y : array of shape (n,) or (n, n_outputs)
        std : array of the same shape
            With ``return_std``. That of an observation has ``noise_variance_`` added to its square.
        cov : array of shape (n, n) or (n, n, n_outputs)
            With ``return_cov``.
        """
        return self._predict_numbers(X, return_std, return_cov)

    def _predict_numbers(
        self, X: Any, return_std: bool = False, return_cov: bool = False, out: Any = None
    ) -> Any:
        if return_std and return_cov:
            raise InvalidInputError(
                "return_std and return_cov were both asked for: the standard deviations are the "
                "square roots of the diagonal of the covariance. Ask for one of them."
            )
        if out is not None and (return_std or return_cov):
            raise InvalidInputError("out= takes predictions alone: ask for error bars without it.")
        rows, task, fit = self._inputs(X), self._task, self.record_
        if out is not None:
            return rows.write(fit, task.predict, out)
        mean = rows.apply(fit, task.predict, task.predict(np.empty((0, task.n_outputs))), "predict")
        if return_cov:
            features = rows.mapped(fit)
            n = features.shape[0]
            cov = np.empty((n, n, task.n_outputs))
            for columns, posterior in self._posteriors():
                relative = posterior.covariance(features)
                cov[:, :, columns] = relative[:, :, None] * posterior.prior_variance
            return mean, rows.give(cov[:, :, 0] if task.single else cov)
        if return_std:
            std = np.sqrt(self._variance(rows.mapped(fit), noise=False))
            return mean, rows.give(task.predict(std))
        return mean

    def _posteriors(self) -> Posteriors:
        def compute(fit: Fit[Any]) -> Posteriors:
            assert fit.calibration is not None
            return fit.calibration.posteriors(fit, self._host())

        return self._once("posteriors", "Error bars", compute)

    @property
    def noise_variance_(self) -> Any:
        """Variance of the noise: a number, or one per output."""
        check_is_fitted(self)
        try:
            parts = self._posteriors()
        except InvalidInputError as error:  # there is no such attribute, as `hasattr` is to find
            raise AttributeError(str(error)) from error
        noise = np.empty(sum(len(columns) for columns, _ in parts))
        for columns, posterior in parts:
            noise[columns] = posterior.noise_variance
        if self._task.single:
            return float(noise[0])
        return like(noise, self.dual_coef_)

    def _variance(self, X: Any, *, noise: bool) -> FloatArray:
        """Return the variance of the function, or of a new observation, shape (n, k)."""
        parts = self._posteriors()
        out = np.empty((X.shape[0], sum(len(columns) for columns, _ in parts)))
        for columns, posterior in parts:
            out[:, columns] = posterior.variance(X)[:, None] * posterior.prior_variance
            if noise:
                out[:, columns] += posterior.noise_variance
        return out

    def _residuals(self) -> Residuals:
        def compute(fit: Fit[Any]) -> Residuals:
            assert fit.calibration is not None
            return fit.calibration.residuals(fit, self._host(), self._posteriors())

        known = self.record_.calibrated
        return (
            known if isinstance(known, Residuals) else self._once("residuals", "Intervals", compute)
        )

    def predict_interval(self, X: Any, coverage: float = 0.95) -> Any:
        """Return intervals that contain a new observation with a given probability.

        Parameters
        ----------
        X : array-like of shape (n, d)
            New rows.
        coverage : float, default=0.95
            Between 0 and 1.

        Returns
        -------
        array of shape (n, 2) or (n, n_outputs, 2)
            Lower and upper ends; each output has its own promise.

        Notes
        -----
        The prediction plus and minus a multiple of the local standard deviation of an observation.
        The multiple is the conformal quantile of the residuals of rows that the model had not seen
        when it predicted them, in units of the standard deviation there: the residuals of
        cross-validation if C or gamma were tuned, otherwise leave-one-out residuals in closed form.
        So the coverage does not rest on the Gaussian model, only the shape of the intervals does;
        it is the promise of the jackknife [Barber2021]_, which holds for rows drawn
        as the training rows were and a model that one row does not change much. Too few rows for a
        coverage give infinite intervals and a warning.

        The first call computes the residuals where `fit` has not; later ones cost what
        ``predict(X, return_std=True)`` costs.
        """
        coverage = check_coverage(coverage)
        rows, fit = self._inputs(X, "predict_interval"), self.record_
        raw = np.asarray(rows.outputs(fit), dtype=np.float64)
        spread = np.sqrt(self._variance(rows.mapped(fit), noise=True))
        return rows.give(intervals(self._task, raw, spread, self._residuals(), coverage))


def intervals(
    task: Numbers, raw: FloatArray, spread: FloatArray, residuals: Residuals, coverage: float
) -> FloatArray:
    """Return lower and upper ends around outputs (n, k), shape (n, 2) or (n, k, 2).

    ``spread`` (n, k) or (n, 1) is the local unit of the residuals.
    """
    factors = np.array([residuals.factor(coverage, j) for j in range(raw.shape[1])])
    return local_ends(task, raw, spread, factors)


def local_ends(
    task: Numbers, raw: FloatArray, spread: FloatArray, factors: FloatArray
) -> FloatArray:
    """Return outputs (n, k) plus factors (k, q) times their spread, shape (n, q) or (n, k, q)."""
    ends = []
    for factor in factors.T:
        with np.errstate(invalid="ignore"):  # 0 times infinity
            end = raw + spread * factor
        ends.append(task.shaped(task.in_units(np.where(np.isnan(end), factor, end))))
    return np.stack(ends, axis=-1)
