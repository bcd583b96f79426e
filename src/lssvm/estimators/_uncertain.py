"""Error bars and intervals of the regressors, probabilities and sets of the classifiers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from lssvm._core.arrays import FloatArray, IntArray
from lssvm._core.errors import InvalidInputError
from lssvm.estimators._stored import need_stored
from lssvm.estimators._validation import check_option
from lssvm.uncertainty import (
    DualPosterior,
    FixedPosterior,
    OutOfFold,
    Probabilities,
    Residuals,
    calibrate,
    check_coverage,
)
from lssvm.uncertainty.calibration import METHODS


class IntervalMixin(BaseEstimator):
    """Standard deviations and prediction intervals of a regressor.

    A subclass gives `_make_posteriors` and `_make_residuals`; ``fit`` sets ``_cache`` to an empty
    dict, as everything is computed when it is first asked for.
    """

    _cache: dict[str, Any]

    def _posteriors(self) -> list[tuple[IntArray, DualPosterior | FixedPosterior]]:
        """Return the posterior of every group of outputs that share C and gamma."""
        if "posteriors" not in self._cache:
            need_stored(self, "prediction", "Error bars")
            self._cache["posteriors"] = self._make_posteriors()
        found: list[tuple[IntArray, DualPosterior | FixedPosterior]] = self._cache["posteriors"]
        return found

    @property
    def noise_variance_(self) -> Any:
        """Estimated variance of the noise: a number, or one per output."""
        check_is_fitted(self)
        try:
            noise = self._per_output("noise_variance")
        except InvalidInputError as error:  # there is no such attribute, as `hasattr` is to find
            raise AttributeError(str(error)) from error
        return float(noise[0]) if self._single else noise

    def _per_output(self, name: str) -> FloatArray:
        parts = self._posteriors()
        out = np.empty(sum(len(columns) for columns, _ in parts))
        for columns, posterior in parts:
            out[columns] = getattr(posterior, name)
        return out

    def _predict(self, X: Any, return_std: bool, return_cov: bool) -> Any:
        if return_std and return_cov:
            raise InvalidInputError(
                "return_std and return_cov were both asked for: the standard deviations are the "
                "square roots of the diagonal of the covariance. Ask for one of them."
            )
        raw = self._raw_scores(X)
        single = self._single
        mean = raw[:, 0] if single else raw
        if return_cov:
            rows, n = self._new_rows(X), len(raw)
            cov = np.empty((n, n, raw.shape[1]))
            for columns, posterior in self._posteriors():
                relative = posterior.covariance(rows)
                cov[:, :, columns] = relative[:, :, None] * posterior.prior_variance
            return mean, cov[:, :, 0] if single else cov
        if return_std:
            std = np.sqrt(self._variance(X, noise=False))
            return mean, std[:, 0] if single else std
        return mean

    def _variance(self, X: Any, *, noise: bool) -> FloatArray:
        """Return the variance of the function, or of a new observation, shape (n, k)."""
        rows = self._new_rows(X)
        parts = self._posteriors()
        out = np.empty((rows.shape[0], sum(len(columns) for columns, _ in parts)))
        for columns, posterior in parts:
            out[:, columns] = posterior.variance(rows)[:, None] * posterior.prior_variance
            if noise:
                out[:, columns] += posterior.noise_variance
        return out

    def predict_interval(self, X: Any, coverage: float = 0.95) -> FloatArray:
        """Return intervals that contain a new observation with a given probability.

        Parameters
        ----------
        X : array-like of shape (n, d)
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
        cross-validation where C or gamma were tuned, else leave-one-out residuals in closed form.
        So the coverage does not rest on the Gaussian model, only the shape of the intervals does;
        it is the promise of the jackknife [Barber2021]_, which holds for rows drawn
        as the training rows were and a model that one row does not change much. Too few rows for a
        coverage give infinite intervals and a warning.

        The first call computes the residuals where `fit` has not; later ones cost what
        ``predict(X, return_std=True)`` costs.
        """
        coverage = check_coverage(coverage)
        raw = np.asarray(self._raw_scores(X), dtype=np.float64)
        scale = np.sqrt(self._variance(X, noise=True))
        if "residuals" not in self._cache:
            self._cache["residuals"] = self._make_residuals()
        residuals: Residuals = self._cache["residuals"]
        out = np.empty((*raw.shape, 2))
        for j in range(raw.shape[1]):
            low, high = residuals.factor(coverage, j)
            with np.errstate(invalid="ignore"):  # 0 times infinity
                ends = raw[:, j, None] + scale[:, j, None] * np.array([low, high])
            out[:, j] = np.where(np.isnan(ends), np.array([-np.inf, np.inf]), ends)
        return out[:, 0] if self._single else out


def _calibrates(model: Any) -> bool:
    return model.calibration is not None


class ProbabilityMixin(BaseEstimator):
    """Probabilities and prediction sets of a classifier.

    A subclass gives `_make_out_of_fold`; ``fit`` sets ``_cache`` to an empty dict.
    """

    _cache: dict[str, Any]

    def _check_calibration(self) -> None:
        if self.calibration is not None:
            check_option("calibration", self.calibration, METHODS)

    def _probabilities(self) -> Probabilities:
        check_is_fitted(self)
        if "probabilities" not in self._cache:
            need_stored(self, "prediction", "Probabilities")
            table: OutOfFold = self._make_out_of_fold()
            self._cache["probabilities"] = calibrate(
                table,
                self.code_,
                self.decoding,
                self.calibration,
            )
        found: Probabilities = self._cache["probabilities"]
        return found

    @available_if(_calibrates)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> FloatArray:
        """Return calibrated probabilities of the classes.

        Parameters
        ----------
        X : array-like of shape (n, d)

        Returns
        -------
        array of shape (n, n_classes)
            Columns in the order of ``classes_``; the largest is the class of `predict`.

        Notes
        -----
        Maps from scores to probabilities are fitted on the scores of rows that the model had not
        seen when it scored them: those of cross-validation where C or gamma were tuned, else
        leave-one-out scores in closed form, with the weights of the training. The first call fits
        the maps; see `lssvm.uncertainty.Probabilities`.
        """
        raw, decided = self._scored(X)
        return self._probabilities().of(raw, decided)

    @available_if(_calibrates)  # type: ignore[untyped-decorator]
    def predict_log_proba(self, X: Any) -> FloatArray:
        """Return the logarithm of `predict_proba`, shape (n, n_classes)."""
        p = self.predict_proba(X)
        return np.asarray(np.log(np.maximum(p, np.finfo(np.float64).tiny)))

    @available_if(_calibrates)  # type: ignore[untyped-decorator]
    def predict_set(self, X: Any, coverage: float = 0.9) -> NDArray[np.bool_]:
        """Return sets of classes that contain the true one with a given probability.

        Parameters
        ----------
        X : array-like of shape (n, d)
        coverage : float, default=0.9
            Between 0 and 1.

        Returns
        -------
        bool array of shape (n, n_classes)
            Which classes belong to the set of each row; never empty, as the class of `predict` is
            always in it.

        Notes
        -----
        A class is in the set if its probability is at least the one that the true class of all but
        a share of 1 - coverage of the out-of-fold rows had (split conformal sets by probability,
        [Vovk2005]_). Where the classifier is right more often than asked for, sets hold one class
        and cover more than promised.
        """
        coverage = check_coverage(coverage)
        need_stored(self, "prediction", "Prediction sets")
        raw, decided = self._scored(X)
        return self._probabilities().sets(raw, decided, coverage)

    def _scored(self, X: Any) -> tuple[FloatArray, IntArray]:
        raw = self._raw_scores(X)
        return np.asarray(raw, dtype=np.float64), self._decide(raw)
