"""Calibrated classifiers (Bennett 2003): `experiment`, its collection (`reuters`), classifiers and calibrators there
(`topic_scores`), and what this library chooses by itself beside today's calibrators (`choice`)."""
