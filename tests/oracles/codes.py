"""Output codes by plain loops: Hamming distances, votes, loss sums, separations."""

import itertools
import math

import numpy as np


def loss_value(name, z):
    if name == "squared":
        return (1 - z) ** 2
    if name == "linear":
        return -z
    return math.exp(-z)


def filled(word):
    return sum(1 for entry in word if entry != 0)


def hamming_distances(matrix, scores):
    """Distance to every code word; a zero entry or score is half a difference.

    What the fullest code word pays for its zeros is taken off every class.
    """
    fullest = max(filled(word) for word in matrix)
    distances = np.zeros((len(scores), len(matrix)))
    for row, outputs in enumerate(scores):
        for label, word in enumerate(matrix):
            total = 0.0
            for entry, output in zip(word, outputs, strict=True):
                if entry == 0 or output == 0:
                    total += 0.5
                elif (output > 0) != (entry > 0):
                    total += 1.0
            distances[row, label] = total - (len(word) - fullest) / 2
    return distances


def confidences(matrix, scores):
    sums = np.zeros((len(scores), len(matrix)))
    for row, outputs in enumerate(scores):
        for label, word in enumerate(matrix):
            for entry, output in zip(word, outputs, strict=True):
                sums[row, label] += entry * output
    return sums


def loss_sums(matrix, scores, name):
    """Loss against every code word; a zero entry counts as a score of zero, less the constant."""
    fullest = max(filled(word) for word in matrix)
    sums = np.zeros((len(scores), len(matrix)))
    for row, outputs in enumerate(scores):
        for label, word in enumerate(matrix):
            total = 0.0
            for entry, output in zip(word, outputs, strict=True):
                total += loss_value(name, entry * output)
            sums[row, label] = total - (len(word) - fullest) * loss_value(name, 0.0)
    return sums


def pairwise_votes(k, scores):
    """Votes of one-versus-one: pair (i, j) votes for j if its score is positive, else for i."""
    votes = np.zeros((len(scores), k))
    for row, outputs in enumerate(scores):
        for (i, j), output in zip(itertools.combinations(range(k), 2), outputs, strict=True):
            votes[row, j if output > 0 else i] += 1
    return votes


def row_separation(matrix):
    """Smallest Hamming distance between two rows."""
    return min(
        sum(1 for a, b in zip(u, v, strict=True) if a != b)
        for u, v in itertools.combinations(np.asarray(matrix).tolist(), 2)
    )


def column_separation(matrix):
    """Smallest distance between two columns, one of which may be complemented."""
    n_rows = len(matrix)
    smallest = n_rows
    for u, v in itertools.combinations(np.asarray(matrix).T.tolist(), 2):
        differing = sum(1 for a, b in zip(u, v, strict=True) if a != b)
        smallest = min(smallest, differing, n_rows - differing)
    return smallest


def labels_can_differ(matrix):
    """Say whether Hamming and loss decoding can disagree for a code without zeros.

    For a sign pattern u, a code word w gives up the columns in which they differ. Loss decoding can
    choose w (scores tiny in these columns, large in all others) unless another word gives up a part
    of them only; Hamming decoding cannot, if a word gives up fewer columns.
    """
    words = [sum(1 << bit for bit, entry in enumerate(word) if entry > 0) for word in matrix]
    for pattern in range(1 << len(matrix[0])):
        given_up = [pattern ^ word for word in words]
        fewest = min(bits.bit_count() for bits in given_up)
        for bits in given_up:
            minimal = not any(other != bits and other & bits == other for other in given_up)
            if minimal and bits.bit_count() > fewest:
                return True
    return False


def counted_words(k):
    """Minimum output coding by counting: the digits of 0, 1, ... in base 2, -1 for 0 and +1 for 1.

    [Suykens2002, section 3.2]: n_y outputs encode up to 2^n_y classes.
    """
    n_y = 1
    while 2**n_y < k:
        n_y += 1
    return [[1 if digit == "1" else -1 for digit in format(i, f"0{n_y}b")] for i in range(k)]
