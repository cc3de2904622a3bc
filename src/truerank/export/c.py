"""Write a C99 file: `NAME_score` and `NAME_score_rows` return the bits of `predict`, also for missing values.

Compile with `-std=c99` or `-ffp-contract=off`, and without `-ffast-math`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from truerank.core.errors import InvalidInputError
from truerank.export.curly import Curly
from truerank.export.form import PLAIN, ModelForm, identifier
from truerank.export.program import BISECT, program_of


def write(form: ModelForm, name: str, inputs: str) -> str:
    """Return the text of the file; a comment at its top shows the calls."""
    prefix = identifier(name)
    if not prefix or prefix[0].isdigit():
        raise InvalidInputError(f"the name must begin with a letter or an underscore, got {name!r}. Pass another name")
    program = program_of(form)
    printer = Curly(program.arrays)
    text = [
        f"/* Scores of the model {prefix}, written by truerank. C99, no dependencies but math.h.",
        f" *   double {prefix}_score(const double *x)                  one row of {form.n_features} numbers",
        f" *   void {prefix}_score_rows(const double *x, size_t n, double *scores)    n rows",
        " * nan is a missing value. Compile with -std=c99 or -ffp-contract=off, without -ffast-math. */",
        "#include <math.h>",
        "#include <stddef.h>",
        "",
        f"const char *const {prefix}_features[{form.n_features}] = {{{', '.join(map(_string, form.names))}}};",
        *(_constant(key, value, printer.kinds[key]) for key, value in program.arrays.items()),
        "",
        *(printer.function(BISECT, "static ") if "bisect_left" in program.text else []),
        *printer.function(program.text.replace("score", f"{prefix}_score", 1)),
        "",
        f"void {prefix}_score_rows(const double *x, size_t n, double *scores) {{",
        "    size_t i;",
        f"    for (i = 0; i < n; i++) scores[i] = {prefix}_score(x + i * {form.n_features});",
        "}",
    ]
    return "\n".join(text) + "\n"


def _constant(name: str, value: Any, kind: str) -> str:
    """Return the definition of a number or an array. Numbers of the kind int can be sizes of arrays."""
    if np.ndim(value) == 0:
        return f"enum {{ {name} = {value} }};" if kind == "int" else f"static const double {name} = {value!r};"
    words = [repr(item).replace("inf", "INFINITY") for item in value.tolist()] or ["0"]
    lines = [", ".join(words[i : i + 16]) for i in range(0, len(words), 16)]
    return f"static const {Curly.types[kind]} {name}[{len(words)}] = {{\n" + ",\n".join(lines) + "\n};"


def _string(text: str) -> str:
    plain = [chr(byte) if chr(byte) in PLAIN else f"\\{byte:03o}" for byte in text.encode()]
    return f'"{"".join(plain)}"'
