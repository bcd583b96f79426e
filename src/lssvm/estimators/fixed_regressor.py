"""`FixedSizeLSSVR`: prototypes, primal solution and self-tuning for function estimation."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from lssvm._core.arrays import FloatArray
from lssvm._core.errors import InvalidInputError
from lssvm._core.random import RandomState
from lssvm.criteria.closed_form import is_criterion
from lssvm.criteria.losses import AbsoluteError, Criterion, SquaredError
from lssvm.data.scanning import is_stream
from lssvm.estimators._anywhere import computed_anywhere
from lssvm.estimators._callbacks import reports
from lssvm.estimators._fixed import FixedSizeModel
from lssvm.estimators._lazy import is_lazy, lazy
from lssvm.estimators._many import takes_rows
from lssvm.estimators._problem import FixedProblem
from lssvm.estimators._robust import RobustFixed, check_loss
from lssvm.estimators._scoring import ScorerCriterion
from lssvm.estimators._stream_regressor import StreamedRegressor
from lssvm.estimators._uncertain_fixed import FixedIntervalMixin
from lssvm.estimators._validation import check_weight, warn_of_offset
from lssvm.estimators.fixed_stream import write_predictions


def _updates(model: Any) -> bool:
    """Say whether rows can be added and removed, or raise why not."""
    if model.loss != "squared":
        raise InvalidInputError(
            f"loss={model.loss!r} weights every row by its residual, so rows cannot be added or "
            "removed exactly: use loss='squared', or fit again."
        )
    return takes_rows(model)


@computed_anywhere(
    *("fit", "partial_fit", "forget", "predict", "predict_interval", "noise_variance_", "score"),
    "sparsity_path",
)
class FixedSizeLSSVR(
    StreamedRegressor,
    MultiOutputMixin,
    RegressorMixin,
    FixedIntervalMixin,
    RobustFixed,
    FixedSizeModel,
):
    r"""Fixed-size least squares support vector regression that tunes itself.

    Minimises :math:`\tfrac12 w^T w + \tfrac C2 \sum_i s_i L(y_i - w^T \varphi(x_i) - b)` over the
    features :math:`\varphi` that the Nystrom method builds from m prototypes (eqs. (5)-(7) of
    [DeBrabanter2010]_). All that is read from the data are second moments, which add: memory does
    not grow with the number of rows, and v-fold cross-validation costs little more than a fit.

    Parameters
    ----------
    n_prototypes : int, "auto" or "cv", default="auto"
        Number of basis functions m. "auto": all distinct rows up to 200, else 5 sqrt(n) between
        200 and 1000. "cv": the best of 5 nested sets of m, m/2, ..., m/16 with twice that m.
    C : float or "cv", default="cv"
        Regularisation; larger fits closer. "cv" chooses it by cross-validation inside `fit`.
    gamma : float, array of shape (d,), "scale", "auto", "cv" or "ard", default="cv"
        Width of rbf, laplacian and matern, scale of poly; as in `sklearn.svm.SVR`. "cv" chooses it
        by cross-validation; "ard" (rbf and matern) then looks for one value per feature that makes
        the data most likely, and takes it where cross-validation is not against it.
    kernel : str, callable or Kernel, default="rbf"
        "rbf", "linear", "poly", "laplacian", "matern" or "nonstationary", a function of two
        matrices of rows, or an object of `lssvm.kernels`.
        "linear" with at most n features needs no prototypes: the features are the inputs.
    degree : int, default=3
    coef0 : float, default=1.0
    nu : {0.5, 1.5, 2.5}, default=1.5
        Of the Matern kernel.
    selection : str, rule, callable or array, default="renyi"
        Which rows become prototypes: "renyi", "random", "kmeans", "rpcholesky", or what else
        `lssvm.prototypes.select_prototypes` takes; an array gives
        their indices, or the prototypes themselves. For rpcholesky with ``gamma="cv"`` the kernel
        has ``gamma="scale"``.
    reduction : {"spfs", "ssd", "sv-l0", "sd"}, FixedSizeL0 or None, default=None
        Second level of sparsity: which prototypes are left, by an L0 penalty ([Mall2014]_), from
        the moments of the fit. "spfs" starts from the fixed-size model; "ssd" from the dual model
        on the prototypes alone, which also chooses C and gamma (one pass over the data in all);
        the loss of "sv-l0" sees the prototypes only; "sd" is that dual model itself. The number of
        support vectors is the smallest whose cross-validated squared error is within one standard
        error of the smallest, see `sparsity_path`; `lssvm.reductions.FixedSizeL0` has the options.
    n_support : int or None, default=None
        How many support vectors a reduction leaves, instead.
    loss : {"squared", "huber", "absolute", "weighted"}, default="squared"
        L above. The others keep gross errors in the targets from bending the model, see
        `lssvm.solvers.robust_weights`: Huber's loss bends at 1.345 robust standard deviations of
        its own residuals, "weighted" gives rows beyond 3 next to no weight. Reached by reweighting,
        one pass each time. What is tuned is a least squares model by its absolute error, first on
        all rows, then twice with the weights of "weighted", which stay on the rows; for absolute
        loss a tuned C is multiplied by twice the median absolute residual, so that it weighs as
        much as before. Rows of a scan keep their weights and are tuned once; the scale of their
        residuals is that of a sample.
    cv : int, float, "loo", splitter or iterable, default=10
        Folds for tuning. A number assigns rows by content (equal rows share a fold; at most as
        many folds as distinct rows); a share between 0 and 1 is held out once, for data of which
        that is enough; rows of a scan are dealt by position (`lssvm.tuning.PositionFolds`); a
        splitter is used as it is.
    search : {"path", "grid", "shrinking", "csa"} or search object, default="path"
        How (C, gamma) are searched; see `lssvm.tuning`.
    scoring : str, callable or None, default=None
        Any scikit-learn scorer; None is the mean squared error, for a robust loss the mean
        absolute error. "press", "gcv", "rk" and "evidence" are criteria without folds, see
        `lssvm.tuning.FixedCriterionObjective`; cv is then not used.
    solver : {"auto", "cholesky", "eigen", "tridiagonal", "pcg"} or PCG, default="auto"
        How the systems along a path of C are solved, exactly; or, without moments, conjugate
        gradients for many prototypes, see `lssvm.solvers.PCG`. "auto" takes those where moments do
        not fit or would take twice the operations, see `lssvm.solvers.choose_primal`.
    device : None, "cpu", "cuda", "cuda:1", ... or torch.device, default=None
        Where fit and predict are computed. None: NumPy arrays by NumPy, arrays of torch or CuPy on
        a GPU there. A device of torch is also given for NumPy arrays, which are copied to it, in
        blocks where they do not fit. See the guide on GPUs.
    memory_budget : int, str or None, default=None
        Bytes, or "2 GB"; None is 70 % of the available memory. On a device, of its memory.
    n_jobs : int or None, default=None
        Threads; None uses all cores.
    random_state : int, Generator, RandomState or None, default=None
        Seeds prototypes, folds and searches; None is a fixed seed.
    verbose : int, default=0
        1 reports tuning on standard error.
    checkpoint : str, path-like or None, default=None
        File that keeps the evaluations of the tuning, from which a stopped fit is continued to the
        same answer.

    Attributes
    ----------
    prototypes_, support_vectors_ : array of shape (m, d)
        After a reduction, those that are left; ``selection_.indices`` are the rows of all. The unit
        vectors for the linear kernel in closed form.
    support_ : int array of shape (m,)
        Rows of X that they are; -1 for given rows, empty for the linear kernel.
    dual_coef_ : array of shape (m, n_outputs)
        Coefficients of the expansion on the prototypes.
    intercept_ : array of shape (n_outputs,)
    C_, gamma_ : float
        ``gamma_`` has shape (d,) where it differs between features.
    feature_relevance_ : array of shape (d,)
        With ``gamma="ard"``: shares of the features in the mean exponent of the kernel,
        gamma_l var(x_l) divided by their sum.
    n_prototypes_ : int
        Before a reduction.
    sparsity_paths_ : list of SparsityPath
        After a reduction whose size was cross-validated: see `sparsity_path`.
    selection_ : Selection or None
        How the prototypes were chosen, with the trace of the entropy.
    solver_ : {"direct", "pcg"}
        How the model was solved.
    residual_ : float
        With conjugate gradients: the largest relative residual, recomputed at the end.
    moments_ : list of Moments
        What was read from the data (one entry); empty for conjugate gradients.
    cv_results_ : dict
        When something was tuned: parameters and scores of all evaluations.
    best_score_ : float
        When something was tuned: the cross-validated score of the chosen parameters.
    n_evaluations_ : int
        When something was tuned: how many pairs of C and gamma were evaluated.
    tuning_result_ : lssvm.tuning.TuningResult
        When something was tuned: the whole record of the search.
    size_results_ : dict
        With ``n_prototypes="cv"``: sizes and their scores.
    noise_variance_ : float or array of shape (n_outputs,)
        Estimated variance of the noise; computed when first asked for.
    n_iter_ : int
        Reweightings (0 for squared loss); with conjugate gradients their iterations.
    preparation_ : Preparation
        When fitted to a scan: from raw columns to features.
    sample_results_ : dict
        When fitted to a scan of more than 50,000 rows with a tuned gamma: the search on a sample of
        so many, of which the three best gammas were tried on all rows.
    peak_memory_ : int or None
        When fitted to a scan: the most memory, in bytes, that the process has had up to then.
    n_features_in_, feature_names_in_

    Notes
    -----
    One pass takes n m^2 + 2 n m d operations, a fit at given parameters one pass and 13 m^3, each
    gamma of the tuning one pass and about 5 m^3 per fold. Memory m^2 per fold. Everything is
    computed in float64.

    A sample weight of 0 is as if the row were not there, of 2 as if it were there twice, with the
    same prototypes. Where not all rows are prototypes, which ones are is drawn with the weights as
    probabilities and depends on the order of the rows (not so with given prototypes).

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.estimators.fixed_regressor import FixedSizeLSSVR
    >>> X = np.linspace(0, 6, 400)[:, None]
    >>> model = FixedSizeLSSVR(20).fit(X, np.sin(X[:, 0]))
    >>> bool(model.score(X, np.sin(X[:, 0])) > 0.999), model.dual_coef_.shape
    (True, (20, 1))
    """

    def __init__(
        self,
        n_prototypes: Any = "auto",
        *,
        C: Any = "cv",
        gamma: Any = "cv",
        kernel: Any = "rbf",
        degree: int = 3,
        coef0: float = 1.0,
        nu: float = 1.5,
        selection: Any = "renyi",
        reduction: Any = None,
        n_support: int | None = None,
        loss: str = "squared",
        cv: Any = 10,
        search: Any = "path",
        scoring: Any = None,
        solver: str = "auto",
        device: Any = None,
        memory_budget: Any = None,
        n_jobs: int | None = None,
        random_state: RandomState = None,
        verbose: int = 0,
        checkpoint: Any = None,
    ) -> None:
        self.n_prototypes = n_prototypes
        self.C = C
        self.gamma = gamma
        self.kernel = kernel
        self.degree = degree
        self.coef0 = coef0
        self.nu = nu
        self.selection = selection
        self.reduction = reduction
        self.n_support = n_support
        self.loss = loss
        self.cv = cv
        self.search = search
        self.scoring = scoring
        self.solver = solver
        self.device = device
        self.memory_budget = memory_budget
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.checkpoint = checkpoint

    @reports
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> FixedSizeLSSVR:
        """Choose prototypes and parameters and fit the model.

        Parameters
        ----------
        X : array-like of shape (n, d), Scan, RowSource, Dask array or data frame
            A scan brings its own target and weights and is read in blocks.
        y : array-like of shape (n,) or (n, n_outputs)
        sample_weight : array-like of shape (n,), optional

        Returns
        -------
        FixedSizeLSSVR
            Itself.
        """
        self._forget_fit()
        check_loss(self)
        if is_stream(X):
            self._fit_stream(X, y, sample_weight)
            return self
        problem = self._problem(X, y, sample_weight, reset=True)
        self._single = problem.given[1].ndim == 1
        self._fit_problem(problem)
        return self

    @available_if(_updates)  # type: ignore[untyped-decorator]
    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> FixedSizeLSSVR:
        """Add rows; prototypes, C and gamma stay as they are.

        Exactly a fit to the old and new rows with those prototypes and parameters. The first call
        is `fit`.

        Parameters
        ----------
        X : array-like of shape (n, d), Scan, RowSource, Dask array or data frame
        y : array-like of shape (n,) or (n, n_outputs)
        sample_weight : array-like of shape (n,), optional

        Returns
        -------
        FixedSizeLSSVR
            Itself.
        """
        if not self.__sklearn_is_fitted__():
            return self.fit(X, y, sample_weight)
        return self._change(X, y, sample_weight, 1)

    @available_if(_updates)  # type: ignore[untyped-decorator]
    def forget(self, X: Any, y: Any = None, sample_weight: Any = None) -> FixedSizeLSSVR:
        """Remove rows that the model has learned; exactly a fit without them.

        Parameters
        ----------
        X : array-like of shape (n, d), Scan, RowSource, Dask array or data frame
        y : array-like of shape (n,) or (n, n_outputs)
        sample_weight : array-like of shape (n,), optional
            As it was when they were learned.

        Returns
        -------
        FixedSizeLSSVR
            Itself.
        """
        check_is_fitted(self)
        return self._change(X, y, sample_weight, -1)

    def _change(self, X: Any, y: Any, sample_weight: Any, sign: int) -> FixedSizeLSSVR:
        if is_stream(X) or hasattr(self, "preparation_"):
            self._update(self._stream_update(X, y, sample_weight), sign)
            return self
        problem = self._problem(X, y, sample_weight, reset=False)
        if problem.Y.shape[1] != self.dual_coef_.shape[1]:
            raise InvalidInputError(
                f"y has {problem.Y.shape[1]} outputs but the model was fitted with "
                f"{self.dual_coef_.shape[1]}: give as many."
            )
        self._update(problem, sign)
        return self

    def _problem(self, X: Any, y: Any, sample_weight: Any, *, reset: bool) -> FixedProblem:
        X, y = validate_data(
            self,
            X,
            y,
            reset=reset,
            dtype=[np.float64, np.float32],
            order="C",  # rows are read in blocks
            multi_output=True,
            y_numeric=True,
        )
        y = np.asarray(y, dtype=np.float64)
        given = (X, y)
        weight = check_weight(sample_weight, X.shape[0])
        support = None
        if weight is not None:
            support = np.flatnonzero(weight > 0)
            X, y, weight = X[support], y[support], weight[support]
        warn_of_offset(y.reshape(len(y), -1))
        return self._in_memory(X, y, weight, support, given)

    def _in_memory(
        self, X: Any, y: Any, weight: Any, support: Any, given: Any = None
    ) -> FixedProblem:
        """Return the problem of rows in memory."""
        Y = y.reshape(len(y), -1)

        def criterion() -> Criterion:
            if self.scoring is None or is_criterion(self.scoring):
                kind = SquaredError if self.loss == "squared" else AbsoluteError
                return kind(Y, weight)
            return self._scored(X, Y, weight)

        given = (X, y) if given is None else given
        return FixedProblem(given, X, Y, weight, None, None, support, criterion)

    def _scored(self, X: Any, Y: FloatArray, weight: FloatArray | None) -> Criterion:
        def finish(raw: FloatArray) -> tuple[Any, Any]:
            return (raw[:, 0] if Y.shape[1] == 1 else raw), None

        truth = Y[:, 0] if Y.shape[1] == 1 else Y
        return ScorerCriterion(self.scoring, X, truth, finish, None, weight)

    def predict(
        self, X: Any, return_std: bool = False, return_cov: bool = False, out: Any = None
    ) -> Any:
        """Predict the targets of new rows, on request with error bars.

        Parameters
        ----------
        X : array-like of shape (n, d), Scan, RowSource, Dask array or data frame
        return_std : bool, default=False
            Whether to return standard deviations.
        return_cov : bool, default=False
            Whether to return the covariance between the rows.
        out : str or path, optional
            A file (.parquet, .arrow, .csv or .npy) to write the predictions to, block by block. It
            appears, or takes the place of an older one, when it is complete; its path is returned.

        Returns
        -------
        prediction : array of shape (n,) or (n, n_outputs)
        std : array of the same shape
            With ``return_std``: of the function, from its posterior in the primal. A new
            observation has the variance ``std**2 + noise_variance_``.
        cov : array of shape (n, n) or (n, n, n_outputs)
            With ``return_cov``.

        Notes
        -----
        The first error bars take 5 m^3 operations, later ones 4 m^2 a row, in blocks; see
        `lssvm.uncertainty.FixedPosterior`.
        """
        check_is_fitted(self)
        if out is None and is_lazy(X) and not (return_std or return_cov):
            shape = 0 if self._single else (0, self.dual_coef_.shape[1])
            return lazy(self, X, "predict", np.empty(shape))
        if out is None:
            return self._predict(X, return_std, return_cov)
        if return_std or return_cov:
            raise InvalidInputError("out= takes predictions alone: ask for error bars without it.")
        return write_predictions(self, X, lambda raw: raw[:, 0] if self._single else raw, out)
