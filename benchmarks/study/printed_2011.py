"""What [Ding2011, tables 1 and 2] print: ten data sets, two ways to choose the parameters."""

from dataclasses import dataclass


@dataclass(frozen=True)
class PrintedSet:
    """One line of table 1 and of table 2.

    Parameters
    ----------
    file
        Name of the data file (heart is the set of the chapter 3 study).
    n_features, n_train, n_test
        Of table 1.
    replications
        Number of predefined partitions in the paper.
    exact_s, exact_error, exact_spread
        Time in seconds and test error in per cent (mean and standard deviation) of 5-fold
        cross-validation.
    approximate_s, approximate_error, approximate_spread
        The same of approximate 5-fold cross-validation.
    """

    file: str
    n_features: int
    n_train: int
    n_test: int
    replications: int
    exact_s: float
    exact_error: float
    exact_spread: float
    approximate_s: float
    approximate_error: float
    approximate_spread: float


SETS: dict[str, PrintedSet] = {
    "thyroid": PrintedSet("rae_thyroid", 5, 140, 75, 100, 0.938, 5.000, 2.580, 0.774, 4.773, 2.291),
    "titanic": PrintedSet(
        "rae_titanic", 3, 150, 2051, 100, 0.854, 22.534, 0.688, 0.850, 22.897, 1.427
    ),
    "heart": PrintedSet("hea", 13, 170, 100, 100, 0.986, 16.200, 3.259, 0.889, 18.920, 4.576),
    "breast": PrintedSet(
        "rae_breast_cancer", 9, 200, 77, 100, 1.475, 26.831, 4.578, 1.010, 27.831, 5.569
    ),
    "banana": PrintedSet(
        "rae_banana", 2, 400, 4900, 100, 6.287, 10.781, 0.721, 1.858, 11.283, 0.992
    ),
    "twonorm": PrintedSet(
        "rae_twonorm", 20, 400, 7000, 100, 6.362, 2.560, 0.310, 1.937, 2.791, 0.566
    ),
    "diabetes": PrintedSet(
        "rae_diabetis", 8, 468, 300, 100, 10.042, 23.493, 1.663, 2.104, 26.386, 4.501
    ),
    "flare solar": PrintedSet(
        "rae_flare_solar", 9, 666, 400, 100, 18.172, 34.172, 1.863, 4.200, 36.440, 2.752
    ),
    "german": PrintedSet(
        "rae_german", 20, 700, 300, 100, 23.058, 23.793, 2.283, 4.239, 25.080, 2.375
    ),
    "image": PrintedSet(
        "rae_image", 18, 1300, 1010, 20, 134.680, 3.014, 0.877, 11.875, 4.391, 0.631
    ),
}
