"""Train and test rankers with a log of impressions: click logs, examination, estimates, interleaving, simulation."""
