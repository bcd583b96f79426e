"""Error bars, intervals and probabilities from what a fit already has."""

from lssvm.uncertainty.calibration import Calibrator, Isotonic, Sigmoid, fit_calibrator, fit_sigmoid
from lssvm.uncertainty.posterior import (
    DualPosterior,
    Evidence,
    FixedPosterior,
    evidence_path,
    left_out_scores,
    log_evidence,
    log_gamma_slope,
)
from lssvm.uncertainty.probabilities import (
    OutOfFold,
    Probabilities,
    Residuals,
    agree_with,
    calibrate,
    check_coverage,
    conformal_quantile,
    couple_pairs,
    fit_sharpness,
    scaled_residuals,
    sharpened,
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
    "fit_sharpness",
    "fit_sigmoid",
    "left_out_scores",
    "log_evidence",
    "log_gamma_slope",
    "scaled_residuals",
    "sharpened",
]
