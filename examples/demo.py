"""Train on the bundled data, print test errors, write a picture into ./demo-output.

Run by ``make demo``. Needs no network; takes well under a minute on two cores.
"""

from __future__ import annotations

import time
from pathlib import Path

import matplotlib
import numpy as np
from sklearn.base import is_classifier
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR

from lssvm import LSSVC, LSSVR
from lssvm.datasets import (
    Dataset,
    load_balance,
    load_concrete,
    load_heart,
    load_liver,
    load_ripley,
)
from lssvm.plots import BoundaryDisplay

OUTPUT = Path("demo-output")


def split(dataset: Dataset):
    """Return X_train, X_test, y_train, y_test: the official split, or 2/3 and 1/3."""
    X, y = dataset.data, dataset.target
    if dataset.train is not None:
        return X[dataset.train], X[dataset.test], y[dataset.train], y[dataset.test]
    labels = y if dataset.target_names else None
    return train_test_split(X, y, test_size=1 / 3, stratify=labels, random_state=0)


def fit_and_test(model, X_train, X_test, y_train, y_test):
    """Return the fitted pipeline, its test error (rate or root mean square) and the seconds."""
    pipeline = make_pipeline(StandardScaler(), model)
    start = time.perf_counter()
    pipeline.fit(X_train, y_train)
    seconds = time.perf_counter() - start
    predicted = pipeline.predict(X_test)
    if is_classifier(model):
        return pipeline, np.mean(predicted != y_test), seconds
    return pipeline, np.sqrt(np.mean((predicted - y_test) ** 2)), seconds


def compare(dataset: Dataset):
    """Print one row of the table; return the self-tuned model."""
    parts = split(dataset)
    if dataset.target_names:
        own, peer, form = LSSVC(C="cv", gamma="cv", random_state=0), SVC(), "{:9.1%}"
    else:
        own, peer, form = LSSVR(C="cv", gamma="cv", random_state=0), SVR(), "{:9.2f}"
    model, error, seconds = fit_and_test(own, *parts)
    _, peer_error, _ = fit_and_test(peer, *parts)
    print(
        f"{dataset.name:10s} {len(parts[0]):6d} {len(parts[1]):6d} {form.format(error)} "
        f"{form.format(peer_error)} {model[-1].C_:10.3g} {model[-1].gamma_:9.3g} {seconds:8.1f}"
    )
    return model


def main():
    matplotlib.use("Agg")  # the picture goes into a file
    print("Test error: rate of wrong classes, for concrete the root mean squared error in MPa.")
    print("lssvm chooses C and gamma by 10-fold cross-validation inside fit; scikit-learn's")
    print("SVC and SVR have their default parameters. All attributes are standardised.\n")
    print("data set    train   test     lssvm  sklearn          C     gamma  seconds")
    ripley = load_ripley()
    model = compare(ripley)
    for load in (load_heart, load_liver, load_balance, load_concrete):
        compare(load())

    X, _, y, _ = split(ripley)
    display = BoundaryDisplay.from_estimator(model, X, y)
    display.ax_.set_title("Ripley's data: decision boundary and support values")
    display.ax_.set(xlabel=ripley.feature_names[0], ylabel=ripley.feature_names[1])
    OUTPUT.mkdir(exist_ok=True)
    display.figure_.savefig(OUTPUT / "ripley.png", dpi=120)
    print(f"\nThe decision boundary for Ripley's data is in {OUTPUT / 'ripley.png'}")


if __name__ == "__main__":
    main()
