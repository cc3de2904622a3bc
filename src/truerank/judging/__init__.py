"""Few human judgements and model judges: what to judge, and unbiased estimates with intervals from it."""
