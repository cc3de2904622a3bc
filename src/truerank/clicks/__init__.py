"""From a log of impressions to a tested ranker: click logs, examination, off-policy value, interleaving, simulation."""
