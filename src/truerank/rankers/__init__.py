"""Learners of ranking functions, one algorithm a file; `base` holds what they share."""
