"""Judgements of people and programs: one reader and writer for each file format."""
