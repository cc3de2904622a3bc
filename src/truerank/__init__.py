"""truerank trains ranking models and tests whether they are really better.

Public names are listed in `__init__.pyi` and imported on first use: `import truerank` loads neither numba nor
scikit-learn.
"""

import lazy_loader

from truerank.core import layers as _layers

__version__ = "1.1.0"

_layers.use()
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
__all__ = sorted([*__all__, "__version__"])
