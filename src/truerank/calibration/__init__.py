"""Calibration: scores into probabilities, decisions made with them, and tests of whether they mean what they say."""
