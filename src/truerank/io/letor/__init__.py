"""Read and write LETOR and SVMlight text, by a grammar in Python and a compiled one."""
