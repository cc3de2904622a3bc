"""Solvers, each of which minimises a loss and returns a result with a status."""
