"""The LTR plugin's archive from its source, which no package registry holds; nothing in the source is changed.

    git clone --branch 3.6.0.0 https://github.com/opensearch-project/opensearch-learning-to-rank-base SOURCE
    python -m benchmarks.export.build_ltr_plugin SOURCE opensearch-ltr.zip

Compiled by javac against the jars of the server's archive (`benchmarks/search_server.py` says where that and the JDK
are found); Maven fetches the plugin's own libraries, of the versions that its build names.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from benchmarks.search_server import archive_of, java_home

LIBRARIES = ("lucene-expressions", "antlr4-runtime", "asm", "asm-commons", "asm-tree", "RankyMcRankFace", "compiler")


def dependencies(source: Path) -> str:
    """A Maven project that needs the libraries of the plugin's build, and none of what these need."""
    build = (source / "build.gradle").read_text()
    versions = dict(re.findall(r"^(\w+)\s*=\s*(\S+)", (source / "gradle.properties").read_text(), re.M))
    alone = "<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>"
    entries = ""
    for group, name, version in re.findall(r"implementation ['\"]([^:'\"]+):([^:'\"]+):([^'\"]+)['\"]", build):
        if name in LIBRARIES:
            number = re.sub(r"[$][{](\w+)[}]", lambda found: versions[found[1]], version)
            parts = {"groupId": group, "artifactId": name, "version": number}
            entries += f"<dependency>{''.join(f'<{k}>{v}</{k}>' for k, v in parts.items())}{alone}</dependency>"
    return (
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion><groupId>x</groupId>'
        f"<artifactId>x</artifactId><version>1</version><dependencies>{entries}</dependencies></project>"
    )


def main(source: Path, output: Path) -> None:
    """Compile, and write the archive."""
    server = archive_of("opensearch")
    version = server.stem.removeprefix("opensearch-")
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        plugin, classes = folder / "plugin", folder / "classes"
        for own in (plugin, classes):
            own.mkdir()
        (folder / "pom.xml").write_text(dependencies(source))
        command = ["mvn", "-q", "-B", "-f", folder / "pom.xml", "dependency:copy-dependencies"]
        subprocess.run([*command, f"-DoutputDirectory={plugin}"], check=True, timeout=600)
        with zipfile.ZipFile(server) as archive:
            archive.extractall(folder, [name for name in archive.namelist() if re.fullmatch(r"[^/]+/lib/[^/]+", name)])
        jars = [*plugin.glob("*.jar"), *folder.glob("*/lib/*.jar")]
        files = list((source / "src/main/java").rglob("*.java"))
        options = ["--release", "21", "-proc:none", "-nowarn", "-Xlint:none", "-d", classes]
        options += ["-cp", os.pathsep.join(map(str, jars))]
        subprocess.run([java_home() / "bin/javac", *options, *files], check=True, timeout=600)
        (plugin / "plugin-descriptor.properties").write_text(
            f"name=opensearch-ltr\ndescription=Learning to Rank\nversion={version}.0\nopensearch.version={version}\n"
            "java.version=21\nclassname=com.o19s.es.ltr.LtrQueryParserPlugin\n"
        )
        with zipfile.ZipFile(plugin / "opensearch-ltr.jar", "w", zipfile.ZIP_DEFLATED) as jar:
            for root in (classes, source / "src/main/resources"):
                for path in sorted(own for own in root.rglob("*") if own.is_file()):
                    jar.write(path, path.relative_to(root))
        with zipfile.ZipFile(output, "w", zipfile.ZIP_DEFLATED) as archive:
            for path in [*sorted(plugin.iterdir()), *(source / "src/main/plugin-metadata").iterdir()]:
                archive.write(path, path.name)
    print(f"{output}: {len(files)} files compiled for OpenSearch {version}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
