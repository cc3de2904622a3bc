"""Kinds of leaves: constant, fuzzy, polynomial."""
