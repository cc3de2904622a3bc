"""Boosted oblivious trees in stages: histogram, grower, leaves, predictor, boosting."""
