"""A program of another C library that comes under the preload, as in a container of Alpine Linux, runs."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from interposing import PROGRAMS, Runner, same

sys.path.append(str(Path(__file__).resolve().parent.parent))

import debian
import musl as another_libc


@pytest.fixture(scope="session")
def musl(tmp_path_factory: pytest.TempPathFactory) -> Path:
    try:
        return another_libc.build(PROGRAMS / "musl.c", tmp_path_factory.mktemp("musl") / "program")
    except debian.Missing as missing:
        pytest.skip(f"needs musl-gcc (apt-get install musl-tools): {missing}")


def test_a_musl_program_runs_under_the_preload(musl: Path, bare: Runner, preloaded: Runner) -> None:
    env = {"LD_LIBRARY_PATH": ""}  # no driver is made for musl
    without = bare(program=musl, env=env)
    assert (without.status, without.stdout.splitlines()[0]) == (7, "strlen 1"), without.stderr
    same(preloaded(program=musl, env=env), without)


def test_a_musl_program_runs_when_the_library_is_off_or_broken(musl: Path, bare: Runner, preloaded: Runner) -> None:
    settings: list[Mapping[str, str]] = [{"OVERLAP_RUN": "off"}, {"OVERLAP_TABLE": "broken"}, {"RANK": "0"}]
    without = bare(program=musl, env={"LD_LIBRARY_PATH": ""})
    for env in settings:
        same(preloaded(program=musl, env={"LD_LIBRARY_PATH": "", **env}), without)
