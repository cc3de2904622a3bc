"""Boosted oblivious trees in stages: borders, histogram, grower, leaves, predictor, objectives, estimator."""
