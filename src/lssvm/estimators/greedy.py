"""`GreedyLSSVC` and `GreedyLSSVR`: sparse models, built one basis function at a time."""

from __future__ import annotations

import copy
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self, TypeVar

import numpy as np
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from lssvm._core.arrays import FloatArray
from lssvm._core.random import RandomState
from lssvm.estimators.base import KernelClassifier, KernelEstimator, callback_of, reports
from lssvm.estimators.opening import Opened, map_rows, open_rows
from lssvm.fitting.greedy import GreedySettings, fit_greedy, truncate_fit

Model = TypeVar("Model", bound="GreedyLSSVC | GreedyLSSVR")


def _fit(estimator: Model, opened: Opened) -> Model:
    choice, settings = estimator._kernel_choice(), GreedySettings.of(estimator)
    rows, task = opened.in_memory(sparse=choice.accepts_sparse)
    rows, metric = map_rows(rows, choice, settings.seed)
    fit = fit_greedy(rows, task, settings, callback_of(estimator))
    estimator._publish(fit.with_metric(metric))
    return estimator


@dataclass(eq=False, repr=False)
class GreedyLSSVC(KernelClassifier):
    r"""Sparse least squares support vector classifier, built one basis function at a time.

    FSALS-SVM and, with ``candidates=146``, PFSALS-SVM of [Jiao2007]_. The dual of the LS-SVM,

    .. math:: \min_{\alpha, b} \tfrac12 \alpha^T (K + I/C) \alpha - y^T \alpha + b 1^T \alpha,

    is solved over a growing set of rows: the row with the largest expected decrease of the
    objective is added (eq. (30)), and all coefficients are computed again (eqs. (15)-(18)), until
    no row outside is predicted with an error above epsilon (eq. (31)). Prediction uses only the
    chosen rows.

    Parameters
    ----------
    C : float or "cv", default=1.0
        Regularisation; a larger value fits the training data more closely. The paper's gamma is
        C/2. "cv" selects the basis at
        C = 8 and then chooses C by exact leave-one-out on that basis.
    gamma : float, array of shape (d,), "scale", "auto" or "cv", default="scale"
        Width of rbf, laplacian and matern, scale of poly; as in `sklearn.svm.SVC`. "cv" chooses it
        by cross-validation ([Jiao2007]_, section VII-C: all free parameters), and C with it where
        that is "cv" too: the basis is chosen again in every fold.
    kernel : str, callable, Kernel or MetricKernel, default="rbf"
        "rbf", "linear", "poly", "laplacian", "matern" or "precomputed", a function of two matrices
        of rows, or an object of `lssvm.kernels`, such as ``Matern(nu=2.5)`` or
        ``Polynomial(degree=4, coef0=0.5)``, which takes gamma where it has none;
        ``MetricKernel("rbf", "full")`` maps the inputs first.
    fit_intercept : bool, default=True
        Whether there is a bias b.
    epsilon : float or "cv", default=0.5
        Stop when the outputs of all rows outside the basis (of the candidates, if there are any)
        are within epsilon of their targets +1 and -1, so that those rows are classified correctly
        by the binary problem. Below 1; 0 gives the full machine of `LSSVC`. "cv" chooses among ten
        values from 0.05 to 0.9 on the folds of ``cv``.
    criterion : {"fsals", "kmp", "sggp"}, default="fsals"
        The loss that grows the basis: eq. (38), or that of kernel matching pursuit, eq. (36), or of
        the sparse greedy Gaussian process, eq. (37). The last two fit the basis to all rows, which
        needs fewer functions and more time per function.
    candidates : int or None, default=None
        Number of random candidate rows per step; None for all rows. Eq. (35) gives 146.
    prefit : bool, default=False
        Whether candidates are ranked after a refit of all coefficients (eq. (23)) or of their own
        only (eq. (30)).
    max_support : int, "cv" or None, default=None
        Largest number of basis functions per binary problem; "cv" chooses it on the folds of
        ``cv``.
    validation_fraction : float or None, default=None
        Part of the rows that is held out: the size with the smallest squared error on them is kept,
        and a run stops 50 steps after it.
    cv : int, "loo", splitter or iterable, default=10
        Folds for gamma="cv", and for C and probabilities where groups are given to `fit`. A number
        assigns rows (or groups) by content, stratified by class.
    multiclass : str, array, Code or Coding, default="ova"
        Output code: "ova", "auto", "ovo", "moc", "moc-counting" or "ecoc", see
        `lssvm.codes.make_code`. The paper takes one-vs-all, whose problems share kernel
        columns: hence the default, "auto" elsewhere. A `lssvm.codes.Coding` also sets how outputs
        are decoded and how leave-one-out scores (those of folds of groups, or of the splitter that
        gamma="cv" was chosen by) are calibrated.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes; they multiply ``sample_weight``.
    memory_budget : int, str or None, default=None
        Bytes, or "2 GB"; None is 70 % of the available memory. Kernel columns are kept in it, and
        computed again beyond it.
    n_jobs : int or None, default=None
        Threads; None uses all cores.
    random_state : int, Generator, RandomState or None, default=None
        Draws candidates and held-out rows; None is a fixed seed, so results are reproducible.
    verbose : int, default=0
        1 reports the steps on standard error.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    code_ : Code
    support_ : int array of shape (n_support,)
        Rows of X that are in the basis of at least one problem.
    support_vectors_ : array of shape (n_support, n_features)
        Not for a precomputed kernel.
    dual_coef_ : array of shape (n_support, n_problems)
        Support values times targets, zero where a problem does not use a row.
    intercept_ : array of shape (n_problems,)
    paths_ : list of GreedyPath
        The run of every problem: its rows in the order of selection, the objective and the largest
        error after each step, and why it stopped.
    n_iter_ : int
        Steps of the longest run.
    C_ : float
    gamma_ : float or array
    epsilon_, max_support_ : float, int
        Where they were chosen by cross-validation.
    cv_results_ : dict
        With C="cv": values of C and their leave-one-out accuracy; with gamma="cv":
        parameters and scores of all evaluations by cross-validation.
    best_score_ : float
        With C="cv" or gamma="cv": the score of what was chosen.
    n_evaluations_, tuning_result_ : int, TuningResult
        With gamma="cv": how many pairs of C and gamma were tried, and the whole record.
    n_features_in_ : int
    feature_names_in_ : array
        When X had column names.

    Notes
    -----
    Time n m^2 + n m d and memory n m numbers for a problem that ends with m of n rows; with
    candidates, m^3 + candidates m^2 and, within the memory budget, the kernel columns. Equal rows
    are merged (their weights add up, their targets are averaged), which does not change the LS-SVM
    and makes a weight of 2 equal to the row twice.

    Examples
    --------
    >>> from lssvm import GreedyLSSVC
    >>> from lssvm.datasets import load_ripley
    >>> ripley = load_ripley()
    >>> X, y = ripley.data, ripley.target
    >>> model = GreedyLSSVC(C=10.0, gamma=2.0, epsilon=0.9).fit(X[ripley.train], y[ripley.train])
    >>> len(model.support_) < 125, bool(model.score(X[ripley.test], y[ripley.test]) > 0.89)
    (True, True)
    >>> len(model.truncate(20).support_)
    20
    """

    C: Any = 1.0
    _: KW_ONLY
    gamma: Any = "scale"
    kernel: Any = "rbf"
    fit_intercept: bool = True
    epsilon: float | str = 0.5
    criterion: str = "fsals"
    candidates: int | None = None
    prefit: bool = False
    max_support: int | str | None = None
    validation_fraction: float | None = None
    cv: Any = 10
    multiclass: Any = "ova"
    class_weight: Any = None
    memory_budget: Any = None
    n_jobs: int | None = None
    random_state: RandomState = None
    verbose: int = 0

    @classmethod
    def jiao2007(cls, *, sampled: bool = False, **options: Any) -> Self:
        """Return FSALS-SVM of [Jiao2007]_, or PFSALS-SVM, with all free parameters tuned.

        One-vs-all, 10-fold cross-validation over C, gamma and epsilon (section VII-C); in the
        other experiments of the paper epsilon is 0.5 and C and gamma are given.

        Parameters
        ----------
        sampled : bool, default=False
            Whether 146 rows are looked at in each step (eq. (35)) in place of all.
        **options : dict
            Other parameters of the class; they replace those of the paper.
        """
        paper: dict[str, Any] = {"C": "cv", "gamma": "cv", "epsilon": "cv", "cv": 10}
        paper |= {"multiclass": "ova", "candidates": 146 if sampled else None}
        return cls(**paper | options)

    @reports
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, groups: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            The (n, n) kernel matrix for ``kernel="precomputed"``.
        y : array-like of shape (n,)
            Class labels.
        sample_weight : array-like of shape (n,), optional
            Weight of every row; a weight of 2 counts as the row twice.
        groups : array-like of shape (n,), optional
            Rows of a group are held out together, in tuning and in calibration: C="cv" and
            probabilities then go by folds of whole groups, in each of which the basis is chosen
            again, and ``validation_fraction`` holds out whole groups. A splitter given as ``cv``
            gets them too.

        Returns
        -------
        GreedyLSSVC
            Itself.
        """
        self._forget_fit()
        self._check_coding("threshold", "targets", "loss")
        return _fit(self, open_rows(self, X, y, sample_weight, groups))

    def truncate(self, n: int) -> Self:
        """Return the model of the first basis functions of every output.

        Exactly what `fit` would have given with ``max_support=n`` (without held-out rows): no
        training data are needed.

        Parameters
        ----------
        n : int
            Largest number of basis functions per output, or per binary problem.

        Returns
        -------
        GreedyLSSVC or GreedyLSSVR
            A fitted copy; this estimator is not changed.

        Notes
        -----
        m^3/3 operations for each output of m basis functions (m^2 for "kmp" and "sggp").
        """
        check_is_fitted(self)
        return copy.copy(self)._publish(truncate_fit(self.record_, n))


@dataclass(eq=False, repr=False)
class GreedyLSSVR(MultiOutputMixin, RegressorMixin, KernelEstimator):
    r"""Sparse least squares support vector regression, built one basis function at a time.

    The algorithms of [Jiao2007]_, written there for the labels +1 and -1, with real targets: the
    dual of the LS-SVM depends on the labels through y alone. See `GreedyLSSVC`.

    Parameters
    ----------
    C : float or "cv", default=1.0
        Regularisation; a larger value fits the training data more closely. The paper's gamma is
        C/2. "cv" selects the basis at
        C = 8 and then chooses C by exact leave-one-out on that basis.
    gamma : float, array of shape (d,), "scale", "auto" or "cv", default="scale"
        Width of rbf, laplacian and matern, scale of poly; as in `sklearn.svm.SVC`. "cv" chooses it
        by cross-validation ([Jiao2007]_, section VII-C: all free parameters), and C with it where
        that is "cv" too: the basis is chosen again in every fold.
    kernel : str, callable, Kernel or MetricKernel, default="rbf"
        "rbf", "linear", "poly", "laplacian", "matern" or "precomputed", a function of two matrices
        of rows, or an object of `lssvm.kernels`, such as ``Matern(nu=2.5)`` or
        ``Polynomial(degree=4, coef0=0.5)``, which takes gamma where it has none;
        ``MetricKernel("rbf", "full")`` maps the inputs first.
    fit_intercept : bool, default=True
        Whether there is a bias b.
    epsilon : float or "cv", default=0.1
        In units of y, as in `sklearn.svm.SVR`: stop when all rows outside the basis (of the
        candidates, if there are any) are predicted with an error of at most epsilon (eq. (31)). 0
        gives the full machine of `LSSVR`. "cv" chooses among ten values from 0.05 to 0.9 standard
        deviations of y on the folds of ``cv``.
    criterion : {"fsals", "kmp", "sggp"}, default="fsals"
        The loss that grows the basis: eq. (38), or that of kernel matching pursuit, eq. (36), or of
        the sparse greedy Gaussian process, eq. (37). The last two fit the basis to all rows, which
        needs fewer functions and more time per function.
    candidates : int or None, default=None
        Number of random candidate rows per step; None for all rows. Eq. (35) gives 146.
    prefit : bool, default=False
        Whether candidates are ranked after a refit of all coefficients (eq. (23)) or of their own
        only (eq. (30)).
    max_support : int, "cv" or None, default=None
        Largest number of basis functions per output; "cv" chooses it on the folds of ``cv``.
    validation_fraction : float or None, default=None
        Part of the rows that is held out: the size with the smallest squared error on them is kept,
        and a run stops 50 steps after it.
    cv : int, "loo", splitter or iterable, default=10
        Folds for gamma="cv", and for C where groups are given to `fit`. A number assigns rows (or
        groups) by content.
    memory_budget : int, str or None, default=None
        Bytes, or "2 GB"; None is 70 % of the available memory. Kernel columns are kept in it, and
        computed again beyond it.
    n_jobs : int or None, default=None
        Threads; None uses all cores.
    random_state : int, Generator, RandomState or None, default=None
        Draws candidates and held-out rows; None is a fixed seed, so results are reproducible.
    verbose : int, default=0
        1 reports the steps on standard error.

    Attributes
    ----------
    support_ : int array of shape (n_support,)
        Rows of X that are in the basis of at least one output.
    support_vectors_ : array of shape (n_support, n_features)
        Not for a precomputed kernel.
    dual_coef_ : array of shape (n_support, n_outputs)
        Support values, zero where an output does not use a row.
    intercept_ : array of shape (n_outputs,)
    paths_ : list of GreedyPath
        The run of every output: its rows in the order of selection, the objective and the largest
        error after each step, and why it stopped.
    n_iter_ : int
        Steps of the longest run.
    C_ : float
    gamma_ : float or array
    epsilon_, max_support_ : float, int
        Where they were chosen by cross-validation.
    cv_results_ : dict
        With C="cv": values of C and their leave-one-out mean squared error, negated; with
        gamma="cv": parameters and scores of all evaluations by cross-validation.
    best_score_ : float
        With C="cv" or gamma="cv": the score of what was chosen.
    n_evaluations_, tuning_result_ : int, TuningResult
        With gamma="cv": how many pairs of C and gamma were tried, and the whole record.
    n_features_in_ : int
    feature_names_in_ : array
        When X had column names.

    Notes
    -----
    The cost is that of `GreedyLSSVC`. With a bias the targets are centred first, so that a shift of
    y changes only the bias; the paper starts from y itself, which for its labels +1 and -1 differs
    in the first basis function only. Equal rows are merged (their weights add up, their targets are
    averaged), which does not change the LS-SVM and makes a weight of 2 equal to the row twice.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm import GreedyLSSVR
    >>> X = np.linspace(0, 6, 200)[:, None]
    >>> model = GreedyLSSVR(C=100.0, gamma=1.0, epsilon=0.05).fit(X, np.sin(X[:, 0]))
    >>> len(model.support_) < 30, bool(model.score(X, np.sin(X[:, 0])) > 0.99)
    (True, True)
    """

    C: Any = 1.0
    _: KW_ONLY
    gamma: Any = "scale"
    kernel: Any = "rbf"
    fit_intercept: bool = True
    epsilon: float | str = 0.1
    criterion: str = "fsals"
    candidates: int | None = None
    prefit: bool = False
    max_support: int | str | None = None
    validation_fraction: float | None = None
    cv: Any = 10
    memory_budget: Any = None
    n_jobs: int | None = None
    random_state: RandomState = None
    verbose: int = 0

    @reports
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, groups: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            The (n, n) kernel matrix for ``kernel="precomputed"``.
        y : array-like of shape (n,) or (n, n_outputs)
            Targets: one number for each row, or several.
        sample_weight : array-like of shape (n,), optional
            Weight of every row; a weight of 2 counts as the row twice.
        groups : array-like of shape (n,), optional
            Rows of a group are held out together: C="cv" then goes by folds of whole groups, in
            each of which the basis is chosen again, and ``validation_fraction`` holds out whole
            groups.
            A splitter given as ``cv`` gets them too.

        Returns
        -------
        GreedyLSSVR
            Itself.
        """
        self._forget_fit()
        return _fit(self, open_rows(self, X, y, sample_weight, groups))

    def truncate(self, n: int) -> Self:
        """Return the model of the first basis functions of every output.

        Exactly what `fit` would have given with ``max_support=n`` (without held-out rows): no
        training data are needed.

        Parameters
        ----------
        n : int
            Largest number of basis functions per output, or per binary problem.

        Returns
        -------
        GreedyLSSVC or GreedyLSSVR
            A fitted copy; this estimator is not changed.

        Notes
        -----
        m^3/3 operations for each output of m basis functions (m^2 for "kmp" and "sggp").
        """
        check_is_fitted(self)
        return copy.copy(self)._publish(truncate_fit(self.record_, n))

    def predict(self, X: Any) -> FloatArray:
        """Predict the targets of new rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            The (n, n_train) kernel rows for ``kernel="precomputed"``.

        Returns
        -------
        array of shape (n,) or (n, n_outputs)
        """
        raw = self._inputs(X).outputs(self.record_)  # first: it checks that the model is fitted
        return np.asarray(self.record_.task.predict(raw))
