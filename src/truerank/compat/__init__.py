"""Names of other programs and libraries, and trec_eval's input, computations and output."""
