"""Published experiments, one module a paper, on the parts that `protocol` gives them."""
