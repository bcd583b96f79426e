"""The preparation as a scikit-learn transformer."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from lssvm._core.arrays import FloatArray, check_weight
from lssvm._core.errors import InvalidInputError, level_of_caller, not_known, not_usable
from lssvm.data.columns import RawTable, column_names, read_table
from lssvm.data.preparation import (
    Learned,
    PreparationSettings,
    PreparedTable,
    learn,
)
from lssvm.data.raw import RawBlock, TableRows

METHODS = ("standardised", "quantiles")
TARGETS = ("auto", "classes", "numbers")


HEADINGS = ("column", "kind", "done", "why", "features")


class PreparationReport(dict[str, list[str | int]]):
    """A dict from headings to lists, one entry for each column, that prints as a table.

    Examples
    --------
    >>> from lssvm.preparation import TablePreparation
    >>> report = TablePreparation().fit({"age": [20, 40], "one": [1, 1]}).report_
    >>> report["column"], report["done"]
    (['age', 'one'], ['standardised', 'dropped'])
    """

    @classmethod
    def of(cls, prepared: PreparedTable) -> PreparationReport:
        """Return the report of a preparation.

        Parameters
        ----------
        prepared : PreparedTable
            What was learned from a table.
        """
        rows = [(c.name, c.kind, c.done, c.why, c.width) for c in prepared.columns]
        return cls({h: [row[i] for row in rows] for i, h in enumerate(HEADINGS)})

    def __str__(self) -> str:
        columns = [[h, *map(str, self[h])] for h in HEADINGS]
        widths = [max(map(len, column)) for column in columns]
        lines = []
        for row in zip(*columns, strict=True):
            cells = [cell.ljust(w) for cell, w in zip(row[:-1], widths[:-1], strict=True)]
            lines.append("  ".join([*cells, row[-1].rjust(widths[-1])]))
        return "\n".join(lines)


def takes_tables(tags: Any) -> Any:
    """Return the tags of an estimator that takes raw tables."""
    tags.input_tags.allow_nan = True
    tags.input_tags.string = True
    tags.input_tags.categorical = True
    tags.input_tags.sparse = True
    return tags


@dataclass(eq=False, repr=False)
class TablePreparation(TransformerMixin, BaseEstimator):
    """Convert a raw table into numbers on one scale.

    Numbers, booleans, text and categories, dates and durations, with or without missing values,
    of a data frame (pandas, polars), an Arrow table, a mapping of columns or an array.

    Parameters
    ----------
    numbers : {"standardised", "quantiles"} or mapping from columns to these, default="standardised"
        "standardised": mean 0 and deviation 1. "quantiles": normal scores, the quantiles of a
        normal distribution at the ranks of the numbers (equal numbers share their middle rank),
        clipped at 3 and standardised again; better for long tails. Numbers outside those of
        training get the score of the nearest end. Columns that a mapping does not name are
        standardised.
    rare : int or float, default=5
        Levels of a category in fewer rows than this (a float below 1: a smaller share of the rows)
        are pooled to one level.
    max_levels : int, default=50
        Categories with more levels are encoded by the target. Without ``y``, the most frequent
        ``max_levels`` levels have indicators and the others are pooled.
    category_scale : float, default=1.0
        Two different levels of a category are ``sqrt(2) * category_scale`` apart; sqrt(2) is the
        root mean square distance of two rows in a standardised number. Three or more levels have
        one feature each, that is ``category_scale`` where the level is there and 0 elsewhere; two
        levels, and booleans, share one feature that is +- ``sqrt(1/2) * category_scale``.
    smoothing : float or "auto", default="auto"
        The mean target of a level in W rows counts with W / (W + smoothing), the mean of all rows
        with the rest. "auto" estimates it from how much targets vary between and within levels;
        if levels differ only by chance, the feature is 0.
    target : {"auto", "classes", "numbers"}, default="auto"
        What ``y`` holds. "auto": text, booleans and whole numbers with at most 50 different values
        are classes. Classes give one feature for each class but the first, numbers one for each
        column of ``y``.
    cv : int, splitter or iterable of (train, test), default=10
        Folds in which the rows of `fit_transform` are encoded by the target. A number assigns rows
        by their content; a scikit-learn splitter is used unchanged and has to test every row once.
    drop : bool or list of str, default=True
        Columns to drop. True drops those that are constant, equal to another one, text that is
        different in (nearly) every row and whose words do not lower the held-out error, and whole
        numbers that run from 0 or 1 on or are called an id, and predict nothing: rows next to each
        other in them have targets no more alike than shuffled rows. A list names columns to drop as
        well. False keeps all that can be used. `report_` and a warning name dropped columns with
        the reason.
    keep : list of str, default=()
        Columns that are not dropped, whatever they look like.
    ordered : mapping from columns to lists of levels, optional
        Categories whose levels have an order, such as ``{"size": ["S", "M", "L"]}``: they become
        one number, the place of the level. Ordered categoricals of pandas and Arrow are known.
    parse_dates : bool, default=True
        Read text as dates where every value is one (2024-01-31, 31.1.2024, 1/31/2024 10:29 AM,
        Aug 18, 2024, 2024Q3, with or without a time and an offset from UTC), numbers such as
        20240131 too, and text as times of the day (10:29). `report_` names the order of day and
        month that the values show; `prepared_.guesses` and a warning name what is a guess.
    encode_values : bool, default=True
        From 10,000 rows on, encode repeated values of a number by the target too, in addition to
        the number itself, where held-out rows are predicted clearly better than by a smooth
        function of the number: codes, round amounts. At most three features for each column.
    random_state : int, default=0
        Seed of the hash that assigns rows to folds.

    Attributes
    ----------
    report_ : PreparationReport
        For each column: kind, what was done, why, and its number of features. A dict of lists that
        prints as a table; ``pandas.DataFrame(preparation.report_)`` makes a frame of it.
    prepared_ : PreparedTable
        The frozen record that `transform` is a function of.
    n_features_in_ : int
    feature_names_in_ : array of str
        Only where the columns have names that are text.

    Notes
    -----
    **Missing values** in training: numbers and dates get the median, booleans the middle, and an
    additional indicator; categories get a separate level. A value that is missing only in new
    rows is filled too: the median, the middle, and for categories what an unknown level gets. There
    is no indicator in that case.

    **New rows**: columns are matched by name in any order; a used column that is missing is an
    error, additional ones are ignored, as in `sklearn.compose.ColumnTransformer`. A column with
    another type than in training (text for numbers, for example "3,5") is an error; booleans can be
    given as 0 and 1, and the reverse. Infinite numbers are errors. A level that did not occur in
    training belongs to the pool of rare levels; if there is no pool, and with an encoding by the
    target, it is 0 in all features of the column. `unseen` counts such levels.

    **Honesty**: `fit_transform` encodes every training row by the targets of the other folds only,
    including mean, scale and smoothing. Folds are assigned by the content of the rows (or by
    ``groups``), so that equal rows share a fold, and neither the order of rows and columns nor
    their units change anything; where equal rows are observations of a few categories, with
    different targets, they are assigned one by one. `transform` of training rows does not do this:
    use what `fit_transform` returns to fit a model.

    **Weights**: a weight of 2 counts as the row twice, a weight of 0 drops the row. (Weights that
    add up to less than the number of rows are scaled up to it, so that `rare` and `smoothing` can
    count. Where rows are assigned one by one, a row that is there twice may be in two folds, one of
    weight 2 is in one; what is learned is the same.)

    Dates become days (treated as numbers are) and, where the training rows span more than one of
    them, points on the circles of the year, the week and the day, by the clock of their time zone.

    O(n log n) time for each column of numbers, O(n) for the others.

    Examples
    --------
    >>> from lssvm.preparation import TablePreparation
    >>> table = {
    ...     "age": [20, 40, None, 60],
    ...     "job": ["cook", "smith", "smith", "cook"],
    ...     "town": ["Delft"] * 4,
    ... }
    >>> preparation = TablePreparation(rare=1)
    >>> preparation.fit_transform(table).round(2).tolist()
    [[-1.22, -0.71, -0.71], [0.0, -0.71, 0.71], [0.0, 0.71, 0.71], [1.22, -0.71, -0.71]]
    >>> preparation.get_feature_names_out().tolist()
    ['age', 'age=(missing)', 'job=smith']
    >>> for column, why in zip(preparation.report_["column"], preparation.report_["why"]):
    ...     print(f"{column}: {why}")
    age: 3 different numbers; missing ones get the median, 40
    job: 2 levels
    town: it is 'Delft' in every row
    """

    numbers: str | Mapping[str, str] = "standardised"
    _: KW_ONLY
    rare: float = 5
    max_levels: int = 50
    category_scale: float = 1.0
    smoothing: float | str = "auto"
    target: str = "auto"
    cv: Any = 10
    drop: bool | Sequence[str] = True
    keep: Sequence[str] = ()
    ordered: Mapping[str, Sequence[Any]] | None = None
    parse_dates: bool = True
    encode_values: bool = True
    random_state: int | None = 0

    def fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, groups: Any = None
    ) -> TablePreparation:
        """Learn the preparation of a table.

        Parameters
        ----------
        X : data frame, Arrow table, mapping from names to columns, or array of shape (n, columns)
            Rows to learn from.
        y : array of shape (n,) or (n, k), optional
            Targets; only categories with many levels need them.
        sample_weight : array of shape (n,), optional
            Weights of the rows; a weight of 0 leaves a row out.
        groups : array of shape (n,), optional
            Rows of one group share a fold.

        Returns
        -------
        TablePreparation
        """
        self._learn(X, y, sample_weight, groups)
        return self

    def fit_transform(
        self, X: Any, y: Any = None, sample_weight: Any = None, groups: Any = None
    ) -> FloatArray:
        """Learn, and return the features of the training rows, encoded out of fold.

        Parameters
        ----------
        X, y, sample_weight, groups
            As in `fit`.

        Returns
        -------
        array of shape (n, d)
        """
        return fit_features(self, X, y, sample_weight, groups)[0]

    def transform(self, X: Any) -> FloatArray:
        """Convert rows into features.

        Parameters
        ----------
        X : data frame, Arrow table, mapping from names to columns, or array of shape (n, columns)
            Rows with the columns of the fit.

        Returns
        -------
        array of shape (n, d)
        """
        table = self._read(X)
        return self.prepared_.encode(table)

    def _read(self, X: Any) -> RawTable:
        """Return the used columns of rows, checked."""
        X = X.table if isinstance(X, RawBlock) else X
        prepared = self._record(X)
        table = prepared.read(X)
        prepared.warn_of_unseen(table)
        return table

    def unseen(self, X: Any) -> dict[str, dict[str, int]]:
        """Count the levels of categories that did not occur in training.

        Parameters
        ----------
        X : as in `transform`
            Rows to look at.

        Returns
        -------
        dict from columns to dicts from levels to numbers of rows

        Examples
        --------
        >>> from lssvm.preparation import TablePreparation
        >>> preparation = TablePreparation(rare=1).fit({"job": ["cook", "smith", "smith"]})
        >>> preparation.unseen({"job": ["pilot", "cook", "pilot"]})
        {'job': {'pilot': 2}}
        """
        return self._record(X).unseen(X)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Return the names of the features.

        Parameters
        ----------
        input_features : array of str, optional
            Other names for the columns of an array.

        Returns
        -------
        array of str
            ``age``; ``age=(missing)``; ``job=cook``, ``job=(rare)``; ``town:target=yes``;
            ``when:year_sin``.
        """
        check_is_fitted(self)
        prepared: PreparedTable = self.prepared_
        columns = prepared.names
        if input_features is not None:
            columns = tuple(str(name) for name in input_features)
            if len(columns) != self.n_features_in_:
                raise InvalidInputError(
                    "input_features should have length equal to number of features "
                    f"({self.n_features_in_}), got {len(columns)}."
                )
            if hasattr(self, "feature_names_in_") and columns != prepared.names:
                raise InvalidInputError(
                    "input_features is not equal to feature_names_in_: give the names that the "
                    "table had in fit, or None."
                )
        return np.array(prepared.names_of(columns), dtype=object)

    def to_record(self) -> dict[str, Any]:
        """Return what was learned as nested dicts and lists of strings, numbers and arrays.

        Returns
        -------
        dict
            ``format``, ``named`` and ``columns``; nothing in it needs pickle.
        """
        check_is_fitted(self)
        record: dict[str, Any] = self.prepared_.to_record()
        return record

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> TablePreparation:
        """Return a fitted preparation; parameters of `fit`, which is over, are the defaults.

        Parameters
        ----------
        record : dict
            What `to_record` returned.

        Examples
        --------
        >>> from lssvm.preparation import TablePreparation
        >>> rows = {"age": [20, 40, 60], "member": [True, False, True]}
        >>> record = TablePreparation().fit(rows).to_record()
        >>> TablePreparation.from_record(record).transform({"age": [40], "member": [None]}).tolist()
        [[0.0, 0.0]]
        """
        return cls.of(PreparedTable.from_record(record))

    @classmethod
    def of(
        cls, prepared: PreparedTable, *, texts: bool = True, **parameters: Any
    ) -> TablePreparation:
        """Return a fitted preparation from what was learned.

        Parameters
        ----------
        prepared : PreparedTable
            What was learned.
        texts : bool, default=True
            Whether names of columns are published as ``feature_names_in_``.
        **parameters
            Those of the constructor.

        Examples
        --------
        >>> from lssvm.preparation import TablePreparation
        >>> learned = TablePreparation("quantiles").fit({"age": [20, 40, 60]}).prepared_
        >>> same = TablePreparation.of(learned, numbers="quantiles")
        >>> same.transform({"age": [20, 60]}).round(3).tolist()
        [[-1.225], [1.225]]
        """
        new = cls(**parameters)
        new._publish(prepared, texts)
        return new

    def _learn(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        groups: Any,
        known: tuple[RawTable, Learned] | None = None,
    ) -> tuple[RawTable, Learned]:
        settings = self._settings()
        table, learned = (read_table(X), None) if known is None else known
        if table.n_rows == 0:
            raise InvalidInputError(
                f"X has 0 sample(s) (shape=(0, {len(table.columns)})) while a minimum of 1 is "
                "required."
            )
        if y is not None and len(np.asarray(y)) != table.n_rows:
            raise InvalidInputError(
                f"y has {len(np.asarray(y))} targets but X has {table.n_rows} rows: give one for "
                "each row."
            )
        weight = check_weight(sample_weight, table.n_rows)
        learned = learn(table, y, weight, groups, settings, learned)
        names = getattr(X, "column_names", getattr(X, "columns", ()))  # of Arrow tables, of frames
        names = X.names if isinstance(X, RawTable) else names
        texts = table.named and all(isinstance(name, str) for name in names)
        self._publish(learned.prepared, texts)
        learned.prepared.warn_of_columns()
        return table, learned

    def _publish(self, prepared: PreparedTable, texts: bool = True) -> None:
        self.prepared_ = prepared
        self.report_ = PreparationReport.of(prepared)
        self.n_features_in_ = len(prepared.columns)
        if prepared.named and texts:
            self.feature_names_in_ = np.array(prepared.names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    def _record(self, X: Any) -> PreparedTable:
        check_is_fitted(self)
        prepared: PreparedTable = self.prepared_
        named = column_names(X) is not None
        if named != prepared.named:
            now, then = ("has", "without") if named else ("does not have valid", "with")
            warnings.warn(
                f"X {now} feature names, but TablePreparation was fitted {then} feature names: "
                "columns are taken by position.",
                UserWarning,
                stacklevel=level_of_caller(),
            )
        return prepared

    def _settings(self) -> PreparationSettings:
        methods = self.numbers.values() if isinstance(self.numbers, Mapping) else [self.numbers]
        for method in methods:
            if method not in METHODS:
                raise InvalidInputError(
                    f"numbers={self.numbers!r} is not usable: choose one of {METHODS}, or a "
                    "mapping from columns to these."
                )
        if self.target not in TARGETS:
            raise not_known("target", self.target, f"choose one of {TARGETS}.")
        _check_number("rare", self.rare, 0, "a number of rows, or a share below 1")
        _check_number("max_levels", self.max_levels, 1, "a whole number from 1 on", whole=True)
        _check_number("category_scale", self.category_scale, 1e-300, "a number above 0")
        splits = hasattr(self.cv, "split") or hasattr(self.cv, "__iter__")
        splits = splits and not isinstance(self.cv, str)
        if not splits:
            needed = "a number of folds from 2 on, a splitter, or pairs (train, test)"
            _check_number("cv", self.cv, 2, needed, whole=True)
        if self.smoothing != "auto":
            _check_number("smoothing", self.smoothing, 0, "'auto' or a number from 0 on")
        seed = 0 if self.random_state is None else self.random_state
        _check_number("random_state", seed, 0, "a whole number from 0 on", whole=True)
        settings: dict[str, Any] = self.get_params(deep=False)
        del settings["random_state"]
        settings["smoothing"] = None if self.smoothing == "auto" else float(self.smoothing)
        settings["max_levels"] = int(self.max_levels)
        settings["cv"] = self.cv if splits else int(self.cv)
        switch = isinstance(self.drop, bool | np.bool_)
        settings["drop"] = bool(self.drop) if switch else True
        settings["dropped"] = () if switch else _names("drop", self.drop)
        settings["keep"] = _names("keep", self.keep)
        both = sorted(set(settings["keep"]) & set(settings["dropped"]))
        if both:
            raise InvalidInputError(f"drop= and keep= both name the columns {both}.")
        if not isinstance(self.ordered, Mapping | None):
            raise not_usable("ordered", self.ordered, "give a dict from columns to their levels.")
        settings["ordered"] = {str(k): list(v) for k, v in (self.ordered or {}).items()}
        return PreparationSettings(**settings, seed=int(seed))

    def __sklearn_tags__(self) -> Any:
        tags = takes_tables(super().__sklearn_tags__())
        tags.transformer_tags.preserves_dtype = ["float64"]
        return tags


def _names(option: str, names: Any) -> tuple[str, ...]:
    if isinstance(names, str) or not hasattr(names, "__iter__"):
        raise InvalidInputError(f"{option}={names!r} is not usable: give a list of column names.")
    return tuple(str(name) for name in names)


@dataclass(frozen=True)
class Scalings:
    """Preparations of the same columns that differ in how numbers are scaled.

    Attributes
    ----------
    by_name : mapping from names to fitted TablePreparation
    """

    by_name: Mapping[Any, TablePreparation]

    def transform(self, X: Any) -> dict[Any, FloatArray]:
        """Return the features of each preparation, shape (n, d); the rows are read once."""
        table = next(iter(self.by_name.values()))._read(X)
        return {name: one.prepared_.encode(table) for name, one in self.by_name.items()}


def fit_features(
    preparation: TablePreparation,
    X: Any,
    y: Any,
    sample_weight: Any,
    groups: Any,
    known: tuple[RawTable, Learned] | None = None,
) -> tuple[FloatArray, tuple[RawTable, Learned]]:
    """Fit a preparation; return the features of its rows, and what has been read and learned.

    Parameters
    ----------
    preparation : TablePreparation
    X, y, sample_weight, groups
        As in `TablePreparation.fit`.
    known : (RawTable, Learned), optional
        Of a preparation of the same rows that differs in ``numbers`` only: nothing is read again,
        and only numbers are learned again.

    Returns
    -------
    features : array of shape (n, d)
    known : (RawTable, Learned)
    """
    table, learned = preparation._learn(X, y, sample_weight, groups, known)
    return learned.transform(TableRows(table), learned.positions), (table, learned)


def _check_number(name: str, value: Any, least: float, needed: str, whole: bool = False) -> None:
    usable = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    usable = usable and np.isfinite(value) and value >= least
    if not usable or (whole and value != int(value)):
        raise InvalidInputError(f"{name}={value!r} is not usable: give {needed}.")
