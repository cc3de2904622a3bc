"""LETOR and SVMlight text: the grammar in plain Python, the same grammar compiled, the store, reading and writing."""
