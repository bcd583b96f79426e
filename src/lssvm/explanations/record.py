"""An explanation: values of the columns that add up to the prediction."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from lssvm._core.arrays import AnyArray, FloatArray
from lssvm._core.errors import InvalidInputError, library, not_known


@dataclass(frozen=True, eq=False)
class Explanation:
    """What every column adds to the outputs of some rows.

    ``base_values`` plus the sum of ``values`` over the columns is what the model says.

    Attributes
    ----------
    values : array of shape (n, p) or (n, p, k)
        Shapley values of the columns; with a last axis for several outputs.
    base_values : array of shape (n,) or (n, k)
        Mean output of the background rows.
    data : array of shape (n, p)
        The rows, as they were given.
    feature_names : tuple of str
        Names of the p columns.
    output_names : tuple of str
        Names of the k outputs: classes or targets; for two classes the second.
    errors : array of the shape of ``values``
        Standard errors: 0 where values are exact.
    interactions : array of shape (n, p, p) or (n, p, p, k), or None
        Where they were asked for: half the interaction of two columns, and on the diagonal what
        is left for the column itself. Rows sum to ``values``.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm import LSSVR
    >>> X = np.random.default_rng(0).normal(size=(60, 3))
    >>> model = LSSVR(C=10.0, gamma=0.2).fit(X, X[:, 0] + X[:, 1] * X[:, 2])
    >>> found = model.explain(X[:5])
    >>> bool(np.allclose(found.prediction, model.predict(X[:5]))), found.exact
    (True, True)
    """

    values: FloatArray
    base_values: FloatArray
    data: AnyArray
    feature_names: tuple[str, ...]
    output_names: tuple[str, ...]
    errors: FloatArray
    interactions: FloatArray | None = None

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, rows: Any) -> Explanation:
        """Return the explanation of some of the rows; one row stays a table."""
        some = np.atleast_1d(np.arange(len(self))[rows])
        return self._part(some, data=self.data[some])

    def _part(self, index: Any, **others: Any) -> Explanation:
        arrays = ("values", "base_values", "errors", "interactions")
        found = {name: getattr(self, name) for name in arrays}
        parts: dict[str, Any] = {n: None if a is None else a[index] for n, a in found.items()}
        return replace(self, **parts, **others)

    @property
    def exact(self) -> bool:
        """Whether nothing was sampled."""
        return not np.any(self.errors)

    @property
    def prediction(self) -> FloatArray:
        """What is explained, shape (n,) or (n, k)."""
        return np.asarray(self.base_values + self.values.sum(axis=1))

    @property
    def importances(self) -> FloatArray:
        """Mean size of the values of every column, shape (p,) or (p, k)."""
        return np.asarray(np.abs(self.values).mean(axis=0))

    def output(self, which: int | str = 0) -> Explanation:
        """Return the explanation of one of several outputs.

        Parameters
        ----------
        which : int or str, default=0
            Number or name of the output.

        Returns
        -------
        Explanation
            With ``values`` of shape (n, p).
        """
        names = self.output_names
        if isinstance(which, str):
            if which not in names:
                raise not_known("output", which, f"choose one of {', '.join(names)}.")
            which = names.index(which)
        if not -len(names) <= which < len(names):
            raise InvalidInputError(
                f"output={which!r} is not there: the model has {len(names)} outputs, "
                f"{', '.join(names)}."
            )
        if self.values.ndim == 2:
            return self
        return self._part((..., which), output_names=(names[which],))

    def to_shap(self) -> Any:
        """Return a ``shap.Explanation``, for the plots of `shap`.

        Returns
        -------
        shap.Explanation

        Raises
        ------
        MissingDependencyError
            Where `shap` is not installed.
        """
        remedy = "pip install shap, or draw with lssvm.plots (WaterfallDisplay, BeeswarmDisplay)."
        shap = library("shap", "Explanation.to_shap needs shap", remedy)
        several = self.values.ndim == 3
        return shap.Explanation(
            values=self.values,
            base_values=self.base_values,
            data=self.data,
            feature_names=list(self.feature_names),
            output_names=list(self.output_names) if several else None,
            error_std=self.errors,
        )
