"""Words of texts, their counts, and classifiers of topics."""
