"""Measures of rankings as immutable values, such as `nDCG @ 10`, with explicit rules for ties and empty queries."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
