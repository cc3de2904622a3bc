"""Texts of files as other tools write them."""

import io
import json

import pandas as pd


def J(value):
    return json.dumps(value, ensure_ascii=False)


def lines(*values):
    return "".join(f"{J(value)}\n" for value in values)


def parquet(**columns):
    stream = io.BytesIO()
    pd.DataFrame(columns).to_parquet(stream)
    return stream.getvalue()
