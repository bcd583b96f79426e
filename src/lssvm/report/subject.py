"""What a report is about: the model, its rows and its predictions, read once."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from lssvm._core.errors import InvalidInputError
from lssvm.plots.fitted import fitted_model, require
from lssvm.report.markup import Markup, tag
from lssvm.report.predictions import ClassPredictions, predict_rows
from lssvm.report.refits import out_of_fold
from lssvm.report.rows import Rows
from lssvm.report.scales import count


@dataclass(eq=False)
class Subject:
    """A fitted model with the rows a report looks at.

    Attributes
    ----------
    estimator : object
        As given: a model of lssvm, or a pipeline that ends in one.
    model : object
        The model itself.
    train : Rows
    test : Rows or None
    found : ClassPredictions or NumberPredictions
        Of the test rows, or out of fold.
    checked : Rows
        The rows of ``found``.
    notes : list of str
        What a reader should know; sections add to it.
    facts : dict
        What `lssvm.report.write_report` returns; sections add to it.
    """

    estimator: Any
    model: Any
    train: Rows
    test: Rows | None
    found: Any
    checked: Rows
    notes: list[str] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def read(cls, estimator: Any, train: Any, test: Any) -> Subject:
        """Read rows and predict them.

        Notes
        -----
        Without test rows the model is fitted five times more, see
        `lssvm.report.refits.out_of_fold`.
        """
        model = fitted_model(estimator)
        require(model, ("dual_coef_", "intercept_"), "a report")
        rows = Rows.read(estimator, train)
        if test is not None:
            checked = Rows.read(estimator, test)
            found = predict_rows(estimator, checked)
            return cls(estimator, model, rows, checked, found, checked)
        if _precomputed(model):
            raise InvalidInputError(
                "A report on a model with kernel='precomputed' needs test=(K, y), the kernel of "
                "test rows with the training rows, because it cannot be fitted to other rows."
            )
        found, checked = out_of_fold(estimator, rows)
        return cls(estimator, model, rows, None, found, checked)

    @property
    def classification(self) -> bool:
        """Whether the model predicts classes."""
        return isinstance(self.found, ClassPredictions)

    @property
    def has_features(self) -> bool:
        """Whether rows are features, not kernel values."""
        return not _precomputed(self.model)

    @property
    def target(self) -> str:
        """What is predicted."""
        names = self.train.target
        if not names:
            return "the target"
        return " and ".join(names) if len(names) <= 2 else f"{len(names)} targets"

    @property
    def rows_said(self) -> str:
        """Say how many rows the figures come from."""
        n = count(len(self.checked))
        if self.test is None:
            return f"{n} rows, each predicted by a copy of the model that had not seen it"
        if self.test.complete:
            return f"{n} rows that the model had not seen"
        return f"{n} rows drawn from {count(self.test.n_rows)} that the model had not seen"


def _precomputed(model: Any) -> bool:
    kernel = getattr(model, "kernel", None)
    return isinstance(kernel, str) and kernel == "precomputed"


@dataclass(frozen=True)
class Section:
    """A part of the page.

    Attributes
    ----------
    key : str
        For links.
    title : str
    menu : str
        Title in the list at the top.
    body : Markup
    """

    key: str
    title: str
    menu: str
    body: Markup

    def html(self) -> Markup:
        """Return the part with its heading."""
        heading = tag("h2", self.title, id=f"{self.key}-title")
        attention = "attention" if self.key == "notes" else None
        return tag(
            "section",
            heading,
            self.body,
            id=self.key,
            class_=attention,
            aria_labelledby=f"{self.key}-title",
        )


def support_size(model: Any) -> int:
    """Return the number of basis functions of a model."""
    return int(np.atleast_2d(np.asarray(model.dual_coef_)).shape[0])
