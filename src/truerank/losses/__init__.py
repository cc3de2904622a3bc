"""What is minimised: pairs, worst rankings, listwise losses, objectives of boosting."""
