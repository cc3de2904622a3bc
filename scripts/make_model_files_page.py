"""Write docs/development/model-files.md: the fields of every class that a model file may hold, from their schemas.

python scripts/make_model_files_page.py        # writes the page; tests/docs compares it
"""

from __future__ import annotations

from pathlib import Path

from truerank.core import schema
from truerank.core.names import resolve
from truerank.models import scikit_learn
from truerank.models.model_file import _class_names

PAGE = Path(__file__).parent.parent / "docs" / "development" / "model-files.md"

HEAD = """\
# Model files

This page lists what a model file holds. `scripts/make_model_files_page.py` writes it from the texts that check a file
(`src/truerank/core/schema.py`).

A model file is JSON: `{"format": "truerank-model", "version": 1, "truerank": …, "model": …}`.
An object has `$class`, the
constructor's arguments `params`, the attributes `fitted`, and `checksums`: for each argument and attribute the CRC-32
of the ASCII JSON `[class, name, value]` without spaces, as 8 hexadecimal digits; in it, `[dtype, shape, CRC-32 of the
little-endian bytes]` replaces an array of numbers, and `["str", shape, values]` one of texts. An array has `$array`
(its dtype), `shape` and `values`; a float that is not finite is `{"$float": "nan"}`. Nothing in a file is executed.

A field that does not fit its text, or differs from its checksum, is an error that names the field. Files of versions
before the checksums have none and load; so do files written by hand.

## How to read a text

"""


def page() -> str:
    """Return the page."""
    legend = schema.__doc__.split("is\n\n", 1)[1]
    out = [HEAD, "```text\n", "\n".join(line.removeprefix("    ") for line in legend.splitlines()), "\n```\n"]
    out.append("\n## Fields\n\nThe fields of a base class are those of its subclasses too.\n")
    classes = [resolve(target) for target in _class_names().values()]
    bases = {base for cls in classes for base in cls.__mro__ if vars(base).get("model_attributes")}
    for cls in sorted(bases, key=lambda one: one.__name__):
        parents = [base.__name__ for base in cls.__mro__[1:] if base in bases]
        own = schema.spelled(cls.model_attributes)
        out.append(f"\n### {cls.__name__}\n\n" + (f"And those of {', '.join(parents)}.\n\n" if parents else ""))
        out += [f"* `{name}`: `{text}`\n" for name, text in own.items()]
    out.append("\n## Transformers and classifiers of scikit-learn\n")
    for name in scikit_learn.FITTED:
        own = scikit_learn.fields_of(scikit_learn.class_of(name))
        out.append(f"\n### {name}\n\n" if own else "")
        out += [f"* `{field}`: `{text}`\n" for field, text in own.items()]
    return "".join(out)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
