"""Each command's `--json` is one object that starts with the kind of the result and the version of truerank."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import truerank
from support.fault_trials import commands, prepare
from truerank.cli import COMMANDS, command_parser, main

HAVE_JSON = {
    name for name in COMMANDS if name != "trec-eval" and "--json" in command_parser(name)[1]._option_string_actions
}
LEFT_OUT = {"train adarank", "train trees", "train descent", "train list-net", "train rank-boost", "demo", "pieces"}
MORE = (
    "train d.txt --ranker ridge --model m.json",
    "cutoff fit calibrated.json held.txt --at-most 0.9 --confidence 0.9 -o limit.json",
    "judge pool a.run b.run --qrels qrels.txt --groups groups.csv --measure P@5",
    "evaluate a.run --qrels qrels.txt --measures P@5 --explain 3",
    "evaluate a.run --qrels qrels.txt --measures P@5 --every-convention",
    "explain model.json new.txt",
)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_every_command_starts_its_json_with_schema_and_version(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    prepare(tmp_path)
    (tmp_path / "tuned").mkdir()
    (tmp_path / "groups.csv").write_text("run,group\na,one\nb,two\n")
    tried = [(one.words, one.code) for one in commands() if one.name not in LEFT_OUT and one.words[0] != "features"]
    tried += [(["features", "--engine", "http://127.0.0.1:9"], 2)]
    seen = set()
    for words, code in [*tried, *((line.split(), 0) for line in MORE)]:
        name = next(name for name in (" ".join(words[:2]), words[0]) if name in COMMANDS)
        if name not in HAVE_JSON:
            continue
        capsys.readouterr()
        assert main([*words, *([] if "--json" in words else ["--json"])]) == code, words
        found = json.loads(capsys.readouterr().out)
        assert list(found)[:2] == ["schema", "version"], words
        assert re.fullmatch(r"[a-z][a-z-]+/1", found["schema"]), words
        assert (found["schema"] == "error/1") == ("error" in found), words
        assert found["version"] == truerank.__version__
        seen.add(name)
    assert seen == HAVE_JSON


def test_one_function_prints_the_json_of_results():
    folder = Path(truerank.__file__).parent
    using = [str(path.relative_to(folder)) for path in folder.rglob("*.py") if "print_json(" in path.read_text("utf-8")]
    assert sorted(using) == ["cli/common.py", "cli/guard.py", "core/printing.py"]
