"""The printed results of [DeBrabanter2010], copied from tables 1 and 3 to 13.

Accuracies are in per cent, times in seconds, errors of regression in standard deviations of the
target; `Figure` holds a mean and a standard deviation. Where the print contradicts itself or the
data it is kept as it is:

- tables 5 and 7 count the target as an attribute of `mgt` (11), `bho` (14) and `ccs` (9);
- table 6 counts 7 classes of `lan`, of which one has no rows;
- table 8 gives the majority rule 83.4 % on `adu`; 75.2 % of its complete rows are in one class;
- section 8.3 speaks of seven binary sets, the tables have five.

The times are of an Intel Core 2 Quad (Q6600) under Matlab R2008a.
"""

from typing import NamedTuple


class Figure(NamedTuple):
    """A printed mean with its standard deviation; None for the values with an asterisk."""

    mean: float
    std: float | None


class Sizes(NamedTuple):
    """Tables 5 to 7 with the number of prototypes of tables 8, 10 and 12."""

    n_train: int
    n_test: int
    n_prototypes: int


BINARY_SETS = ("pid", "spa", "mgt", "adu", "ftc")
MULTICLASS_SETS = ("opt", "lan", "pen", "let", "shu")
REGRESSION_SETS = ("bho", "ccs")

SIZES: dict[str, Sizes] = {
    "pid": Sizes(512, 256, 150),
    "spa": Sizes(3068, 1533, 200),
    "mgt": Sizes(13000, 6020, 1000),
    "adu": Sizes(33000, 12222, 500),
    "ftc": Sizes(531012, 50000, 500),
    "opt": Sizes(3750, 1870, 420),
    "lan": Sizes(4435, 2000, 330),
    "pen": Sizes(7328, 3664, 250),
    "let": Sizes(13667, 6333, 1500),
    "shu": Sizes(43500, 14500, 175),
    "bho": Sizes(338, 168, 200),
    "ccs": Sizes(687, 343, 120),
}

SUPPORT_VECTORS: dict[str, tuple[int, ...]] = {
    "RBF C-SVC": (290, 800, 7000, 11085, 185000),
    "RBF nu-SVC": (331, 1525, 7252, 12205, 165205),
    "RBF C-SVC (1vs1)": (3750, 1876, 1178, 8830, 559),
    "RBF nu-SVC (1vs1)": (2810, 2518, 4051, 11359, 521),
    "RBF eps-SVR": (226, 670),
    "RBF nu-SVR": (195, 330),
}
"""Numbers of support vectors, in tables 8, 10 and 12."""

TABLE_1: dict[str, Figure] = {"Entropy": Figure(0.1293, 0.0246), "Random": Figure(0.1433, 0.0323)}
"""Mean squared error on `bho`, 200 prototypes, 30 randomisations."""

FOLDS = (5, 10, 20, 30, 40, 50)

TABLE_3: dict[int, dict[str, tuple[float, ...]]] = {
    50: {
        "simple": (0.066, 0.14, 0.29, 0.44, 0.57, 0.71),
        "optimized": (0.009, 0.012, 0.015, 0.018, 0.019, 0.021),
    },
    100: {
        "simple": (0.19, 0.38, 0.75, 1.15, 1.49, 1.86),
        "optimized": (0.031, 0.033, 0.035, 0.039, 0.052, 0.058),
    },
    400: {
        "simple": (3.60, 7.27, 14.51, 21.62, 31.07, 39.12),
        "optimized": (0.40, 0.45, 0.53, 0.57, 0.65, 0.76),
    },
}
"""Seconds of one cross-validation on `ccs` by number of prototypes and of folds (`FOLDS`)."""

TABLE_4: dict[int, dict[str, tuple[float, ...]]] = {
    50: {
        "simple": (0.71, 1.51, 2.98, 4.47, 6.05, 7.60),
        "optimized": (0.15, 0.16, 0.16, 0.17, 0.19, 0.19),
    },
    300: {
        "simple": (6.27, 12.80, 25.49, 38.08, 50.94, 64.43),
        "optimized": (1.52, 1.57, 1.60, 1.64, 1.66, 1.83),
    },
    700: {
        "simple": (29.01, 58.56, 117.12, 179.44, 231.59, 290.36),
        "optimized": (5.95, 6.06, 6.34, 6.60, 6.94, 7.11),
    },
}
"""The same on `mgt`."""


def _row(*values: float | None) -> tuple[Figure, ...]:
    """Pair means and standard deviations."""
    return tuple(Figure(float(values[i]), values[i + 1]) for i in range(0, len(values), 2))  # type: ignore[arg-type]


TABLE_8: dict[str, tuple[Figure, ...]] = {
    "RBF FS-LSSVM": _row(76.7, 3.43, 92.5, 0.67, 86.6, 0.51, 85.21, 0.21, 81.8, 0.52),
    "Lin FS-LSSVM": _row(77.6, 0.78, 90.9, 0.75, 77.8, 0.23, 83.9, 0.17, 75.61, 0.35),
    "RBF C-SVC": _row(75.1, 3.31, 92.6, 0.76, 85.6, 1.46, 84.81, 0.20, 81.5, None),
    "Lin C-SVC": _row(76.1, 1.76, 91.9, 0.82, 77.3, 0.53, 83.5, 0.28, 75.24, None),
    "RBF nu-SVC": _row(75.8, 3.34, 88.7, 0.73, 84.2, 1.42, 83.9, 0.23, 81.6, None),
    "Maj. rule": _row(64.8, 1.46, 60.6, 0.58, 65.8, 0.28, 83.4, 0.1, 51.23, 0.20),
}
"""Test accuracy on `BINARY_SETS`."""

TABLE_9: dict[str, tuple[Figure, ...]] = {
    "RBF FS-LSSVM": _row(30.1, 1.9, 249, 16, 9985, 112, 7344, 295, 122290, 989),
    "Lin FS-LSSVM": _row(19.8, 0.5, 72, 3.8, 1298, 13, 1404, 47, 5615, 72),
    "RBF C-SVC": _row(24.8, 3.1, 1010, 53, 20603, 396, 139730, 5556, 58962, None),
    "Lin C-SVC": _row(18, 0.65, 785, 22, 13901, 189, 130590, 4771, 53478, None),
    "RBF nu-SVC": _row(30.3, 2.3, 1372, 43, 35299, 357, 139927, 3578, 55178, None),
}
"""Seconds for tuning, training and testing on `BINARY_SETS`."""

TABLE_10: dict[str, tuple[Figure, ...]] = {
    "RBF FS-LSSVM (MOC)": _row(96.87, 0.70, 91.83, 0.43, 99.44, 0.17, 89.14, 0.22, 99.87, 0.03),
    "RBF FS-LSSVM (1vs1)": _row(98.14, 0.10, 91.93, 0.3, 99.57, 0.10, 95.65, 0.17, 99.84, 0.03),
    "Lin FS-LSSVM (1vs1)": _row(97.18, 0.35, 85.71, 0.77, 96.67, 0.35, 84.87, 0.49, 96.82, 0.18),
    "Lin FS-LSSVM (MOC)": _row(78.62, 0.32, 74.35, 0.26, 68.21, 0.36, 18.20, 0.46, 84.78, 0.33),
    "RBF C-SVC (1vs1)": _row(97.73, 0.14, 92.14, 0.45, 99.51, 0.13, 95.67, 0.19, 99.86, 0.03),
    "Lin C-SVC (1vs1)": _row(97.21, 0.26, 86.12, 0.79, 97.52, 0.62, 84.96, 0.56, 97.02, 0.19),
    "RBF nu-SVC (1vs1)": _row(95.3, 0.12, 88.3, 0.31, 95.96, 0.16, 93.18, 0.21, 99.34, 0.03),
    "Maj. rule": _row(10.45, 0.12, 23.61, 0.16, 10.53, 0.07, 4.10, 0.14, 78.81, 0.04),
}
"""Test accuracy on `MULTICLASS_SETS`."""

TABLE_11: dict[str, tuple[Figure, ...]] = {
    "RBF FS-LSSVM (MOC)": _row(4892, 162, 2159, 83, 2221, 110, 105930, 2132, 5908, 272),
    "RBF FS-LSSVM (1vs1)": _row(623, 36, 739, 17, 514, 42, 10380, 897, 2734, 82),
    "Lin FS-LSSVM (1vs1)": _row(282, 19, 153, 6, 156, 4, 2792, 11, 501, 8),
    "Lin FS-LSSVM (MOC)": _row(942, 6, 409, 13, 279, 10, 44457, 1503, 645, 31),
    "RBF C-SVC (1vs1)": _row(11371, 573, 6612, 347, 11215, 520, 59102, 2412, 52724, 3619),
    "Lin C-SVC (1vs1)": _row(474, 1, 1739, 48, 880, 16, 11203, 467, 50174, 2954),
    "RBF nu-SVC (1vs1)": _row(7963, 178, 8229, 304, 16589, 453, 79040, 2354, 50478, 2879),
}
"""Seconds for tuning, training and testing on `MULTICLASS_SETS`."""

TABLE_12: dict[str, dict[str, tuple[Figure, ...]]] = {
    "RBF FS-LSSVM": {
        "L2": _row(0.13, 0.02, 0.17, 0.02),
        "L1": _row(0.24, 0.02, 0.30, 0.03),
        "Linf": _row(1.90, 0.50, 1.22, 0.42),
    },
    "RBF eps-SVR": {
        "L2": _row(0.16, 0.05, 0.23, 0.02),
        "L1": _row(0.24, 0.03, 0.33, 0.02),
        "Linf": _row(2.20, 0.54, 1.63, 0.58),
    },
    "RBF nu-SVR": {
        "L2": _row(0.16, 0.04, 0.22, 0.02),
        "L1": _row(0.26, 0.03, 0.34, 0.03),
        "Linf": _row(1.97, 0.58, 1.72, 0.52),
    },
}
"""Mean squared, mean absolute and largest absolute test error on `REGRESSION_SETS`."""

TABLE_13: dict[str, tuple[Figure, ...]] = {
    "RBF FS-LSSVM": _row(74, 2, 94, 3),
    "RBF eps-SVR": _row(63, 1, 168, 3),
    "RBF nu-SVR": _row(61, 1, 131, 2),
}
"""Seconds for tuning, training and testing on `REGRESSION_SETS`."""
