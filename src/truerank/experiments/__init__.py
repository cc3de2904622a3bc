"""Experiments: systems over judged queries, and the rules about evidence."""
