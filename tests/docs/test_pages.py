"""README, how-to pages and the gallery do what they say: every block is executed, on the shipped sample.

A page's blocks run in their order in one folder, into which `truerank sample .` has written the data: `python` blocks
in one namespace, `sh` blocks line by line, a notebook's cells as `python` blocks. Of a `console` block the lines that
start with `$` are run, and the others must be what they print, but for `…`. A block that cannot run here stands
after `<!-- not run: reason -->`, one that needs the Cranfield collection, which TRUERANK_DATA has, after
`<!-- with the Cranfield collection -->`.
"""

from __future__ import annotations

import argparse
import ast
import glob
import json
import os
import pkgutil
import re
import runpy
import shlex
import shutil
from contextlib import redirect_stdout
from functools import cache
from pathlib import Path

import pytest
import sklearn

import truerank
from truerank.cli import COMMANDS, command_parser, main
from truerank.core.names import resolve
from truerank.models.registry import RANKERS

ROOT = Path(__file__).parents[2]
EVERY_PAGE = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
FOLDERS = [ROOT / "docs" / name for name in ("howto", "methods", "tutorials")]
PAGES = [
    "README.md",
    "docs/cheat-sheet.md",
    *sorted(str(path.relative_to(ROOT)) for folder in FOLDERS for path in folder.glob("*.md")),
]
NOTEBOOKS = sorted((ROOT / "docs" / "gallery").glob("*.ipynb"))
BLOCK = re.compile(
    r"(<!-- (not run: (?P<reason>[^\n]+)|(?P<cranfield>with the Cranfield collection)) -->\n+)?"
    r"```(?P<kind>python|sh|console)\n(?P<text>.*?)```",
    re.DOTALL,
)


@pytest.fixture(scope="module")
def sample(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sample")
    with open(os.devnull, "w") as nothing, redirect_stdout(nothing):
        assert main(["sample", str(folder)]) == 0
    return folder


def commands(text):
    """The lines of a `sh` block as words, joined where a backslash ends one, without comments."""
    for line in text.replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        if words:
            yield words


def run_command(words):
    assert words[0] == "truerank", f"only truerank runs here: {words}"
    target = None
    if ">" in words:
        place = words.index(">")
        words, target = words[:place], words[place + 1]
    words = [match for word in words[1:] for match in (sorted(glob.glob(word)) or [word] if "*" in word else [word])]
    with open(target or os.devnull, "w") as stream, redirect_stdout(stream):
        assert main(words) == 0, words


def check_console(text, capfd):
    """Run the commands of a `console` block; each line of output that it shows is one that they print."""
    for part in re.split(r"^\$ ", text.replace("\\\n", " "), flags=re.MULTILINE)[1:]:
        command, *shown = part.splitlines()
        capfd.readouterr()
        assert main(shlex.split(command)[1:]) == 0, command
        printed = ["".join(line.split()) for stream in capfd.readouterr() for line in stream.splitlines()]
        for line in shown:
            pattern = ".*".join(re.escape("".join(piece.split())) for piece in line.split("…"))
            assert any(re.fullmatch(pattern, own) for own in printed), (command, line, printed)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("page", PAGES)
def test_every_block_of_the_page_runs(page, sample, tmp_path, monkeypatch, capfd):
    for path in sample.iterdir():
        shutil.copy(path, tmp_path)  # pages write files of these names, too
    collection = Path(os.environ.get("TRUERANK_DATA", ".")) / "cranfield"
    for path in collection.glob("*.gz"):
        (tmp_path / path.name).symlink_to(path)
    monkeypatch.chdir(tmp_path)
    text = (ROOT / page).read_text(encoding="utf-8")
    for peer in re.findall(r"^(?:from|import) (lightgbm|xgboost|catboost)\b", text, re.MULTILINE):
        pytest.importorskip(peer)
    blocks = list(BLOCK.finditer(text))
    assert len(blocks) == len(re.findall(r"^```(?:python|sh|console)$", text, re.MULTILINE))
    names = {"__name__": "page"}
    with sklearn.config_context():  # a page may set options of scikit-learn
        for block in blocks:
            if block["reason"] or (block["cranfield"] and not collection.exists()):
                continue
            if block["kind"] == "python":
                exec(compile(block["text"], f"{page}, a block", "exec"), names)
            elif block["kind"] == "console":
                check_console(block["text"], capfd)
            else:
                for words in commands(block["text"]):
                    run_command(words)
    assert any(not block["reason"] for block in blocks), "a page without a block that runs"
    for picture in re.findall(r'save\("(tutorial-[^"]+)"\)', text):
        assert f"](../images/{picture})" in text
        assert (tmp_path / picture).read_bytes() == (ROOT / "docs" / "images" / picture).read_bytes()
    if (ROOT / page).parent.name == "methods":
        name = (ROOT / page).stem
        pytest.importorskip("matplotlib").use("Agg")
        drawing = ROOT / "examples" / "methods" / f"{name.replace('-', '_')}.py"
        exec(compile(drawing.read_text(encoding="utf-8"), drawing.name, "exec"), names)
        names["pyplot"].close("all")
        assert (tmp_path / f"method-{name}.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_every_cell_of_the_notebook_runs(path, sample, monkeypatch):
    pytest.importorskip("vl_convert")
    monkeypatch.chdir(sample)
    book = json.loads(path.read_text(encoding="utf-8"))
    cells = [cell for cell in book["cells"] if cell["cell_type"] == "code"]
    names = {"__name__": "notebook"}
    for number, cell in enumerate(cells):
        exec(compile("".join(cell["source"]), f"{path.name}, cell {number}", "exec"), names)
    kept = [output for cell in cells for output in cell["outputs"]]
    assert not [output for output in kept if output["output_type"] == "error"]
    assert any("image/svg+xml" in output.get("data", ()) for output in kept)
    assert "matplotlib" not in path.read_text(encoding="utf-8")


def test_every_method_has_a_page_with_its_own_picture():
    pages = sorted((ROOT / "docs" / "methods").glob("*.md"))
    site, readme = ((ROOT / name).read_text(encoding="utf-8") for name in ("mkdocs.yml", "README.md"))
    for path in pages:
        text = path.read_text(encoding="utf-8")
        assert len(text.split()) <= 1200, path.name
        assert f"methods/{path.name}" in site
        cls = re.search(rf"\(docs/methods/{path.name}\)[^|]*\|[^|]*\| `(\w+)` \|", readme)
        assert cls, f"the README's table of methods lacks {path.name}"
        assert getattr(truerank, cls[1]).__name__ in text
        assert f"](../images/method-{path.stem}.png)" in text
        assert f"examples/methods/{path.stem.replace('-', '_')}.py" in text
        assert re.search(r"^python -m reproductions ", text, re.MULTILINE)
        assert "](../development/papers/" in text
    assert len(pages) == 5


def test_every_ranker_has_a_page():
    pages = {path.stem for path in (ROOT / "docs" / "rankers").glob("*.md")} - {"index"}
    assert pages == set(RANKERS)


def test_every_public_name_is_in_the_reference():
    text = "\n".join(path.read_text() for path in (ROOT / "docs" / "api").glob("*.md"))
    text += "\n".join(path.read_text() for path in (ROOT / "docs" / "rankers").glob("*.md"))
    named = set(re.findall(r"^::: (\S+)$", text, re.MULTILINE))
    public = {getattr(truerank, name) for name in truerank.__all__ if name != "__version__"}
    assert {f"{one.__module__}.{one.__qualname__}" for one in public} - named == set()
    for name in named:
        resolve(":".join(name.rsplit(".", 1)))


def test_one_question_has_one_answer(sample, tmp_path, monkeypatch):
    """Trees against BM25 on the sample: README, home, tutorial, gallery and the choice of a ranker show one result."""
    monkeypatch.chdir(sample)
    table, out, column = "judgements.parquet", str(tmp_path / "trees.txt"), "bm25.porter-stop.all"
    assert main(["cross-validate", table, "--set", "leaves=constant", "--scores", out]) == 0
    data = truerank.read_table(table)
    scores = {"bm25": column, "trees": out}
    found = truerank.compare(data, scores, "nDCG@10", baseline="bm25")
    (pair,) = found.pairs
    difference = f"{pair.difference:+.4f} [{pair.low:+.4f}, {pair.high:+.4f}]"
    counts = (pair.wins, pair.losses, pair.ties)
    words = "{} gain, {} lose, {} are equal".format(*counts)
    places = {
        "README.md": (difference, "{}/{}/{}".format(*counts), words, f"{found.means['trees']:.4f}"),
        "docs/index.md": (words,),
        "docs/tutorials/search-engineer.md": (difference, "{}/{}/{}".format(*counts)),
        "docs/howto/which-ranker.md": (difference, "{}, {}, {}".format(*counts)),
        "docs/gallery/gain.ipynb": (difference, words.replace(" are", "")),
    }
    for name, figures in places.items():
        text = (ROOT / name).read_text(encoding="utf-8")
        assert [figure for figure in figures if figure not in text] == [], name


def test_the_readme_is_short():
    assert (ROOT / "README.md").read_text(encoding="utf-8").count("\n") <= 90


def test_python_on_pages_fits_the_column():
    wide = [
        (path.name, line)
        for path in EVERY_PAGE
        if not {"development", "rankers", "README.md"} & set(path.relative_to(ROOT).parts)
        for block in BLOCK.finditer(path.read_text(encoding="utf-8"))
        for line in block["text"].splitlines()
        if block["kind"] == "python" and len(line) > 96
    ]
    assert wide == []


def test_parameters_of_one_line_have_their_own_defaults_and_types(monkeypatch):
    pytest.importorskip("mkdocs")
    griffe = pytest.importorskip("griffe")
    from griffe._internal.docstrings import numpy as parser

    for name in ("_read_parameters", "parse_docstring_annotation"):
        monkeypatch.setattr(parser, name, getattr(parser, name))
    runpy.run_path(str(ROOT / "scripts" / "site_hooks.py"))["on_startup"]()

    def read(module, function):
        docstring = griffe.load(module, search_paths=[ROOT / "src"])[function].docstring
        (section,) = (one for one in docstring.parse("numpy") if one.kind.value == "parameters")
        return {one.name: (str(one.annotation), one.value) for one in section.value}

    found = read("truerank.significance.power", "queries_needed")
    assert found["level"] == ("float in (0, 1)", "0.05")
    assert found["test"][1] == '"t"'
    assert read("truerank.experiments.cross_validation", "learning_curve")["convention"] == ("str", "'ranklib'")


def test_examples_do_not_become_entries_of_another_section():
    sections = re.compile(r"^(Parameters|Raises|Returns|Attributes)\n-+\n((?!\w+\n-).*\n)*?>>> ", re.MULTILINE)
    parts = [part for path in (ROOT / "src").rglob("*.py") for part in ast.walk(ast.parse(path.read_text("utf-8")))]
    texts = [ast.get_docstring(part) for part in parts if isinstance(part, ast.FunctionDef | ast.ClassDef)]
    assert len([text for text in texts if text and ">>> " in text]) > 20
    assert [text for text in texts if text and sections.search(text)] == []


def test_every_command_has_a_page(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(ROOT / "scripts")
    import make_command_pages

    monkeypatch.setattr("sys.argv", ["make_command_pages.py", str(tmp_path)])
    make_command_pages.main()
    site = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    for name in COMMANDS:
        assert f"- {name}: api/commands/{name.replace(' ', '-')}.md\n" in site
        text = (tmp_path / f"{name.replace(' ', '-')}.md").read_text(encoding="utf-8")
        assert text.startswith(f"# truerank {name}\n")
        assert f"]({name.replace(' ', '-')}.md)" in (tmp_path / "index.md").read_text(encoding="utf-8")
        assert {option for option in options_of(name) if option not in ("-h", "--help", "--help-all")} <= set(
            re.findall(r"`(-[^`]+)`", text)
        )


def test_the_page_of_model_files_is_that_of_the_schemas(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "scripts")
    import make_model_files_page

    written = make_model_files_page.PAGE.read_text(encoding="utf-8")
    assert written == make_model_files_page.page(), "run python scripts/make_model_files_page.py"


def test_pages_of_the_site_are_short_and_say_what_they_are_for():
    pages = [
        path
        for path in EVERY_PAGE
        if path.name != "CONTRIBUTING.md" and not {"development", "api", "rankers"} & set(path.relative_to(ROOT).parts)
    ]
    assert len(pages) <= 42
    words = {path.name: len(path.read_text(encoding="utf-8").split()) for path in pages}
    assert {name: n for name, n in words.items() if n > 1600} == {}
    assert sum(words.values()) <= 34_000
    bare = re.compile(r"(?<![\d.\w])\.\d{2,}")
    assert [path.name for path in pages if bare.search(path.read_text(encoding="utf-8"))] == []
    wordless = [path.name for path in pages if not path.read_text(encoding="utf-8").split("\n")[2:3][0][:1].isalpha()]
    assert wordless == []


def test_links_lead_somewhere():
    for page in EVERY_PAGE:
        for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            if "://" not in target:  # pages that the build of the site writes are linked by their address
                assert (page.parent / target).exists(), f"{page.relative_to(ROOT)}: {target}"


def commands_on(page):
    """The commands of a page, on lines of their own or in a sentence, each on one line."""
    text = page.read_text(encoding="utf-8").replace("\\\n", " ")
    blocks = "".join(block["text"] for block in BLOCK.finditer(text) if block["kind"] != "python").replace("\n$ ", "\n")
    found = re.findall(r"^    (\S[^\n]*)", text, re.MULTILINE) + blocks.splitlines()
    found += [
        " ".join(words.split()) for words in re.findall(r"`([^`]+)`", re.sub(r"```.*?```", "", text, flags=re.DOTALL))
    ]
    return [command.split("  #")[0] for command in found]


def test_benchmarks_and_tests_that_pages_name_are_there():
    folder = ROOT / "benchmarks"
    benchmarks = [path.relative_to(folder).as_posix() for path in folder.rglob("bench_*.py")]
    wrong = []
    for page in EVERY_PAGE:
        for command in commands_on(page):
            for names in re.findall(r"python -m benchmarks((?: [a-z_/]+)*)$", command):
                # A name that selects two benchmarks prints tables that the page does not show.
                wrong += [f"{page.name}: {command}" for n in names.split() if sum(n in b for b in benchmarks) != 1]
            for module in re.findall(r"python -m (benchmarks(?:\.\w+)+)", command):
                if not (ROOT / module.replace(".", "/")).with_suffix(".py").exists():
                    wrong.append(f"{page.name}: {command}")
            for file in re.findall(r"\btests/[\w/]+(?:\.py)?", command):
                if not (ROOT / file).exists():
                    wrong.append(f"{page.name}: {command}")
    assert wrong == []


@cache
def options_of(*words):
    """The options of a sub-command, named by its words."""
    _, parser = command_parser(words[0])
    for word in words[1:]:
        parser = next(a for a in parser._actions if isinstance(a, argparse._SubParsersAction)).choices[word]
    return set(parser._option_string_actions)


def test_modules_and_functions_that_pages_name_exist():
    """`truerank.a.b` in the text of a page is a module, or a name in one; groups of entry points are neither."""
    named = re.compile(r"`(truerank(?:\.\w+)+)`")
    for page in EVERY_PAGE:
        for name in set(named.findall(page.read_text(encoding="utf-8"))) - {"truerank.leaves"}:
            pkgutil.resolve_name(name)


def test_options_that_pages_name_exist():
    wrong = []
    for page in EVERY_PAGE:
        for command in commands_on(page):
            words = re.split(r"[ \n]", re.split("[|>#]", command)[0])
            if words[0] == "truerank" and words[1:2] == ["text"] and len(words) > 2:
                words[1:3] = [f"text {words[2]}"]
            if words[0] != "truerank" or len(words) < 3 or words[1].isupper() or words[2].isupper():
                continue
            if "--qrel" in words:  # a misspelt option, whose exit code the page shows
                continue
            if words[1] not in COMMANDS:
                wrong.append(f"{page.name}: {command}")
                continue
            known = options_of(words[1])
            given = {re.split("[].,;)=]", word.lstrip("[("))[0] for word in words[2:]}
            wrong += [f"{page.name}: {command}: {word}" for word in given if word[:2] == "--" and word not in known]
    assert wrong == []
