"""Text as numbers: n-grams of words and characters, reduced to a few features.

A text is lowered and split into words (runs of letters, marks and digits) and single signs. Its
n-grams are those of one and two words, and those of two to four characters inside a word with a
space on both sides. They are hashed, weighted by tf-idf, and projected by one matrix: on the
leading singular vectors, and on the directions that predict the targets.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array, vstack

from lssvm._core.arrays import FloatArray, IntArray
from lssvm.data.columns import RawColumn
from lssvm.data.encodings import SMALLEST_SCALE, LevelEncoding, Targets

BUCKETS = 2**18
"""Hashed n-grams: those of words are in the lower half, those of characters in the upper one."""

LONGEST = 2_000
"""Characters of a text that are read."""

VOCABULARY = 4_000
"""Most n-grams of words that are kept, and most of characters."""

COMPONENTS = 15
"""Singular vectors of a text that become features."""

DIRECTIONS = 100
"""Singular vectors among which those that predict the targets are sought."""

BLOCK_VARIANCE = 1.0
"""Sum of the variances of the components of a text: that of one number."""

SIGNIFICANT = 2.0
"""Standard errors over folds that the gain of a text has to be away from 0."""

LEAST_GAIN = 0.01
"""Share of the held-out squared error that a text has to explain."""

MOST_TEXTS = 50_000
"""Different texts that are learned from; features of other rows are those of new rows."""

_FIT_TEXTS = 10_000  # texts and characters that the singular vectors are computed from
_FIT_CHARACTERS = 2_000_000
_BLOCK_CHARACTERS = 500_000  # of texts that are split at once
_ODD = np.uint64(0x9E3779B97F4A7C15)  # 2**64 divided by the golden ratio
_PRIME = np.uint64(0x100000001B3)


@dataclass(frozen=True, eq=False)
class TextEncoding:
    """Text as projections of its n-grams; the mean target of its levels, where they repeat.

    Attributes
    ----------
    buckets : int array of shape (v,)
        The hashed n-grams that are known, ascending.
    idf : array of shape (v,)
        Their weights.
    projection : array of shape (v, q)
        Features of a text are x projection - centre, where x is its tf-idf vector of length 1; 0
        for a missing text and one without known n-grams.
    centre : array of shape (q,)
    indicator : float
        Half the distance between "there" and "missing" in one more feature; 0: no such feature.
    endings : tuple of str
        Ends of the names of the q features.
    level_encoding : LevelEncoding or None
        Features of whole values, which stand first.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.data.columns import read_table
    >>> from lssvm.data.text import learn_text
    >>> remarks = [f"a {a} {b}" for a in ("good", "bad", "long") for b in ("day", "night", "walk")]
    >>> column = read_table({"remark": remarks}).columns[0]
    >>> text = learn_text(column, np.ones(9))
    >>> text.suffixes
    (':text0', ':text1')
    >>> out = np.empty((9, text.width))
    >>> text.encode(column, out)
    >>> float(np.round(out.var(axis=0).sum(), 6))
    1.0
    """

    buckets: IntArray
    idf: FloatArray
    projection: FloatArray
    centre: FloatArray
    indicator: float
    endings: tuple[str, ...]
    level_encoding: LevelEncoding | None
    way: ClassVar[str] = "text"

    @property
    def width(self) -> int:
        """Number of features."""
        return len(self.suffixes)

    @property
    def suffixes(self) -> tuple[str, ...]:
        """Those of whole values, of the projections, and of the mark of missing text."""
        whole = () if self.level_encoding is None else self.level_encoding.suffixes
        return (*whole, *self.endings, *(("=(missing)",) if self.indicator > 0 else ()))

    def encode(self, column: RawColumn, out: FloatArray) -> None:
        """Write the features of a column into ``out``, shape (n, width).

        Parameters
        ----------
        column : RawColumn
            A category: every different text is projected once.
        out : array of shape (n, width)
            Overwritten.
        """
        at = 0
        if self.level_encoding is not None:
            at = self.level_encoding.width
            self.level_encoding.encode(column, out[:, :at])
        q = len(self.centre)
        table = np.zeros((len(column.levels) + 1, q))
        vectors = _weighted_vectors(column.levels, self.buckets, self.idf)
        for start, X in vectors:
            known = np.diff(X.indptr) > 0
            table[start : start + len(known)][known] = X[known] @ self.projection - self.centre
        missing = column.missing
        codes = np.where(missing, len(column.levels), column.values).astype(np.intp)
        out[:, at : at + q] = table[codes]
        if self.indicator > 0:
            out[:, at + q] = np.where(missing, self.indicator, -self.indicator)


def is_text(levels: Sequence[str]) -> bool:
    """Say whether values are words: four letters or more on average, half of all characters.

    Examples
    --------
    >>> from lssvm.data.text import is_text
    >>> is_text(["head cook", "smith"]), is_text(["n5620.0", "n2040.0"])
    (True, False)
    """
    some = levels[:: max(1, len(levels) // 1000)]
    letters = sum(character.isalpha() for text in some for character in text[:LONGEST])
    return letters >= 4 * len(some) and letters >= sum(len(text[:LONGEST]) for text in some) / 2


# -- n-grams -----------------------------------------------------------------------------------


def hashed_n_grams(texts: Sequence[str]) -> tuple[IntArray, IntArray]:
    """Return the text and the bucket of every n-gram, as often as it occurs.

    Examples
    --------
    >>> from lssvm.data.text import BUCKETS, hashed_n_grams
    >>> text, bucket = hashed_n_grams(["to be", "BE"])  # to, be, to be; " t", "to", "o ", " to"...
    >>> [int((text[bucket < BUCKETS // 2] == i).sum()) for i in range(2)]
    [3, 1]
    >>> [int((text[bucket >= BUCKETS // 2] == i).sum()) for i in range(2)]
    [12, 6]
    """
    one_form = (unicodedata.normalize("NFKC", text[:LONGEST]) for text in texts)
    clean = [f" {text.lower()[:LONGEST]} " for text in one_form]
    joined = "".join(clean).encode("utf-32-le", "surrogatepass")
    codes = np.frombuffer(joined, dtype="<u4").astype(np.uint64)
    text = np.repeat(np.arange(len(clean)), [len(one) for one in clean])
    if not len(codes):
        return text, text
    kind = _kinds(codes)
    words, owner = _word_hashes(codes, kind, text)
    pairs = np.flatnonzero(owner[1:] == owner[:-1])
    hashes = [words, words[pairs] * _PRIME + _mixed(words[pairs + 1])]
    owners = [owner, owner[pairs]]
    buckets = [_bucket(one) for one in hashes]
    inside = kind == 1
    first = np.append(True, text[1:] != text[:-1])
    kept = inside | np.append(True, inside[:-1]) | first  # one space between two words
    spaced = np.where(inside, codes, np.uint64(32))[kept]
    owner, spaces = text[kept], np.cumsum(~inside[kept])
    gram = spaced
    for n in (2, 3, 4):
        gram = gram[: len(spaced) - n + 1] * _PRIME + spaced[n - 1 :]
        last = len(spaced) - n + 1
        if last <= 0:
            break
        one_word = spaces[n - 2 : n - 2 + last] == spaces[:last]
        one_word &= owner[:last] == owner[n - 1 :]
        buckets.append(_bucket(gram[one_word] + np.uint64(n)) + BUCKETS // 2)
        owners.append(owner[:last][one_word])
    return np.concatenate(owners), np.concatenate(buckets)


def _kinds(codes: NDArray[np.uint64]) -> IntArray:
    """Return 0 for spaces and control characters, 1 for those of words, 2 for other signs."""
    places = codes.astype(np.intp)
    table = np.zeros(int(places.max()) + 1, dtype=np.int8)
    for code in np.flatnonzero(np.bincount(places)).tolist():
        table[code] = {"Z": 0, "C": 0, "L": 1, "M": 1, "N": 1}.get(
            unicodedata.category(chr(code))[0], 2
        )
    return table[places].astype(np.intp)


def _word_hashes(
    codes: NDArray[np.uint64], kind: IntArray, text: IntArray
) -> tuple[NDArray[np.uint64], IntArray]:
    """Return a hash of every word and sign, and the text that it is in."""
    begins = (kind == 2) | ((kind == 1) & (np.append(0, kind[:-1]) != 1))
    there = kind > 0
    starts = np.flatnonzero(begins[there])
    if not len(starts):
        return np.empty(0, dtype=np.uint64), np.empty(0, dtype=np.intp)
    lengths = np.diff(starts, append=np.count_nonzero(there))
    place = np.arange(lengths.sum()) - np.repeat(starts, lengths)
    powers = np.cumprod(np.full(int(lengths.max()), _PRIME, dtype=np.uint64))
    terms = _mixed(codes[there]) * powers[place]
    return np.add.reduceat(terms, starts), text[there][starts]


def _mixed(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    values = (values ^ (values >> np.uint64(29))) * _ODD
    return (values ^ (values >> np.uint64(32))) * _ODD


def _bucket(hashes: NDArray[np.uint64]) -> IntArray:
    return (_mixed(hashes) & np.uint64(BUCKETS // 2 - 1)).astype(np.intp)


def _counts(texts: Sequence[str], buckets: IntArray) -> Iterator[tuple[int, csr_array]]:
    """Yield blocks of texts: the place of the first, and how often each text has each n-gram."""
    ends = np.cumsum([min(len(text), LONGEST) + 2 for text in texts])
    place = np.full(BUCKETS, -1, dtype=np.intp)
    place[buckets] = np.arange(len(buckets))
    start = 0
    while start < len(texts):
        done = ends[start - 1] if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, done + _BLOCK_CHARACTERS, side="right")))
        owner, bucket = hashed_n_grams(texts[start:stop])
        column = place[bucket]
        known = column >= 0
        cells = (owner[known], column[known])
        shape = (stop - start, len(buckets))
        yield start, coo_array((np.ones(len(cells[0])), cells), shape=shape).tocsr()
        start = stop


def _weighted_vectors(
    texts: Sequence[str], buckets: IntArray, idf: FloatArray
) -> Iterator[tuple[int, csr_array]]:
    """Yield blocks of texts as tf-idf vectors of length 1, proportional to count times idf."""
    for start, X in _counts(texts, buckets):
        X.data *= idf[X.indices]
        rows = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
        X.data /= np.sqrt(np.bincount(rows, X.data**2, minlength=X.shape[0]))[rows]
        yield start, X


# -- learning ----------------------------------------------------------------------------------


def learn_text(
    column: RawColumn, weight: FloatArray, indicator: float = 0.0
) -> TextEncoding | None:
    """Return the projection of a text on its leading singular vectors; None without n-grams.

    Parameters
    ----------
    column : RawColumn
        A category.
    weight : array of shape (n,)
        A weight of 2 is the row twice.
    indicator : float, default=0.0
        Half the distance between texts that are there and missing ones; 0: no such feature.

    Notes
    -----
    N-grams count where two different texts have them. The singular vectors are those of at most
    10,000 different texts and 2 million characters, by a randomised method with a fixed seed.
    """
    rows = _rows_to_learn_from(column)
    space = _TextSpace.of(column.take(rows), weight[rows])
    return None if space is None else space.encoding(indicator)


def learn_supervised_text(
    column: RawColumn,
    weight: FloatArray,
    targets: Targets,
    fold: IntArray,
    *,
    indicator: float = 0.0,
    levels: tuple[LevelEncoding, FloatArray] | None = None,
    always: bool = False,
) -> tuple[TextEncoding, FloatArray] | None:
    """Return a text as features that predict, and those of the training rows out of fold.

    Besides the components of `learn_text` there is one feature for each target: what a ridge
    regression on 100 components predicts, for training rows by the other folds.

    Parameters
    ----------
    column : RawColumn
        A category.
    weight : array of shape (n,)
        A weight of 2 is the row twice.
    targets : Targets
        With k columns.
    fold : int array of shape (n,)
        The fold of every row.
    indicator : float, default=0.0
        Half the distance between texts that are there and missing ones; 0: no such feature.
    levels : pair of LevelEncoding and array of shape (n, k), optional
        Features of whole values, and those of the training rows out of fold: the text has to
        improve on them.
    always : bool, default=False
        Whether the text is used even where it does not lower the held-out error.

    Returns
    -------
    encoding : TextEncoding
    features : array of shape (n, width)
        None instead of both where the text does not help to predict.

    Notes
    -----
    The time is linear in the characters of different texts, besides O(n r^2 + folds r^3) for r =
    100 components. At most 50,000 different texts are learned from.
    """
    rows = _rows_to_learn_from(column)
    if len(rows) < len(weight):
        inner = None if levels is None else (levels[0], levels[1][rows])
        some = Targets(targets.values[rows], targets.suffixes)
        options: dict[str, Any] = {"indicator": indicator, "levels": inner, "always": always}
        learned = learn_supervised_text(
            column.take(rows), weight[rows], some, fold[rows], **options
        )
        if learned is None:
            return None
        features = np.empty((len(weight), learned[0].width))
        learned[0].encode(column, features)
        features[rows] = learned[1]
        if levels is not None:
            features[:, : levels[0].width] = levels[1]
        return learned[0], features
    space = _TextSpace.of(column, weight)
    if space is None:
        return None
    whole = np.empty((len(weight), 0)) if levels is None else levels[1]
    Y = targets.values - np.average(targets.values, axis=0, weights=weight)
    Y /= np.maximum(np.sqrt(np.average(Y**2, axis=0, weights=weight)), np.finfo(float).tiny)
    regression = _FoldMoments.of(space, whole, Y, weight, fold)
    r, n_folds = space.rank, len(regression.squares)
    if n_folds < 2 or not (always or regression.improves(r)):
        return None
    of_text = np.arange(r)
    best = int(np.argmin(regression.errors(of_text).sum(axis=1)))
    slopes = regression.slopes(of_text, None)[best]
    scores = np.empty_like(Y)
    for f in range(n_folds):
        rows = fold == f
        scores[rows] = space.rows(rows) @ regression.slopes(of_text, f)[best]
    spread = np.sqrt(np.average(scores**2, axis=0, weights=weight))
    scale = np.maximum(spread, SMALLEST_SCALE)
    endings = tuple(f":text{suffix}" for suffix in targets.suffixes)
    encoding = space.encoding(indicator, slopes / scale, endings, levels)
    count = len(encoding.endings) - len(endings)
    blocks = [whole, (space.points[:, :count] * space.unit)[space.codes], scores / scale]
    if indicator > 0:
        blocks.append(np.where(column.missing, indicator, -indicator)[:, None])
    return encoding, np.hstack(blocks)


@dataclass(frozen=True, eq=False)
class _TextSpace:
    """The texts of a column in the space of their leading singular vectors.

    Attributes
    ----------
    buckets, idf : arrays of shape (v,)
    vectors : array of shape (v, r)
        Singular vectors, by falling singular values.
    points : array of shape (levels + 1, r)
        Projected texts less their mean over the rows; 0 for missing ones and those without n-grams.
    mean : array of shape (r,)
    unit : float
        Gives the components of the points, over the rows, variances of the wanted sum.
    codes : int array of shape (n,)
        The place of each row among the points.
    """

    buckets: IntArray
    idf: FloatArray
    vectors: FloatArray
    points: FloatArray
    mean: FloatArray
    unit: float
    codes: IntArray

    @property
    def rank(self) -> int:
        return len(self.mean)

    @classmethod
    def of(cls, column: RawColumn, weight: FloatArray) -> _TextSpace | None:
        codes = np.where(column.values < 0, len(column.levels), column.values).astype(np.intp)
        counts = np.bincount(codes, weight, minlength=len(column.levels) + 1)
        fitted = _spread_out(column.levels, np.flatnonzero(counts[:-1] > 0))
        texts = [column.levels[i] for i in fitted]
        frequency = np.zeros(BUCKETS)
        for _, X in _counts(texts, np.arange(BUCKETS)):
            frequency += np.bincount(X.indices, minlength=BUCKETS)
        buckets = _vocabulary(frequency, len(texts))
        idf = np.log((1.0 + len(texts)) / (1.0 + frequency[buckets])) + 1.0
        blocks = [X for _, X in _weighted_vectors(texts, buckets, idf)]
        if not sum(X.nnz for X in blocks):
            return None
        vectors = _leading_vectors(blocks, counts[fitted])
        points = np.zeros((len(counts), vectors.shape[1]))
        known = np.zeros(len(counts), dtype=bool)
        for start, X in _weighted_vectors(column.levels, buckets, idf):
            known[start : start + X.shape[0]] = np.diff(X.indptr) > 0
            points[start : start + X.shape[0]] = X @ vectors
        inner = np.where(known, counts, 0.0)
        if inner.sum() <= 0:
            return None
        mean = inner @ points / inner.sum()
        points[known] -= mean
        total = float((counts @ points[:, :COMPONENTS] ** 2).sum() / counts.sum())
        unit = float(np.sqrt(BLOCK_VARIANCE / total)) if total > 0 else 1.0
        return cls(buckets, idf, vectors, points, mean, unit, codes)

    def rows(self, rows: NDArray[np.bool_]) -> FloatArray:
        """Return the points of some rows."""
        return self.points[self.codes[rows]]

    def encoding(
        self,
        indicator: float,
        slopes: FloatArray | None = None,
        endings: tuple[str, ...] = (),
        levels: tuple[LevelEncoding, FloatArray] | None = None,
    ) -> TextEncoding:
        """Return the encoding by components of some variance and by slopes, shape (r, k)."""
        count = min(COMPONENTS, self.rank)
        axes = self.unit * np.eye(self.rank)[:, :count]
        axes = axes if slopes is None else np.hstack([axes, slopes])
        return TextEncoding(
            self.buckets,
            self.idf,
            self.vectors @ axes,
            self.mean @ axes,
            indicator,
            (*(f":text{i}" for i in range(count)), *endings),
            None if levels is None else levels[0],
        )


def _rows_to_learn_from(column: RawColumn) -> IntArray:
    """Return the rows of at most 50,000 different texts, evenly among all in their order."""
    step = max(1.0, len(column.levels) / MOST_TEXTS)
    chosen = np.zeros(len(column.levels) + 1, dtype=bool)
    chosen[np.arange(0, len(column.levels), step).astype(np.intp)] = True
    chosen[-1] = True  # missing ones
    return np.flatnonzero(chosen[column.values])


def _spread_out(levels: Sequence[str], present: IntArray) -> IntArray:
    """Return the places of some different texts, evenly among all in their order."""
    characters = sum(min(len(levels[i]), LONGEST) for i in present)
    step = max(len(present) / _FIT_TEXTS, characters / _FIT_CHARACTERS, 1.0)
    return present[np.arange(0, len(present), step).astype(np.intp)]


def _vocabulary(frequency: FloatArray, n_texts: int) -> IntArray:
    """Return the n-grams of two texts or more, the most frequent ones of words and characters."""
    kept = []
    for part in (slice(0, BUCKETS // 2), slice(BUCKETS // 2, BUCKETS)):
        order = np.argsort(-frequency[part], kind="stable")[:VOCABULARY]
        often = (frequency[part][order] >= 2) & (frequency[part][order] < n_texts)
        kept.append(order[often] + part.start)
    return np.sort(np.concatenate(kept))


def _leading_vectors(blocks: list[csr_array], weight: FloatArray) -> FloatArray:
    """Return right singular vectors (v, r) by subspace iteration; rows count by their weights."""
    X: csr_array = vstack(blocks, format="csr")
    X.data *= np.repeat(np.sqrt(weight), np.diff(X.indptr))
    n, v = X.shape
    rank = max(1, min(DIRECTIONS, n // 4, v))
    random = np.random.default_rng(0)
    wanted = min(rank + 10, n, v)
    Q = np.linalg.qr(X @ random.standard_normal((v, wanted)))[0]
    for _ in range(3):
        Q = np.linalg.qr(X @ np.linalg.qr(X.T @ Q)[0])[0]
    _, values, Vt = np.linalg.svd((X.T @ Q).T, full_matrices=False)
    rank = min(rank, int(np.sum(values > 1e-9 * values[0])))
    V: FloatArray = Vt[:rank].T
    largest = V[np.argmax(np.abs(V), axis=0), np.arange(rank)]
    return V * np.where(largest < 0, -1.0, 1.0)


PENALTIES = np.logspace(-4.0, 4.0, 17)
"""Ridge penalties, as multiples of the mean eigenvalue."""


@dataclass(frozen=True, eq=False)
class _FoldMoments:
    """Sums over the rows of each fold, from which every ridge regression is computed.

    Attributes
    ----------
    gram : array of shape (folds, p, p)
    cross : array of shape (folds, p, k)
    squares : array of shape (folds,)
    """

    gram: FloatArray
    cross: FloatArray
    squares: FloatArray

    @classmethod
    def of(
        cls, space: _TextSpace, whole: FloatArray, Y: FloatArray, weight: FloatArray, fold: IntArray
    ) -> _FoldMoments:
        sums = []
        for f in range(int(fold.max()) + 1):
            rows = fold == f
            Z = np.hstack([space.rows(rows), whole[rows]])
            scaled = Z * weight[rows, None]
            sums.append((Z.T @ scaled, scaled.T @ Y[rows], (weight[rows] @ Y[rows] ** 2).sum()))
        return cls(*(np.array(part) for part in zip(*sums, strict=True)))

    def slopes(self, used: IntArray, fold: int | None) -> FloatArray:
        """Return the slopes (penalties, p, k) of all rows but those of a fold."""
        G, c = self.gram.sum(axis=0), self.cross.sum(axis=0)
        if fold is not None:
            G, c = G - self.gram[fold], c - self.cross[fold]
        values, vectors = np.linalg.eigh(G[np.ix_(used, used)])
        values = np.maximum(values, 0.0)
        along = vectors.T @ c[used]
        penalties = PENALTIES * max(float(values.mean()), np.finfo(float).tiny)
        return np.stack([vectors @ (along / (values + one)[:, None]) for one in penalties])

    def errors(self, used: IntArray) -> FloatArray:
        """Return the squared error of every fold by the others, shape (penalties, folds)."""
        if not len(used):
            return np.tile(self.squares, (len(PENALTIES), 1))
        errors = np.empty((len(PENALTIES), len(self.squares)))
        for f, (G, c, y) in enumerate(zip(self.gram, self.cross, self.squares, strict=True)):
            B = self.slopes(used, f)
            fitted = np.einsum("apk,pq,aqk->a", B, G[np.ix_(used, used)], B, optimize=True)
            errors[:, f] = y - 2.0 * np.einsum("apk,pk->a", B, c[used]) + fitted
        return errors

    def improves(self, rank: int) -> bool:
        """Say whether the first inputs lower the held-out error of the others, beyond chance."""
        p = self.gram.shape[1]
        without, with_text = (
            errors[np.argmin(errors.sum(axis=1))]
            for errors in (self.errors(np.arange(rank, p)), self.errors(np.arange(p)))
        )
        gains = without - with_text
        noise = SIGNIFICANT * float(gains.std(ddof=1)) * np.sqrt(len(gains))
        return bool(gains.sum() > max(noise, LEAST_GAIN * without.sum()))
