"""Texts: words, counts, and classifiers of topics."""
