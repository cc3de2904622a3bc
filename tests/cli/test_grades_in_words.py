"""Tables whose grades are words: the column of grades is named, and is never proposed as a category."""

from __future__ import annotations

import shlex

import numpy as np
import pandas
import pytest

from truerank.cli import main
from truerank.core.errors import InvalidInputError
from truerank.io.tables import read_table

SCALES = {
    "usual": ("Poor", "Fair", "Good", "Perfect"),
    "polish": ("słaby", "średni", "dobry", "idealny"),
    "codes": ("n0", "n1", "n2", "n3"),
}


def shop(words, *, brand_empty=False, n_queries=20):
    """A table of a shop, whose brands belong to the products."""
    random = np.random.default_rng(0)
    n = n_queries * 8
    grade = random.integers(0, 4, n)
    product = np.concatenate([random.choice(40, 8, replace=False) for _ in range(n_queries)])
    brand = np.array(["4F", "Żubr", "Nike", "Łódź-Tex"])[product % 4]
    return pandas.DataFrame({
        "fraza": [f"czerwona kurtka {k // 8}" for k in range(n)],
        "sku": [f"SKU-{k:04d}" for k in product],
        "ocena": [words[k] for k in grade],
        "cena": random.random(n),
        "marka": np.where((random.random(n) < 0.1) & brand_empty, "", brand),
    })  # fmt: skip


def advice(text):
    """The words of the line that begins with Add."""
    line = next(line for line in text.splitlines() if line.startswith("Add "))
    return shlex.split(line.removeprefix("Add ").partition(" (")[0])


@pytest.mark.parametrize("brand_empty", [False, True])
def test_usual_words_are_read_as_described(brand_empty, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    shop(SCALES["usual"], brand_empty=brand_empty).to_csv("own.csv", index=False)
    assert main(["describe", "own.csv"]) == 0
    said = capsys.readouterr().err
    assert "--grade-column ocena" in said
    assert "--grades 'Perfect=3 Good=2 Fair=1 Poor=0' --categorical marka" in said
    assert main(["train", "own.csv", "--model", "m.json"]) == 1
    words = advice(capsys.readouterr().err)
    assert "ocena" not in words[words.index("--categorical") :]
    assert main(["train", "own.csv", "--model", "m.json", "--set", "n_estimators=2", *words]) == 0


@pytest.mark.parametrize("scale", ["polish", "codes"])
@pytest.mark.parametrize("brand_empty", [False, True])
def test_other_words_are_proposed_with_numbers_to_fill_in(scale, brand_empty, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    scale = SCALES[scale]
    shop(scale, brand_empty=brand_empty).to_csv("own.csv", index=False)
    for command in (["describe", "own.csv"], ["train", "own.csv", "--model", "m.json"]):
        assert main(command) == 1
        said = capsys.readouterr().err
        assert "no column has grades" not in said
        words = advice(said)
        assert words[words.index("--grade-column") + 1] == "ocena"
        assert words[words.index("--categorical") + 1] == "marka"
        filled = list(words)
        place = filled.index("--grades") + 1
        for k, own in enumerate(scale):
            filled[place] = filled[place].replace(f"{own}=?", f"{own}={k}")
        assert main([*command, "--set", "n_estimators=2", *filled] if "train" in command else [*command, *filled]) == 0
        capsys.readouterr()


def test_judgements_in_other_words_are_converted_by_the_proposed_command(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    shop(SCALES["polish"])[["fraza", "sku", "ocena", "marka"]].to_csv("own.csv", index=False)
    assert main(["convert", "own.csv", "q.txt"]) == 1
    said = capsys.readouterr().err
    command = shlex.split(said.partition("Type: truerank ")[2].partition(" (replace")[0])
    for k, own in enumerate(SCALES["polish"]):
        command = [word.replace(f"{own}=?", f"{own}={k}") for word in command]
    assert main(command) == 0
    assert (tmp_path / "judgements.csv").read_text().count("\n") == 161


def test_two_columns_that_may_hold_grades_are_both_named_and_neither_is_a_category(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    frame = shop(SCALES["polish"])
    frame["druga"] = frame["ocena"].to_numpy()[::-1]
    frame.to_csv("own.csv", index=False)
    assert main(["train", "own.csv", "--model", "m.json"]) == 1
    said = capsys.readouterr().err
    assert "'ocena' or 'druga' may hold grades" in said
    words = advice(said)
    assert {"ocena", "druga"}.isdisjoint(words)
    assert words[words.index("--grade-column") + 1] == "NAME"


def test_python_proposes_no_grade_as_category():
    with pytest.raises(InvalidInputError) as caught:
        read_table(shop(SCALES["usual"]))
    (remedy,) = caught.value.remedies
    assert remedy.arguments["grade"] == "ocena"
    assert remedy.arguments["categories"] == ["marka"]
    assert read_table(shop(SCALES["usual"]), **remedy.arguments).y.max() == 3.0


def test_a_brand_of_rows_without_grades_stays_a_category():
    with pytest.raises(InvalidInputError) as caught:
        read_table(shop(SCALES["polish"]).drop(columns="ocena"))
    assert caught.value.remedies[0].arguments["categories"] == ["marka"]
    assert caught.value.remedies[0].arguments["grade"] is ...
