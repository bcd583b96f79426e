"""What the classifier and the regressor for tables share: from raw tables to a frozen record."""

from __future__ import annotations

import time
import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any, Self, TypeVar

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from lssvm._core.arrays import AnyArray, FloatArray, IntArray
from lssvm._core.blocks import as_bytes, n_threads, one_blas_thread
from lssvm._core.errors import ColumnWarning, InvalidInputError, Stopped, not_known, not_usable
from lssvm._core.progress import Progress
from lssvm._core.random import RandomState, as_generator
from lssvm.data.dataset import Dataset, open_dataset
from lssvm.data.folds import observation_weight
from lssvm.data.preparation import Learned, PreparedTable
from lssvm.data.raw import RawBlock, TableRows
from lssvm.data.sampling import Sample
from lssvm.estimators.explaining import Groups, Wish, explain_table, joined
from lssvm.estimators.table_scoring import ClassScorer, NumberScorer, decide, read_scorer
from lssvm.estimators.validation import check_groups
from lssvm.explanations import Explanation
from lssvm.fitting import (
    INPUTS,
    KERNELS,
    PRESETS,
    Configuration,
    Interrupted,
    Problem,
    TableContext,
    TableFit,
    TableSettings,
    fit_table,
)
from lssvm.fitting.compression import Teacher, compress_table
from lssvm.fitting.input_metric import check_length, read_metric
from lssvm.fitting.problem import AllRows, Encode
from lssvm.fitting.record import Resources
from lssvm.fitting.stacking import StackLoss, fit_stack
from lssvm.fitting.table import SMALL
from lssvm.fitting.table_prototypes import change_beside
from lssvm.fitting.table_record import Inputs, Member
from lssvm.fitting.table_work import Clock
from lssvm.kernels import Metric
from lssvm.kernels.metric import mean_outer_product
from lssvm.local import PartsEngine, Rows
from lssvm.local.cluster import find_engine
from lssvm.preparation import TablePreparation
from lssvm.tasks import Classes, Numbers

MANY = 400_000
"""Rows from which on everything but the parts is chosen by a sample."""
SAMPLE = 100_000
"""Rows of that sample."""
_OF_TRIALS = ("rounds", "error", "weight", "seconds", "stage", "warped")
_LOOKED_INTO = 100  # parts whose gradients the importances are made of
_FEW_ROWS = 2000  # below them systems are too small for several threads of BLAS
_LOOKED_AT = 600  # rows whose gradients the importances are made of


_PARAMETERS = """preset : {"balanced", "fast", "best"}, default="balanced"
        How much is tried. "fast": at most two configurations, in small parts; "best": all six, more
        rounds, two trees of large parts.
    time_limit : float, default=None
        Seconds that ``fit`` should stay below: stages are shortened or skipped. Without it the
        result does not depend on the speed of the machine.
    scoring : str or callable, default=None
        A scorer of scikit-learn: configurations and stacks are chosen by it, and ``best_score_`` is
        its value for held-out predictions. None is %(score)s, with choices by squared errors. C,
        gamma, metrics and weights are always those of the smallest squared errors.
    drop : bool or list of str, default=True
        Columns to drop: a list names some; True drops those that are constant, empty, equal to
        another one or ids, False none that can be used. A warning, ``summary_`` and
        ``preparations_[...].prepared_.dropped`` name dropped columns with the reason.
    keep : list of str, default=()
        Columns that are not dropped, whatever they look like.
    ordered : mapping from columns to lists of levels, optional
        Categories whose levels have an order, such as ``{"size": ["S", "M", "L"]}``. Ordered
        categoricals of pandas and Arrow are known.
    inputs : "auto", {"standardised", "quantiles"} or a list of them, default="auto"
        Scales that are tried.
    kernel : "auto", {"rbf", "exponential", "laplacian"} or a list of them, default="auto"
        Kernels that are tried.
    metric : "auto", "diagonal", "full", None or array, default="auto"
        "auto" learns a metric of the inputs if it lowers the error on held-out rows: a full matrix,
        for the Laplacian kernel a diagonal. "diagonal" and "full" do so with that shape for all
        kernels. An array of shape (d,) or (d, d) multiplies the d prepared features, whose names
        are ``preparations_[...].get_feature_names_out()``; nothing is learned then.
    part_size : "auto" or int, default="auto"
        Rows that share an exact model; "auto" decides by cost.
    n_trees : "auto" or int, default="auto"
        Differently cut trees of parts that are averaged.
    n_prototypes : "auto" or int, default="auto"
        Prototypes of a global model, in addition to the parts; 0 for none. "auto": as many as a
        fifth of the parts' cost allows, where a few of them are about as good as small parts; none
        with "fast", on a GPU, whose parts are larger, and beyond 400,000 rows.
    device : None, "cpu", "cuda", "cuda:1", ... or torch.device, default=None
        Where exact models, gradients and outputs are computed; None: on this machine's cores. The
        same numbers up to rounding; by default parts are larger on a GPU, which is faster.
    memory_budget : int, str or None, default=None
        Bytes, or a string such as "2 GB"; limits the matrices of the parts that are computed at a
        time, and beyond 400,000 rows the rows that the model keeps. The prepared table, of 8 bytes
        for each number and way of scaling, and what is computed from it for all rows come on top.
    n_jobs : int, default=None
        Threads; None for all cores.
    random_state : int, Generator, RandomState or None, default=0
        For samples of rows and folds.
    verbose : int, default=0
        1 shows what is tried and the best loss so far, 2 every step."""

_ATTRIBUTES = """configurations_ : dict of lists
        What was tried: inputs, kernel, rounds of the metric, out-of-sample error (of the variance),
        weight in the stack, seconds, the stage it reached, whether the metric is a warp.
        ``pandas.DataFrame`` takes it.
    summary_ : str
        What was chosen, and why.
    best_score_ : float
        %(Score)s (or ``scoring``) of held-out predictions: rows by models, metrics and weights that
        have not seen their targets. An estimate of the score on new rows, without the bias that R2
        has for few rows.
    metric_ : array of shape (d, d)
        Of the configuration with the largest weight, for the prepared features.
    feature_importances_ : array of shape (n_columns,)
        Mean squared slope of the model along the columns, summing to 1.
    record_ : TableFit
        The frozen record.
    preparations_ : dict from inputs to TablePreparation
    part_size_ : int
    n_features_in_ : int
    feature_names_in_ : array of str"""

_NOTES = """Ctrl-C during ``fit`` raises KeyboardInterrupt. Where a configuration was fitted to all
    rows by then, the model of what was finished is kept, else the estimator is what it was before.
    """

Kind = TypeVar("Kind", bound=type)


def share_documentation(score: str) -> Callable[[Kind], Kind]:
    """Fill in what the estimators for tables share: %(parameters)s, %(attributes)s, %(notes)s.

    Parameters
    ----------
    score : str
        What is reported without ``scoring``.
    """

    def fill(kind: Kind) -> Kind:
        assert kind.__doc__ is not None
        words = {"score": score, "Score": score[0].upper() + score[1:]}
        words |= {
            "parameters": _PARAMETERS % words,
            "attributes": _ATTRIBUTES % words,
            "notes": _NOTES.rstrip(),
        }
        kind.__doc__ %= words
        return kind

    return fill


@dataclass(eq=False, repr=False)
class TableModel(BaseEstimator):
    """Parameters and fitted attributes of the models for tables."""

    preset: str = "balanced"
    _: KW_ONLY
    time_limit: float | None = None
    scoring: Any = None
    drop: bool | Sequence[str] = True
    keep: Sequence[str] = ()
    ordered: Mapping[str, Sequence[Any]] | None = None
    inputs: Any = "auto"
    kernel: Any = "auto"
    metric: Any = "auto"
    part_size: Any = "auto"
    n_trees: Any = "auto"
    n_prototypes: Any = "auto"
    device: Any = None
    memory_budget: Any = None
    n_jobs: int | None = None
    random_state: Any = 0
    verbose: int = 0

    record_: TableFit = field(init=False)
    preparations_: dict[Inputs, TablePreparation] = field(init=False)
    n_features_in_: int = field(init=False)
    feature_names_in_: AnyArray = field(init=False)
    weight_scale_: float = field(init=False)
    configurations_: dict[str, list[Any]] = field(init=False)
    part_size_: int = field(init=False)
    feature_importances_: FloatArray = field(init=False)
    best_score_: float = field(init=False)
    summary_: str = field(init=False)

    # --- fitting ---------------------------------------------------------------------------------

    def _settings(self, n: int) -> TableSettings:
        """Return the recipe's settings from the parameters."""
        if self.preset not in PRESETS:
            raise not_known("preset", self.preset, f"choose one of {', '.join(PRESETS)}.")
        inputs = _one_of("inputs", self.inputs, INPUTS)
        kernels = _one_of("kernel", self.kernel, KERNELS)
        values: dict[str, Any] = {
            "configurations": tuple(Configuration(i, k) for k in kernels for i in inputs),
            "engine": self._engine(),
            "seed": self._seed(),
        }
        if self.metric is None:
            values["rounds"] = 0
        elif not (isinstance(self.metric, str) and self.metric == "auto"):
            wish = read_metric(self.metric)
            values |= {"rounds": 0, "metric": wish} if isinstance(wish, Metric) else {"shape": wish}
        names = {"part_size": "leaf_size", "n_trees": "n_trees", "n_prototypes": "n_prototypes"}
        for name, least in (("part_size", 1), ("n_trees", 1), ("n_prototypes", 0)):
            given = getattr(self, name)
            if isinstance(given, str) and given == "auto":
                continue
            if not isinstance(given, (int, np.integer)) or isinstance(given, bool) or given < least:
                raise not_usable(name, given, f"give 'auto' or an int >= {least}.")
            values[names[name]] = int(given)
        ask = TableSettings.preset(self.preset, **values)
        largest = ask.engine.largest_part(as_bytes(self.memory_budget))
        return replace(ask, largest=max(min(ask.largest, largest), 100))

    def _preparation(self, inputs: Inputs, task: Classes | Numbers, seed: int) -> dict[str, Any]:
        """Return the parameters of the preparation of one kind of inputs."""
        target = "classes" if isinstance(task, Classes) else "numbers"
        columns = {"drop": self.drop, "keep": self.keep, "ordered": self.ordered}
        return columns | {"numbers": inputs, "target": target, "random_state": seed % 2**31}

    def _seed(self) -> int:
        return int(as_generator(self.random_state).integers(2**31))

    def _engine(self, data: Dataset | None = None) -> PartsEngine:
        """Return who computes: threads, a device, or the cluster that has the data."""
        limit = None if self.memory_budget is None else as_bytes(self.memory_budget)
        return find_engine(self.device, data, n_threads(self.n_jobs), limit)

    def _open(
        self, X: Any, y: Any, sample_weight: Any, groups: Any, *, classes: bool
    ) -> tuple[Dataset, Sample | None]:
        """Open a table; where there are very many rows, also draw a sample of them."""
        data = open_dataset(X, y, sample_weight, groups)
        if data.n_rows == 0:
            raise InvalidInputError("X has 0 sample(s) while a minimum of 1 is required.")
        if data.n_rows <= MANY or groups is not None or not data.has_target:
            return data, None
        return data, data.sample(SAMPLE, seed=self._seed(), classes=classes)

    def _all_rows(self, data: Dataset, drawn: Sample, encode: Encode) -> AllRows:
        """Return all rows of very many, of which some were drawn."""
        resources = as_bytes(self.memory_budget), n_threads(self.n_jobs)
        return AllRows(data, encode, drawn.positions, *resources)

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
        large: AllRows | None = None,
        scored: FloatArray | None = None,
    ) -> None:
        """Prepare the rows of positive weight, fit, score and publish the record.

        Where there are very many rows, these are a sample of them.
        """
        limit = self.time_limit
        if limit is not None and not (isinstance(limit, (int, float)) and limit > 0):
            raise not_usable("time_limit", limit, "give a number of seconds > 0, or None.")
        clock = Clock(None if limit is None else float(limit))
        read_scorer(self.scoring)
        ask = self._settings(len(Y))
        if large is not None and ask.n_prototypes:
            raise not_usable(
                "n_prototypes",
                self.n_prototypes,
                f"prototypes beside parts need the rows in memory, and {large.n_rows:,} are "
                "too many: give 'auto' or 0.",
            )
        if large is not None:
            ask = replace(ask, engine=self._engine(large.data))
        labels = None
        if groups is not None:
            groups = check_groups(groups, len(Y))
            labels = np.unique(groups, return_inverse=True)[1].ravel().astype(np.intp)
            if len(np.unique(labels[weight > 0])) < 2:
                raise InvalidInputError(
                    "Rows are left out by groups, but all rows of positive weight are in one: give "
                    "at least 2 groups, or leave groups out."
                )
        tell = Progress(self.verbose)
        needed = sorted({c.inputs for c in ask.configurations}, key=INPUTS.index)
        prepared: dict[Inputs, PreparedTable] = {}
        tables: dict[Inputs, FloatArray] = {}
        for number, name in enumerate(needed):
            if prepared and (clock.stopped or clock.over(0.3)):
                break  # without time for the other inputs
            text = f"preparation: {name}, {number + 1} of {len(needed)}, {clock.spent():.1f} s"
            try:
                tell({"stage": "preparation", "text": text})
            except Stopped:  # who listens wants whatever model there can be
                clock.stop()
            preparation = TablePreparation(**self._preparation(name, task, ask.seed))
            with warnings.catch_warnings():
                if prepared:  # the columns are the same
                    warnings.simplefilter("ignore", ColumnWarning)
                tables[name] = preparation.fit_transform(X, y, sample_weight=weight, groups=groups)
            prepared[name] = preparation.prepared_
            d = tables[name].shape[1]
            check_length(ask.metric, d, f"the {name} columns of X are {d} prepared features")
        used = np.flatnonzero(weight > 0)
        problem = Problem(
            {name: table[used] for name, table in tables.items()},
            Y[used],
            weight[used],
            None if labels is None else labels[used],
            None if classes is None else classes[used],
            None if scored is None else scored[used],
        )
        problem = problem.merged() if large is None else problem
        # C counts rows of mean weight.
        weight_scale = float(problem.weight.mean())
        scaled = problem.divided(weight_scale)
        # Calibration counts observations, whatever the scale of the weights.
        each = problem.score_weight
        problem = problem.divided(each.sum() / observation_weight(problem.n, each)[0])
        scorer = self._scorer(problem, task, shift, scale)
        scorer.check()
        if large is not None:
            drawn = large.sample[used]
            learned = {n: Learned.of(prepared[n], X, drawn) for n, X in problem.inputs.items()}
            large = replace(large, sample=drawn, learned=learned, scale=weight_scale)

        def finish(fit: TableFit) -> None:
            context = TableContext(
                prepared,
                hasattr(preparation, "feature_names_in_"),
                task,
                shift,
                scale,
                weight_scale,
                ask.seed,
                problem.n if large is None else large.n_rows,
                _importances(fit, prepared),
            )
            context = self._calibrated(problem, fit, context, scorer, clock)
            self._publish(replace(fit, context=context))

        try:
            # Leaves share the threads; only an exact model of many rows uses those of BLAS.
            single = n_threads(self.n_jobs) == 1 or not _FEW_ROWS <= problem.n < SMALL
            with one_blas_thread() if single else nullcontext():
                finish(fit_table(scaled, ask, clock, tell, scorer, large))
        except Interrupted as interrupted:
            finish(interrupted.fit)
            raise KeyboardInterrupt("The fit was interrupted; its best model is kept.") from None

    @abstractmethod
    def _scorer(
        self, problem: Problem, task: Classes | Numbers, shift: FloatArray, scale: FloatArray
    ) -> ClassScorer | NumberScorer:
        """Return what scores held-out outputs of a problem."""

    @abstractmethod
    def _calibrated(
        self,
        problem: Problem,
        fit: TableFit,
        context: TableContext,
        scorer: ClassScorer | NumberScorer,
        clock: Clock,
    ) -> TableContext:
        """Return the context with the score and the calibration of the held-out outputs."""

    def _publish(self, fit: TableFit) -> None:
        """Keep the record, and set what follows from it as attributes, all at once."""
        assert fit.context is not None
        found = self._attributes(fit, fit.context)
        stale = set() if fit.context.texts else {"feature_names_in_"}
        for name in stale & set(vars(self)):
            delattr(self, name)
        vars(self).update(found)

    def _attributes(self, fit: TableFit, context: TableContext) -> dict[str, Any]:
        """Return the fitted attributes of a record."""
        found: dict[str, Any] = {
            "record_": fit,
            "preparations_": {
                name: TablePreparation.of(
                    prepared,
                    texts=context.texts,
                    **self._preparation(name, context.task, context.seed),
                )
                for name, prepared in context.prepared.items()
            },
            "n_features_in_": context.n_columns,
            "weight_scale_": context.weight_scale,
            "configurations_": {
                "inputs": [t.configuration.inputs for t in fit.trials],
                "kernel": [t.configuration.kernel for t in fit.trials],
                **{name: [getattr(t, name) for t in fit.trials] for name in _OF_TRIALS},
            },
            "part_size_": fit.part_size,
            "feature_importances_": context.importances,
            "best_score_": context.best_score,
            "summary_": _summary(fit, context.n_rows, context.any_prepared),
        }
        if context.texts:
            found["feature_names_in_"] = np.array(context.any_prepared.names, dtype=object)
        return found

    @property
    def metric_(self) -> FloatArray:
        """The metric of the configuration with the largest weight, shape (d, d)."""
        check_is_fitted(self, "record_")
        fit = self.record_
        best = max(fit.members, key=lambda m: m.weight)
        return best.metric.matrix(best.model.cuts[0].leaves[0].rows.X.shape[1])

    # --- prediction ------------------------------------------------------------------------------

    def _prepare(self, X: Any) -> dict[Inputs, FloatArray]:
        check_is_fitted(self, "record_")
        return {name: p.transform(X) for name, p in self.preparations_.items()}

    def _blocks(self, X: Any) -> Iterator[Any]:
        """Yield rows as tables, block by block."""
        for block in self._columns(X).blocks():
            yield block.table

    def _columns(self, X: Any, y: Any = None, sample_weight: Any = None) -> Dataset:
        """Return a data set with the columns that the model was fitted to."""
        check_is_fitted(self, "record_")
        context = self.record_.context
        assert context is not None
        ready = context.any_prepared
        names, data = ready.used if context.texts else None, open_dataset(X, y, sample_weight)
        return data.select(names, self.n_features_in_, ready.kinds)

    def _with_targets(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Any, Any]:
        """Return rows, targets and weights."""
        rows = self._columns(X, y, sample_weight).read()
        return rows.table, rows.target, weights(rows)

    def _outputs(self, X: Any) -> FloatArray:
        """Return the stacked outputs of raw rows, shape (n, k)."""
        engine = self._engine()
        blocks = [
            self.record_.outputs(self._prepare(some), engine=engine) for some in self._blocks(X)
        ]
        return blocks[0] if len(blocks) == 1 else np.concatenate(blocks)

    # --- a small model ---------------------------------------------------------------------------

    def compress(self, n_support: int | Sequence[int] = 200) -> Self | list[Self]:
        """Return a small model that approximates this one.

        Parameters
        ----------
        n_support : int or sequence of int, default=200
            Support vectors that the small model keeps. A sequence gives a path of sizes.

        Returns
        -------
        estimator, or list of them
            Fitted: it takes the same raw columns, and it can be saved. Its ``best_score_``,
            probabilities and intervals come from rows that models of its size were not fitted to;
            ``summary_`` compares score, size and time of prediction with those of this model. It
            cannot learn or forget rows.

        Notes
        -----
        A fixed-size model with the inputs, the kernel and the metric of one configuration, fitted
        to the out-of-sample outputs of the parts of this model (below 5,000 rows: to the targets),
        its prototypes reduced by SPFS ([Mall2014]_); see
        `lssvm.fitting.compression.compress_table`.
        """
        check_is_fitted(self, "record_")
        fit = self.record_
        fit.need("all", "A small model")
        context = fit.context
        assert context is not None
        several = isinstance(n_support, Sequence)
        sizes = list(n_support) if isinstance(n_support, Sequence) else [n_support]
        whole = all(isinstance(s, (int, np.integer)) and not isinstance(s, bool) for s in sizes)
        if not sizes or not whole or min(sizes) < 1:
            raise not_usable("n_support", n_support, "give an int >= 1, or a list of them.")
        threads = n_threads(self.n_jobs)
        seconds = _time_of(fit.used)
        found = []
        teacher = Teacher.of(fit)
        classes = decide(teacher.Y) if isinstance(context.task, Classes) else None
        problem = Problem({}, teacher.Y, teacher.weight, None, classes)
        scorer = self._scorer(problem, context.task, context.shift, context.scale)
        for part in compress_table(fit, teacher, sizes, seed=context.seed, threads=threads):
            name = part.member.configuration.inputs
            own = replace(context, prepared={name: context.prepared[name]})
            loss: StackLoss = "squared" if classes is None else "log"
            Y, weight = teacher.Y[part.rows], teacher.weight[part.rows]
            stack = fit_stack([part.outputs], Y, weight, loss)
            held_out = np.full(teacher.Y.shape, np.nan)
            held_out[part.rows] = stack.outputs([part.outputs])
            record = replace(
                fit,
                members=(replace(part.member, weight=float(stack.weights[0])),),
                offset=stack.offset,
                trials=(),
                held_out=held_out,
                part_size=part.member.model.part_size,
            )
            own = self._calibrated(problem, record, own, scorer, Clock())
            rows = sum(len(leaf.rows.X) for m in fit.in_parts for leaf in m.model.cuts[0].leaves)
            note = (
                f"{len(part.member.model.cuts[0].leaves[0].rows.X)} support vectors in place of "
                f"{rows} kept rows ({part.member.configuration}): held-out score "
                f"{own.best_score:.4g} against {context.best_score:.4g}; 1,000 rows take "
                f"{_time_of((part.member,)):.2g} s against {seconds:.2g} s."
            )
            model = clone(self)
            small = replace(record, held_out=held_out[:0], context=own, stored="prediction")
            model._publish(replace(small, note=note))
            found.append(model)
        return found if several else found[0]

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
        """Return what every column adds to the outputs of a table's rows: Shapley values.

        Parameters
        ----------
        X : table of n rows
            Rows to explain.
        background : table or None, default=None
            Rows that absent columns take their values from, at most ``n_background`` of them (drawn
            at random). None: training rows that the parts of the model keep.
        groups : dict from str to list, or None, default=None
            Columns, by name or number, that are explained as one, such as the levels of a category
            that was encoded before; a column of the table is one anyhow, whatever features it
            becomes.
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
        Interventional Shapley values ([Janzing2020]_) of the table's own columns, averaged over the
        background rows. The members of the stack add up: those that are one model of all rows
        (exact, or of prototypes) with a Laplacian kernel, or with a Gaussian kernel without a full
        metric, have exact values; the others (full metrics, the exponential kernel, rows that a
        tree sends to parts) are sampled together by orders of the columns, and ``errors`` are their
        standard errors.

        Examples
        --------
        >>> import numpy as np
        >>> from lssvm import LSSVMRegressor
        >>> rows = {"age": np.arange(60.0), "job": ["cook", "smith", "pilot"] * 20}
        >>> model = LSSVMRegressor("fast").fit(rows, np.arange(60.0))
        >>> found = model.explain(rows)
        >>> found.feature_names, bool(np.allclose(found.prediction, model.predict(rows)))
        (('age', 'job'), True)
        """
        sampling = (n_background, n_permutations, interactions, random_state)
        wish = Wish(groups, *sampling, self.verbose)
        resources = Resources(as_bytes(self.memory_budget), n_threads(self.n_jobs))
        engine, against = self._engine(), None
        if background is not None:
            blocks = [self._prepare(some) for some in self._blocks(background)]
            against = {kind: np.concatenate([b[kind] for b in blocks]) for kind in blocks[0]}
        parts = [
            explain_table(self.record_, some, self._prepare(some), against, wish, resources, engine)
            for some in self._blocks(X)
        ]
        return parts[0] if len(parts) == 1 else joined(parts)

    # --- updates ---------------------------------------------------------------------------------

    def _update(self, X: Any, Y: FloatArray, weight: FloatArray, *, forget: bool) -> None:
        """Send rows to their parts and solve those again."""
        check_is_fitted(self, "record_")
        fit = self.record_
        fit.need("all", "Adding or removing rows")
        prepared = self._prepare(X)
        engine = self._engine()
        used = np.flatnonzero(weight > 0)
        members: list[Member] = []
        for member in sorted(fit.members, key=lambda m: m.beside):
            mapped = member.metric.apply(prepared[member.configuration.inputs])
            rows = Rows(mapped, Y, weight / self.weight_scale_).take(used)
            if member.beside:
                (parts,) = (m.model for m in members if m.is_of(member))
                threads = n_threads(self.n_jobs)
                members.append(change_beside(member, parts, rows, forget=forget, threads=threads))
                continue
            change = member.model.forget if forget else member.model.learn
            try:
                members.append(replace(member, model=change(rows, engine=engine)))
            except InvalidInputError as error:
                assert fit.context is not None
                encoded = fit.context.any_prepared.encoded_by_target
                if not (forget and encoded):
                    raise
                raise InvalidInputError(
                    f"{error} The columns {encoded} are encoded by the target, and differently for "
                    "rows of the first fit: only rows that partial_fit has added can be forgotten."
                ) from error
        self._publish(replace(fit, members=tuple(members)))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        tags.input_tags.sparse = True
        return tags


def weights(rows: RawBlock | TableRows) -> FloatArray:
    """Return the weights of rows, shape (n,)."""
    return np.ones(len(rows)) if rows.weight is None else rows.weight


def _one_of(name: str, given: Any, known: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the values that a parameter asks for: 'auto' is all of them."""
    if isinstance(given, str) and given == "auto":
        return known
    wanted = (given,) if isinstance(given, str) else tuple(given)
    if not wanted or any(value not in known for value in wanted):
        raise not_usable(name, given, f"give 'auto', or one or more of {', '.join(known)}.")
    return wanted


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
    leaves = leaves[:: -(-len(leaves) // _LOOKED_INTO)]
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


def _time_of(members: Sequence[Member]) -> float:
    """Return the seconds that 1,000 rows take."""
    total = 0.0
    for member in members:
        X = member.model.cuts[0].leaves[0].rows.X
        some = X[np.arange(1000) % len(X)]
        begin = time.perf_counter()
        member.model.outputs(some)
        total += time.perf_counter() - begin
    return total


def _summary(fit: TableFit, n_rows: int, prepared: PreparedTable) -> str:
    """Return what was chosen, and why, in words; then which columns are dropped or guessed."""
    columns = [f"- column {name!r} is dropped: {why}." for name, why in prepared.dropped.items()]
    columns += [f"- column {name!r}: {guess}." for name, guess in prepared.guesses.items()]
    if not fit.trials:
        return "\n".join([fit.note, *columns])
    in_parts = fit.in_parts
    parts = [len(member.model.cuts[0].leaves) for member in in_parts]
    several = len(in_parts) > 1
    each = "each " if several else ""
    if fit.note:
        how = f"{fit.part_size} {fit.note}"
    elif max(parts) == 1:
        how = f"{each}an exact model of all rows"
    else:
        how = f"{each}in {max(parts)} parts of at most {fit.part_size} rows"
    for member in fit.members:
        if member.beside:
            how += f", and {len(member.model.cuts[0].leaves[0].rows.X):,} prototypes of all of them"
    many = f"{len(in_parts)} configurations" if several else "1 configuration"
    lines = [f"{many} for {n_rows:,} rows, {how}."]
    if fit.interrupted:
        lines.append("The fit was interrupted: this is what was finished.")
    for trial in fit.trials:
        name = str(trial.configuration)
        if trial.rounds:
            what = "warp" if trial.warped else "metric"
            name += f", {what} of {trial.rounds} round{'s' if trial.rounds > 1 else ''}"
        if trial.stage == "prototypes":
            name += ", prototypes"
        share = f"weight {trial.weight:.2f}" if trial.weight > 0 else f"dropped after {trial.stage}"
        lines.append(f"- {name}: {share}, out-of-sample error {trial.error:.4g} of the variance.")
    return "\n".join([*lines, *_spent(fit), *columns])


def _spent(fit: TableFit) -> list[str]:
    """Return what the stages of a fit took, and what the steps that were not taken would gain."""
    seconds: dict[str, float] = {}
    for step in fit.spent:
        if step.taken:
            seconds[step.stage] = seconds.get(step.stage, 0.0) + step.seconds
    took = [f"{stage} {time:.1f} s" for stage, time in seconds.items() if time >= 0.05]
    lines = [f"Time: {', '.join(took)}."] if took else []
    lines += [
        f"- not worth its cost: {step.what}, gain {max(step.gain, 0.0):.2%} of the loss."
        for step in fit.spent
        if not step.taken and np.isfinite(step.gain)
    ]
    return lines
