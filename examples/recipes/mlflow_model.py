"""MLflow: a model is logged as our file and its code, without a pickle, and served."""
# needs: mlflow

import tempfile
from pathlib import Path

import mlflow
import numpy as np

import lssvm
from lssvm import LSSVMClassifier
from lssvm.datasets import load_heart

heart = load_heart()
with mlflow.start_run(), tempfile.TemporaryDirectory() as folder:
    model = LSSVMClassifier("fast", random_state=0).fit(heart.data, heart.target)
    mlflow.log_params({"preset": model.preset})
    mlflow.log_metric("accuracy", model.best_score_)
    file = str(Path(folder) / "heart.lssvm")
    lssvm.save(model, file)
    logged = mlflow.pyfunc.log_model(
        name="heart",
        python_model=str(Path(__file__).with_name("mlflow_served.py")),
        artifacts={"model": file},
        pip_requirements=["lssvm"],
    )
probabilities = mlflow.pyfunc.load_model(logged.model_uri).predict(heart.data)
np.testing.assert_allclose(probabilities, model.predict_proba(heart.data))
print("the logged model gives the same probabilities")
