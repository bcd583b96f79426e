"""What the classifier and the regressor for tables share: from raw tables to a frozen record."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from lssvm._core.arrays import FloatArray, IntArray
from lssvm._core.device import find_device
from lssvm._core.errors import InvalidInputError
from lssvm._core.memory import as_bytes
from lssvm._core.progress import Progress
from lssvm._core.random import as_generator
from lssvm._core.threads import n_threads
from lssvm.kernels import mean_outer_product
from lssvm.parts import DeviceParts, HostParts, PartsEngine, Rows
from lssvm.preparation import PreparedTable, TablePreparation
from lssvm.recipes import (
    INPUTS,
    KERNELS,
    PRESETS,
    Configuration,
    Problem,
    TableContext,
    TableFit,
    TableSettings,
    fit_table,
)
from lssvm.recipes.clock import Clock
from lssvm.recipes.configurations import Inputs, Member
from lssvm.tasks import Classes, Numbers
from lssvm.tasks.weights import check_weight as check_row_weight

_LOOKED_AT = 600  # rows whose gradients the importances are made of


class TableModel(BaseEstimator):
    """Parameters and fitted attributes of the models for tables."""

    def __init__(
        self,
        preset: str = "balanced",
        *,
        time_limit: float | None = None,
        scoring: Any = None,
        inputs: Any = "auto",
        kernel: Any = "auto",
        metric: Any = "auto",
        part_size: Any = "auto",
        n_trees: Any = "auto",
        device: Any = None,
        memory_budget: Any = None,
        n_jobs: int | None = None,
        random_state: Any = 0,
        verbose: int = 0,
    ) -> None:
        self.preset = preset
        self.time_limit = time_limit
        self.scoring = scoring
        self.inputs = inputs
        self.kernel = kernel
        self.metric = metric
        self.part_size = part_size
        self.n_trees = n_trees
        self.device = device
        self.memory_budget = memory_budget
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    # --- fitting ---------------------------------------------------------------------------------

    def _settings(self, n: int) -> TableSettings:
        """Return the recipe's settings from the parameters."""
        if self.preset not in PRESETS:
            raise InvalidInputError(
                f"preset={self.preset!r} is not known: choose one of {', '.join(PRESETS)}."
            )
        inputs = _one_of("inputs", self.inputs, INPUTS)
        kernels = _one_of("kernel", self.kernel, KERNELS)
        values: dict[str, Any] = {
            "configurations": tuple(Configuration(i, k) for k in kernels for i in inputs),
            "engine": self._engine(),
            "seed": int(as_generator(self.random_state).integers(2**31)),
        }
        if self.metric not in ("auto", None):
            raise InvalidInputError(
                f"metric={self.metric!r} is not usable: give 'auto' (learned where it helps) or "
                "None (no metric)."
            )
        if self.metric is None:
            values["rounds"] = 0
        for name in ("part_size", "n_trees"):
            given = getattr(self, name)
            if isinstance(given, str) and given == "auto":
                continue
            if not isinstance(given, (int, np.integer)) or isinstance(given, bool) or given < 1:
                raise InvalidInputError(
                    f"{name}={given!r} is not usable: give 'auto' or an int >= 1."
                )
            values[name] = int(given)
        ask = TableSettings.preset(self.preset, **values)
        largest = ask.engine.largest_part(as_bytes(self.memory_budget))
        return replace(ask, largest=max(min(ask.largest, largest), 100))

    def _engine(self) -> PartsEngine:
        """Return who computes: threads, or a device."""
        place = find_device(self.device, None, dispatch=False)
        if place is None:
            return HostParts(n_threads(self.n_jobs))
        limit = None if self.memory_budget is None else as_bytes(self.memory_budget)
        return DeviceParts(replace(place, limit=limit))

    def _fit_numbers(
        self,
        X: Any,
        y: Any,
        Y: FloatArray,
        classes: IntArray | None,
        weight: FloatArray,
        groups: Any,
        task: Classes | Numbers,
        shift: FloatArray,
        scale: FloatArray,
    ) -> None:
        """Prepare the rows of positive weight, run the recipe, judge and publish its record."""
        limit = self.time_limit
        if limit is not None and not (isinstance(limit, (int, float)) and limit > 0):
            raise InvalidInputError(
                f"time_limit={limit!r} is not usable: give a number of seconds > 0, or None."
            )
        clock = Clock(None if limit is None else float(limit))
        ask = self._settings(len(Y))
        labels = None
        if groups is not None:
            labels = np.unique(np.asarray(groups), return_inverse=True)[1].ravel().astype(np.intp)
            if len(labels) != len(Y):
                raise InvalidInputError(
                    f"groups has {len(labels)} entries but X has {len(Y)} rows: give one per row."
                )
        needed = sorted({c.inputs for c in ask.configurations}, key=INPUTS.index)
        prepared: dict[Inputs, PreparedTable] = {}
        tables: dict[Inputs, FloatArray] = {}
        for name in needed:
            preparation = TablePreparation(**_preparation_parameters(name, task, ask.seed))
            tables[name] = preparation.fit_transform(X, y, sample_weight=weight, groups=groups)
            prepared[name] = preparation.prepared_
        used = np.flatnonzero(weight > 0)
        problem = Problem(
            {name: table[used] for name, table in tables.items()},
            Y[used],
            weight[used],
            None if labels is None else labels[used],
            None if classes is None else classes[used],
        ).merged()
        # C counts rows of mean weight.
        weight_scale = float(problem.weight.mean())
        scaled = replace(problem, weight=problem.weight / weight_scale)
        fit = fit_table(scaled, ask, clock, Progress(self.verbose))
        context = TableContext(
            prepared,
            hasattr(preparation, "feature_names_in_"),
            task,
            shift,
            scale,
            weight_scale,
            ask.seed,
            problem.n,
            _importances(fit, prepared),
        )
        self._publish(replace(fit, context=self._judge(problem, fit, context)))

    @abstractmethod
    def _judge(self, problem: Problem, fit: TableFit, context: TableContext) -> TableContext:
        """Score and calibrate the held-out outputs."""

    def _publish(self, fit: TableFit) -> TableContext:
        """Keep the record, and set what follows from it as attributes."""
        context = fit.context
        assert context is not None
        self.record_ = fit
        self.preparations_ = {
            name: TablePreparation.of(
                prepared,
                texts=context.texts,
                **_preparation_parameters(name, context.task, context.seed),
            )
            for name, prepared in context.prepared.items()
        }
        self.n_features_in_ = context.n_columns
        if context.texts:
            self.feature_names_in_ = np.array(context.any_prepared.names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        self.weight_scale_ = context.weight_scale
        self.configurations_ = {
            "inputs": [t.configuration.inputs for t in fit.trials],
            "kernel": [t.configuration.kernel for t in fit.trials],
            "rounds": [t.rounds for t in fit.trials],
            "error": [t.error for t in fit.trials],
            "weight": [t.weight for t in fit.trials],
            "seconds": [t.seconds for t in fit.trials],
            "stage": [t.stage for t in fit.trials],
        }
        self.part_size_ = fit.part_size
        self.feature_importances_ = context.importances
        self.best_score_ = context.best_score
        self.summary_ = _summary(fit, context.n_rows)
        return context

    @property
    def metric_(self) -> FloatArray:
        """The metric of the configuration with the largest weight, shape (d, d)."""
        check_is_fitted(self, "record_")
        fit: TableFit = self.record_
        best = max(fit.members, key=lambda m: m.weight)
        return best.metric.matrix(best.model.cuts[0].leaves[0].rows.X.shape[1])

    # --- prediction ------------------------------------------------------------------------------

    def _prepare(self, X: Any) -> dict[Inputs, FloatArray]:
        check_is_fitted(self, "record_")
        return {name: p.transform(X) for name, p in self.preparations_.items()}

    def _outputs(self, X: Any) -> FloatArray:
        """Return the stacked outputs of raw rows, shape (n, k)."""
        prepared = self._prepare(X)
        fit: TableFit = self.record_
        return fit.outputs(prepared, engine=self._engine())

    # --- updates ---------------------------------------------------------------------------------

    def _update(self, X: Any, Y: FloatArray, weight: FloatArray, *, forget: bool) -> None:
        """Send rows to their parts and solve those again."""
        check_is_fitted(self, "record_")
        fit: TableFit = self.record_
        fit.need("all", "Adding or removing rows")
        prepared = self._prepare(X)
        engine = self._engine()
        members = []
        for member in fit.members:
            mapped = member.metric.apply(prepared[member.configuration.inputs])
            rows = Rows(mapped, Y, weight / self.weight_scale_)
            model = (
                member.model.forget(rows, engine=engine)
                if forget
                else member.model.learn(rows, engine=engine)
            )
            members.append(replace(member, model=model))
        self._publish(replace(fit, members=tuple(members)))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags


def check_weight(X: Any, sample_weight: Any) -> FloatArray:
    """Return one weight per row of a table.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.estimators.table_model import check_weight
    >>> check_weight(np.ones((3, 1)), None)
    array([1., 1., 1.])
    """
    n = _n_rows(X)
    weight = check_row_weight(sample_weight, n)
    return np.ones(n) if weight is None else weight


def _n_rows(X: Any) -> int:
    """Return the number of rows of a table, whatever it is."""
    shape = getattr(X, "shape", None)
    if shape is not None and len(shape):
        return int(shape[0])
    if isinstance(X, Mapping):
        return max((len(column) for column in X.values()), default=0)
    if hasattr(X, "__len__"):
        return len(X)
    if hasattr(X, "__array__"):
        return len(np.asarray(X))
    raise InvalidInputError(
        f"X is a {type(X).__name__}: give a data frame, an Arrow table, a mapping of columns or an "
        "array of shape (n, d)."
    )


def _one_of(name: str, given: Any, known: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the values that a parameter asks for: 'auto' is all of them."""
    if isinstance(given, str) and given == "auto":
        return known
    wanted = (given,) if isinstance(given, str) else tuple(given)
    if not wanted or any(value not in known for value in wanted):
        raise InvalidInputError(
            f"{name}={given!r} is not usable: give 'auto', or one or more of {', '.join(known)}."
        )
    return wanted


def _preparation_parameters(inputs: Inputs, task: Classes | Numbers, seed: int) -> dict[str, Any]:
    """Return the parameters of the preparation of one kind of inputs."""
    target = "classes" if isinstance(task, Classes) else "numbers"
    return {"numbers": inputs, "target": target, "random_state": seed % 2**31}


def _importances(fit: TableFit, prepared: Mapping[Inputs, PreparedTable]) -> FloatArray:
    """Return how much the output changes along every column, summing to 1."""
    n = len(next(iter(prepared.values())).columns)
    total = np.zeros(n)
    for member in fit.members:
        slopes = _mean_squared_slopes(member)
        sources = np.asarray(prepared[member.configuration.inputs].sources, dtype=np.intp)
        if slopes.sum() > 0:
            total += np.bincount(sources, member.weight * slopes / slopes.sum(), minlength=n)
    return total / total.sum() if total.sum() > 0 else total


def _mean_squared_slopes(member: Member) -> FloatArray:
    """Return the mean squared slope of a member along every prepared feature, shape (d,)."""
    leaves = member.model.cuts[0].leaves
    most = max(1, _LOOKED_AT // len(leaves))
    total = np.zeros(leaves[0].rows.X.shape[1])
    for leaf in leaves:
        Z = leaf.rows.X
        kernel = member.configuration.make_kernel(leaf.setting.gamma)
        step = max(1, len(Z) // most)
        total += len(Z) * mean_outer_product(
            kernel, Z[::step], Z, leaf.fit.coef, metric=member.metric, shape="diagonal"
        )
    return total


def _summary(fit: TableFit, n_rows: int) -> str:
    """Return what was chosen, and why, in words."""
    parts = [len(member.model.cuts[0].leaves) for member in fit.members]
    how = (
        "each an exact model of all rows"
        if max(parts) == 1
        else f"each in {max(parts)} parts of at most {fit.part_size} rows"
    )
    lines = [f"{len(fit.members)} configurations for {n_rows} rows, {how}."]
    for trial in fit.trials:
        name = str(trial.configuration)
        if trial.rounds:
            name += f", metric of {trial.rounds} round{'s' if trial.rounds > 1 else ''}"
        share = (
            f"weight {trial.weight:.2f}" if trial.weight > 0 else f"left out after {trial.stage}"
        )
        lines.append(f"- {name}: {share}, out-of-sample error {trial.error:.4g} of the variance.")
    return "\n".join(lines)


def held_out_scorer(
    scoring: Any, predictions: Mapping[str, Any], y: Any, weight: FloatArray
) -> float:
    """Return the score of held-out predictions by a scorer of scikit-learn.

    Parameters
    ----------
    scoring : str or callable
    predictions : mapping from methods ("predict", "predict_proba", ...) to their results
    y : array of shape (n,)
    weight : array of shape (n,)

    Returns
    -------
    float

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.estimators.table_model import held_out_scorer
    >>> held_out_scorer("accuracy", {"predict": np.array([0, 1])}, np.array([0, 0]), np.ones(2))
    0.5
    """
    from sklearn.metrics import get_scorer

    scorer = get_scorer(scoring) if isinstance(scoring, str) else scoring
    stand_in = HeldOut(predictions)
    rows = np.zeros((len(y), 1))
    return float(scorer(stand_in, rows, y, sample_weight=weight))


class HeldOut(BaseEstimator):
    """A stand-in whose predictions are known: what scorers see of the held-out rows."""

    def __init__(self, predictions: Mapping[str, Any]) -> None:
        self.predictions = predictions
        classes = predictions.get("classes")
        if classes is not None:
            self.classes_ = classes
            self._estimator_type = "classifier"

    def predict(self, X: Any) -> Any:
        """Return the held-out predictions."""
        return self.predictions["predict"]

    def predict_proba(self, X: Any) -> Any:
        """Return the held-out probabilities."""
        return self.predictions["predict_proba"]

    def decision_function(self, X: Any) -> Any:
        """Return the held-out decision values."""
        return self.predictions["decision_function"]

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import ClassifierTags

        tags = super().__sklearn_tags__()
        if "classes" in self.predictions:
            tags.estimator_type = "classifier"
            tags.classifier_tags = ClassifierTags()
        else:
            tags.estimator_type = "regressor"
        return tags
