"""Judgements of people and programs, with a reader and writer for each file format."""
