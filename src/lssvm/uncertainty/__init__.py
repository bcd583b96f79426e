"""Error bars, intervals and probabilities from what a fit already has."""

from lssvm.uncertainty.calibration import Calibrator, Isotonic, Sigmoid, fit_calibrator, fit_sigmoid
from lssvm.uncertainty.evidence import Evidence, evidence_path, log_evidence, log_gamma_slope
from lssvm.uncertainty.intervals import (
    Residuals,
    check_coverage,
    conformal_quantile,
    scaled_residuals,
)
from lssvm.uncertainty.posterior import DualPosterior, FixedPosterior, left_out_scores
from lssvm.uncertainty.probabilities import (
    OutOfFold,
    Probabilities,
    agree_with,
    calibrate,
    couple_pairs,
)

__all__ = [
    "Calibrator",
    "DualPosterior",
    "Evidence",
    "FixedPosterior",
    "Isotonic",
    "OutOfFold",
    "Probabilities",
    "Residuals",
    "Sigmoid",
    "agree_with",
    "calibrate",
    "check_coverage",
    "conformal_quantile",
    "couple_pairs",
    "evidence_path",
    "fit_calibrator",
    "fit_sigmoid",
    "left_out_scores",
    "log_evidence",
    "log_gamma_slope",
    "scaled_residuals",
]
