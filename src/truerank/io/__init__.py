"""Readers and writers of files, with one module for each format."""
