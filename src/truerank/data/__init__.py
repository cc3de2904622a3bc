"""Judged rankings in memory and in files."""
