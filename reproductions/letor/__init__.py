"""Published baselines of LETOR 3.0: `experiment`, and its rows (`learners`)."""
