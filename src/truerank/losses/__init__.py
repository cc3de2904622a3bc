"""Loss functions: pairs, worst rankings, listwise losses, objectives of boosting."""
