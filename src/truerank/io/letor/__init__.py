"""LETOR and SVMlight text: the grammar in Python and compiled, the store, reading and writing."""
