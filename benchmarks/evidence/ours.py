"""Our models as methods: defaults, presets, ingredients taken away, other settings."""

from __future__ import annotations

from dataclasses import fields, replace
from functools import partial
from typing import Any
from unittest.mock import patch

from benchmarks.evidence.methods import Ask, Group, Method, NotThereError
from lssvm import LSSVMClassifier, LSSVMRegressor
from lssvm.estimators import table_fit
from lssvm.estimators.table_fit import settings_of
from lssvm.fitting import TableSettings


def _table(ask: Ask, **settings: Any) -> Any:
    kind = LSSVMRegressor if ask.numbers else LSSVMClassifier
    return kind(random_state=ask.seed, n_jobs=ask.threads, **settings)


def _table_without_kernel(ask: Ask, *, left_out: str) -> Any:
    from lssvm.fitting import KERNELS

    # The smooth one is whichever of the three is neither of the others.
    others = {"exponential", "laplacian"}
    smooth = next(k for k in KERNELS if k not in others)
    away = smooth if left_out == "gaussian" else left_out
    return _table(ask, kernel=[k for k in KERNELS if k != away])


class _Changed:
    """A model for tables whose recipe has some settings changed."""

    changes: dict[str, Any]

    def fit(self, *data: Any, **options: Any) -> Any:
        """Fit with the changed settings."""
        with patch.object(table_fit, "settings_of", self.settings):
            return super().fit(*data, **options)  # type: ignore[misc]

    def settings(self, model: Any, data: Any) -> TableSettings:
        """Return the settings of the model, changed."""
        return replace(settings_of(model, data), **self.changes)


class ChangedClassifier(_Changed, LSSVMClassifier):
    """Of classes."""


class ChangedRegressor(_Changed, LSSVMRegressor):
    """Of numbers."""


def _without(ask: Ask, *, ingredient: str) -> Any:
    """Return the default model with one field of its settings switched off."""
    known = {field.name: field for field in fields(TableSettings)}
    if ingredient not in known:
        raise NotThereError(f"TableSettings has no field {ingredient!r}: it cannot be taken away")
    model = (ChangedRegressor if ask.numbers else ChangedClassifier)(
        random_state=ask.seed, n_jobs=ask.threads
    )
    model.changes = {ingredient: switched_off(known[ingredient].default)}
    return model


def switched_off(default: Any) -> Any:
    """Return what takes an ingredient away: False, 0, or None, by its default."""
    if isinstance(default, bool):
        return False
    return type(default)(0) if isinstance(default, (int, float)) else None


class BestMember:
    """The model for tables without its stack: the member of the smallest out-of-sample error.

    Probabilities and intervals are those of the whole stack and are not offered.
    """

    def __init__(self, model: Any) -> None:
        self.model = model

    def fit(self, X: Any, y: Any) -> BestMember:
        """Fit the whole model and keep one member."""
        self.model.fit(X, y)
        record = self.model.record_

        def error(member: Any) -> float:
            return min(
                float(t.error)
                for t in record.tuning.trials
                if str(t) == str(member) and t.rounds == member.rounds
            )

        best = min(record.members, key=error)
        self.model.record_ = replace(record, members=(replace(best, weight=1.0),))
        return self

    def predict(self, X: Any) -> Any:
        """Return what that member says."""
        return self.model.predict(X)


def _single(ask: Ask) -> Any:
    return BestMember(_table(ask))


def _fixed(ask: Ask, **settings: Any) -> Any:
    from lssvm import FixedSizeLSSVC, FixedSizeLSSVR

    kind = FixedSizeLSSVR if ask.numbers else FixedSizeLSSVC
    return kind(random_state=ask.seed, n_jobs=ask.threads, **settings)


def _dual(ask: Ask, **settings: Any) -> Any:
    from lssvm import LSSVC, LSSVR

    kind = LSSVR if ask.numbers else LSSVC
    return kind(random_state=ask.seed, n_jobs=ask.threads, **settings)


class SinglePrecision:
    """A model that is given float32 rows."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def fit(self, X: Any, y: Any) -> SinglePrecision:
        """Fit rounded rows."""
        self.model.fit(X.astype("float32"), y)
        return self

    def predict(self, X: Any) -> Any:
        """Predict rounded rows."""
        return self.model.predict(X.astype("float32"))


def _single_precision(ask: Ask, *, fixed: bool) -> Any:
    return SinglePrecision(_fixed(ask) if fixed else _dual(ask))


def _tables(name: str, label: str, settings: str, group: Group, make: Any) -> Method:
    return Method(name, label, group, "frame", make, settings)


def _kernels(name: str, label: str, settings: str, group: Group, make: Any) -> Method:
    return Method(name, label, group, "standardised", make, settings)


INGREDIENTS = ("ties", "rounds", "warps", "values", "log-loss", "logistic", "other-classes")
"""Fields of `TableSettings` that are switched off one at a time, with hyphens."""

METHODS = [
    _tables("table", "lssvm tables", "preset=\"balanced\", the default", "ours", _table),
    _tables("table-fast", "lssvm tables, fast", "preset=\"fast\"", "ours",
            partial(_table, preset="fast")),
    _tables("table-best", "lssvm tables, best", "preset=\"best\"", "ours",
            partial(_table, preset="best")),
    _kernels("fixed", "lssvm fixed size", "defaults: C and gamma by cross-validation, 5 sqrt(n) "
             "random prototypes", "ours", _fixed),
    _kernels("dual", "lssvm dual", "defaults: C=1, gamma=\"scale\"", "ours", _dual),
    _kernels("dual-tuned", "lssvm dual, tuned", "C=\"cv\", gamma=\"cv\"; at most 2,000 rows",
             "ours", partial(_dual, C="cv", gamma="cv")),
    _tables("table-without-metric", "without a metric", "metric=None", "ablation",
            partial(_table, metric=None)),
    _tables("table-without-quantiles", "without quantiles", "scaling=\"standardised\"", "ablation",
            partial(_table, scaling="standardised")),
    _tables("table-without-standardised", "without standardised inputs", "scaling=\"quantiles\"",
            "ablation", partial(_table, scaling="quantiles")),
    *(
        _tables(f"table-without-{kernel}", f"without the {kernel} kernel",
                "kernel= the other two", "ablation",
                partial(_table_without_kernel, left_out=kernel))
        for kernel in ("gaussian", "exponential", "laplacian")
    ),
    _tables("table-without-prototypes", "without prototypes", "n_prototypes=0", "ablation",
            partial(_table, n_prototypes=0)),
    _tables("table-without-stacking", "without stacking", "the member of the smallest "
            "out-of-sample error of the same fit", "ablation", _single),
    *(
        _tables(f"table-without-{name}", f"without {name.replace('-', ' ')}",
                f"the setting `{name.replace('-', '_')}` switched off", "ablation",
                partial(_without, ingredient=name.replace("-", "_")))
        for name in INGREDIENTS
    ),
    Method("table-numbers", "lssvm tables, the peers' inputs", "variant", "numbers", _table,
           "the default, with medians and indicators as the peers have"),
    *(
        _tables(f"table-parts-{size}", f"parts of {size:,} rows", f"leaf_size={size}", "variant",
                partial(_table, leaf_size=size))
        for size in (500, 1000, 2000, 4000)
    ),
    _tables("table-two-trees", "two trees", "n_trees=2", "variant", partial(_table, n_trees=2)),
    *(
        _kernels(f"fixed-{rule}", f"prototypes: {rule}", f"selection=\"{rule}\"", "variant",
                 partial(_fixed, selection=rule))
        for rule in ("renyi", "kmeans", "rpcholesky")
    ),
    _kernels("fixed-float32", "fixed size, float32", "float32 rows", "variant",
             partial(_single_precision, fixed=True)),
    _kernels("dual-float32", "dual, float32", "float32 rows", "variant",
             partial(_single_precision, fixed=False)),
]  # fmt: skip
METHODS = [replace(m, most_rows=2000) if m.name == "dual-tuned" else m for m in METHODS]
