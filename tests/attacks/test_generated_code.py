"""Names that try to become code in an export, and exports that try to harm the process that certifies them."""

import ast
import json
import os
import re
import shutil
import sys

import numpy as np
import pytest

from support.refusals import refused
from truerank import ObliviousBoosting, RankingData, RidgeRanker, RunFusion, export_model
from truerank.cli import main
from truerank.core.errors import InvalidInputError
from truerank.export import run
from truerank.export.form import comment
from truerank.export.formats import FORMATS
from truerank.export.fusion_weights import export_fusion
from truerank.io.trec import as_qrels
from truerank.models.model_file import save_model

pytestmark = pytest.mark.filterwarnings("ignore:numpy.ndarray size changed:RuntimeWarning")
COMPILER = shutil.which("cc") or shutil.which("gcc")
WRITE = "open('CANARY', 'w').write('x')"
HOSTILE = [
    f'a"""; {WRITE}; """b',
    f"a'''; {WRITE}; '''b",
    f'"); {WRITE}; ("',
    f"a\n{WRITE}\n",
    f"a\r{WRITE}",
    f"a\u2028{WRITE}\u2029",
    f"a\x0c{WRITE}",
    f"{{{WRITE}}}",
    '*/ int puts(const char *); __attribute__((constructor)) void run(void) { puts("x"); } /*',
    "\\u002a\\u002f code \\",
    "??/\n#include </etc/passwd>",
    '"; java.lang.Runtime.getRuntime().exec("touch CANARY"); "',
    "-->]]><script>alert(1)</script>",
    "</split><split>",
    "'; DROP TABLE features; --",
    '"}, {"class": "evil',
    "}\n    second-phase {\n        expression: 1\n    }",
    "$(touch CANARY) `touch CANARY`",
    "%s %n {0}",
    "\x00end",
    "\ud800alone",
    "\u202eright to left",
    "é́ⅷ٣",
    "a" * 5000,
]


def judged(columns=3):
    rng = np.random.default_rng(0)
    X = np.round(rng.normal(size=(120, columns)), 2)
    return RankingData(X, (X[:, 0] + X[:, 1] > 0).astype(float), np.repeat(np.arange(6), 20))


DATA = judged()
MODELS = {
    "trees": lambda: ObliviousBoosting(leaves="constant", n_estimators=3, depth=2),
    "linear": RidgeRanker,
}


@pytest.fixture(scope="module")
def fitted():
    return {kind: make().fit(DATA) for kind, make in MODELS.items()}


def holds_no_code_of_others(format, content, names):
    """Whether the export's language sees the names as texts, and nothing else of them."""
    if format == "python":
        tree = ast.parse(content)
        kinds = {type(node) for node in tree.body}
        assert kinds <= {ast.ImportFrom, ast.Assign, ast.FunctionDef, ast.If}
        features = next(n for n in tree.body if isinstance(n, ast.Assign) and ast.unparse(n.targets[0]) == "FEATURES")
        assert ast.literal_eval(features.value) == tuple(names)
        calls = {n.func.id for n in ast.walk(tree) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)}
        assert not calls & {"open", "exec", "eval", "__import__"}
        assert content.isascii()
    elif format == "c":
        assert content.isascii()
        assert "puts(" not in re.sub(r'"[^"]*"', "", content)
        head, _, rest = content.partition("*/")
        assert head.count("/*") == 1
        assert "*/" not in rest
        assert "#include </etc" not in content
    elif format in ("solr", "elasticsearch-ltr", "opensearch-ltr", "xgboost", "painless"):
        assert content.count("\n") <= 10_000
        json.loads(content)


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("format", FORMATS)
def test_names_stay_texts_in_every_format(fitted, format, kind, tmp_path, monkeypatch):
    if format == "lightgbm" and kind == "linear":
        pytest.skip("the format holds no linear model")
    if format == "c" and COMPILER is None:
        pytest.skip("no C compiler")
    monkeypatch.chdir(tmp_path)
    plain = ["f1", "f2", "f3"]
    exported, refusals = 0, []
    for hostile in HOSTILE:
        for names, name in (([hostile, "f2", "f3"], "model"), (plain, hostile)):
            try:
                content = export_model(fitted[kind], format, names, name=name, certify=DATA, absent="zero", force=True)
            except InvalidInputError as error:
                refusals.append(str(error))
                continue
            exported += 1
            assert content.certificate.rank_agreement == 1
            if isinstance(content, str):
                holds_no_code_of_others(format, content, names)
    assert exported > 0
    assert all(len(text) > 20 and text.isprintable() for text in refusals)
    assert not list(tmp_path.iterdir())


def test_the_command_runs_no_name(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    save_model(MODELS["trees"]().fit(DATA), "model.json")
    assert main(["export", "model.json", "--to", "python", "--name", HOSTILE[0], "-o", "out.py"]) == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model.json", "out.py"]
    space = {"__name__": "read"}
    exec((tmp_path / "out.py").read_text(), space)  # as whoever takes the file does
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model.json", "out.py"]


def test_names_of_runs_stay_comments_in_a_rank_profile():
    qrels, documents = as_qrels({"1": {"a": 1}}), {"1": {"a": 3.0, "b": 2.0}}
    hostile = "x\n    }\n    function run_1() {\n        expression: 666"
    profiles = [
        export_fusion(RunFusion(nonnegative=True).fit({name: documents, "dense": documents}, qrels), "vespa")
        for name in ("usual", hostile)
    ]
    assert profiles[0].count("\n") == profiles[1].count("\n")
    assert profiles[1].count("expression:") == profiles[0].count("expression:") + 2  # inside of two comments
    for line in profiles[1].splitlines():
        assert "666" not in line or "<U+000A>" in line


@pytest.mark.parametrize("hostile", HOSTILE)
def test_a_comment_ends_where_its_line_ends(hostile):
    text = comment(hostile)
    assert text.isascii()
    assert text.isprintable()
    assert not any(end in text for end in ("*/", '"""', "'''", "-->", "\\", "//", "#", "--", "]]>", "{", "}"))


def test_a_program_that_never_ends_is_stopped(monkeypatch):
    monkeypatch.setattr(run, "_SECONDS", 1)
    with refused(InvalidInputError, code="no-answer"):
        run.run_python("def score(x):\n    while True:\n        pass\n")(np.zeros((2, 3)))


def test_a_program_that_takes_all_memory_is_stopped(monkeypatch):
    monkeypatch.setattr(run, "_BYTES", 1 << 30)
    with refused(InvalidInputError, code="no-answer"):
        run.run_python("def score(x):\n    return len(bytearray(4 << 30))\n")(np.zeros((2, 3)))


@pytest.mark.parametrize(
    "body", ["import os; os._exit(0)", "raise SystemExit(0)", "return 'x'", "import os; os.kill(os.getpid(), 9)"]
)
def test_a_program_that_leaves_early_certifies_nothing(body):
    with refused(InvalidInputError, code="no-answer"):
        run.run_python(f"def score(x):\n    {body}\n")(np.zeros((2, 3)))


def test_a_program_changes_nothing_in_this_process():
    text = "import sys, os\nos.environ['TRUERANK_CANARY'] = '1'\nsys.modules['truerank'] = None\n"
    text += "def score(x): return 1.0\n"
    np.testing.assert_array_equal(run.run_python(text)(np.zeros((2, 3))), [1.0, 1.0])
    assert "TRUERANK_CANARY" not in os.environ
    assert sys.modules["truerank"] is not None
