"""truerank: from judged rankings to a ranker that can be trusted.

Public names are imported on first use: `import truerank` loads neither numba nor scikit-learn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from truerank.registry import public_names as _public_names
from truerank.registry import resolve as _resolve

__version__ = "0.1.0"

if TYPE_CHECKING:
    from truerank.core.model_file import load_model, save_model
    from truerank.data.ranking_data import Judgements, RankingData
    from truerank.data.splits import QueryKFold
    from truerank.rankers.base import Ranker
    from truerank.rankers.rank_boost import RankBoost
    from truerank.rankers.rank_svm import RankSVM

__all__ = [
    "Judgements",
    "QueryKFold",
    "RankBoost",
    "RankSVM",
    "Ranker",
    "RankingData",
    "__version__",
    "evaluate",
    "load_model",
    "save_model",
]


def __getattr__(name: str) -> Any:
    target = _public_names().get(name)
    if target is None:
        raise AttributeError(f"module 'truerank' has no attribute {name!r}")
    value = _resolve(target)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_public_names()})
