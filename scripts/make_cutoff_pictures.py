"""Draw docs/images/cutoff-*.png, the curves of docs/howto/cutoffs.md, on the shipped sample and scikit-learn's digits.

python scripts/make_cutoff_pictures.py
"""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

from truerank import Cutoff, load_sample

data = load_sample("cranfield-text")
bm25, qid = data.X[:, 0], data.query_index
here = np.isin(qid, np.random.default_rng(0).permutation(data.n_queries)[:150])
search = Cutoff("no-relevant@3", at_most=0.3, confidence=0.9).fit(bm25[here], data.y[here], qid=qid[here])
context = Cutoff("no-relevant-shown", at_most=0.2).fit(bm25[here], data.y[here], qid=qid[here])
X, y = load_digits(return_X_y=True)
classifier = LogisticRegression(max_iter=500).fit(X[:200], y[:200])
sure, wrong = classifier.predict_proba(X[200:]).max(axis=1), classifier.predict(X[200:]) != y[200:]
classes = Cutoff("error", at_most=0.05, confidence=0.95).fit_losses(sure[:800], wrong[:800])
for name, cutoff in (("search", search), ("context", context), ("classifier", classes)):
    cutoff.plot().save(f"docs/images/cutoff-{name}.png")
    print(name, cutoff.summary())
