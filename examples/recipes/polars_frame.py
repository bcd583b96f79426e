"""polars: a raw frame with text and missing values is fitted and predicted."""
# needs: polars

import polars as pl

from lssvm import LSSVMClassifier
from lssvm.datasets import load_german_credit

credit = load_german_credit(as_frame=True)
frame = pl.DataFrame({name: list(credit.data[name]) for name in credit.data})
frame = frame.with_columns(pl.when(pl.col("duration") > 60).then(None).otherwise("duration"))
model = LSSVMClassifier("fast", random_state=0).fit(frame[:700], credit.target[:700])
accuracy = (model.predict(frame[700:]) == credit.target[700:]).mean()
print(f"accuracy {accuracy:.3f}")
assert accuracy > 0.7
