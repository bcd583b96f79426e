"""`FixedSizeLSSVC` and `FixedSizeLSSVR`: prototypes, primal solution and self-tuning.

What the two share comes first: rows of any kind, updates and sparsity paths.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, Self, TypeVar

import numpy as np
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from lssvm._core.errors import InvalidInputError
from lssvm._core.random import RandomState
from lssvm.data.dataset import open_dataset
from lssvm.data.preparation import PreparedTable
from lssvm.estimators.base import KernelClassifier, KernelRegressor, callback_of, lock_of, reports
from lssvm.estimators.opening import Opened, open_rows
from lssvm.fitting.fixed_settings import FixedSettings
from lssvm.fitting.fixed_size import change_rows, fit_fixed_size, sparsity_path
from lssvm.prototypes import RenyiEntropy
from lssvm.reductions import SparsityPath
from lssvm.solvers import PCG
from lssvm.tuning import CoupledAnnealing


def takes_rows(estimator: FixedSizeLSSVC | FixedSizeLSSVR) -> bool:
    """Return True, or say why rows cannot be added to or removed from such a model."""
    if isinstance(estimator.solver, PCG) or estimator.solver == "pcg":
        raise InvalidInputError(
            "solver='pcg' keeps no moments, so rows cannot be added or removed: use "
            "solver='cholesky', or fit again."
        )
    loss = getattr(estimator, "loss", "squared")
    if loss != "squared":
        raise InvalidInputError(
            f"loss={loss!r} weights every row by its residual, so rows cannot be added or removed "
            "exactly: use loss='squared', or fit again."
        )
    return True


Model = TypeVar("Model", bound="FixedSizeLSSVC | FixedSizeLSSVR")


def _fit(estimator: Model, X: Any, y: Any, sample_weight: Any, groups: Any) -> Model:
    settings, callback = FixedSettings.of(estimator), callback_of(estimator)
    data, cv = open_dataset(X, y, sample_weight, groups).with_validation(settings.cv)
    settings, opened = replace(settings, cv=cv), Opened.of(estimator, data)
    rows, task, metric = opened.rows(callback, getattr(estimator, "_classes_to_come", None))
    fit = fit_fixed_size(rows, task, settings.after(metric), callback).with_metric(metric)
    prepared = opened.preparation
    if prepared is not None:
        fit = replace(fit, prepared={"none": prepared})
    estimator._publish(fit, opened.native)
    return estimator


def _forget(estimator: Model, X: Any, y: Any, sample_weight: Any) -> Model:
    """Remove rows from a fitted model."""
    check_is_fitted(estimator)
    ready: PreparedTable | None = getattr(estimator, "preparation_", None)
    if ready is not None and ready.encoded_by_target:
        raise InvalidInputError(
            f"Rows cannot be forgotten: the columns {ready.encoded_by_target} are encoded by the "
            "target, and differently for rows of the first fit. Fit again without the rows, or "
            "without these columns."
        )
    return _change(estimator, X, y, sample_weight, sign=-1)


def _change(estimator: Model, X: Any, y: Any, sample_weight: Any, *, sign: int) -> Model:
    """Add rows to a fitted model, or remove them."""
    with lock_of(estimator):  # what another thread adds meanwhile must not be lost
        opened, old = open_rows(estimator, X, y, sample_weight), estimator.record_
        rows = opened.further_rows(old.task, callback_of(estimator), old.state.centre)
        fit = change_rows(old, rows, estimator._host(), sign=sign)
        estimator.__dict__.pop("sparsity_paths_", None)
        estimator._publish(fit, estimator.dual_coef_)
        return estimator


def _sparsity_path(estimator: Model) -> SparsityPath | list[SparsityPath]:
    check_is_fitted(estimator)
    C_grid = FixedSettings.of(estimator).reduced_C_grid()
    estimator.record_, paths = sparsity_path(estimator.record_, C_grid)
    vars(estimator)["sparsity_paths_"] = paths
    return paths[0] if len(paths) == 1 else list(paths)


@dataclass(eq=False, repr=False)
class FixedSizeLSSVC(KernelClassifier):
    r"""Fixed-size least squares support vector classifier that tunes itself.

    Minimises :math:`\tfrac12 w^T w + \tfrac C2 \sum_i s_i (y_i - w^T \varphi(x_i) - b)^2` for
    targets of :math:`\pm 1` over the features :math:`\varphi` that the Nystrom method builds from m
    prototypes (eqs. (5)-(7) of [DeBrabanter2010]_). Only second moments are computed from the data,
    and moments add: memory does not grow with the number of rows, and v-fold cross-validation
    costs little more than a fit. More than two classes are coded into binary problems.

    Parameters
    ----------
    n_prototypes : int, "auto", "cv" or such as "6 sqrt(n)", default="auto"
        Number of basis functions m. "auto": all distinct rows up to 200, else 5 sqrt(n) between
        200 and 1000. "cv": the best of 5 nested sets of m, m/2, ..., m/16 with twice that m. A
        number and ``sqrt(n)`` is the ceiling of their product, :math:`M = \lceil k \sqrt N \rceil`
        of [Mall2014]_, section IV-A.
    C : float or "cv", default="cv"
        Regularisation; a larger value fits the training data more closely. "cv" chooses it by
        cross-validation inside `fit`, which costs little more than a fit: hence the default, which
        differs from that of `LSSVC`. With
        one-vs-one each pair of classes gets its own, that of the smallest squared error. Where
        pairs times folds are more than 100 and rows are many, gamma is searched with the first 200
        prototypes, and only as many folds are used as contain 2,000 rows, at least two.
    gamma : float, array of shape (d,), "scale", "auto", "cv" or "ard", default="cv"
        Width of rbf, laplacian and matern, scale of poly; as in `sklearn.svm.SVC`. "cv" chooses it
        by cross-validation (with 600 prototypes or more first by a search with 300 of them); "ard"
        (rbf and matern) then looks for one value per feature that makes
        the data most likely, and uses it unless cross-validation is worse.
    kernel : str, callable, Kernel or MetricKernel, default="rbf"
        "rbf", "linear", "poly", "laplacian", "matern" or "nonstationary", a function of two
        matrices of rows, or an object of `lssvm.kernels`; one without gamma, such as
        ``Matern(nu=2.5)`` or ``Polynomial(degree=4, coef0=0.5)``, takes that of the estimator;
        ``MetricKernel("rbf", "full")`` maps the inputs first.
        "linear" with at most n features needs no prototypes: the features are the inputs.
    fit_intercept : bool or "penalised", default=True
        True: the bias is free, :math:`b` is in no penalty (eq. (5) of [Mall2014]_), so that with
        all rows as prototypes the model is the dual one. "penalised": the bias has the ridge of a
        weight, :math:`(w; b) = (\Phi_e^T \Phi_e + I_{m+1}/C)^{-1} \Phi_e^T Y` as printed in eq. (7)
        of [DeBrabanter2010]_. False: no bias.
        The last two go with squares, moments, folds of several rows and no reduction.
    selection : str, rule, callable or array, default="random"
        Which rows become prototypes: "random", "renyi" (high quadratic entropy, as in
        [DeBrabanter2010]_), "kmeans", "rpcholesky", or any other value that
        `lssvm.prototypes.select_prototypes` accepts; an array gives their indices, or the
        prototypes themselves. For rpcholesky with ``gamma="cv"`` the kernel has ``gamma="scale"``.
    reduction : str, FixedSizeL0 or None, default=None
        Second level of sparsity: prototypes are selected by an L0 penalty ([Mall2014]_), from
        the moments of the fit. "spfs" starts from the fixed-size model; "ssd" from the dual model
        on the prototypes alone, which also chooses C and gamma (one pass over the data in all);
        the loss of "sv-l0" includes only the prototypes; "sd" is that dual model itself. The number
        of support vectors is the smallest whose cross-validated squared error is within one
        standard error of the smallest, see `sparsity_path`; `lssvm.reductions.FixedSizeL0` has the
        options, such as a given number of support vectors. "spfs-printed", "ssd-printed" and
        "sv-l0-printed" are the exact algorithms of [Mall2014]_, see
        `lssvm.reductions.FixedSizeL0.printed`.
    multiclass : str, array, Code or Coding, default="auto"
        Output code: "auto", "ovo", "ova", "moc", "moc-counting" or "ecoc", see
        `lssvm.codes.make_code`. "auto" is one-vs-one up to 10 classes; up to 60, the one of
        one-vs-one and one-vs-all with the smaller error on a sample; else one-vs-all. All problems
        of one-vs-all, minimum output coding and error-correcting codes are columns of one system;
        the systems of one-vs-one are computed from the moments of the classes. A
        `lssvm.codes.Coding` also defines how outputs are decoded, the targets of the problems,
        thresholds and the calibration of probabilities.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes; they multiply ``sample_weight``.
    cv : int, float, "loo", range, str, Scan, splitter or iterable, default=10
        Folds for tuning. A number assigns rows by content (equal rows share a fold; at most as
        many folds as distinct rows), stratified by class; a share between 0 and 1 is held out once;
        a range of rows is held out too; a splitter is used unchanged. Rows of a scan are assigned
        by position (`lssvm.tuning.PositionFolds`) or by the name of a column of fold numbers (-1:
        always trained on); another scan is held out for the tuning, after which the model is fitted
        to both.
    search : {"path", "grid", "shrinking", "csa"} or search object, default="path"
        How (C, gamma) are searched; see `lssvm.tuning`. An object such as
        ``PathSearch(checkpoint="file")`` continues a stopped fit; with ``per_output=True`` every
        output has its own pair, and rows cannot be added later.
    scoring : str, callable or None, default=None
        Any scikit-learn scorer; None is the accuracy, where candidates within half a standard error
        of the best are ranked by the squared error. "press", "gcv", "aic",
        "bic", "cp", "rk" and "evidence" are criteria without folds, for which cv is not used.
    solver : {"auto", "cholesky", "eigen", "tridiagonal", "features", "pcg"} or PCG, default="auto"
        How the systems along a path of C are solved: exactly from moments; by QR factors of the
        features, which resolve twice as many digits of their spectrum (algorithm 3 of
        [DeBrabanter2010]_; "auto" chooses them for near-noiseless data, where C is large); or, for
        many prototypes, by conjugate gradients (`lssvm.solvers.PCG`).
    device : None, "cpu", "cuda", "cuda:1", ... or torch.device, default=None
        Where fit and predict are computed. None: NumPy arrays by NumPy, arrays of torch or CuPy on
        a GPU there. A device of torch is also given for NumPy arrays, which are copied to it, in
        blocks where they do not fit. See the guide on GPUs.
    memory_budget : int, str or None, default=None
        Bytes, or "2 GB"; None is 70 % of the available memory. On a device, of its memory.
    n_jobs : int or None, default=None
        Threads; None uses all cores.
    random_state : int, Generator, RandomState or None, default=None
        Seeds prototypes, folds, searches and random codes; None is a fixed seed.
    verbose : int, default=0
        1 reports tuning on standard error.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    code_ : Code
    prototypes_, support_vectors_ : array of shape (m, d)
        After a reduction, the remaining ones; ``selection_.indices`` are the rows of all. The unit
        vectors for the linear kernel in closed form.
    support_ : int array of shape (m,)
        Rows of X that they are; -1 for given rows, empty for the linear kernel.
    dual_coef_ : array of shape (m, n_problems)
        Coefficients of the expansion on the prototypes.
    intercept_ : array of shape (n_problems,)
        Less the thresholds.
    threshold_ : array of shape (n_problems,)
        Zeros with ``Coding(threshold="zero")``.
    metric_ : array of shape (d, d) or (d,)
        With a `lssvm.kernels.MetricKernel`: the matrix A A^T, or its diagonal.
    C_ : float, or array of shape (n_problems,) where every problem has its own
    gamma_ : float, or array of shape (d,) where it differs between features
    feature_relevance_ : array of shape (d,)
        With ``gamma="ard"``: shares of the features in the mean exponent of the kernel,
        gamma_l var(x_l) divided by their sum.
    n_prototypes_ : int
        Before a reduction.
    sparsity_paths_ : list of SparsityPath
        After a reduction whose size was cross-validated: see `sparsity_path`.
    selection_ : Selection or None
        How the prototypes were chosen, with the trace of the entropy.
    solver_, residual_, n_iter_ : {"direct", "features", "pcg"}, float, int
        The last two of conjugate gradients, which leave no ``moments_``.
    moments_ : list of Moments
        Moments of the data: one entry, or one per class.
    cv_results_, best_score_, n_evaluations_, tuning_result_ : dict, float, int, TuningResult
        When something was tuned: parameters and scores of all evaluations, the cross-validated
        score of the chosen parameters, how many pairs of C and gamma were evaluated, and all.
    size_results_ : dict
        With ``n_prototypes="cv"``: sizes and their scores.
    preparation_ : PreparedTable
        When fitted to a scan: from raw columns to features.
    sample_results_ : dict
        When fitted to a scan of more than 50,000 rows with a tuned gamma: the search on a sample of
        so many, of which the three best gammas were tried on all rows. Of pairs of many classes:
        the search with few prototypes, whose best gamma was taken. Where "auto" has changed to
        features: the search with moments.
    peak_memory_ : int or None
        When fitted to a scan: peak memory of the process, in bytes.
    record_ : Fit
        All of the above as one frozen record, which model files, exports and reports read.
    n_features_in_, feature_names_in_

    Notes
    -----
    One pass takes n m^2 + 2 n m d operations, a fit at given parameters one pass and 13 m^3, each
    gamma of the tuning two passes and about 5 m^3 per fold (one-vs-one: per fold and pair). Memory
    m^2 per fold, times the number of classes for one-vs-one, balanced class weights and
    ``targets="fisher"``. Everything is computed in float64.

    A sample weight of 0 equals dropping the row, a weight of 2 equals the row twice, with the same
    prototypes. If not all rows are prototypes, they are drawn with the weights as probabilities;
    the draw depends on the order of the rows (not so with given prototypes).

    Examples
    --------
    >>> from lssvm.datasets import load_ripley
    >>> from lssvm import FixedSizeLSSVC
    >>> ripley = load_ripley()
    >>> X, y = ripley.data, ripley.target
    >>> model = FixedSizeLSSVC(30).fit(X[ripley.train], y[ripley.train])
    >>> bool(model.score(X[ripley.test], y[ripley.test]) > 0.89), model.dual_coef_.shape
    (True, (30, 1))
    """

    n_prototypes: Any = "auto"
    _: KW_ONLY
    C: Any = "cv"
    gamma: Any = "cv"
    kernel: Any = "rbf"
    fit_intercept: bool | str = True
    selection: Any = "random"
    reduction: Any = None
    multiclass: Any = "auto"
    class_weight: Any = None
    cv: Any = 10
    search: Any = "path"
    scoring: Any = None
    solver: Any = "auto"
    device: Any = None
    memory_budget: Any = None
    n_jobs: int | None = None
    random_state: RandomState = None
    verbose: int = 0

    def __sklearn_tags__(self) -> Any:
        """Say that arrays of other libraries are taken."""
        tags = super().__sklearn_tags__()
        tags.array_api_support = True
        return tags

    @classmethod
    def debrabanter2010(cls, n_prototypes: Any = "auto", **options: Any) -> Self:
        """Return algorithm 5 of [DeBrabanter2010]_: the whole method as printed.

        Prototypes by random exchanges that raise the quadratic Renyi entropy, with plug-in
        bandwidths of one column at a time (algorithms 1 and 2); the penalised bias of eq. (7); C
        and gamma, for every binary problem, by coupled simulated annealing and a simplex search, 90
        and 70 evaluations of 10-fold cross-validation (section 6.3). One-vs-one; the paper has
        minimum output coding too (``multiclass="moc-counting"``).

        Parameters
        ----------
        n_prototypes : int or str, default="auto"
            Number of prototypes, which the paper chooses on test data.
        **options : dict
            Other parameters of the class; they replace those of the paper.
        """
        paper: dict[str, Any] = {"selection": RenyiEntropy("random", "plug-in"), "cv": 10}
        search = CoupledAnnealing(per_output=True)
        paper |= {"fit_intercept": "penalised", "search": search, "multiclass": "ovo"}
        return cls(n_prototypes, **paper | options)

    @classmethod
    def mall2014(
        cls, reduction: Any = "spfs-printed", n_prototypes: Any = "6 sqrt(n)", **options: Any
    ) -> Self:
        """Return SPFS-LSSVM or SSD-LSSVM of [Mall2014]_ as printed.

        Prototypes by random exchanges with the bandwidth of the rule of thumb (algorithm 2), C and
        gamma by 5 starters and 25 evaluations of annealing, then algorithm 3 or 4 to the letter.

        Parameters
        ----------
        reduction : str, default="spfs-printed"
            Or "ssd-printed", "sv-l0-printed", "sd" and None (PFS-LSSVM).
        n_prototypes : int or str, default="6 sqrt(n)"
            The paper has other multiples of sqrt(n) for other sets (table III).
        **options : dict
            Other parameters of the class; they replace those of the paper.
        """
        paper: dict[str, Any] = {"selection": RenyiEntropy("random", "rule-of-thumb"), "cv": 10}
        paper |= {"search": CoupledAnnealing(starters=5, evaluations=25, simplex=0)}
        return cls(n_prototypes, reduction=reduction, **paper | options)

    @reports
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, groups: Any = None) -> Self:
        """Choose prototypes and parameters and fit the model.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d), Scan, RowSource, Dask array or data frame
            A scan brings its own target and weights and is read in blocks.
        y : array-like of shape (n,)
            Class labels.
        sample_weight : array-like of shape (n,), optional
            Weight of every row; a weight of 2 counts as the row twice.
        groups : array-like of shape (n,), optional
            Rows of a group are held out together, in tuning and in calibration; a splitter given as
            ``cv`` gets them too. Not with a scan, whose rows are assigned one by one.

        Returns
        -------
        FixedSizeLSSVC
            Itself.
        """
        self._forget_fit()
        self._check_coding()
        return _fit(self, X, y, sample_weight, groups)

    @available_if(takes_rows)
    def partial_fit(
        self, X: Any, y: Any = None, classes: Any = None, sample_weight: Any = None
    ) -> Self:
        """Add rows; prototypes, C and gamma are not changed.

        Exactly a fit to the old and new rows with those prototypes and parameters. The first call
        is `fit`. Calls of several threads take turns.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d), Scan, RowSource, Dask array or data frame
            New rows, with the columns of the fit.
        y : array-like of shape (n,)
            Their classes. Not with a scan.
        classes : array-like, optional
            All labels, at the first call; some may come with later rows where all problems share
            their rows (multiclass "auto", "ova", "moc" or "ecoc", without balanced class weights
            and Fisher's targets). Later calls only compare them with the known classes.
        sample_weight : array-like of shape (n,), optional
            Weight of every row; a weight of 2 counts as the row twice.

        Returns
        -------
        FixedSizeLSSVC
            Itself.
        """
        with lock_of(self):
            if self.__sklearn_is_fitted__():
                self._check_classes(classes)
                return _change(self, X, y, sample_weight, sign=1)
            self._classes_to_come = classes
            try:
                return self.fit(X, y, sample_weight)
            finally:
                del self._classes_to_come

    def _check_classes(self, classes: Any) -> None:
        """Refuse classes that the first rows did not name."""
        if classes is None or np.array_equal(np.unique(np.asarray(classes)), self.classes_):
            return
        raise InvalidInputError(
            f"classes={np.unique(np.asarray(classes)).tolist()} but the model knows "
            f"{self.classes_.tolist()}: name all classes at the first call of partial_fit."
        )

    def predict(self, X: Any, out: Any = None) -> Any:
        """Predict the classes of new rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d), Scan, RowSource, Dask array or data frame
            Rows with the columns of the fit.
        out : str or path, optional
            A file (.parquet, .arrow, .csv or .npy) to write the predictions to, block by block. It
            appears, or takes the place of an older one, when it is complete.

        Returns
        -------
        array of shape (n,), or the path
        """
        return self._predict_classes(X, out)

    @available_if(takes_rows)
    def forget(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Remove rows from the model; the result equals a fit without them.

        Parameters
        ----------
        X : array-like of shape (n, d), Scan, RowSource, Dask array or data frame
            Rows as the model has learned them.
        y : array-like of shape (n,)
            The targets they had.
        sample_weight : array-like of shape (n,), optional
            As it was when they were learned.

        Returns
        -------
        FixedSizeLSSVC
            Itself.
        """
        return _forget(self, X, y, sample_weight)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return the accuracy.

        Parameters
        ----------
        X : array-like of shape (n, d), Scan, RowSource, Dask array or data frame
            Rows that the model is tested on.
        y : array-like of shape (n,)
            Not with a scan.
        sample_weight : array-like of shape (n,), optional
            Weight of every row; a weight of 2 counts as the row twice.

        Returns
        -------
        float
        """
        check_is_fitted(self)
        return open_rows(self, X, y, sample_weight).score()

    def sparsity_path(self) -> SparsityPath | list[SparsityPath]:
        r"""Return the cross-validated error against the number of support vectors.

        Returns
        -------
        SparsityPath
            With ``sizes``, ``mean`` and ``std_error`` of the squared error, the ``chosen`` size by
            the one-standard-error rule and ``supports``. A list of them, one per output, where the
            reduction has ``joint=False``.

        Notes
        -----
        Section V of [Mall2014]_. From the moments of the folds that `fit` has seen, without a pass
        over the data: about 15 v m^3 operations for v folds. A model that was reduced has computed
        it already. A model that was not keeps the moments of the folds (v m^2 numbers) where they
        take at most 5 % of ``memory_budget``, until it is pickled or rows are added.

        The error is the squared error of the outputs, for classes too (their targets are +1 and
        -1): no other error follows from moments. `score` on held-out rows gives the accuracy.

        Examples
        --------
        >>> from lssvm import FixedSizeLSSVC
        >>> from lssvm.datasets import load_ripley
        >>> ripley = load_ripley()
        >>> X, y = ripley.data[ripley.train], ripley.target[ripley.train]
        >>> path = FixedSizeLSSVC(60).fit(X, y).sparsity_path()
        >>> path.chosen < 20
        True
        """
        return _sparsity_path(self)


@dataclass(eq=False, repr=False)
class FixedSizeLSSVR(KernelRegressor):
    r"""Fixed-size least squares support vector regression that tunes itself.

    Minimises :math:`\tfrac12 w^T w + \tfrac C2 \sum_i s_i L(y_i - w^T \varphi(x_i) - b)` over the
    features :math:`\varphi` that the Nystrom method builds from m prototypes (eqs. (5)-(7) of
    [DeBrabanter2010]_). Only second moments are computed from the data, and moments add: memory
    does not grow with the number of rows, and v-fold cross-validation costs little more than a fit.

    Parameters
    ----------
    n_prototypes : int, "auto", "cv" or such as "6 sqrt(n)", default="auto"
        Number of basis functions m. "auto": all distinct rows up to 200, else 5 sqrt(n) between
        200 and 1000. "cv": the best of 5 nested sets of m, m/2, ..., m/16 with twice that m. A
        number and ``sqrt(n)`` is the ceiling of their product, :math:`M = \lceil k \sqrt N \rceil`
        of [Mall2014]_, section IV-A.
    C : float or "cv", default="cv"
        Regularisation; a larger value fits the training data more closely. "cv" chooses it by
        cross-validation inside `fit`, which costs little more than a fit: hence the default, which
        differs from that of `LSSVC`.
    gamma : float, array of shape (d,), "scale", "auto", "cv" or "ard", default="cv"
        Width of rbf, laplacian and matern, scale of poly; as in `sklearn.svm.SVR`. "cv" chooses it
        by cross-validation (with 600 prototypes or more first by a search with 300 of them); "ard"
        (rbf and matern) then looks for one value per feature that makes
        the data most likely, and uses it unless cross-validation is worse.
    kernel : str, callable, Kernel or MetricKernel, default="rbf"
        "rbf", "linear", "poly", "laplacian", "matern" or "nonstationary", a function of two
        matrices of rows, or an object of `lssvm.kernels`; one without gamma, such as
        ``Matern(nu=2.5)`` or ``Polynomial(degree=4, coef0=0.5)``, takes that of the estimator;
        ``MetricKernel("rbf", "full")`` maps the inputs first.
        "linear" with at most n features needs no prototypes: the features are the inputs.
    fit_intercept : bool or "penalised", default=True
        True: the bias is free, :math:`b` is in no penalty (eq. (5) of [Mall2014]_), so that with
        all rows as prototypes the model is the dual one. "penalised": the bias has the ridge of a
        weight, :math:`(w; b) = (\Phi_e^T \Phi_e + I_{m+1}/C)^{-1} \Phi_e^T Y` as printed in eq. (7)
        of [DeBrabanter2010]_. False: no bias.
        The last two go with squares, moments, folds of several rows and no reduction.
    selection : str, rule, callable or array, default="random"
        Which rows become prototypes: "random", "renyi" (high quadratic entropy, as in
        [DeBrabanter2010]_), "kmeans", "rpcholesky", or any other value that
        `lssvm.prototypes.select_prototypes` accepts; an array gives
        their indices, or the prototypes themselves. For rpcholesky with ``gamma="cv"`` the kernel
        has ``gamma="scale"``.
    reduction : str, FixedSizeL0 or None, default=None
        Second level of sparsity: prototypes are selected by an L0 penalty ([Mall2014]_), from
        the moments of the fit. "spfs" starts from the fixed-size model; "ssd" from the dual model
        on the prototypes alone, which also chooses C and gamma (one pass over the data in all);
        the loss of "sv-l0" includes only the prototypes; "sd" is that dual model itself. The number
        of support vectors is the smallest whose cross-validated squared error is within one
        standard error of the smallest, see `sparsity_path`; `lssvm.reductions.FixedSizeL0` has the
        options, such as a given number of support vectors. "spfs-printed", "ssd-printed" and
        "sv-l0-printed" are the exact algorithms of [Mall2014]_, see
        `lssvm.reductions.FixedSizeL0.printed`.
    loss : {"squared", "huber", "absolute", "weighted"} or DifferentiableLoss, default="squared"
        L above. The others keep gross errors in the targets from bending the model:
        Huber's loss bends at 1.345 robust standard deviations of
        its own residuals, "weighted" gives rows beyond 3 next to no weight. Reached by reweighting,
        one pass each time. What is tuned is a least squares model by its absolute error, first on
        all rows, then twice with the weights of "weighted", which stay on the rows; for absolute
        loss a tuned C is multiplied by twice the median absolute residual, so that it weighs as
        much as before. Rows of a scan keep their weights and are tuned once; the scale of their
        residuals is that of a sample. A `lssvm.solvers.DifferentiableLoss`, such as
        ``Pinball(0.9)`` for a quantile, keeps the C and gamma of the least squares model and needs
        rows in memory.
    cv : int, float, "loo", range, str, Scan, splitter or iterable, default=10
        Folds for tuning. A number assigns rows by content (equal rows share a fold; at most as
        many folds as distinct rows); a share between 0 and 1 is held out once; a range of rows is
        held out too; a splitter is used unchanged. Rows of a scan are assigned by position
        (`lssvm.tuning.PositionFolds`) or by the name of a column of fold numbers (-1: always
        trained on); another scan is held out for the tuning, after which the model is fitted to
        both.
    search : {"path", "grid", "shrinking", "csa"} or search object, default="path"
        How (C, gamma) are searched; see `lssvm.tuning`. An object such as
        ``PathSearch(checkpoint="file")`` continues a stopped fit; with ``per_output=True`` every
        output has its own pair, and rows cannot be added later.
    scoring : str, callable or None, default=None
        Any scikit-learn scorer; None is the mean squared error, for a robust loss the mean
        absolute error.
        "press", "gcv", "aic", "bic", "cp", "rk" and "evidence" are criteria of the targets without
        folds; cv is then not used.
    solver : {"auto", "cholesky", "eigen", "tridiagonal", "features", "pcg"} or PCG, default="auto"
        How the systems along a path of C are solved: exactly from moments; by QR factors of the
        features, which resolve twice as many digits of their spectrum (algorithm 3 of
        [DeBrabanter2010]_; "auto" chooses them for near-noiseless data, where C is large); or, for
        many prototypes, by conjugate gradients, see `lssvm.solvers.PCG`. "auto" chooses those where
        moments do not fit or would take twice the operations.
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

    Attributes
    ----------
    prototypes_, support_vectors_ : array of shape (m, d)
        After a reduction, the remaining ones; ``selection_.indices`` are the rows of all. The unit
        vectors for the linear kernel in closed form.
    support_ : int array of shape (m,)
        Rows of X that they are; -1 for given rows, empty for the linear kernel.
    dual_coef_ : array of shape (m, n_outputs)
        Coefficients of the expansion on the prototypes.
    intercept_ : array of shape (n_outputs,)
    metric_ : array of shape (d, d) or (d,)
        With a `lssvm.kernels.MetricKernel`: the matrix A A^T, or its diagonal.
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
    solver_ : {"direct", "features", "pcg"}
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
        Estimated variance of the noise; computed on first use.
    n_iter_ : int
        Reweightings (0 for squared loss); with conjugate gradients their iterations.
    preparation_ : PreparedTable
        When fitted to a scan: from raw columns to features.
    sample_results_ : dict
        When fitted to a scan of more than 50,000 rows with a tuned gamma: the search on a sample of
        so many, of which the three best gammas were tried on all rows.
    peak_memory_ : int or None
        When fitted to a scan: peak memory of the process, in bytes.
    record_ : Fit
        All of the above as one frozen record, which model files, exports and reports read.
    n_features_in_, feature_names_in_

    Notes
    -----
    One pass takes n m^2 + 2 n m d operations, a fit at given parameters one pass and 13 m^3, each
    gamma of the tuning one pass and about 5 m^3 per fold. Memory m^2 per fold. Everything is
    computed in float64.

    A sample weight of 0 equals dropping the row, a weight of 2 equals the row twice, with the same
    prototypes. If not all rows are prototypes, they are drawn with the weights as probabilities;
    the draw depends on the order of the rows (not so with given prototypes).

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm import FixedSizeLSSVR
    >>> X = np.linspace(0, 6, 400)[:, None]
    >>> model = FixedSizeLSSVR(20).fit(X, np.sin(X[:, 0]))
    >>> bool(model.score(X, np.sin(X[:, 0])) > 0.999), model.dual_coef_.shape
    (True, (20, 1))
    """

    n_prototypes: Any = "auto"
    _: KW_ONLY
    C: Any = "cv"
    gamma: Any = "cv"
    kernel: Any = "rbf"
    fit_intercept: bool | str = True
    selection: Any = "random"
    reduction: Any = None
    loss: str = "squared"
    cv: Any = 10
    search: Any = "path"
    scoring: Any = None
    solver: Any = "auto"
    device: Any = None
    memory_budget: Any = None
    n_jobs: int | None = None
    random_state: RandomState = None
    verbose: int = 0

    def __sklearn_tags__(self) -> Any:
        """Say that arrays of other libraries are taken."""
        tags = super().__sklearn_tags__()
        tags.array_api_support = True
        return tags

    @classmethod
    def debrabanter2010(cls, n_prototypes: Any = "auto", **options: Any) -> Self:
        """Return algorithm 5 of [DeBrabanter2010]_: the whole method as printed.

        Prototypes by random exchanges that raise the quadratic Renyi entropy, with plug-in
        bandwidths of one column at a time (algorithms 1 and 2); the penalised bias of eq. (7); C
        and gamma by coupled simulated annealing and a simplex search, 90 and 70
        evaluations of 10-fold cross-validation (section 6.3).

        Parameters
        ----------
        n_prototypes : int or str, default="auto"
            Number of prototypes, which the paper chooses on test data.
        **options : dict
            Other parameters of the class; they replace those of the paper.
        """
        paper: dict[str, Any] = {"selection": RenyiEntropy("random", "plug-in"), "cv": 10}
        search = CoupledAnnealing()
        paper |= {"fit_intercept": "penalised", "search": search}
        return cls(n_prototypes, **paper | options)

    @classmethod
    def mall2014(
        cls, reduction: Any = "spfs-printed", n_prototypes: Any = "6 sqrt(n)", **options: Any
    ) -> Self:
        """Return SPFS-LSSVM or SSD-LSSVM of [Mall2014]_ as printed.

        Prototypes by random exchanges with the bandwidth of the rule of thumb (algorithm 2), C and
        gamma by 5 starters and 25 evaluations of annealing, then algorithm 3 or 4 to the letter.

        Parameters
        ----------
        reduction : str, default="spfs-printed"
            Or "ssd-printed", "sv-l0-printed", "sd" and None (PFS-LSSVM).
        n_prototypes : int or str, default="6 sqrt(n)"
            The paper has other multiples of sqrt(n) for other sets (table III).
        **options : dict
            Other parameters of the class; they replace those of the paper.
        """
        paper: dict[str, Any] = {"selection": RenyiEntropy("random", "rule-of-thumb"), "cv": 10}
        paper |= {"search": CoupledAnnealing(starters=5, evaluations=25, simplex=0)}
        return cls(n_prototypes, reduction=reduction, **paper | options)

    @reports
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, groups: Any = None) -> Self:
        """Choose prototypes and parameters and fit the model.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d), Scan, RowSource, Dask array or data frame
            A scan brings its own target and weights and is read in blocks.
        y : array-like of shape (n,) or (n, n_outputs)
            What is to be predicted; not with a scan that names its target.
        sample_weight : array-like of shape (n,), optional
            Weight of every row; a weight of 2 counts as the row twice.
        groups : array-like of shape (n,), optional
            Rows of a group are held out together, in tuning and in calibration; a splitter given as
            ``cv`` gets them too. Not with a scan, whose rows are assigned one by one.

        Returns
        -------
        FixedSizeLSSVR
            Itself.
        """
        self._forget_fit()
        return _fit(self, X, y, sample_weight, groups)

    @available_if(takes_rows)
    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Add rows; prototypes, C and gamma are not changed.

        Exactly a fit to the old and new rows with those prototypes and parameters. The first call
        is `fit`. Calls of several threads take turns.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d), Scan, RowSource, Dask array or data frame
            New rows, with the columns of the fit.
        y : array-like of shape (n,) or (n, n_outputs)
            Their targets. Not with a scan.
        sample_weight : array-like of shape (n,), optional
            Weight of every row; a weight of 2 counts as the row twice.

        Returns
        -------
        FixedSizeLSSVR
            Itself.
        """
        with lock_of(self):
            if not self.__sklearn_is_fitted__():
                return self.fit(X, y, sample_weight)
            return _change(self, X, y, sample_weight, sign=1)

    def predict(
        self, X: Any, return_std: bool = False, return_cov: bool = False, out: Any = None
    ) -> Any:
        """Predict the targets of new rows, on request with error bars.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d), Scan, RowSource, Dask array or data frame
            Rows with the columns of the fit.
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
        The first error bars take 5 m^3 operations, later ones 4 m^2 a row, in blocks.
        """
        return self._predict_numbers(X, return_std, return_cov, out)

    @available_if(takes_rows)
    def forget(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Remove rows from the model; the result equals a fit without them.

        Parameters
        ----------
        X : array-like of shape (n, d), Scan, RowSource, Dask array or data frame
            Rows as the model has learned them.
        y : array-like of shape (n,) or (n, n_outputs)
            The targets they had.
        sample_weight : array-like of shape (n,), optional
            As it was when they were learned.

        Returns
        -------
        FixedSizeLSSVR
            Itself.
        """
        return _forget(self, X, y, sample_weight)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return R^2, the mean over the outputs.

        Parameters
        ----------
        X : array-like of shape (n, d), Scan, RowSource, Dask array or data frame
            Rows that the model is tested on.
        y : array-like of shape (n,) or (n, n_outputs)
            Not with a scan.
        sample_weight : array-like of shape (n,), optional
            Weight of every row; a weight of 2 counts as the row twice.

        Returns
        -------
        float
        """
        check_is_fitted(self)
        return open_rows(self, X, y, sample_weight).score()

    def sparsity_path(self) -> SparsityPath | list[SparsityPath]:
        r"""Return the cross-validated error against the number of support vectors.

        Returns
        -------
        SparsityPath
            With ``sizes``, ``mean`` and ``std_error`` of the squared error, the ``chosen`` size by
            the one-standard-error rule and ``supports``. A list of them, one per output, where the
            reduction has ``joint=False``.

        Notes
        -----
        Section V of [Mall2014]_. From the moments of the folds that `fit` has seen, without a pass
        over the data: about 15 v m^3 operations for v folds. A model that was reduced has computed
        it already. A model that was not keeps the moments of the folds (v m^2 numbers) where they
        take at most 5 % of ``memory_budget``, until it is pickled or rows are added.

        The error is the squared error of the outputs, for classes too (their targets are +1 and
        -1): no other error follows from moments. `score` on held-out rows gives the accuracy.

        Examples
        --------
        >>> from lssvm import FixedSizeLSSVC
        >>> from lssvm.datasets import load_ripley
        >>> ripley = load_ripley()
        >>> X, y = ripley.data[ripley.train], ripley.target[ripley.train]
        >>> path = FixedSizeLSSVC(60).fit(X, y).sparsity_path()
        >>> path.chosen < 20
        True
        """
        return _sparsity_path(self)
