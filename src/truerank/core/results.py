"""Base class of results, with a sentence, remarks and figures as text, JSON, a frame, Markdown, LaTeX and HTML."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from truerank.core.errors import InvalidInputError
from truerank.core.printing import plain

if TYPE_CHECKING:
    from truerank.core.charts import Chart

SCHEMA = 1  # version of the JSON of all results


def headed(kind: str, figures: Mapping[str, Any]) -> dict[str, Any]:
    """Return the JSON of a result: `schema` ("comparison/1"), `version` of truerank, and the figures.

    Figures that are the JSON of another result keep its `schema`.
    """
    from truerank import __version__

    return {"schema": f"{kind}/{SCHEMA}", "version": __version__, **figures}


class Result:
    """A result of a command or function.

    A subclass implements `_table(style)` and `_figures()`, and sets `KIND`. `experiment` is the `Experiment` of the
    result, with `remarks` and `facts()` (entries of the JSON); None for results without one.

    Attributes
    ----------
    summary : str
        The answer in one sentence, printed first.
    remarks : list of Remark
        Remarks that prevent a verdict or change figures, each kind once.
    """

    KIND: ClassVar[str] = ""
    experiment: Any = None

    @property
    def summary(self) -> str:
        return ""

    @property
    def remarks(self) -> Sequence[Any]:
        return [] if self.experiment is None else self.experiment.remarks

    def _table(self, style: str) -> str:
        raise NotImplementedError

    def _figures(self) -> dict[str, Any]:
        raise NotImplementedError

    def to_dict(self) -> dict[str, Any]:
        """Return the figures for JSON, as the command prints them.

        The entries `schema` ("comparison/1") and `version` (of truerank) define the format.
        """
        facts = {} if self.experiment is None else self.experiment.facts()
        remarks = {"remarks": [one.to_dict() for one in self.remarks]}
        return dict(plain(headed(self.KIND, self._figures() | facts | remarks)))

    def to_markdown(self) -> str:
        """Return the figures as a Markdown table."""
        return self._table("markdown")

    def to_latex(self) -> str:
        """Return the figures as a table of LaTeX."""
        return self._table("latex")

    def to_frame(self) -> Any:
        """Return a pandas data frame of the figures.

        Raises
        ------
        InvalidInputError
            If results of this kind have no data frame.
        """
        raise InvalidInputError(
            f"a result of the kind {self.KIND!r} has no data frame", remedies=["call to_dict()"], code="no-frame"
        )

    def plot(self) -> Chart:
        """Return the figures as a chart, which notebooks display and `save` writes as SVG, PNG, PDF or HTML.

        Raises
        ------
        InvalidInputError
            If results of this kind have no chart.
        """
        from truerank.core.charts import chart_of

        return chart_of(self)

    def _repr_html_(self) -> str:
        return self._table("html")

    def __str__(self) -> str:
        return "\n\n".join(filter(None, (self.summary, self._table("text"))))


def data_frame(rows: Any, index: Any = None, name: str | None = None) -> Any:
    """Return a pandas data frame of rows or columns, with an index of the given name."""
    import pandas

    return pandas.DataFrame(rows, index=None if index is None else pandas.Index(index, name=name))
