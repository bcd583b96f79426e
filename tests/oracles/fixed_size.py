"""The fixed-size model by its printed formulas, in plain NumPy."""

import numpy as np


def rbf(X, Z, gamma):
    return np.exp(-gamma * ((X[:, None, :] - Z[None, :, :]) ** 2).sum(axis=2))


def features(K_nz, K_zz, cut):
    """Feature matrix of eq. (5): eigenpairs of the prototypes' kernel matrix above ``cut``."""
    lam, U = np.linalg.eigh(K_zz)
    keep = lam > cut
    return K_nz @ (U[:, keep] / np.sqrt(lam[keep]))


def ridge(F, Y, C, weight=None):
    """Minimise 1/2 w'w + C/2 sum s e^2 with a free bias, as least squares; returns w, b."""
    s = np.ones(len(F)) if weight is None else np.asarray(weight, float)
    mean, target = s @ F / s.sum(), s @ Y / s.sum()
    root = np.sqrt(s)[:, None]
    stacked = np.vstack([root * (F - mean), np.eye(F.shape[1]) / np.sqrt(C)])
    wanted = np.vstack([root * (Y - target), np.zeros((F.shape[1], Y.shape[1]))])
    w = np.linalg.lstsq(stacked, wanted, rcond=None)[0]
    return w, target - mean @ w


def refit_predictions(F, Y, C, folds, weight=None):
    """Predict every fold by a model refitted without it; folds are (train, test) pairs."""
    out = []
    for train, test in folds:
        w, b = ridge(F[train], Y[train], C, None if weight is None else weight[train])
        out.append(F[test] @ w + b)
    return out


def normal_residual(K, K_zz, Y, coef, b, C, weight=None):
    """Relative residuals of (K'SK + K_zz/C) beta = K'S(y - b), and the weighted means of errors."""
    s = np.ones(K.shape[0]) if weight is None else np.asarray(weight, float)
    error = Y - K @ coef - b
    rest = K.T @ (s[:, None] * error) - K_zz @ coef / C
    side = K.T @ (s[:, None] * (Y - s @ Y / s.sum()))
    return np.linalg.norm(rest, axis=0) / np.linalg.norm(side, axis=0), s @ error / s.sum()


def printed_ridge(F, Y, C, weight=None):
    """Eq. (7): (w; b) = (Phi_e' S Phi_e + I/C)^-1 Phi_e' S Y with Phi_e = [F, 1]; returns w, b."""
    s = np.ones(len(F)) if weight is None else np.asarray(weight, float)
    extended = np.column_stack([F, np.ones(len(F))])  # eq. (8)
    H = extended.T @ (s[:, None] * extended) + np.eye(extended.shape[1]) / C
    solution = np.linalg.solve(H, extended.T @ (s[:, None] * Y))
    return solution[:-1], solution[-1]


def fast_cross_validation(F, Y, C, folds):
    """Algorithm 3: residuals of the folds, by A and c of all rows less their own, (18)-(21)."""
    extended = np.column_stack([F, np.ones(len(F))])
    A, c = extended.T @ extended + np.eye(extended.shape[1]) / C, extended.T @ Y
    residuals = []
    for test in folds:
        own = extended[test]
        solution = np.linalg.solve(A - own.T @ own, c - own.T @ Y[test])  # eq. (19)
        residuals.append(Y[test] - own @ solution)
    return residuals


def tuned_alone(X, y, Z, folds, Cs, gammas, by_error):
    """Cross-validated losses (gamma, C) of one binary problem, every fold refitted.

    ``y`` is +1, -1 or 0 for rows that are not part of the problem; folds are (train, test) pairs.
    [Suykens2002, after eq. (3.13)]: each subclassifier has its own (gamma_i, sigma_i);
    [DeBrabanter2010, section 8.4]: each problem of a code is tuned as a binary one.
    """
    table = np.zeros((len(gammas), len(Cs)))
    for a, gamma in enumerate(gammas):
        F = features(rbf(X, Z, gamma), rbf(Z, Z, gamma), 1e-9)
        for b, C in enumerate(Cs):
            loss = count = 0.0
            for train, test in folds:
                train, test = train[y[train] != 0], test[y[test] != 0]
                w, bias = ridge(F[train], y[train, None], C)
                outputs = (F[test] @ w + bias)[:, 0]
                loss += np.sum(outputs * y[test] <= 0 if by_error else (outputs - y[test]) ** 2)
                count += len(test)
            table[a, b] = loss / count
    return table
