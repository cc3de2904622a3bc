"""The floors of docs/development/architecture.md: an import only ever points down, and light rooms stay light."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import numpy as np
import pytest

import truerank

SOURCE = Path(truerank.__file__).parent
PAGE = SOURCE.parents[1] / "docs" / "development" / "architecture.md"


def drawn_floors() -> list[set[str]]:
    """The rooms of each line of the page's picture, from the top."""
    if not PAGE.exists():
        return []
    picture = PAGE.read_text(encoding="utf-8").partition("## The picture")[2].split("```")[1]
    lines = (set(re.findall(r"(\w+)/", line)) for line in picture.splitlines())
    return [rooms for rooms in lines if rooms]


FLOORS = drawn_floors()


def floor_of(room: str) -> int | None:
    return next((number for number, rooms in enumerate(FLOORS) if room in rooms), None)


def imported(path: Path, package: str = "truerank") -> set[str]:
    """Modules that a file imports, at its head or when it runs; `truerank.a.b.NAME` where a name is taken from one."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = []
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} has a relative import, which is not read here"
            public = {alias.name for alias in node.names} - {"__version__"} if node.module == "truerank" else set()
            assert package != "truerank" or public == set(), (
                f"{path} takes public names from the top, which may be of any room"
            )
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        found |= {name for name in names if name.startswith(f"{package}.")} - {"truerank.__version__"}
    return found


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda path: str(path.relative_to(SOURCE)))
def test_imports_point_down(path):
    place = path.relative_to(SOURCE)
    floor = floor_of(place.parts[0])
    if floor is None:
        return
    for room in {name.split(".")[1] for name in imported(path)}:
        target = floor_of(room)
        assert target is None or target >= floor, f"{place} imports truerank.{room}, which is a floor above it"


UPWARD = {
    ("compat/port.py", "rankers"),
    ("data/row_source.py", "cluster"),
    ("experiments/evidence.py", "report"),
    ("rankers/base.py", "models"),
    ("rankers/round_results.py", "models"),
}
"""Files that find a name of a floor above when they run. The list may only become shorter."""


def test_names_of_a_floor_above_are_found_in_few_files():
    if not FLOORS:
        pytest.skip("docs/ is not here")
    found = set()
    for path in SOURCE.rglob("*/*.py"):
        place = path.relative_to(SOURCE)
        own = floor_of(place.parts[0])
        for room in re.findall(r'resolve\(f?"truerank\.(\w+)', path.read_text(encoding="utf-8")):
            if own is not None and (target := floor_of(room)) is not None and target < own:
                found.add((place.as_posix(), room))
    assert found == UPWARD


def test_the_floors_of_the_picture_are_those_of_the_imports():
    """Every room is drawn once; a line is needed, because a room above it imports one of its rooms."""
    if not FLOORS:
        pytest.skip("docs/ is not here")
    rooms = {path.name for path in SOURCE.iterdir() if (path / "__init__.py").exists()}
    assert sorted(room for line in FLOORS for room in line) == sorted(rooms)
    between = {
        (floor_of(path.relative_to(SOURCE).parts[0]), floor_of(name.split(".")[1]))
        for path in SOURCE.rglob("*/*.py")
        for name in imported(path)
    }
    for number, line in enumerate(FLOORS[1:], 1):
        assert any(a < number and b == number for a, b in between if a is not None), f"nothing above needs {line}"


@pytest.mark.parametrize("package", ["truerank", "reproductions", "validation", "benchmarks"])
def test_no_imports_run_in_a_circle(package):
    folder = SOURCE if package == "truerank" else SOURCE.parents[1] / package
    if not folder.exists():
        pytest.skip(f"{package}/ is not here")
    modules = {}
    for path in folder.rglob("*.py"):
        parts = (package, *path.relative_to(folder).with_suffix("").parts)
        modules[".".join(parts).removesuffix(".__init__")] = path
    graph = {
        module: {name if name in modules else name.rpartition(".")[0] for name in imported(path, package)}
        & set(modules) - {package}
        for module, path in modules.items()
        if module != package
    }
    list(TopologicalSorter(graph).static_order())  # a CycleError names the modules


def test_the_plan_names_every_room_and_no_path_that_is_gone():
    docs = SOURCE.parents[1] / "docs"
    if not docs.exists():
        pytest.skip("docs/ is not here")
    text = "".join(
        (docs / page).read_text(encoding="utf-8") for page in ("development/architecture.md", "development/rooms.md")
    )
    rooms = {path.name for path in SOURCE.iterdir() if (path / "__init__.py").exists()}
    planned = set().union(*FLOORS)
    assert rooms <= set(re.findall(r"^\| `(\w+)/` \|", text, re.MULTILINE)) <= planned
    named = set(re.findall(r"`((?:\w+/)+(?:\w+\.py)?)`", text)) - {f"{room}/" for room in planned}
    places = [SOURCE, SOURCE.parents[1], *(SOURCE / room for room in rooms)]
    assert {name for name in named if not any((place / name).exists() for place in places)} == set()


def test_the_arrows_of_the_picture_are_imports():
    if not PAGE.exists():
        pytest.skip("docs/ is not here")
    drawn = set()
    for left, arrow, right in re.findall(r"(\w+)/ (◀?──▶?) (?=(\w+)/)", PAGE.read_text(encoding="utf-8")):
        drawn |= {(left, right)} if arrow.endswith("▶") else set()
        drawn |= {(right, left)} if arrow.startswith("◀") else set()
    assert len(drawn) > 8
    between = {
        (path.relative_to(SOURCE).parts[0], name.split(".")[1])
        for path in SOURCE.rglob("*/*.py")
        for name in imported(path)
    }
    assert drawn <= between
    undrawn = {(b, a) for a, b in drawn} - drawn
    assert not undrawn & between, "an arrow has one head, and the imports run both ways"


@pytest.mark.parametrize(("value", "ranker"), [("qid", "linear"), ("X", "linear"), ("X", "trees")])
def test_a_value_enters_each_file_once_on_its_way_from_fit(value, ranker):
    X, y, qid = np.arange(10.0)[:, None], np.arange(10) % 5 // 3, np.repeat(["a", "b"], 5)
    own, files = {"X": X, "qid": qid}[value], []

    def follow(frame, event, _):
        code = frame.f_code
        names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        here = Path(code.co_filename)
        if event == "call" and SOURCE in here.parents and any(frame.f_locals.get(name) is own for name in names):
            place = here.relative_to(SOURCE).as_posix()
            if files[-1:] != [place] and not place.startswith("core/"):
                files.append(place)

    learner = truerank.ListNet() if ranker == "linear" else truerank.ObliviousBoosting("constant", n_estimators=2)
    learner.training_sketch_size = 0  # no digests of the rows after the fit
    learner.fit(X.copy(), y, qid=qid.copy())  # compiles kernels, which takes minutes while calls are followed
    sys.setprofile(follow)
    try:
        learner.fit(X, y, qid=qid)
    finally:
        sys.setprofile(None)
    assert len(files) == len(set(files)) > 5
    page = SOURCE.parents[1] / "docs" / "development" / "architecture.md"
    if page.exists():
        walk = page.read_text(encoding="utf-8").partition(f"* **`{value}`**")[2].partition("\n* **`")[0]
        assert [name for name in re.findall(r"`(\w+/\w+\.py)`", walk) if name in files] == files


def lines_with(pattern: str, outside: str) -> list[str]:
    """Files of the package outside one folder in which a pattern occurs, one entry for each time."""
    found = []
    for path in sorted(SOURCE.rglob("*.py")):
        place = str(path.relative_to(SOURCE))
        if not place.startswith(outside):
            found += [place] * len(re.findall(pattern, path.read_text(encoding="utf-8")))
    return found


def test_no_file_outside_its_folder_asks_for_a_kind_of_leaves():
    """`tests/trees/test_leaf_kinds.py` adds a kind with one file and one line: what the table of the page says."""
    kinds = r"isinstance\([^()]*(?:Constant|Fuzzy|Polynomial)(?:Leaves|Fitter)|[=!]= \"(?:fuzzy|polynomial|constant)\""
    assert lines_with(kinds, "trees/leaves/") == []
    asked = (
        r"(?<!trees\.)leaves\.(?:degree|ties|search|places|smoothing|solution|p_swap)\b|\bneeds_(?:places|scaling)\b"
    )
    trains = r"trees/training_columns\.py|rankers/\w+\.py"  # which make the arrays that a kind needs
    assert [place for place in lines_with(asked, "trees/leaves/") if not re.fullmatch(trains, place)] == []


def test_few_files_outside_their_folder_ask_for_a_cluster():
    """`tests/data/test_row_source.py` adds a place of rows with one class."""
    assert len(lines_with(r"is_cluster_data|is_dask\(", "cluster/")) <= 3


def test_the_table_of_additions_names_where_the_toys_are_registered():
    page = SOURCE.parents[1] / "docs" / "development" / "architecture.md"
    if not page.exists():
        pytest.skip("docs/ is not here")
    table = dict(re.findall(r"^\| ([^|]+) \| ([^|]+) \|$", page.read_text(encoding="utf-8"), re.MULTILINE))
    leaves, rows = table["a kind of leaves"], table["a source of rows"]
    assert re.findall(r"`([^`]+)`", leaves) == ["trees/leaves/", "trees/leaves/kinds.py"]
    assert re.findall(r"`([^`]+)`", rows) == ["RowSource", "statistics"]


def test_no_room_holds_a_fifth_of_the_house():
    lines = {}
    for path in SOURCE.rglob("*.py"):
        room = path.relative_to(SOURCE).parts[0]
        lines[room] = lines.get(room, 0) + path.read_text(encoding="utf-8").count("\n")
    assert max(lines.values()) < sum(lines.values()) / 5, lines


LIGHT = ["core", "data", "io", "measures", "significance"]


@pytest.mark.parametrize("room", LIGHT)
def test_light_rooms_import_neither_numba_nor_sklearn(room):
    places = [path.relative_to(SOURCE).with_suffix("") for path in (SOURCE / room).rglob("*.py")]
    modules = ["truerank." + ".".join(place.parts) for place in places if place.stem != "__init__"]
    # Kernels live in files of their own here (`*kernel*.py`), which are imported when the work is large enough.
    kept = [name for name in modules if "kernel" not in name]
    code = (
        f"import sys, importlib\nfor name in {kept!r}: importlib.import_module(name)\n"
        "print(sorted({'numba', 'sklearn', 'pandas', 'scipy.stats'} & set(sys.modules)))"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


def bare_functions(path: Path) -> list[str]:
    """Functions that lack an annotation and are no kernels; numba infers the types of kernels."""
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if any(isinstance(mark, ast.Name) and mark.id == "kernel" for mark in node.decorator_list):
            continue
        arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs, node.args.vararg, node.args.kwarg]
        bare = [a.arg for a in arguments if a is not None and a.annotation is None and a.arg not in ("self", "cls")]
        if bare or node.returns is None:
            found.append(f"{path.relative_to(SOURCE)}:{node.lineno} {node.name}")
    return found


def test_kernels_have_few_arguments_or_say_why():
    crowded = []
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef) and len(node.args.args) > 12:
                marks = {mark.id for mark in node.decorator_list if isinstance(mark, ast.Name)}
                if "kernel" in marks and "arguments" not in (ast.get_docstring(node) or ""):
                    crowded.append(f"{path.relative_to(SOURCE)}:{node.lineno} {node.name}")
    assert crowded == []


def test_only_kernels_have_no_types():
    assert [name for path in sorted(SOURCE.rglob("*.py")) for name in bare_functions(path)] == []
