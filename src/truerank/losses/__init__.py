"""Loss functions: pairs, worst rankings, listwise losses, and objectives of boosting."""
