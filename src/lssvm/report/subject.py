"""What a report is about: the model, its rows and its predictions, read once."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from lssvm._core.errors import InvalidInputError
from lssvm.plots.fitted import Predictor, fitted_model, require
from lssvm.report.formats import count
from lssvm.report.measures import ClassPredictions, NumberPredictions, predict_rows
from lssvm.report.model_facts import is_precomputed, is_table
from lssvm.report.refits import out_of_fold
from lssvm.report.sample import SampledRows


@dataclass(eq=False)
class Subject:
    """A fitted model with the rows a report looks at.

    Attributes
    ----------
    estimator : Predictor
        As given: a model of lssvm, or a pipeline that ends in one.
    model : Predictor
        The model itself.
    train : SampledRows
    test : SampledRows or None
    predictions : ClassPredictions or NumberPredictions
        Of the test rows, or out of fold.
    checked : SampledRows
        The rows of ``predictions``.
    notes : list of str
        What a reader should know; sections add to it.
    facts : dict
        What `lssvm.report.write_report` returns; sections add to it.
    """

    estimator: Predictor
    model: Predictor
    train: SampledRows
    test: SampledRows | None
    predictions: ClassPredictions | NumberPredictions
    checked: SampledRows
    notes: list[str] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def read(cls, estimator: Predictor, train: Any, test: Any) -> Subject:
        """Read rows and predict them.

        Notes
        -----
        Without test rows the model is fitted five times more, see
        `lssvm.report.refits.out_of_fold`.
        """
        model = fitted_model(estimator)
        if not is_table(model):
            require(model, ("dual_coef_", "intercept_"), "a report")
        rows = SampledRows.read(estimator, train)
        if test is not None:
            checked = SampledRows.read(estimator, test)
            return cls(estimator, model, rows, checked, predict_rows(estimator, checked), checked)
        if is_precomputed(model):
            raise InvalidInputError(
                "A report on a model with kernel='precomputed' needs test=(K, y), the kernel of "
                "test rows with the training rows, because it cannot be fitted to other rows."
            )
        predictions, checked = out_of_fold(estimator, rows)
        return cls(estimator, model, rows, None, predictions, checked)

    @property
    def classification(self) -> bool:
        """Whether the model predicts classes."""
        return isinstance(self.predictions, ClassPredictions)

    @property
    def classes(self) -> ClassPredictions:
        """The predictions of a classifier."""
        assert isinstance(self.predictions, ClassPredictions)
        return self.predictions

    @property
    def numbers(self) -> NumberPredictions:
        """The predictions of a regressor."""
        assert isinstance(self.predictions, NumberPredictions)
        return self.predictions

    @property
    def has_features(self) -> bool:
        """Whether rows are features, not kernel values."""
        return not is_precomputed(self.model)

    @property
    def target(self) -> str:
        """What is predicted."""
        names = self.train.target
        return (" and ".join(names) if len(names) <= 2 else f"{len(names)} targets") or "the target"

    @property
    def rows_said(self) -> str:
        """Say how many rows the figures come from."""
        n = count(len(self.checked))
        if self.test is None:
            return f"{n} rows, each predicted by a copy of the model that had not seen it"
        if self.test.complete:
            return f"{n} rows that the model had not seen"
        return f"{n} rows drawn from {count(self.test.n_rows)} that the model had not seen"
