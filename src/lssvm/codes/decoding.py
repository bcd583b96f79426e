"""From the scores of the binary problems to the scores of the classes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from lssvm._core.arrays import AnyArray, Array, device, get_namespace
from lssvm._core.errors import InvalidInputError, not_known
from lssvm.codes.code import Code

_LOSSES: dict[str, Callable[[Array, Array], Array]] = {  # L(z) of the margin z = m s
    "exponential": lambda xp, z: xp.exp(-z),
    "linear": lambda xp, z: -z,
    "squared": lambda xp, z: (1.0 - z) ** 2,
}


def decode(
    code: Code, scores: Array, decoding: str | None = None, loss: str | None = None
) -> Array:
    r"""Return class scores; the class with the largest score is the prediction.

    Parameters
    ----------
    code : Code
        The output code.
    scores : array of shape (n, n_problems)
        Latent outputs of the binary problems, before the sign; a floating-point array of any
        library that follows the array-API standard.
    decoding : {"hamming", "loss"} or None, default=None
        How code words are compared with the scores. None means "loss" for codes without zeros
        (one-vs-all, minimum output, error-correcting) or when a loss is given, and "hamming" for
        codes with zeros (one-vs-one: votes).
    loss : {"linear", "squared", "exponential"} or None, default=None
        For ``decoding="loss"`` only; None means "linear".

    Returns
    -------
    array of shape (n, n_classes)
        Higher is better. Same library, device and floating-point type as ``scores``.

    Notes
    -----
    With :math:`m_{jl}` the code entries and :math:`s_l` the scores:

    *Hamming* [Suykens2002, section 3.2]: minus the number of columns in which sign(s) and the code
    word differ; for one-vs-one, minus the number of duels the class lost. To break ties, the summed
    confidence :math:`c_j = \sum_l m_{jl} s_l` is added as :math:`c_j / (4 (1 + |c_j|))`, which is
    monotone and stays in (-1/4, 1/4): it never outweighs half a vote, the smallest difference.

    *Loss* [Allwein2000]: minus :math:`\sum_l L(m_{jl} s_l)` with :math:`L(z) = -z` (linear),
    :math:`(1 - z)^2` (squared, the loss the binary problems were trained with) or
    :math:`\exp(-z)`. For a code without zeros linear and squared loss give the same labels, since
    :math:`\sum_l (1 - m_{jl} s_l)^2 = \sum_l (1 + s_l^2) - 2 \sum_l m_{jl} s_l`, and for one-vs-all
    both give the argmax of the scores. Linear is the default because its class scores can also be
    compared between rows.

    A zero entry, and a score of exactly zero, cost what is in the middle (half a vote, L(0)), as in
    [Allwein2000]; otherwise the class with the most zeros would be favoured. What all code words
    have in common is left out, so zeros cost nothing where every class has equally many. For codes
    with zeros prefer linear to squared loss, which lets a right answer above 1 count against the
    classes that take part in the problem.

    For minimum output coding the two decodings agree whenever sign(s) is a code word, always if the
    number of classes is a power of two: there is no redundancy to use. If sign(s) is none of
    the code words, loss decoding gives up the least certain columns and Hamming decoding the
    fewest; up to 32 classes the labels still agree.

    With a single binary problem the class scores are -s and +s under every decoding.

    Time is O(n n_problems n_classes), memory O(n (n_problems + n_classes)).

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.codes import decode, one_vs_all, one_vs_one
    >>> decode(one_vs_all(3), np.array([[0.5, -1.0, -1.0]]))
    array([[ 2.5, -0.5, -0.5]])
    >>> votes = decode(one_vs_one(3), np.array([[-1.0, 0.2, -1.0]]))  # each class wins one duel
    >>> votes.argmax(axis=1)
    array([0])
    """
    xp = get_namespace(scores)
    _check_scores(code, scores, xp)
    decoding, loss = _choose(code, decoding, loss)

    def from_numpy(values: AnyArray) -> Array:
        return xp.asarray(values.astype(np.float32), dtype=scores.dtype, device=device(scores))

    words = from_numpy(code.matrix.T)  # (n_problems, n_classes)
    if code.n_problems == 1:
        return scores @ words
    filled = np.count_nonzero(code.matrix, axis=1)  # (n_classes,)
    if decoding == "hamming":
        confidence = scores @ words
        lost = (int(filled.max()) - xp.sign(scores) @ words) / 2.0
        return confidence / (4.0 * (1.0 + xp.abs(confidence))) - lost
    evaluate = _LOSSES[loss]
    cost = evaluate(xp, scores) @ from_numpy(code.matrix.T > 0)
    cost = cost + evaluate(xp, -scores) @ from_numpy(code.matrix.T < 0)
    return -(cost + float(evaluate(np, 0.0)) * from_numpy(filled.max() - filled))


def _choose(code: Code, decoding: str | None, loss: str | None) -> tuple[str, str]:
    if decoding is None:
        decoding = "loss" if code.shares_rows or loss is not None else "hamming"
    if decoding not in ("hamming", "loss"):
        raise not_known("decoding", decoding, "use 'hamming', 'loss' or None to decide by code.")
    if decoding == "hamming" and loss is not None:
        raise InvalidInputError(
            f"loss={loss!r} has no meaning for decoding='hamming': drop it or use decoding='loss'."
        )
    if loss is not None and loss not in _LOSSES:
        raise not_known("loss", loss, f"use one of {sorted(_LOSSES)}.")
    return decoding, loss or "linear"


def _check_scores(code: Code, scores: Array, xp: Array) -> None:
    if scores.ndim != 2 or scores.shape[1] != code.n_problems:
        raise InvalidInputError(
            f"scores have shape {tuple(scores.shape)}, but the code has {code.n_problems} binary "
            f"problems: give an array of shape (n, {code.n_problems}), one column per problem."
        )
    if not xp.isdtype(scores.dtype, "real floating"):
        raise InvalidInputError(
            f"scores are of type {scores.dtype}, but latent outputs are needed: give a "
            "floating-point array, not labels."
        )
