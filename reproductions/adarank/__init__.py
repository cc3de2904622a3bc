"""AdaRank (Xu & Li 2007): `experiment`, the paper's own protocol (`trials`) and its BM25 (`ohsumed_terms`)."""
