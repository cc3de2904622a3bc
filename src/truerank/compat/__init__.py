"""Names of other programs and libraries, and how trec_eval reads, computes and prints."""
