"""Measures truerank beside its peers; mirrors src/truerank. `python -m benchmarks [name …]` runs them."""
