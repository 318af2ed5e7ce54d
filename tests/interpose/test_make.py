"""A C project that is built whole under the armed library, as in a job that compiles: our own, by a usual Makefile."""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest
from interposing import PROGRAMS, Build, rule

from pyshim.launch import plan

ROOT = PROGRAMS.parent.parent
PARTS = ("shim/core", "shim/sys")
MAKEFILE = """\
CFLAGS = -std=c11 -D_GNU_SOURCE -O0 -g -fPIC -Ishim -Ishim/core -ffile-prefix-map=$(CURDIR)=.
PARTS = {parts}
all: $(PARTS:%=%/all.a)
\t@echo "parts: $$(ls -d $(PARTS) | wc -l)"; for part in $(PARTS); do (cd $$part && ls *.o | wc -l); done
%/all.a: FORCE
\t$(MAKE) --no-print-directory -f Makefile part PART=$*
part: $(patsubst %.c,%.o,$(wildcard $(PART)/*.c))
\trm -f $(PART)/all.a
\t$(AR) crD $(PART)/all.a $^ && nm $(PART)/all.a | sort | cksum
FORCE:
"""


class Built(NamedTuple):
    status: int
    said: list[str]
    files: dict[str, str]
    processes: int


@pytest.mark.plain("a build does not run with a sanitizer in LD_PRELOAD", sanitized=True)
def test_a_project_is_built_as_without(
    build: Build,
    table_of: Callable[[str], Mapping[str, str]],
    clean_environment: Mapping[str, str],
    tmp_path: Path,
    record_property: Callable[[str, int], None],
) -> None:
    for tool in ("make", "ar", "nm"):
        if not shutil.which(tool):
            pytest.skip(f"needs {tool}: apt-get install make binutils")
    counted = build.library("libcounted.so", "counted.c")
    pages = tmp_path / "report"
    pages.mkdir()

    def make(name: str, settings: Mapping[str, str], preload: str) -> Built:
        folder, count = tmp_path / "project", tmp_path / f"{name}.count"  # one path: it is in what is said
        for part in PARTS:
            shutil.copytree(ROOT / part, folder / part, ignore=shutil.ignore_patterns("*.o", "hip", "runtime"))
        for header in ("shim/abi.h", "shim/overlap_abi.h", "shim/text.h", "shim/version.h"):
            shutil.copy(ROOT / header, folder / header)
        (folder / "Makefile").write_text(MAKEFILE.format(parts=" ".join(PARTS)))
        env = {**clean_environment, **settings, "LD_PRELOAD": preload, "COUNTED": str(count), "LC_ALL": "C"}
        command = ["make", "-j2", f"CC={shlex.quote(os.environ.get('CC', 'cc'))}"]
        done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=300, check=False)
        made = {
            str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in sorted(folder.rglob("*"))
            if path.is_file()
        }
        shutil.rmtree(folder)
        # Two at a time: in any order. An odd line more would be there all the same.
        return Built(done.returncode, sorted((done.stdout + done.stderr).splitlines()), made, count.stat().st_size)

    settings = {key: value for key, value in table_of(rule("{blocks_per_sm: 1}")).items() if key.startswith("OVERLAP_")}
    armed = {**settings, "OVERLAP_REPORT": str(pages), "RANK": "0"}
    without = make("bare", {}, str(counted))
    done = make("armed", armed, f"{plan.LIBRARY}:{counted}")
    assert without.status == 0, without.said
    assert sum(path.endswith(".o") for path in without.files) > 15
    assert done == without
    assert list(pages.iterdir()) == []
    record_property(
        "processes of `make -j2` of a C project, run whole under the library, with the same output and files",
        done.processes,
    )
    assert done.processes > 80
