"""The peers as methods, each with fair and documented settings.

Searches for settings use training rows alone: `HalvingGridSearchCV` of scikit-learn over the grids
below, or `BudgetSearch` until its seconds are spent. Libraries that only do two classes or numbers
get one problem per class.
"""

from __future__ import annotations

import importlib
import time
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np

from benchmarks.evidence.methods import Ask, Method

_ALPHAS = np.logspace(-6, 1, 8)
_WIDTHS = np.logspace(-2, 1, 7)
"""Times 1/d: gamma of standardised inputs."""


class BudgetSearch:
    """Random settings until a budget of seconds is spent, the best of them fitted to all rows.

    Parameters
    ----------
    make : callable
        From C and gamma to an estimator.
    classes : bool
    budget : float
        Seconds; at least one setting, the libraries' default, is always tried.
    seed : int
    most_rows : int
        Settings are judged by five folds of at most so many training rows.
    """

    def __init__(
        self, make: Any, classes: bool, budget: float, seed: int, most_rows: int = 4000
    ) -> None:
        self.make, self.classes = make, classes
        self.budget, self.seed, self.most_rows = budget, seed, most_rows

    def fit(self, X: Any, y: Any) -> BudgetSearch:
        """Search and fit."""
        from sklearn.model_selection import KFold, StratifiedKFold, cross_val_score

        start = time.perf_counter()
        random = np.random.default_rng(self.seed)
        some = random.permutation(len(y))[: self.most_rows]
        kind = StratifiedKFold if self.classes else KFold
        folds = kind(5, shuffle=True, random_state=self.seed)
        default = (1.0, 1.0 / (X.shape[1] * X.var()))
        best, self.tried_ = (-np.inf, *default), 0
        while not self.tried_ or time.perf_counter() - start < self.budget:
            C, gamma = default
            if self.tried_:
                C = 10.0 ** random.uniform(-2, 4)
                gamma = 10.0 ** random.uniform(-3, 1.5) / X.shape[1]
            scores = cross_val_score(self.make(C, gamma), X[some], y[some], cv=folds)
            best = max(best, (float(np.mean(scores)), C, gamma))
            self.tried_ += 1
        self.model_ = self.make(*best[1:]).fit(X, y)
        if self.classes:
            self._calibrate(best[1], best[2], X, y)
        return self

    def _calibrate(self, C: float, gamma: float, X: Any, y: Any) -> None:
        """Learn probabilities from folds, as ``SVC(probability=True)`` did."""
        from sklearn.calibration import CalibratedClassifierCV

        folds = min(5, int(np.unique(y, return_counts=True)[1].min()))
        self.calibrated_ = None
        if folds > 1:
            model = CalibratedClassifierCV(self.make(C, gamma), cv=folds, ensemble=False)
            self.calibrated_ = model.fit(X, y)

    def predict(self, X: Any) -> Any:
        """Return what the best setting says."""
        return self.model_.predict(X)

    def predict_proba(self, X: Any) -> Any:
        """Return the probabilities of the classes."""
        if not self.classes or self.calibrated_ is None:
            raise AttributeError("there are no probabilities")
        return self.calibrated_.predict_proba(X)

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in self.__dict__.items() if k != "make"}


class PerClass:
    """A regressor of several outputs as a classifier: the class of the largest output.

    The targets of a row are 1 for its class and -1 for the others.
    """

    def __init__(self, model: Any) -> None:
        self.model = model

    def fit(self, X: Any, y: Any) -> PerClass:
        """Fit the coded classes."""
        self.classes_ = np.unique(y)
        self.model.fit(X, np.where(np.asarray(y)[:, None] == self.classes_, 1.0, -1.0))
        return self

    def predict(self, X: Any) -> Any:
        """Return the class of the largest output."""
        return self.classes_[np.asarray(self.model.predict(X)).argmax(axis=1)]


def _catboost(ask: Ask) -> Any:
    import catboost

    kind = catboost.CatBoostRegressor if ask.numbers else catboost.CatBoostClassifier
    return kind(
        verbose=0, random_seed=ask.seed, thread_count=ask.threads, allow_writing_files=False
    )


class Framed:
    """A library that takes frames: dates are expanded, columns that are not numbers are texts.

    Parameters
    ----------
    model : object
        The library's estimator.
    filled : bool
        Missing numbers are the training median, for a library that does not take them.
    named : str or None
        Parameter of the model that takes the names of the columns of texts.
    """

    def __init__(self, model: Any, *, filled: bool = False, named: str | None = None) -> None:
        self.model, self.filled, self.named = model, filled, named

    def fit(self, X: Any, y: Any) -> Framed:
        """Fit a frame."""
        from benchmarks.evidence.sets import is_number, with_dates_expanded

        X = with_dates_expanded(X)
        self.text_ = [name for name in X if not is_number(X[name])]
        self.middle_ = X.drop(columns=self.text_).median().fillna(0.0) if self.filled else None
        if self.named:
            self.model.set_params(**{self.named: self.text_})
        self.model.fit(self._texts(X), y)
        self.classes_ = getattr(self.model, "classes_", None)
        return self

    def predict(self, X: Any) -> Any:
        """Predict a frame."""
        return self.model.predict(self._columns(X))

    def _columns(self, X: Any) -> Any:
        from benchmarks.evidence.sets import with_dates_expanded

        return self._texts(with_dates_expanded(X))

    def _texts(self, X: Any) -> Any:
        if self.middle_ is not None:
            X = X.fillna(self.middle_)
        return X.assign(**{name: X[name].astype(object).map(str) for name in self.text_})


class FramedClassifier(Framed):
    """The same with probabilities."""

    def predict_proba(self, X: Any) -> Any:
        """Return the probabilities of the classes."""
        return self.model.predict_proba(self._columns(X))


def _framed(ask: Ask, model: Any, **more: Any) -> Framed:
    return (Framed if ask.numbers else FramedClassifier)(model, **more)


def _catboost_native(ask: Ask) -> Any:
    return _framed(ask, _catboost(ask), named="cat_features")


def _device() -> str:
    """Return "cuda" where torch sees a GPU."""
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def _pytabkit(ask: Ask, *, name: str) -> Any:
    import pytabkit

    kind = getattr(pytabkit, f"{name}_{'Regressor' if ask.numbers else 'Classifier'}")
    model = kind(device=_device(), random_state=ask.seed, n_threads=ask.threads, verbosity=0)
    return _framed(ask, model, filled=True)


def _skrub(ask: Ask, *, linear: bool) -> Any:
    import skrub
    from sklearn.linear_model import LogisticRegression, RidgeCV

    if linear:
        return skrub.tabular_pipeline(RidgeCV() if ask.numbers else LogisticRegression())
    return skrub.tabular_pipeline("regressor" if ask.numbers else "classifier")


LEAST_SECONDS = 10.0
"""With less AutoGluon often ends without a model."""


class AutoGluon:
    """``TabularPredictor`` with the preset "best_quality", for a given time."""

    def __init__(self, ask: Ask) -> None:
        self.ask = ask
        # Imports are not part of the time.
        for name in ("autogluon.tabular", "torch", "catboost", "lightgbm", "xgboost"):
            with suppress(ImportError):
                importlib.import_module(name)

    def fit(self, X: Any, y: Any) -> AutoGluon:
        """Fit a frame; AutoGluon expands dates itself where their type says so."""
        import tempfile

        from autogluon.tabular import TabularPredictor

        ask = self.ask
        kind, measure = "multiclass", "log_loss"
        if ask.numbers:
            kind, measure = "regression", "root_mean_squared_error"
        elif ask.n_classes == 2:
            kind, measure = "binary", "roc_auc"
        self.folder_ = tempfile.TemporaryDirectory()
        self.model_ = TabularPredictor(
            "target", problem_type=kind, eval_metric=measure, path=self.folder_.name, verbosity=0
        )
        self.model_.fit(
            X.assign(target=y),
            presets="best_quality",
            time_limit=max(ask.budget, LEAST_SECONDS),
            # Its trial of stacking leaves no time for a model where there is little of it.
            dynamic_stacking="auto" if ask.budget > 10 * LEAST_SECONDS else False,
            num_cpus=ask.threads,
            num_gpus=0,
        )
        return self

    def predict(self, X: Any) -> Any:
        """Return classes or numbers."""
        return self.model_.predict(X).to_numpy()

    def predict_proba(self, X: Any) -> Any:
        """Return the probabilities of the classes, sorted."""
        found = self.model_.predict_proba(X)
        return found[sorted(found.columns)].to_numpy()

    def __getstate__(self) -> dict[str, Any]:
        raise TypeError("the model is a folder")  # its pickle would have no model in it


def _lightgbm(ask: Ask) -> Any:
    import lightgbm

    kind = lightgbm.LGBMRegressor if ask.numbers else lightgbm.LGBMClassifier
    return kind(verbose=-1, random_state=ask.seed, n_jobs=ask.threads)


def _xgboost(ask: Ask) -> Any:
    import xgboost

    kind = xgboost.XGBRegressor if ask.numbers else xgboost.XGBClassifier
    return kind(random_state=ask.seed, n_jobs=ask.threads, verbosity=0)


def _histgb(ask: Ask) -> Any:
    from sklearn import ensemble

    kind = "Regressor" if ask.numbers else "Classifier"
    return getattr(ensemble, f"HistGradientBoosting{kind}")(random_state=ask.seed)


def _forest(ask: Ask) -> Any:
    from sklearn import ensemble

    kind = ensemble.RandomForestRegressor if ask.numbers else ensemble.RandomForestClassifier
    return kind(random_state=ask.seed, n_jobs=ask.threads)


def _svm(ask: Ask) -> Any:
    from sklearn.svm import SVC, SVR

    return SVR(cache_size=500) if ask.numbers else SVC(cache_size=500)


def _svm_of(numbers: bool, C: float, gamma: float) -> Any:
    from sklearn.svm import SVC, SVR

    # Without a limit one setting with a large C can outlast the whole budget many times.
    return (SVR if numbers else SVC)(C=C, gamma=gamma, cache_size=500, max_iter=1_000_000)


def _svm_tuned(ask: Ask) -> Any:
    return BudgetSearch(partial(_svm_of, ask.numbers), not ask.numbers, ask.budget, ask.seed)


def _nusvm(ask: Ask) -> Any:
    from sklearn.svm import NuSVC, NuSVR

    if ask.numbers:
        return NuSVR(cache_size=500)
    # A pair of classes with shares p <= q is feasible up to nu = 2 p / (p + q).
    p, q = ask.shares
    return NuSVC(nu=min(0.5, 0.99 * 2 * p / (p + q)), cache_size=500)


def _halving(ask: Ask, model: Any, grid: dict[str, Any]) -> Any:
    from sklearn.experimental import enable_halving_search_cv  # noqa: F401
    from sklearn.model_selection import HalvingGridSearchCV

    # With the default number of rows of the first round a class may be missing from a fold.
    first = "exhaust" if ask.n_train > 40 * ask.n_classes else ask.n_train
    return HalvingGridSearchCV(
        model, grid, cv=5, random_state=ask.seed, n_jobs=ask.threads, min_resources=first
    )


class _Widths:
    """Grids of gamma need the number of columns, which is known when rows come."""

    def __init__(self, make: Any, finish: Any) -> None:
        self.make, self.finish = make, finish

    def fit(self, X: Any, y: Any) -> _Widths:
        """Make the search for as many columns, and fit it."""
        self.model_ = self.finish(self.make(list(_WIDTHS / X.shape[1])))
        self.model_.fit(X, y)
        self.classes_ = getattr(self.model_, "classes_", None)
        return self

    def predict(self, X: Any) -> Any:
        """Return what the best setting says."""
        return self.model_.predict(X)

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in self.__dict__.items() if k not in ("make", "finish")}


class _WidthsClassifier(_Widths):
    """The same with probabilities."""

    def predict_proba(self, X: Any) -> Any:
        """Return the probabilities of the classes."""
        return self.model_.predict_proba(X)


def _same(model: Any) -> Any:
    return model


def _kernel_ridge(ask: Ask) -> Any:
    from sklearn.kernel_ridge import KernelRidge

    def make(gammas: list[float]) -> Any:
        return _halving(ask, KernelRidge(kernel="rbf"), {"alpha": _ALPHAS, "gamma": gammas})

    return _Widths(make, _same if ask.numbers else PerClass)


def _nystroem(ask: Ask) -> Any:
    from sklearn.kernel_approximation import Nystroem
    from sklearn.linear_model import LogisticRegression, RidgeCV
    from sklearn.pipeline import make_pipeline

    features = Nystroem(n_components=min(500, ask.n_train // 3), random_state=ask.seed)

    def numbers(gammas: list[float]) -> Any:
        model = make_pipeline(features, RidgeCV(_ALPHAS))
        return _halving(ask, model, {"nystroem__gamma": gammas})

    def classes(gammas: list[float]) -> Any:
        model = make_pipeline(features, LogisticRegression(max_iter=500))
        grid = {"nystroem__gamma": gammas, "logisticregression__C": np.logspace(-1, 4, 6)}
        return _halving(ask, model, grid)

    return _Widths(numbers, _same) if ask.numbers else _WidthsClassifier(classes, _same)


class GaussianProcess:
    """scikit-learn's Gaussian process for numbers, with the intervals that its deviations give."""

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def fit(self, X: Any, y: Any) -> GaussianProcess:
        """Fit by the marginal likelihood."""
        from sklearn.gaussian_process import GaussianProcessRegressor
        from sklearn.gaussian_process.kernels import RBF, WhiteKernel

        kernel = 1.0 * RBF(np.sqrt(X.shape[1])) + WhiteKernel(0.1)
        self.model_ = GaussianProcessRegressor(kernel, random_state=self.seed).fit(X, y)
        return self

    def predict(self, X: Any) -> Any:
        """Return the mean."""
        return self.model_.predict(X)

    def predict_interval(self, X: Any, coverage: float) -> Any:
        """Return the interval of a normal distribution, shape (n, 2)."""
        from scipy.stats import norm

        mean, deviation = self.model_.predict(X, return_std=True)
        half = norm.ppf(0.5 + coverage / 2) * deviation
        return np.column_stack([mean - half, mean + half])


class GaussianProcessClasses:
    """scikit-learn's Gaussian process classifier, one against the rest."""

    def __init__(self, seed: int, threads: int) -> None:
        self.seed, self.threads = seed, threads

    def fit(self, X: Any, y: Any) -> GaussianProcessClasses:
        """Fit by the approximate marginal likelihood."""
        from sklearn.gaussian_process import GaussianProcessClassifier
        from sklearn.gaussian_process.kernels import RBF

        kernel = 1.0 * RBF(np.sqrt(X.shape[1]))
        self.model_ = GaussianProcessClassifier(
            kernel, random_state=self.seed, n_jobs=self.threads
        ).fit(X, y)
        self.classes_ = self.model_.classes_
        return self

    def predict(self, X: Any) -> Any:
        """Return the classes."""
        return self.model_.predict(X)

    def predict_proba(self, X: Any) -> Any:
        """Return the probabilities of the classes."""
        return self.model_.predict_proba(X)


def _gaussian_process(ask: Ask) -> Any:
    if ask.numbers:
        return GaussianProcess(ask.seed)
    return GaussianProcessClasses(ask.seed, ask.threads)


def _mlp(ask: Ask) -> Any:
    from sklearn.neural_network import MLPClassifier, MLPRegressor

    return (MLPRegressor if ask.numbers else MLPClassifier)(random_state=ask.seed, max_iter=500)


def _neighbours(ask: Ask) -> Any:
    from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor

    return (KNeighborsRegressor if ask.numbers else KNeighborsClassifier)(n_jobs=ask.threads)


def _intelex(ask: Ask) -> Any:
    from sklearnex.svm import SVC, SVR

    return SVR() if ask.numbers else SVC()


def _neo(ask: Ask) -> Any:
    from neo_ls_svm import NeoLSSVM
    from sklearn.multiclass import OneVsRestClassifier

    model = NeoLSSVM(
        random_state=ask.seed, estimator_type="regressor" if ask.numbers else "classifier"
    )
    return OneVsRestClassifier(model) if ask.n_classes > 2 else model


class XRFM:
    """xRFM with the settings of its README; a fifth of the training rows validates, as it asks."""

    def __init__(self, ask: Ask) -> None:
        self.ask = ask

    def fit(self, X: Any, y: Any) -> XRFM:
        """Fit on four fifths, with the others for its choices."""
        import torch
        from sklearn.model_selection import train_test_split
        from xrfm import xRFM

        torch.set_num_threads(self.ask.threads)
        torch.manual_seed(self.ask.seed)
        numbers = self.ask.numbers
        settings = {
            "model": {
                "kernel": "l2",
                "bandwidth": 5.0,
                "exponent": 1.0,
                "diag": False,
                "bandwidth_mode": "constant",
            },
            "fit": {
                "reg": 1e-3,
                "iters": 5,
                "M_batch_size": 1000,
                "verbose": False,
                "early_stop_rfm": True,
            },
        }
        self.classes_, target = None, np.asarray(y, dtype=float)
        if not numbers:
            self.classes_, target = np.unique(y, return_inverse=True)
        rows = train_test_split(
            np.asarray(X, dtype=np.float32),
            target,
            test_size=0.2,
            random_state=self.ask.seed,
            stratify=None if numbers else target,
        )
        a, b = (torch.as_tensor(part) for part in rows[:2])
        ya, yb = (
            torch.as_tensor(part, dtype=torch.float32 if numbers else torch.int64).reshape(-1, 1)
            for part in rows[2:]
        )
        self.model_ = xRFM(
            rfm_params=settings,
            device=torch.device(_device()),
            min_subset_size=10_000,
            tuning_metric="mse" if numbers else "accuracy",
            split_method="top_vector_agop_on_subset",
        )
        self.model_.fit(a, ya, b, yb)
        return self

    def predict(self, X: Any) -> Any:
        """Return classes or numbers."""
        import torch

        said = self.model_.predict(torch.as_tensor(np.asarray(X, dtype=np.float32)))
        said = np.asarray(said)
        if self.classes_ is None:
            return said.ravel()
        if said.ndim == 2 and said.shape[1] == len(self.classes_):
            said = said.argmax(axis=1)
        return self.classes_[said.ravel().astype(int)]

    def predict_proba(self, X: Any) -> Any:
        """Return the probabilities of the classes."""
        if self.classes_ is None:
            raise AttributeError("numbers have no probabilities")
        said = np.asarray(self.model_.predict_proba(np.asarray(X, dtype=np.float32)))
        if said.ndim == 2 and said.shape[1] == len(self.classes_):
            return said
        return np.column_stack([1.0 - said.ravel(), said.ravel()])


def _xrfm_tuned(ask: Ask) -> Any:
    import pytabkit

    kind = pytabkit.XRFM_HPO_Regressor if ask.numbers else pytabkit.XRFM_HPO_Classifier
    return kind(
        device=_device(),
        random_state=ask.seed,
        n_threads=ask.threads,
        time_limit_s=ask.budget,
        verbosity=0,
    )


def _himalaya(ask: Ask) -> Any:
    from himalaya.backend import set_backend
    from himalaya.kernel_ridge import KernelRidgeCV

    set_backend("numpy")
    model = KernelRidgeCV(alphas=_ALPHAS, kernel="rbf", cv=5)
    return model if ask.numbers else PerClass(model)


def _thunder(ask: Ask) -> Any:
    from thundersvm import SVC, SVR

    return (SVR if ask.numbers else SVC)(kernel="rbf", gamma="auto", n_jobs=ask.threads)


_HALVING = "HalvingGridSearchCV, 5 folds"

METHODS = [
    Method("catboost", "CatBoost", "boosting", "numbers", _catboost, needs=("catboost",)),
    Method("catboost-native", "CatBoost, own categories", "boosting", "frame", _catboost_native,
           "defaults; columns that are not numbers as cat_features", ("catboost",)),
    Method("lightgbm", "LightGBM", "boosting", "numbers", _lightgbm, needs=("lightgbm",)),
    Method("xgboost", "XGBoost", "boosting", "numbers", _xgboost, needs=("xgboost",)),
    Method("histgb", "HistGradientBoosting", "boosting", "numbers", _histgb),
    Method("forest", "random forest", "forest", "numbers", _forest),
    Method("svm", "SVC/SVR", "kernel", "standardised", _svm),
    Method("svm-tuned", "SVC/SVR, tuned", "kernel", "standardised", _svm_tuned,
           "random C in 1e-2..1e4 and gamma d in 1e-3..30 until the budget is spent, scored by 5 "
           "folds of at most 4,000 rows, at most a million iterations a fit; probabilities by 5 "
           "folds"),
    Method("nusvm", "NuSVC/NuSVR", "kernel", "standardised", _nusvm,
           "nu=0.5, or the largest feasible one"),
    Method("kernel-ridge", "KernelRidge, tuned", "kernel", "standardised", _kernel_ridge,
           f"{_HALVING}: 8 values of alpha, 7 of gamma; classes as +-1 targets; at most 5,000 rows",
           most_rows=5000),
    Method("nystroem", "Nystroem, tuned", "kernel", "standardised", _nystroem,
           f"{_HALVING}: 500 components, 7 values of gamma; RidgeCV (8 alphas) or "
           "LogisticRegression (6 values of C)"),
    Method("gaussian-process", "Gaussian process", "kernel", "standardised", _gaussian_process,
           "1.0 * RBF + WhiteKernel (classes: 1.0 * RBF) by the marginal likelihood; at most "
           "1,500 rows", most_rows=1500),
    Method("mlp", "MLP", "other", "standardised", _mlp, "defaults, max_iter=500"),
    Method("neighbours", "k-neighbours", "other", "standardised", _neighbours),
    Method("intelex-svm", "SVC/SVR of intelex", "kernel", "standardised", _intelex,
           needs=("sklearnex",)),
    Method("neo-ls-svm", "neo-ls-svm", "kernel", "standardised", _neo,
           "defaults; more than two classes one against the rest", ("neo_ls_svm",)),
    Method("xrfm", "xRFM", "kernel", "standardised", XRFM,
           "those of its README, on a GPU if there is one; a fifth of the training rows validates",
           ("torch", "xrfm")),
    Method("realmlp", "RealMLP-TD", "other", "frame", partial(_pytabkit, name="RealMLP_TD"),
           "RealMLP_TD of pytabkit, on a GPU if there is one; a fifth of the training rows "
           "validates", ("torch", "pytabkit")),
    Method("tabm", "TabM-D", "other", "frame", partial(_pytabkit, name="TabM_D"),
           "TabM_D of pytabkit, on a GPU if there is one; a fifth of the training rows validates",
           ("torch", "pytabkit")),
    Method("skrub-histgb", "skrub, HistGradientBoosting", "boosting", "frame",
           partial(_skrub, linear=False), "tabular_pipeline", ("skrub",)),
    Method("skrub-linear", "skrub, linear", "other", "frame", partial(_skrub, linear=True),
           "tabular_pipeline with RidgeCV, for classes LogisticRegression", ("skrub",)),
    *(
        Method(name, f"AutoGluon, {words} our time", "other", "frame", AutoGluon,
               f"preset \"best_quality\" by the measure of the set, {words} the time of `table` on "
               "the same split, at least 10 s; without FastAI", ("autogluon.tabular",), warm=False,
               times_ours=times)
        for name, words, times in (("autogluon", "1 x", 1.0), ("autogluon-ten", "10 x", 10.0))
    ),
    Method("xrfm-tuned", "xRFM, tuned", "kernel", "numbers", _xrfm_tuned,
           "XRFM_HPO of pytabkit within the budget", ("torch", "xrfm", "pytabkit")),
    Method("himalaya", "himalaya", "kernel", "standardised", _himalaya,
           "KernelRidgeCV, kernel=\"rbf\", 8 values of alpha; classes as +-1 targets; at "
           "most 3,000 rows", ("himalaya",), 3000),
    Method("thundersvm", "thundersvm", "kernel", "standardised", _thunder, needs=("thundersvm",)),
]  # fmt: skip
