"""skrub: its preparation of a table before an estimator with one kernel.

The models for tables need no preparation; `LSSVC` and `FixedSizeLSSVC` take numbers, which
``tabular_pipeline`` makes of a frame.
"""
# needs: skrub

import skrub

from lssvm import FixedSizeLSSVC
from lssvm.datasets import load_german_credit

credit = load_german_credit(as_frame=True)
model = skrub.tabular_pipeline(FixedSizeLSSVC(random_state=0))
model.fit(credit.data[:700], credit.target[:700])
accuracy = model.score(credit.data[700:], credit.target[700:])
print(f"accuracy {accuracy:.3f}")
assert accuracy > 0.7
