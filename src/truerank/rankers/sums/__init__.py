"""Learn from rows in parts: statistics of the parts are added up, and each step of a learner follows from the sums."""
