"""Build the wheel and the source distribution, and run each in an empty environment.

    python scripts/check_release.py [--tag v1.1.0] [--output FOLDER]

Requires the package `build`. Every file that states the version must state the same, and `--tag` must name it. Both
archives are installed with their requirements alone, and the first commands run there. FOLDER gets the archives, and
`notes.md` with the section of the changelog goes beside it as `FOLDER-notes.md`.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]
VERSION = r"(\d+\.\d+\.\d+)"
# file: what stands before and after the version
STATED = {
    "src/truerank/__init__.py": rf'^__version__ = "{VERSION}"',
    "mkdocs.yml": rf"^copyright: Version {VERSION} ",
    "CITATION.cff": rf"^version: {VERSION}$",
    "conda/recipe.yaml": rf"^  version: {VERSION}$",
    "CHANGELOG.md": rf"^## {VERSION}$",
}
FIRST_COMMANDS = (
    "--version",
    "sample sample",
    "evaluate sample/bm25.run --qrels sample/qrels.txt --measures AP --json",
    "compare sample/bm25.run sample/latent.run --qrels sample/qrels.txt --json",
)


def stated_versions(root: Path = ROOT) -> dict[str, str]:
    """Return the version that each file states; of the changelog, that of its first section with a number."""
    found = {}
    for name, pattern in STATED.items():
        match = re.search(pattern, (root / name).read_text(encoding="utf-8"), re.MULTILINE)
        found[name] = match[1] if match else "none"
    return found


def release_notes(version: str, root: Path = ROOT) -> str:
    """Return the section of a version in the changelog."""
    text = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    match = re.search(rf"^## {re.escape(version)}\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    return match[1].strip() + "\n" if match else ""


def problems(tag: str | None, root: Path = ROOT) -> list[str]:
    """Return what forbids a release of this checkout, one sentence each."""
    versions = stated_versions(root)
    version, found = versions["src/truerank/__init__.py"], []
    for name, own in versions.items():
        if own != version:
            found.append(f"{name} states version {own}, and src/truerank/__init__.py {version}: write {version} there")
    if tag is not None and tag != f"v{version}":
        found.append(f"the tag is {tag}, and the version {version}: tag v{version}, or change the version")
    if not release_notes(version, root).strip():
        found.append(f"CHANGELOG.md has no text under '## {version}': rename '## Unreleased'")
    if tag is not None and re.search("^## Unreleased", (root / "CHANGELOG.md").read_text(encoding="utf-8"), re.M):
        found.append(f"CHANGELOG.md has a section 'Unreleased': move it under '## {version}'")
    return found


def built(folder: Path) -> list[Path]:
    """Build the source distribution, and the wheel from it."""
    with tempfile.TemporaryDirectory() as copy:
        # A copy: setuptools writes into the folder that it builds.
        source = Path(copy, "source")
        left_out = shutil.ignore_patterns(".*", "build", "dist", "*.egg-info", "__pycache__", "results")
        shutil.copytree(ROOT, source, ignore=left_out)
        subprocess.run([sys.executable, "-m", "build", "--outdir", str(folder), str(source)], check=True)
    return sorted(path for path in folder.iterdir() if path.suffix in (".whl", ".gz"))


def tried(archive: Path) -> None:
    """Install an archive in an empty environment and run the first commands."""
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=False)
        pip = [sys.executable, "-m", "pip", "--python", folder, "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, str(archive.resolve())], check=True)
        for words in FIRST_COMMANDS:
            program = Path(folder, "bin", "truerank")
            found = subprocess.run([program, *words.split()], cwd=folder, capture_output=True, text=True)
            if found.returncode:
                raise SystemExit(f"{archive.name}: `truerank {words}` ended with {found.returncode}:\n{found.stderr}")
    print(f"{archive.name}: {archive.stat().st_size / 1e6:.2f} MB, {len(FIRST_COMMANDS)} commands run", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tag", help="tag of the release, such as v1.1.0")
    parser.add_argument("--output", type=Path, help="folder for the archives")
    chosen = parser.parse_args()
    found = problems(chosen.tag)
    for sentence in found:
        print(sentence, file=sys.stderr)
    if found:
        return 1
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    print(f"{settings['name']} {stated_versions()['src/truerank/__init__.py']}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        target = chosen.output or Path(folder)
        target.mkdir(parents=True, exist_ok=True)
        archives = built(target)
        for archive in archives:
            tried(archive)
        if chosen.output:
            notes = target.parent / f"{target.name}-notes.md"
            notes.write_text(release_notes(stated_versions()["src/truerank/__init__.py"]), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
