"""Calibrated text classifiers (Bennett 2003): `experiment`, its collection `reuters`, its scores `topic_scores`."""
