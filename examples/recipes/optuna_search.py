"""Optuna: hyperparameters by the model's out-of-sample score, without a further cross-validation.

``best_score_`` is computed by ``fit`` from folds that the chosen model has not seen.
"""
# needs: optuna

import optuna
from sklearn.preprocessing import StandardScaler

from lssvm import FixedSizeLSSVR
from lssvm.datasets import load_concrete

concrete = load_concrete()
X = StandardScaler().fit_transform(concrete.data)


def objective(trial):
    """Return the score of a kernel and a number of prototypes."""
    kernel = trial.suggest_categorical("kernel", ["rbf", "matern", "laplacian"])
    size = trial.suggest_int("n_prototypes", 50, 200, step=50)
    model = FixedSizeLSSVR(size, kernel=kernel, scoring="r2", random_state=0)
    return model.fit(X, concrete.target).best_score_


optuna.logging.set_verbosity(optuna.logging.WARNING)
study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=0))
study.optimize(objective, n_trials=6)
print(study.best_params, f"R2 {study.best_value:.3f}")
assert study.best_value > 0.7
