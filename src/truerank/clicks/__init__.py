"""From a log of impressions to a tested ranker: click logs, examination, estimates, interleaving, simulation."""
