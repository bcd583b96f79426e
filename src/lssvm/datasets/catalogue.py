"""The catalogue of the bundled data sets: what a file cannot say itself (names, terms, types)."""

from __future__ import annotations

from dataclasses import dataclass

_UCI = "UCI Machine Learning Repository, which publishes its data sets under CC BY 4.0"


@dataclass(frozen=True)
class About:
    """What the table knows of one bundled file."""

    description: str
    source: str
    licence: str
    target_type: type
    target_names: tuple[str, ...] = ()
    categorical: tuple[str, ...] = ()
    symbolic: bool = False  # categories are strings: the matrix is of dtype object


_GERMAN = (
    "status history purpose savings employment personal debtors "
    "property plans housing job telephone foreign"
)

CATALOGUE: dict[str, About] = {
    "balance": About(
        "Which way does a balance scale tip, from two weights and two distances? All 5^4 settings; "
        "the greater product of weight and distance wins.",
        "Siegler (1976), data set 'Balance Scale' (bal)",
        _UCI,
        str,
        ("balanced", "left", "right"),
    ),
    "concrete": About(
        "Compressive strength of concrete in MPa from its seven ingredients (kg per cubic metre) "
        "and its age in days.",
        "Yeh (1998), data set 'Concrete Compressive Strength' (ccs)",
        _UCI,
        float,
    ),
    "german_credit": About(
        "Good or bad credit risk of 1,000 bank customers from 20 attributes, 13 of them symbolic "
        "with the codes of the source (A11, A12, ...).",
        "Hofmann (1994), data set 'Statlog (German Credit Data)', symbolic version (gcr)",
        _UCI,
        int,
        ("good", "bad"),
        tuple(_GERMAN.split()),
        symbolic=True,
    ),
    "heart": About(
        "Absence or presence of heart disease in 270 patients from 13 clinical attributes.",
        "Data set 'Statlog (Heart)' (hea)",
        _UCI,
        int,
        ("absence", "presence"),
        ("sex", "chest_pain", "fbs", "rest_ecg", "ex_angina", "thal"),
    ),
    "laser": About(
        "Intensity of a far-infrared laser in a chaotic state, a time series: its first 2,000 "
        "values. The competition gave 1,000 of them and asked for the next 100.",
        "Santa Fe Time Series Competition 1991, series A (Weigend and Gershenfeld 1994; "
        "measured by Huebner)",
        "competition data, none stated; redistributed under MIT by the package reservoirpy",
        float,
    ),
    "liver": About(
        "Five blood tests and the daily drinks of 345 men. The class is the donors' selector "
        "field, as in all benchmark papers; it marks a split of theirs, not a diagnosis.",
        "BUPA Medical Research Ltd, donated by R. S. Forsyth (1990), data set 'Liver Disorders' "
        "(bld)",
        _UCI,
        int,
        ("selector 1", "selector 2"),
    ),
    "ripley": About(
        "Two classes in the plane, each a mixture of two normal distributions; the best possible "
        "error is about 8%.",
        "Ripley (1994, 1996), the original realisation synth.tr and synth.te",
        "none stated by the author; redistributed under GPL-2 | GPL-3 by the R package MASS",
        int,
        ("class 0", "class 1"),
    ),
}
