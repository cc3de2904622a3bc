"""List the formats and their abilities, without NumPy, so that the help of `export` is fast."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from truerank.core.names import Table

_TREES = ("stumps", "oblivious", "trees")
_ALL = ("linear", *_TREES, "fuzzy", "polynomial")


@dataclass(frozen=True)
class Format:
    """A format and the arithmetic of the programs that read it.

    Attributes
    ----------
    module : str
        Writer, as "module:function".
    kinds : tuple of str
        Kinds of forms that the format can hold exactly.
    float32 : bool
        Whether its programs round features to float32.
    float64_if_close : bool
        Whether the export asks for float64 features if float32 merges numbers of the training rows.
    missing : {"nan", "zero"}
        The value of an absent feature in its programs.
    expression : bool
        Whether it can hold a linear start and a probability.
    keeps_constant : bool
        Whether a linear model keeps its constant.
    float32_scores : bool
        Whether scores are rounded to float32.
    scorer : str
        For certificates of formats of other packages: a "module:function" that maps an export and the names of the
        features to a function from rows (n, p) to scores. "" for the formats of truerank.
    tiny : float
        Magnitude up to which its programs read numbers as 0.
    slack : float
        Number that its programs add to thresholds, in float32.
    """

    module: str
    kinds: tuple[str, ...]
    float32: bool = False
    missing: str = "nan"
    expression: bool = False
    keeps_constant: bool = True
    tiny: float = 0.0
    slack: float = 0.0
    float32_scores: bool = False
    scorer: str = ""
    float64_if_close: bool = False


_ENGINE = partial(Format, kinds=("linear", *_TREES), float32=True, missing="zero", keeps_constant=False)
_FORMATS: dict[str, Format] = {
    "solr": _ENGINE("truerank.export.search_engines:write_solr", slack=1e-6),
    "elasticsearch-ltr": _ENGINE("truerank.export.search_engines:write_plugin"),
    "opensearch-ltr": _ENGINE("truerank.export.search_engines:write_plugin"),
    "lightgbm": Format("truerank.export.tree_libraries:write_lightgbm", _TREES, tiny=1e-35),
    "xgboost": Format("truerank.export.tree_libraries:write_xgboost", ("linear", *_TREES), True, keeps_constant=False),
    "onnx": Format("truerank.export.onnx:write", _ALL, True, expression=True, float64_if_close=True),
    "painless": Format("truerank.export.painless:write", _ALL, expression=True, float32_scores=True),
    "vespa": Format("truerank.export.vespa:write", _ALL, expression=True),
    "python": Format("truerank.export.python:write", _ALL, expression=True),
    "c": Format("truerank.export.c:write", _ALL, expression=True),
}
# With those of installed packages: entry points "truerank.formats", name -> a `Format`.
FORMATS: Table[Format] = Table("truerank.formats", _FORMATS, lambda point: point.load())
