"""Solvers: each one minimises a loss and returns a result with a status."""
