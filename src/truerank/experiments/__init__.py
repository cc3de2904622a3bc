"""Experiments with systems over judged queries, and the rules about evidence."""
