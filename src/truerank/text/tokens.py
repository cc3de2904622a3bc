"""Words of a text."""

from __future__ import annotations

# A word is a run of letters and digits; everything else separates.
WORD = r"[^\W_]+"
# The same without numbers and without words of one or two letters: for classification of topics.
TOPIC_WORD = r"[^\W\d_][^\W_]{2,}"
