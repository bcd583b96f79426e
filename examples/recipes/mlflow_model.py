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
model = LSSVMClassifier("fast", random_state=0).fit(heart.data, heart.target)
with tempfile.TemporaryDirectory() as folder:
    file, saved = (str(Path(folder) / name) for name in ("heart.lssvm", "served"))
    lssvm.save(model, file)
    # mlflow.pyfunc.log_model takes the same arguments inside a run.
    mlflow.pyfunc.save_model(
        saved,
        python_model=str(Path(__file__).with_name("mlflow_served.py")),
        artifacts={"model": file},
        pip_requirements=["lssvm"],
    )
    found = mlflow.pyfunc.load_model(saved).predict(heart.data)
np.testing.assert_allclose(found, model.predict_proba(heart.data))
print("the served model gives the same probabilities")
