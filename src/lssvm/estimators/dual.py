"""`LSSVC` and `LSSVR`: the full dual model for classification and for function estimation."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self, TypeVar

from lssvm._core.random import RandomState
from lssvm.estimators.base import KernelClassifier, KernelRegressor, callback_of, reports
from lssvm.estimators.opening import map_rows, open_rows, with_better_code
from lssvm.fitting.dual import DualSettings, fit_dual
from lssvm.tuning import CirculantSearch, ShrinkingGridSearch

PAPER_2002: dict[str, Any] = {"C": "cv", "gamma": "cv", "cv": 10}
"""What is tuned, and on which folds."""
Model = TypeVar("Model", bound="LSSVC | LSSVR")


def _fit(
    estimator: Model, X: Any, y: Any, sample_weight: Any, groups: Any, **options: Any
) -> Model:
    """Fit the rows after their metric, with the output code that suits them."""
    settings = DualSettings.of(estimator)
    choice = settings.choice
    opened = open_rows(estimator, X, y, sample_weight, groups)
    rows, task = opened.in_memory(sparse=choice.accepts_sparse, **options)
    rows, metric = map_rows(rows, choice, settings.seed)
    rows, task = with_better_code(estimator, rows, task, choice, by_class=False)
    fit = fit_dual(rows, task, settings, callback_of(estimator))
    estimator._publish(fit.with_metric(metric))
    return estimator


@dataclass(eq=False, repr=False)
class LSSVC(KernelClassifier):
    r"""Least squares support vector classifier, solved exactly in the dual.

    Minimises :math:`\tfrac12 w^T w + \tfrac C2 \sum_i s_i e_i^2` subject to
    :math:`y_i (w^T \varphi(x_i) + b) = 1 - e_i` (eq. (3.1) of [Suykens2002]_). Multiplied by
    :math:`y_i = \pm 1` the constraint is that of regression on the targets, so the system (3.5) is
    (3.32) with :math:`\alpha_i y_i` in place of :math:`\alpha_i`: that is what `dual_coef_`
    holds. More than two classes are coded into binary problems (section 3.2).

    Parameters
    ----------
    C : float or "cv", default=1.0
        Regularisation; a larger value fits the training data more closely. "cv" chooses it by
        cross-validation inside `fit`. The default, like that of gamma, is that of scikit-learn;
        fixed-size models, whose cross-validation costs little more than a fit, tune both.
    kernel : str, callable, Kernel or MetricKernel, default="rbf"
        "rbf", "linear", "poly", "laplacian", "matern", "nonstationary" or "precomputed", a function
        of two matrices of rows, or an object of `lssvm.kernels`. One without gamma, such as
        ``Matern(nu=2.5)`` or ``Polynomial(degree=4, coef0=0.5)``, takes the gamma of the model;
        ``MetricKernel("rbf", "full")`` maps the inputs first.
    gamma : float, array of shape (d,), "scale", "auto", "cv" or "ard", default="scale"
        Width of rbf, laplacian and matern, scale of poly; as in `sklearn.svm.SVC`. "cv" chooses it
        by cross-validation; "ard" (rbf and matern) then looks for one value per feature that makes
        the data most likely, and uses it unless cross-validation is worse.
    fit_intercept : bool, default=True
        Whether there is a bias b. Without it the system is (3.62), that of kernel ridge regression
        and of a Gaussian process.
    multiclass : str, array, Code or Coding, default="auto"
        Output code: "auto", "ovo", "ova", "moc", "moc-counting" or "ecoc", see
        `lssvm.codes.make_code`. "auto" is one-vs-one up to 10 classes; up to 60, the one of
        one-vs-one and one-vs-all with the smaller error on a sample; else one-vs-all. All problems
        of one-vs-all, minimum output coding and error-correcting codes are columns of one solve.
        A `lssvm.codes.Coding` also sets how outputs are decoded, which targets the problems have
        and how probabilities are calibrated.
    class_weight : dict, "balanced" or None, default=None
        Factors of the weights of the rows of each class. "balanced", like Fisher's
        targets, counts the rows that a model is trained on, separately in every fold.
    solver : {"auto", "cholesky", "cg", "smo", "circulant"} or solver object, default="auto"
        "auto" factorises the kernel matrix when it fits into the memory budget, otherwise uses
        preconditioned conjugate gradients; after tuning it takes the factorisation that tuning
        has made (`solver_` is then "eigen"). "circulant" is approximate, in O(n log n)
        ([Ding2011]_), and exact below 256 rows and with weights; a warning is issued if it is too
        inaccurate, see `lssvm.solvers.CirculantSolver`. The others are exact. Tolerance and maximal
        number of iterations are those of the object: ``ConjugateGradient(tol=1e-9)``.
    reduction : None, "prune", "l0" or an object of `lssvm.reductions`, default=None
        Fewer support vectors after training (section 3.7 of [Suykens2002]_; [Lopez2011]_).
    cv : int, "loo", splitter or iterable, default=10
        Folds for tuning and pruning. A number assigns rows by content (equal rows share a fold),
        stratified by class; a splitter is used unchanged.
    search : {"path", "grid", "shrinking", "csa", "circulant"} or search object, default="path"
        How (C, gamma) are searched; see `lssvm.tuning`. ``PathSearch(checkpoint="file")`` continues
        a stopped fit; with ``per_output=True`` every output has its own pair.
    scoring : str, callable or None, default=None
        Any scikit-learn scorer of labels or decision values, whose best value is taken; it is
        given the sample weights, not the class weights. None is the accuracy under both weights,
        where candidates within half a standard error of the best are ranked by the squared error.
        "press", "gcv", "aic", "bic", "cp", "rk" and "evidence" are criteria of the targets without
        folds; cv is then not used.
    memory_budget : int, str or None, default=None
        Bytes, or "2 GB"; None is 70 % of the available memory. A kernel matrix that does not fit
        is refused before it is allocated.
    n_jobs : int or None, default=None
        Threads; None uses all cores.
    random_state : int, Generator, RandomState or None, default=None
        Seeds folds, searches and random codes; None is a fixed seed, so results are reproducible.
    verbose : int, default=0
        1 reports tuning on standard error.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    code_ : Code
    dual_coef_ : array of shape (n_support, n_problems)
        Support values times targets, alpha_i y_i; zero where a problem does not use a row.
    intercept_ : array of shape (n_problems,)
    support_ : int array of shape (n_support,)
        Rows of X that are support vectors.
    support_vectors_ : array of shape (n_support, n_features)
        Not for a precomputed kernel.
    metric_ : array of shape (d, d) or (d,)
        With a `lssvm.kernels.MetricKernel`: the matrix A A^T, or its diagonal.
    C_, gamma_ : float
        Arrays where tuned separately; ``gamma_`` has shape (d,) where it differs between features.
    feature_relevance_ : array of shape (d,)
        With ``gamma="ard"``: shares of the features in the mean exponent of the kernel,
        gamma_l var(x_l) divided by their sum.
    solver_ : str
        The solver that was used: where "circulant" fell back, the exact one.
    residual_ : float
        Relative residual of the linear systems.
    n_iter_ : int
        Iterations of the solver, 1 for Cholesky.
    cv_results_ : dict
        When something was tuned: parameters and scores of all evaluations.
    best_score_ : float
        When something was tuned: the cross-validated score of the chosen parameters.
    n_evaluations_ : int
        When something was tuned: how many pairs (C, gamma) were tried.
    tuning_result_ : lssvm.tuning.TuningResult or list of them
        When something was tuned: the whole record of the search; a list where tuned separately.
    reduction_path_ : list
        What the reduction did, one record per group of problems.
    n_features_in_ : int
    feature_names_in_ : array
        When X had column names.

    Notes
    -----
    Time n^3/3 + n^2 d, memory n^2 numbers with Cholesky; O(n^2 d) per iteration and O(n m) memory
    with conjugate gradients. Exact leave-one-out or v-fold cross-validation over a whole path of C
    costs one eigendecomposition per gamma.

    A sample weight of 0 equals dropping the row, a weight of 2 equals the row twice.

    Examples
    --------
    >>> from lssvm import LSSVC
    >>> from lssvm.datasets import load_ripley
    >>> ripley = load_ripley()
    >>> X, y = ripley.data, ripley.target
    >>> model = LSSVC(C="cv", gamma="cv").fit(X[ripley.train], y[ripley.train])
    >>> bool(model.score(X[ripley.test], y[ripley.test]) > 0.9)
    True
    """

    C: Any = 1.0
    _: KW_ONLY
    kernel: Any = "rbf"
    gamma: Any = "scale"
    fit_intercept: bool = True
    multiclass: Any = "auto"
    class_weight: Any = None
    solver: Any = "auto"
    reduction: Any = None
    cv: Any = 10
    search: Any = "path"
    scoring: Any = None
    memory_budget: Any = None
    n_jobs: int | None = None
    random_state: RandomState = None
    verbose: int = 0

    @classmethod
    def suykens2002(cls, **options: Any) -> Self:
        """Return the classifier of [Suykens2002]_, section 3.4, with its tuning.

        An RBF kernel, and for every binary problem of the code its own C and gamma (eq. (3.13)) by
        the accuracy of 10-fold cross-validation on a grid that is refined three times; one-vs-one,
        where the chapter has minimum output coding too (``multiclass="moc-counting"``).

        Parameters
        ----------
        **options : dict
            Other parameters of the class; they replace those of the paper.
        """
        paper = PAPER_2002 | {"multiclass": "ovo", "search": ShrinkingGridSearch(per_output=True)}
        return cls(**paper | options)

    @classmethod
    def ding2011(cls, **options: Any) -> Self:
        """Return the classifier of [Ding2011]_: algorithm 2 chooses C and gamma.

        5-fold cross-validation with circulant matrices on the grid of section 7.2; the model itself
        is exact.

        Parameters
        ----------
        **options : dict
            Other parameters of the class; they replace those of the paper.
        """
        return cls(**PAPER_2002 | {"cv": 5, "search": CirculantSearch.ding2011()} | options)

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
            Rows of a group are held out together, in tuning and in calibration; a splitter given as
            ``cv`` gets them too.

        Returns
        -------
        LSSVC
            Itself.
        """
        self._forget_fit()
        self._check_coding()
        return _fit(self, X, y, sample_weight, groups)


@dataclass(eq=False, repr=False)
class LSSVR(KernelRegressor):
    r"""Least squares support vector regression, solved exactly in the dual.

    Minimises :math:`\tfrac12 w^T w + \tfrac C2 \sum_i s_i e_i^2` subject to
    :math:`y_i = w^T \varphi(x_i) + b + e_i` (eq. (3.29) of [Suykens2002]_) by solving the linear
    system (3.32). The model is :math:`y(x) = \sum_i \alpha_i K(x, x_i) + b` (eq. (3.34)).

    Parameters
    ----------
    C : float or "cv", default=1.0
        Regularisation; a larger value fits the training data more closely. "cv" chooses it by
        cross-validation inside `fit`. The default, like that of gamma, is that of scikit-learn;
        fixed-size models, whose cross-validation costs little more than a fit, tune both.
    kernel : str, callable, Kernel or MetricKernel, default="rbf"
        "rbf", "linear", "poly", "laplacian", "matern", "nonstationary" or "precomputed", a function
        of two matrices of rows, or an object of `lssvm.kernels`. One without gamma, such as
        ``Matern(nu=2.5)`` or ``Polynomial(degree=4, coef0=0.5)``, takes the gamma of the model;
        ``MetricKernel("rbf", "full")`` maps the inputs first.
    gamma : float, array of shape (d,), "scale", "auto", "cv" or "ard", default="scale"
        Width of rbf, laplacian and matern, scale of poly; as in `sklearn.svm.SVR`. "cv" chooses it
        by cross-validation; "ard" (rbf and matern) then looks for one value per feature that makes
        the data most likely, and uses it unless cross-validation is worse.
    fit_intercept : bool, default=True
        Whether there is a bias b. Without it the system is (3.62), that of kernel ridge regression
        and of a Gaussian process.
    solver : {"auto", "cholesky", "cg", "smo", "circulant"} or solver object, default="auto"
        "auto" factorises the kernel matrix when it fits into the memory budget, otherwise uses
        preconditioned conjugate gradients; after tuning it takes the factorisation that tuning
        has made (`solver_` is then "eigen"). "circulant" is approximate, in O(n log n)
        ([Ding2011]_), and exact below 256 rows and with weights; a warning is issued if it is too
        inaccurate, see `lssvm.solvers.CirculantSolver`. The others are exact. Tolerance and maximal
        number of iterations are those of the object: ``ConjugateGradient(tol=1e-9)``.
    reduction : None, "prune", "l0" or an object of `lssvm.reductions`, default=None
        Fewer support vectors after training (section 3.7 of [Suykens2002]_; [Lopez2011]_).
    loss : {"squared", "huber", "absolute", "weighted"} or DifferentiableLoss, default="squared"
        What takes the place of the squares. The others keep gross errors in the targets from
        bending the model: Huber's loss bends at 1.345 robust
        standard deviations of its own residuals, "weighted" gives rows beyond 3 next to no weight.
        Reached by reweighting, one solve each time. What is tuned is a least squares model by its
        absolute error, first on all rows, then twice with the weights of "weighted", which stay on
        the rows; for absolute loss the tuned C is multiplied by twice the median absolute residual,
        so that it weighs as much as before. A `lssvm.solvers.DifferentiableLoss`, such as
        ``Pinball(0.9)`` for a quantile, keeps the C and gamma of the least squares model.
    cv : int, "loo", splitter or iterable, default=10
        Folds for tuning and pruning. A number assigns rows by content (equal rows share a fold);
        a splitter is used unchanged.
    search : {"path", "grid", "shrinking", "csa", "circulant"} or search object, default="path"
        How (C, gamma) are searched; see `lssvm.tuning`. ``PathSearch(checkpoint="file")`` continues
        a stopped fit; with ``per_output=True`` every output has its own pair.
    scoring : str, callable or None, default=None
        Any scikit-learn scorer; None is the mean squared error, for a robust loss the mean
        absolute error.
        "press", "gcv", "aic", "bic", "cp", "rk" and "evidence" are criteria of the targets without
        folds; cv is then not used.
    memory_budget : int, str or None, default=None
        Bytes, or "2 GB"; None is 70 % of the available memory. A kernel matrix that does not fit
        is refused before it is allocated.
    n_jobs : int or None, default=None
        Threads; None uses all cores.
    random_state : int, Generator, RandomState or None, default=None
        Seeds folds and searches; None is a fixed seed, so results are reproducible.
    verbose : int, default=0
        1 reports tuning on standard error.

    Attributes
    ----------
    dual_coef_ : array of shape (n_support, n_outputs)
        Support values alpha.
    intercept_ : array of shape (n_outputs,)
    support_ : int array of shape (n_support,)
        Rows of X that are support vectors.
    support_vectors_ : array of shape (n_support, n_features)
        Not for a precomputed kernel.
    metric_ : array of shape (d, d) or (d,)
        With a `lssvm.kernels.MetricKernel`: the matrix A A^T, or its diagonal.
    C_, gamma_ : float
        Arrays where tuned separately; ``gamma_`` has shape (d,) where it differs between features.
    feature_relevance_ : array of shape (d,)
        With ``gamma="ard"``: shares of the features in the mean exponent of the kernel,
        gamma_l var(x_l) divided by their sum.
    solver_ : str
        The solver that was used: where "circulant" fell back, the exact one.
    residual_ : float
        Relative residual of the linear system.
    n_iter_ : int
        Iterations of the solver, 1 for Cholesky.
    n_reweightings_ : int
        0 for squared loss.
    cv_results_ : dict
        When something was tuned: parameters and scores of all evaluations.
    best_score_ : float
        When something was tuned: the cross-validated score of the chosen parameters.
    n_evaluations_ : int
        When something was tuned: how many pairs (C, gamma) were tried.
    tuning_result_ : lssvm.tuning.TuningResult or list of them
        When something was tuned: the whole record of the search; a list where tuned separately.
    reduction_path_ : list
        What the reduction did, one record per group of outputs.
    noise_variance_ : float or array of shape (n_outputs,)
        Estimated variance of the noise; computed on first use.
    n_features_in_ : int
    feature_names_in_ : array
        When X had column names.

    Notes
    -----
    Time n^3/3 + n^2 d, memory n^2 numbers with Cholesky; O(n^2 d) per iteration and O(n m) memory
    with conjugate gradients. Exact leave-one-out or v-fold cross-validation over a whole path of C
    costs one eigendecomposition per gamma.

    A sample weight of 0 equals dropping the row, a weight of 2 equals the row twice.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm import LSSVR
    >>> X = np.linspace(0, 6, 40)[:, None]
    >>> model = LSSVR(C="cv", gamma="cv").fit(X, np.sin(X[:, 0]))
    >>> bool(model.score(X, np.sin(X[:, 0])) > 0.999)
    True
    """

    C: Any = 1.0
    _: KW_ONLY
    kernel: Any = "rbf"
    gamma: Any = "scale"
    fit_intercept: bool = True
    solver: Any = "auto"
    reduction: Any = None
    loss: str = "squared"
    cv: Any = 10
    search: Any = "path"
    scoring: Any = None
    memory_budget: Any = None
    n_jobs: int | None = None
    random_state: RandomState = None
    verbose: int = 0

    @classmethod
    def suykens2002(cls, **options: Any) -> Self:
        """Return the regressor of [Suykens2002]_, section 3.5, with the tuning of section 3.4.

        An RBF kernel, C and gamma by 10-fold cross-validation on a grid that is refined three
        times.

        Parameters
        ----------
        **options : dict
            Other parameters of the class; they replace those of the paper.
        """
        return cls(**PAPER_2002 | {"search": ShrinkingGridSearch()} | options)

    @reports
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, groups: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            The (n, n) kernel matrix for ``kernel="precomputed"``.
        y : array-like of shape (n,) or (n, n_outputs)
            What is to be predicted.
        sample_weight : array-like of shape (n,), optional
            Weight of every row; a weight of 2 counts as the row twice.
        groups : array-like of shape (n,), optional
            Rows of a group are held out together, in tuning and in calibration; a splitter given as
            ``cv`` gets them too.

        Returns
        -------
        LSSVR
            Itself.
        """
        self._forget_fit()
        return _fit(self, X, y, sample_weight, groups, by_moments=False)
