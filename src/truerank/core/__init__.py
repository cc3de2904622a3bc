"""Foundations: errors, checks of arguments, atomic files, whole fits, kernels, threads and random streams."""
