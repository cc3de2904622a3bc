"""Decide whether a difference between rankers is real: tests, intervals, corrections and tables of wins and losses."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
