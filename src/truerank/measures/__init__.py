"""Measures of rankings as values: `nDCG @ 10`, `AP(rel=2)`; all queries at once, ties and empty queries as chosen."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
