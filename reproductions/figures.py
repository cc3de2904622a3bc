"""Write the figures of an experiment as files."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from reproductions.calibration import plots as calibration_plots
from reproductions.calibration.figures import CalibrationFigure
from reproductions.plots import draw
from truerank.core.errors import InvalidInputError
from truerank.core.files import atomic_write


def draw_figures(figures: Iterable[Any], folder: str | os.PathLike[str], *, suffix: str = "png") -> list[Path]:
    """Draw each figure into `folder` as `NAME.suffix` and return the paths; each file is written whole or not at all.

    Raises
    ------
    ImportError
        Without matplotlib.
    """
    if suffix not in ("png", "svg", "pdf"):
        raise InvalidInputError(f"charts are written as png, svg or pdf, got {suffix!r}")
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for figure in figures:
        canvas = calibration_plots.draw(figure) if isinstance(figure, CalibrationFigure) else draw(figure)
        paths.append(folder / f"{figure.name}.{suffix}")
        with atomic_write(paths[-1], "wb") as stream:
            # No date in the file: the same data give the same bytes.
            canvas.savefig(stream, format=suffix, dpi=150, metadata={"Date": None} if suffix == "svg" else None)
    return paths
