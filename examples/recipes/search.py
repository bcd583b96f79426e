"""scikit-learn: a pipeline, a search and cross-validation.

The estimators follow scikit-learn's interface. Inside the model, C and gamma are chosen by its own
cross-validation ("cv"), which costs a fraction of a search; a search from outside is for the rest.
"""
# needs: sklearn

from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from lssvm import LSSVC
from lssvm.datasets import load_heart

heart = load_heart()
model = make_pipeline(StandardScaler(), LSSVC(C="cv", gamma="cv", random_state=0))
search = GridSearchCV(model, {"lssvc__kernel": ["rbf", "linear"]}, cv=3)
search.fit(heart.data, heart.target)
scores = cross_val_score(search.best_estimator_, heart.data, heart.target, cv=5)
print(search.best_params_, f"accuracy {scores.mean():.3f}")
assert scores.mean() > 0.75
