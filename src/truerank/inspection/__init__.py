"""Inspection of fitted rankers: importance, stability."""
