"""AdaRank (Xu & Li 2007): the paper's protocol (`trials`) and its BM25 (`ohsumed_terms`)."""
