"""Tables III to VI of [Mall2014] as printed: sizes, errors, standard deviations, support vectors.

Errors are misclassification rates, and mean squared errors of standardised targets for the last
four sets. ``None`` stands for what is not printed. A star in the print (no cross-validation) has no
standard deviation here.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class SetSpec:
    """One line of table III.

    Parameters
    ----------
    printed
        Name in the tables.
    n_prototypes
        PV of tables IV and V (table III has 60, 155 and 135 where they have 58, 153 and 113).
    regression
        Whether the target is a number.
    positive
        The class that is told from the others; None: there are two.
    openml
        Name and version at OpenML where the set is not a file at hand.
    """

    printed: str
    n_prototypes: int
    regression: bool = False
    positive: str | None = None
    openml: tuple[str, int] | None = None


SETS: dict[str, SetSpec] = {
    "ripley": SetSpec("RIP", 58),
    "wbc": SetSpec("BC", 153),
    "pid": SetSpec("DIB", 167),
    "spa": SetSpec("SPAM", 204),
    "mgt": SetSpec("MGT", 414),
    "adu": SetSpec("ADU", 664),
    "ftc": SetSpec("FC", 763, positive="2"),
    "bho": SetSpec("BH", 113, regression=True),
    "ccs": SetSpec("Con", 193, regression=True),
    "slice": SetSpec("SLC", 694, regression=True, openml=("slice_localization", 1)),
    "year": SetSpec("YP", 718, regression=True, openml=("YearPredictionMSD", 1)),
}
"""The sets in the order of the tables."""

Printed = tuple[float, float | None, float | None]  # error, standard deviation, support vectors

PRINTED: dict[str, dict[str, Printed]] = {
    "PFS-LSSVM": {
        "ripley": (0.102, 0.008, 58),
        "wbc": (0.023, 0.004, 153),
        "pid": (0.21, 0.008, 167),
        "spa": (0.08, 0.002, 204),
        "mgt": (0.134, 0.001, 414),
        "adu": (0.147, 0.0, 664),
        "ftc": (0.2048, 0.026, 763),
        "bho": (0.133, 0.002, 113),
        "ccs": (0.112, 0.006, 193),
        "slice": (0.0554, 0.0, 694),
        "year": (0.402, 0.034, 718),
    },
    "SPFS-LSSVM": {
        "ripley": (0.147, 0.03, 11),
        "wbc": (0.021, 0.01, 26),
        "pid": (0.273, 0.04, 8),
        "spa": (0.082, 0.002, 169),
        "mgt": (0.141, 0.004, 163),
        "adu": (0.148, 0.0, 464),
        "ftc": (0.2195, 0.03, 505),
        "bho": (0.176, 0.03, 50),
        "ccs": (0.2383, 0.04, 46),
        "slice": (0.058, 0.002, 651),
        "year": (0.44, 0.05, 595),
    },
    "SD-LSSVM": {
        "ripley": (0.12, 0.03, 58),
        "wbc": (0.02, 0.03, 153),
        "pid": (0.22, 0.01, 167),
        "spa": (0.15, 0.01, 204),
        "mgt": (0.19, 0.01, 414),
        "adu": (0.16, 0.0, 664),
        "ftc": (0.26, 0.0, 763),
        "bho": (0.12, 0.0, 113),
        "ccs": (0.16, 0.2, 193),
        "slice": (0.08, 0.0, 694),
        "year": (0.49, 0.0, 718),
    },
    "SSD-LSSVM": {
        "ripley": (0.13, 0.02, 11),
        "wbc": (0.0256, 0.007, 8),
        "pid": (0.227, 0.02, 6),
        "spa": (0.0836, 0.005, 63),
        "mgt": (0.135, 0.0, 280),
        "adu": (0.1488, 0.001, 102),
        "ftc": (0.1905, 0.009, 635),
        "bho": (0.189, 0.022, 43),
        "ccs": (0.1645, 0.017, 54),
        "slice": (0.056, 0.0, 577),
        "year": (0.42, 0.01, 688),
    },
    "SV_L0-norm": {
        "ripley": (0.1651, 0.13, 15),
        "wbc": (0.023, 0.01, 27),
        "pid": (0.27, 0.05, 39),
        "spa": (0.127, 0.09, 152),
        "mgt": (0.15, 0.009, 75),
        "adu": (0.149, 0.001, 236),
        "ftc": (0.2346, 0.025, 352),
        "bho": (0.192, 0.015, 38),
        "ccs": (0.265, 0.02, 25),
        "slice": (0.156, 0.13, 381),
        "year": (0.495, 0.03, 422),
    },
    "Lopez": {
        "ripley": (0.183, 0.1, 7),
        "wbc": (0.04, 0.011, 17),
        "pid": (0.248, 0.034, 10),
        "spa": (0.0726, 0.005, 340),
        "bho": (0.16, 0.05, 65),
        "ccs": (0.165, 0.07, 215),
    },
    "Keerthi": {
        "ripley": (0.129, 0.033, 26),
        "wbc": (0.0463, 0.037, 30),
        "pid": (0.228, 0.035, 53),
        "spa": (0.07, 0.005, 175),
        "mgt": (0.135, 0.002, 260),
        "adu": (0.145, 0.002, 494),
        "ftc": (0.2054, None, 762),
    },
    "C-SVM": {
        "ripley": (0.15, 0.07, 81),
        "wbc": (0.0348, 0.02, 414),
        "pid": (0.332, 0.02, 509),
        "spa": (0.075, 0.067, 800),
        "mgt": (0.144, 0.015, 7000),
        "adu": (0.151, None, 11085),
        "ftc": (0.185, None, 185000),
        "bho": (0.16, 0.05, 226),
        "ccs": (0.23, 0.02, 670),
        "slice": (0.102, None, 13012),
        "year": (0.465, None, 192420),
    },
    "nu-SVM": {
        "ripley": (0.167, 0.03, 112),
        "wbc": (0.028, 0.011, None),  # 3980 in the text at hand, more than there are rows
        "pid": (0.338, 0.017, 512),
        "spa": (0.113, 0.07, 1525),
        "mgt": (0.158, 0.014, 7252),
        "adu": (0.161, None, 12205),
        "ftc": (0.184, None, 165205),
        "bho": (0.16, 0.04, 195),
        "ccs": (0.22, 0.02, 330),
        "slice": (0.092, None, 12524),
        "year": (0.472, None, 175250),
    },
}
"""By method and set; table IV, and table V for SD-LSSVM."""

RIPLEY_TEST = "ripley_test"
"""Ripley's set trained on two thirds of its 250 training rows, tested on its 1,000 test rows."""

TABLE_VI: dict[str, tuple[float, float, float, float]] = {
    "ripley": (0.81, 0.50, 0.81, 0.08),
    "wbc": (0.63, 0.00, 0.95, 0.50),
    "pid": (0.95, 0.35, 0.96, 0.05),
    "spa": (0.17, 0.03, 0.69, -0.45),
    "mgt": (0.61, 0.08, 0.32, -0.29),
    "adu": (0.30, 0.00, 0.85, -0.06),
    "ftc": (0.34, 0.10, 0.17, -0.27),
    "bho": (0.56, 0.05, 0.62, 0.07),
    "ccs": (0.76, 0.13, 0.72, 0.00),
    "slice": (0.07, 0.00, 0.17, -0.02),
    "year": (0.17, 0.04, 0.04, -0.07),
}
"""Sparsity and change in error, SPFS against PFS and SSD against SD (relative for classes)."""

SECONDS: dict[str, dict[str, float]] = {
    "PFS-LSSVM": {
        "ripley": 3.16,
        "wbc": 27.36,
        "pid": 36.14,
        "spa": 182,
        "mgt": 3142,
        "adu": 16523,
        "ftc": 118500,
        "bho": 14.28,
        "ccs": 58.41,
    },
    "SPFS-LSSVM": {
        "ripley": 3.21,
        "wbc": 27.42,
        "pid": 36.266,
        "spa": 182.3,
        "mgt": 3155,
        "adu": 16588,
        "ftc": 118570,
        "bho": 14.5,
        "ccs": 58.76,
    },
    "SSD-LSSVM": {
        "ripley": 0.955,
        "wbc": 8.67,
        "pid": 11.82,
        "spa": 81.5,
        "mgt": 2192,
        "adu": 13482,
        "ftc": 86460,
        "bho": 3.75,
        "ccs": 21.35,
    },
    "SV_L0-norm": {
        "ripley": 3.19,
        "wbc": 27.384,
        "pid": 36.18,
        "spa": 182.2,
        "mgt": 3143,
        "adu": 16527,
        "ftc": 118540,
        "bho": 14.58,
        "ccs": 58.76,
    },
    "C-SVM": {
        "ripley": 4.6,
        "wbc": 14.76,
        "pid": 61,
        "spa": 1010,
        "mgt": 20603,
        "bho": 63,
        "ccs": 131,
    },
    "nu-SVM": {
        "ripley": 5.67,
        "wbc": 14.91,
        "pid": 83.5,
        "spa": 785,
        "mgt": 13901,
        "bho": 61,
        "ccs": 131,
    },
    "Lopez": {"ripley": 5.12, "wbc": 28.2, "pid": 39.1, "spa": 950},
}
"""Seconds of training, cross-validation and test in table IV, where its lines can be read; those of
Lopez on numbers and of what was not cross-validated are left out."""
