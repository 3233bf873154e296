"""Train TabNet's classifier on the GPU, as its README shows, on a table made here."""

import numpy as np
from pytorch_tabnet.tab_model import TabNetClassifier

rng = np.random.default_rng(0)
X = rng.normal(size=(1200, 8)).astype(np.float32)
y = (X[:, 0] + X[:, 3] * X[:, 5] > 0).astype(np.int64)

clf = TabNetClassifier(device_name="cuda", seed=0, verbose=5)
clf.fit(
    X[:1000],
    y[:1000],
    eval_set=[(X[1000:], y[1000:])],
    eval_metric=["accuracy"],
    max_epochs=16,
    patience=0,
    batch_size=256,
    virtual_batch_size=64,
)
accuracy = (clf.predict(X[1000:]) == y[1000:]).mean()
device = next(clf.network.parameters()).device
print(f"accuracy {accuracy:.3f} with weights on {device}")
