"""Inspection of fitted rankers: validation, importance, explanation, and stability."""
