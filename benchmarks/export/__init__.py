"""Exports beside the programs that read them."""
