"""MLflow: the code of a served model, which reads our file."""
# needs: mlflow

import mlflow
import numpy as np

import lssvm


class Served(mlflow.pyfunc.PythonModel):
    """A model file as a function of rows."""

    def load_context(self, context):
        """Read the file."""
        self.model = lssvm.load(context.artifacts["model"])

    def predict(self, context, model_input, params=None):
        """Return the probabilities of the classes."""
        return self.model.predict_proba(np.asarray(model_input))


mlflow.models.set_model(Served())
