"""Plans and unbiased estimates with intervals from few human judgements and model judges."""
