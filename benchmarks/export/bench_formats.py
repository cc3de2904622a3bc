"""Every format and kind of model on real collections, against the programs that read the format.

    python -m benchmarks export/bench_formats

Needs TRUERANK_DATA; Java programs take part where Maven is, and the line at the end says what was left out.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tempfile
import warnings
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.search_server import archive_of, java_home
from truerank import AdaRank, ObliviousBoosting, RankBoost, RankingData, RidgeRanker, export_model, read_letor
from truerank.core.printing import table
from truerank.export.certificate import compare_orders, constant_left_out
from truerank.export.form import form_of
from truerank.export.formats import FORMATS, reason_against

JAVA = Path(__file__).parent.parent.parent / "tests" / "export" / "java"
JARS = {"opensearch-ltr": ("ranklib", "rankymcrankface"), "solr": ("solr",), "vespa": ("vespa",)}
MAINS = {"solr": "SolrScore", "vespa": "VespaScore", "painless": "PainlessScore"}


def collections(folder: Path) -> dict[str, tuple[RankingData, RankingData]]:
    """Training and test data of each collection."""
    result = {}
    for name, place in (("MQ2008", "letor4-mq2008"), ("OHSUMED", "letor3-ohsumed/querylevelnorm")):
        files = {part: next((folder / place).glob(f"{part}.txt*")) for part in ("S1", "S5")}
        result[name] = (read_letor(files["S1"]), read_letor(files["S5"]))
    sample = read_letor(folder / "mslr-web10k-sample" / "fold1.train.5k.txt.gz")
    queries = np.arange(sample.n_queries)
    return result | {"MSLR sample": (sample.take_queries(queries[:30]), sample.take_queries(queries[30:]))}


def models() -> dict[str, Any]:
    """Unfitted models of every kind."""
    return {
        "AdaRank": AdaRank(measure="AP"),
        "ridge": RidgeRanker(),
        "RankBoost": RankBoost(100),
        "plain trees": ObliviousBoosting(leaves="constant", n_estimators=100),
        "fuzzy trees": ObliviousBoosting(leaves="fuzzy", n_estimators=8),
        "polynomial trees": ObliviousBoosting(leaves="polynomial", n_estimators=8, depth=4),
    }


class JavaPrograms:
    """RankLib, RankyMcRankFace, Solr's LTR classes and Vespa's evaluator of expressions, fetched by Maven.

    "painless" is the Painless of OpenSearch's archive, which `benchmarks/search_server.py` finds.
    """

    def __init__(self, folder: Path, names: tuple[str, ...] = ("ranklib", "rankymcrankface", "solr", "vespa")) -> None:
        self.folder, self.paths, self.java = folder, {}, dict[str, str]()
        self.missing: list[str] = []
        for name in names:
            try:
                self.paths[name] = self._build(name)
            except (OSError, subprocess.SubprocessError) as error:
                self.missing.append(f"{name} ({error})")

    def _build(self, name: str) -> str:
        maven, target = shutil.which("mvn"), self.folder / name
        if name == "painless":
            return self._painless(target)
        if maven is None or shutil.which("javac") is None:
            raise OSError("no Maven")
        target.mkdir()
        listed = target / "classpath"
        command = [maven, "-q", "-B", "dependency:build-classpath", f"-Dmdep.outputFile={listed}"]
        subprocess.run(command, cwd=JAVA / name, check=True, capture_output=True, timeout=600)
        source = JAVA / f"{MAINS.get(name, 'RankLibScore')}.java"
        path = f"{listed.read_text().strip()}:{target}"
        subprocess.run(["javac", "-cp", path, "-d", target, source], check=True, capture_output=True, timeout=300)
        return path

    def _painless(self, target: Path) -> str:
        try:
            archive, home = archive_of("opensearch"), java_home() / "bin"
        except SystemExit as error:
            raise OSError(str(error)) from None
        with zipfile.ZipFile(archive) as whole:
            jars = [own for own in whole.namelist() if re.search(r"/(lib|modules/lang-painless)/[^/]+\.jar$", own)]
            whole.extractall(target, jars)
        path = os.pathsep.join([*(str(target / own) for own in jars), str(target)])
        source = JAVA / "PainlessScore.java"
        subprocess.run(
            [home / "javac", "-nowarn", "-cp", path, "-d", target, source], check=True, capture_output=True, timeout=300
        )
        self.java["painless"] = str(home / "java")
        return path

    def scores(self, name: str, text: str, rows: np.ndarray, names: tuple[str, ...]) -> np.ndarray:
        """Scores of rows by one program; RankLib's reads the definition in a body of the plugins."""
        if name.startswith("rank") and text.startswith("{"):
            text = json.loads(text)["model"]["model"]["definition"]
        place = Path(tempfile.mkdtemp(dir=self.folder))
        lines = (",".join(map(repr, row)) for row in rows.tolist())
        (place / "rows").write_text("\n".join(lines) + "\n")
        (place / "names").write_text("\n".join(names))
        (place / "model").write_text(text)
        more = [str(place / "names")] if name in MAINS else []
        main = MAINS.get(name, "RankLibScore")
        command = [
            self.java.get(name, "java"),
            "-Xmx1g",
            "-cp",
            self.paths[name],
            main,
            str(place / "rows"),
            *more,
            str(place / "model"),
        ]
        subprocess.run(command, check=True, capture_output=True, timeout=300)
        return np.loadtxt(place / "model.scores", ndmin=1)


def treelite_scores(format: str, text: str, rows: np.ndarray) -> np.ndarray | None:
    """Scores by treelite's own interpreter, for LightGBM's and XGBoost's trees."""
    try:
        import treelite
    except ImportError:
        return None
    if format == "lightgbm":
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as stream:
            stream.write(text)
            stream.flush()
            model = treelite.frontend.load_lightgbm_model(stream.name)
    else:
        model = treelite.frontend.from_xgboost_json(text)
    number = np.float64 if format == "lightgbm" else np.float32
    return np.asarray(treelite.gtil.predict(model, rows.astype(number), nthread=1), dtype=np.float64).ravel()


def run() -> None:
    """Print the table."""
    warnings.simplefilter("ignore")
    folder = Path(os.environ.get("TRUERANK_DATA", ""))
    if not (folder / "letor4-mq2008").is_dir():
        print("left out: TRUERANK_DATA names no collections")
        return
    with tempfile.TemporaryDirectory() as temporary:
        java = JavaPrograms(Path(temporary))
        for collection, (train, test) in collections(folder).items():
            lines: dict[tuple[str, str, str], list[Any]] = {}
            refused: list[str] = []
            rounded: list[str] = []
            for title, model in models().items():
                model.fit(train)
                form = form_of(model)
                for format, own in FORMATS.items():
                    if format == "opensearch" or reason_against(form, format) is not None:
                        continue
                    text = export_model(model, format, certify=test, force=True)
                    certificate = text.certificate
                    if certificate.rank_agreement < 1:
                        refused.append(f"{title}, {format}")
                    if "times" in certificate.policy:
                        rounded.append(f"{title}, {format}")
                    found = dict(certificate.evaluators)
                    order = dict.fromkeys(found, certificate.orders_changed)
                    expected = test.restore(np.arange(test.n_rows)) * 0.0 + np.asarray(model.predict(test.X))
                    shift = constant_left_out(form, format, own)
                    others = {name: java.scores(name, str(text), test.X, form.names)
                              for name in JARS.get(format, ()) if name in java.paths
                              if form.kind != "linear" or format != "opensearch-ltr"}  # fmt: skip
                    if format in ("lightgbm", "xgboost") and form.kind != "linear":
                        scores = treelite_scores(format, str(text), test.X)
                        others |= {} if scores is None else {"treelite": scores}
                    for name, scores in others.items():
                        scores = scores / certificate.policy.get("times", 1.0)
                        found[name] = float(np.abs(scores + shift - expected).max())
                        order[name] = int(compare_orders(expected, scores, test.offsets)[0].sum())
                    scale = float(np.abs(expected).max())
                    for name, difference in found.items():
                        key = (format, name, title)
                        row = lines.setdefault(key, [0, 0.0, 0, 0, 0])
                        row[0] += test.n_rows
                        row[1] = max(row[1], difference / scale)
                        row[2] += order[name]
                        row[3] += certificate.border_differences
                        row[4] += certificate.border_cases
            rows = [
                [*key, row[0], f"{row[1]:.1e}", row[2], f"{row[3]} / {row[4]}"] for key, row in sorted(lines.items())
            ]
            header = [
                "format",
                "program",
                "model",
                "documents",
                "difference",
                "orders changed",
                "border cases that differ",
            ]
            print(f"\n{collection}\n{table(rows, header)}")
            print("difference: the largest, as a share of the largest score")
            if rounded:
                print("rounded otherwise, to keep the order: " + "; ".join(rounded))
            if refused:
                print("refused without force, a rank differs: " + "; ".join(refused), flush=True)
        if java.missing:
            print("left out: " + "; ".join(java.missing))
