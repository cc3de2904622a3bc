"""Measures that other tools have and that are not here: why, and what comes near."""

from __future__ import annotations

_SUBTOPICS = {
    "alphandcg": "nDCG", "alphadcg": "DCG", "erria": "ERR", "nerria": "ERR", "apia": "AP", "mapia": "AP",
    "pia": "P", "nrbp": "RBP", "nnrbp": "RBP", "strecall": "R",
}  # fmt: skip
_USER_MODELS = {
    "bpm": "RBP", "insq": "RBP", "inst": "RBP", "nerr8": "ERR", "nerr9": "ERR", "nerr10": "ERR", "nerr11": "ERR",
    "sdcg": "nDCG",
}  # fmt: skip


def why_not_here(name: str) -> str:
    """The reason why a measure of ir_measures is not here, with the one that comes near; "" for any other name.

    >>> why_not_here("SDCG")
    'is one of the user models of cwl-eval, which are not here; nDCG comes near'
    """
    plain = name.lower().replace("α", "alpha").replace("_", "").replace("-", "")
    if plain in _SUBTOPICS:
        return (
            "needs judgements by subtopic, and here a document has one grade for a query; "
            f"{_SUBTOPICS[plain]} comes near"
        )
    if plain in _USER_MODELS:
        return f"is one of the user models of cwl-eval, which are not here; {_USER_MODELS[plain]} comes near"
    if plain == "compat":
        return "compares with an ideal order of preferences, which is not here; RBP and nDCG come near"
    return ""
