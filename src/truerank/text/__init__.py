"""Text: words, counts, and classifiers of topics."""
