"""`GreedyLSSVC`: a sparse classifier, built one basis function at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d, validate_data

from lssvm._core.arrays import FloatArray
from lssvm._core.errors import InvalidInputError
from lssvm._core.random import RandomState
from lssvm.codes import decode, groups, make_code, targets
from lssvm.criteria.dual import Group
from lssvm.criteria.losses import Misclassification, SquaredError
from lssvm.estimators._callbacks import reports
from lssvm.estimators._greedy import GreedyModel, GreedyProblem
from lssvm.estimators._uncertain import ProbabilityMixin
from lssvm.estimators._validation import (
    check_kernel_matrix,
    check_option,
    check_weight,
    class_weights,
)
from lssvm.uncertainty import OutOfFold


class GreedyLSSVC(ClassifierMixin, ProbabilityMixin, GreedyModel):
    r"""Sparse least squares support vector classifier, built one basis function at a time.

    FSALS-SVM and, with ``candidates=146``, PFSALS-SVM of [Jiao2007]_. The dual of the LS-SVM,

    .. math:: \min_{\alpha, b} \tfrac12 \alpha^T (K + I/C) \alpha - y^T \alpha + b 1^T \alpha,

    is solved over a growing set of rows: the row promising the largest fall of the objective joins
    (eq. (30)), all coefficients are solved for again (eqs. (15)-(18)), until no row outside is
    predicted with an error above epsilon (eq. (31)). Prediction touches the chosen rows only.

    Parameters
    ----------
    C : float or "cv", default=1.0
        Regularisation; larger fits closer. The paper's gamma is C/2. "cv" selects the basis at
        C = 8 and then chooses C by exact leave-one-out on that basis; the basis stays.
    gamma : float, array of shape (d,), "scale" or "auto", default="scale"
        Width of rbf, laplacian and matern, scale of poly; as in `sklearn.svm.SVC`.
    kernel : str, callable or Kernel, default="rbf"
        "rbf", "linear", "poly", "laplacian", "matern" or "precomputed", a function of two matrices
        of rows, or an object of `lssvm.kernels`.
    degree : int, default=3
        Of the polynomial kernel (gamma x'z + coef0)^degree.
    coef0 : float, default=1.0
    nu : {0.5, 1.5, 2.5}, default=1.5
        Of the Matern kernel.
    fit_intercept : bool, default=True
        Whether there is a bias b.
    epsilon : float, default=0.5
        Stop when the outputs of all rows outside the basis (of the candidates, if there are any)
        are within epsilon of their targets +1 and -1, so that those rows are classified correctly
        by the binary problem. Below 1; 0 gives the full machine of `LSSVC`.
    criterion : {"fsals", "kmp", "sggp"}, default="fsals"
        The loss that grows the basis: eq. (38), or that of kernel matching pursuit, eq. (36), or of
        the sparse greedy Gaussian process, eq. (37). The last two fit the basis to all rows, which
        needs fewer functions and more time per function.
    candidates : int or None, default=None
        Rows looked at per step, drawn at random; None looks at all. 146 is the number of eq. (35).
    prefit : bool, default=False
        Whether a candidate is judged after a refit of all coefficients (eq. (23)) instead of its
        own alone (eq. (30)).
    max_support : int or None, default=None
        Largest number of basis functions per binary problem.
    validation_fraction : float or None, default=None
        Part of the rows that is held out: the size with the smallest squared error on them is kept,
        and a run stops 50 steps after it.
    multiclass : {"ova", "auto", "ovo", "moc", "ecoc"}, array or Code, default="ova"
        Output code; see `lssvm.codes`. The paper takes one-vs-all, whose problems share kernel
        columns.
    decoding : {"hamming", "loss"} or None, default=None
        From outputs to classes; None takes votes for one-vs-one and loss decoding otherwise.
    class_weight : dict, "balanced" or None, default=None
    calibration : {"auto", "sigmoid", "isotonic"} or None, default="auto"
        How `predict_proba` turns leave-one-out scores into probabilities; "auto" takes the sigmoid
        for fewer than 1,000 rows, else the better of the two. None: there is no `predict_proba`.
    memory_budget : int, str or None, default=None
        Bytes, or "2 GB"; None is 70 % of the available memory. Kernel columns are kept in it, and
        computed again beyond it.
    n_jobs : int or None, default=None
        Threads; None uses all cores.
    random_state : int, Generator, RandomState or None, default=None
        Draws candidates and held-out rows; None is a fixed seed, so fits repeat.
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
    cv_results_ : dict
        With C="cv": values of C and their leave-one-out accuracy.
    best_score_ : float
        With C="cv": the accuracy at the chosen C.
    n_features_in_ : int
    feature_names_in_ : array
        When X had column names.

    Notes
    -----
    Time n m^2 + n m d and memory n m numbers for a problem that ends with m of n rows; with
    candidates, m^3 + candidates m^2 and, within the memory budget, the kernel columns. Equal rows
    are merged (their weights add up, their targets are averaged), which leaves the LS-SVM as it is
    and makes a weight of 2 the row twice. See `lssvm.greedy.greedy_paths` for the bias.

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

    def __init__(
        self,
        C: Any = 1.0,
        *,
        gamma: Any = "scale",
        kernel: Any = "rbf",
        degree: int = 3,
        coef0: float = 1.0,
        nu: float = 1.5,
        fit_intercept: bool = True,
        epsilon: float = 0.5,
        criterion: str = "fsals",
        candidates: int | None = None,
        prefit: bool = False,
        max_support: int | None = None,
        validation_fraction: float | None = None,
        multiclass: Any = "ova",
        decoding: str | None = None,
        class_weight: Any = None,
        calibration: str | None = "auto",
        memory_budget: Any = None,
        n_jobs: int | None = None,
        random_state: RandomState = None,
        verbose: int = 0,
    ) -> None:
        self.C = C
        self.gamma = gamma
        self.kernel = kernel
        self.degree = degree
        self.coef0 = coef0
        self.nu = nu
        self.fit_intercept = fit_intercept
        self.epsilon = epsilon
        self.criterion = criterion
        self.candidates = candidates
        self.prefit = prefit
        self.max_support = max_support
        self.validation_fraction = validation_fraction
        self.multiclass = multiclass
        self.decoding = decoding
        self.class_weight = class_weight
        self.calibration = calibration
        self.memory_budget = memory_budget
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @reports
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> GreedyLSSVC:
        """Fit the model.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            The (n, n) kernel matrix for ``kernel="precomputed"``.
        y : array-like of shape (n,)
            Class labels.
        sample_weight : array-like of shape (n,), optional

        Returns
        -------
        GreedyLSSVC
            Itself.
        """
        X, y = validate_data(
            self,
            X,
            y,
            accept_sparse="csr" if self._accepts_sparse() else False,
            dtype=[np.float64, np.float32],
        )
        y = column_or_1d(y, warn=True)
        check_classification_targets(y)
        self._check_calibration()
        if self._precomputed():
            check_kernel_matrix(X)
        self._check_epsilon()
        if self.decoding is not None:
            check_option("decoding", self.decoding, ("hamming", "loss"))
        weight = check_weight(sample_weight, X.shape[0])
        support = np.arange(X.shape[0])
        if weight is not None:
            support = np.flatnonzero(weight > 0)
            X, y, weight = X[support], y[support], weight[support]
        self.classes_, labels = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise InvalidInputError(
                f"A classifier needs at least 2 classes but y has only one class: "
                f"{self.classes_.tolist()} (rows of weight zero do not count)."
            )
        weight = self._class_weighted(labels, weight)
        self.code_ = make_code(self.multiclass, len(self.classes_), self.random_state or 0)
        labels = labels.astype(np.intp)
        Y = targets(self.code_, labels)
        parts = [Group(g.columns, g.rows) for g in groups(self.code_, labels)]
        wrong, squares = Misclassification(labels, self._decide, weight), SquaredError(Y, weight)

        def losses(predictions: FloatArray) -> FloatArray:
            everyone = np.arange(len(labels))
            seen = np.where(Y != 0, predictions, 0.0)  # the squares of one-vs-one: its own rows
            return np.column_stack([wrong(predictions, everyone), squares(seen, everyone)])

        centre = np.zeros(Y.shape[1])
        self._fit_problem(GreedyProblem(X, Y, parts, weight, support, losses, centre))
        self._cache: dict[str, Any] = {}
        self._left = None
        if self.calibration is not None:
            self._left = OutOfFold(self.__dict__.pop("_held"), labels, weight)
        return self

    def _wants_left_out(self) -> bool:
        return self.calibration is not None

    def _remember(self, left_out: Callable[[], FloatArray]) -> None:
        if self.calibration is not None:
            self._held = left_out()

    def _make_out_of_fold(self) -> OutOfFold:
        if self._left is None:
            raise InvalidInputError(
                "truncate leaves no rows to calibrate probabilities on: fit with max_support "
                "instead."
            )
        return self._left

    def _check_epsilon(self) -> None:
        """Refuse an epsilon that the empty model satisfies already."""
        number = isinstance(self.epsilon, (int, float, np.number))
        if self.criterion == "fsals" and number and self.epsilon >= 1:
            raise InvalidInputError(
                f"epsilon={self.epsilon!r} is not usable: a model without any basis function is "
                "within 1 of the labels +1 and -1, so give a number below 1 (0.5 is usual)."
            )

    def _class_weighted(self, labels: NDArray[Any], weight: Any) -> Any:
        factors = class_weights(self.class_weight, self.classes_, labels, weight)
        if factors is None:
            return weight
        if not np.all(factors > 0):
            raise InvalidInputError(
                "class_weight is zero for a whole class: give every class a positive weight, "
                "or remove its rows."
            )
        return factors if weight is None else weight * factors

    def _scores(self, raw: FloatArray) -> FloatArray:
        """Return one score for two classes, positive for ``classes_[1]``, else one per class."""
        if len(self.classes_) == 2:
            return np.asarray(raw[:, 0] * self.code_.matrix[1, 0])
        return np.asarray(decode(self.code_, raw, self.decoding))

    def _decide(self, raw: FloatArray) -> NDArray[np.intp]:
        scores = self._scores(raw)
        chosen = scores > 0 if scores.ndim == 1 else np.argmax(scores, axis=1)
        return np.asarray(chosen, dtype=np.intp)

    def decision_function(self, X: Any) -> FloatArray:
        """Return how clearly each row belongs to each class.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)

        Returns
        -------
        array of shape (n,) or (n, n_classes)
            Two classes: the output of eq. (5), positive for ``classes_[1]``. More: the decoded
            class scores, whose largest is the prediction.
        """
        return self._scores(self._raw_scores(X))

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict the classes of new rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            The (n, n_train) kernel rows for ``kernel="precomputed"``.

        Returns
        -------
        array of shape (n,)
        """
        raw = self._raw_scores(X)
        return np.asarray(self.classes_[self._decide(raw)])
