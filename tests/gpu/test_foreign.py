"""tools.gpu.foreign with stand-in programs: which arms run what, and what it makes of what they print."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tools.gpu import machine
from tools.gpu.foreign import __main__ as runner
from tools.gpu.foreign.programs import Program

ROOT = Path(__file__).parents[2]
SOURCE = "owner/repository 0123456789012345678901234567890123456789"
OVERLAP_RUN = """#!/bin/sh
while [ "$1" != -- ]; do [ "$1" = --policy ] && policy=$2; [ "$1" = --report ] && mkdir "$2"; shift; done
shift
POLICY=$policy exec "$@"
"""
OVERLAP = """#!/bin/sh
[ "$1" != explain ] || exec "$EXPLAIN" -m pyshim "$@"
echo '{"totals": {"launches": 7, "raised": 5, "streams_created_raised": 1, "shaped": 0}, "verdict": {"done": "raised"},
       "findings": ["look"], "kernels": [{"kernel": "k", "launches": 7, "raised": 5, "blocks": 4}],
       "processes": [{"streams": [{"device": 0, "status": "raised", "share": 0.4, "since": 9}]}]}'
"""
# A rate that depends on arm and binary, an energy, and where and how it ran.
PROGRAM = """#!/bin/sh
[ "$PWD" = "$FOLDER" ] && [ "$CUDA_VISIBLE_DEVICES" = 3 ] && [ "$1" = one ] || exit 9
case ${0##*/},$POLICY in own,) rate=20;; plain,default) rate=16;; plain,observe) rate=9.5;; plain,) rate=10;; esac
echo "rate 1 a second, warming up"
echo "rate $rate a second, energy ${ENERGY:-0.5}"
"""


@pytest.fixture
def ran(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[int, dict[str, Any], list[Any]]]:
    """Run the stand-in by the arguments: exit status, JSON and rows of CSV."""
    folder = tmp_path / "built" / "comd"
    for path, text in ((folder / "plain", PROGRAM), (folder / "own", PROGRAM)):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)
    commands = tmp_path / "bin"
    commands.mkdir()
    for name, text in (("overlap-run", OVERLAP_RUN), ("overlap", OVERLAP)):
        (commands / name).write_text(text)
        (commands / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{commands}:/usr/bin:/bin")
    monkeypatch.setenv("FOLDER", str(folder))
    monkeypatch.setenv("EXPLAIN", sys.executable)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setattr(machine, "describe", lambda: {"begun": "2026-11-27T22:00", "gpus": [{"name": "H200"}]})
    programs = (
        Program("one", "comd", SOURCE, "", "", "A=1 {binary} one", r"rate ([\d.]+)", "1/s", True, r"energy ([\d.]+)"),
        Program("two", "comd", SOURCE, "", "", "{folder}/plain one", r"rate ([\d.]+)", "s", gpus=2),
        Program("three", "xsbench", SOURCE, "", "", "{binary}", "x", "s"),
        Program("four", "nobody_has_this", "", "", "", "{python}", "x", "s"),
    )
    monkeypatch.setattr(runner, "PROGRAMS", programs)

    def run(*words: str) -> tuple[int, dict[str, Any], list[Any]]:
        out = tmp_path / "out.json"
        status = runner.main([str(tmp_path / "built"), "--out", str(out), "--gpus", "3", *words])
        with out.with_suffix(".csv").open() as file:
            return status, json.loads(out.read_text()), list(csv.DictReader(file))

    return run


def test_every_arm_runs_its_binary_and_policy(ran: Any) -> None:
    status, made, rows = ran("--only", "one", "--processes", "2")
    found = {row["arm"]: (row["processes"], row["median"], row["change_percent"]) for row in rows}
    assert status == 0 and made["wrong"] == [] == made["not_measured"]
    assert found["bare"] == found["again"] == ("2", "10.0", "0.0"), "the last match of the number"
    assert found["own"] == ("2", "20.0", "-50.0") and found["default"] == ("2", "16.0", "-37.5"), "of time, by rates"
    assert found["observe"] == ("2", "9.5", "5.26")
    counts = {row["arm"]: (row["launches"], row["raised"], row["streams_created_raised"]) for row in rows}
    assert counts["default"] == ("7", "5", "1") and counts["bare"] == ("", "", "")
    assert rows[0]["gpu"] == "H200" and made["counts"][0]["findings"] == ["look"]
    assert made["counts"][0]["streams"] == [{"device": 0, "status": "raised", "share": 0.4}], "what a row is from"
    assert made["counts"][0]["kernels"] == [{"kernel": "k", "launches": 7, "raised": 5}]


def test_what_explain_expects_is_beside_what_came_true(ran: Any, tmp_path: Path) -> None:
    """Of a trace of one more bare process, in which the driver loads the library; here the program writes it itself."""
    shipped = ROOT / "pyshim" / "_lib" / "demo" / "demo-stencil.json.gz"
    traced = f'case $CUDA_INJECTION64_PATH in /*/libtrace.so) cp {shipped} "$TRACE_OUTPUT.1.json.gz" ;; esac\n'
    for name in ("plain", "own"):
        (tmp_path / "built" / "comd" / name).write_text(PROGRAM + traced)
    library = tmp_path / "libtrace.so"
    library.write_bytes(b"")
    _, made, rows = ran("--only", "one", "--processes", "1", "--trace", str(library), "--keep", str(tmp_path / "kept"))
    assert (tmp_path / "kept" / "one.0.json.gz").read_bytes() == shipped.read_bytes()
    assert {row["arm"]: row["explained_percent"] for row in rows if row["explained_percent"]} == {"default": "-24.34"}
    explained = made["counts"][0]["explained"]
    assert [one["stream"] for one in explained["minor"]] == ["29", "31"] and explained["untold"] == []
    _, made, rows = ran("--only", "one", "--processes", "1")
    assert not any(row["explained_percent"] for row in rows)


def test_results_that_differ_are_said(ran: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "built" / "comd" / "own").write_text(PROGRAM.replace("ENERGY:-0.5", "ENERGY:-0.6"))
    status, made, _ = ran("--only", "one", "--processes", "1")
    assert status == 1 and made["wrong"] == ["one: results differ: [('0.5',), ('0.6',)]"]
    twice = "energy 1\nenergy 2\n"
    for name, said in (("plain", twice), ("own", "energy 2\nenergy 1\n")):
        (tmp_path / "built" / "comd" / name).write_text(f"#!/bin/sh\necho 'rate 5\n{said}'\n")
    assert ran("--only", "one", "--processes", "1")[0] == 0, "ranks print in any order"
    (tmp_path / "built" / "comd" / "own").write_text("#!/bin/sh\necho rate 5\n")
    status, made, rows = ran("--only", "one", "--processes", "1")
    assert status == 1 and "own" not in {row["arm"] for row in rows}
    assert len(rows) == 4, "one failure leaves the other arms"
    assert "foreign: one, own: its check failed: rate 5" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--out", "/no/such/a.json"), "--out: no folder /no/such"),
        (("--processes", "0"), "--processes: 1 at least"),
        (("--gpus", "0,a"), "--gpus: not numbers with commas, such as 0,1: 0,a"),
        (("--trace", "/no/lib.so"), "--trace: no file /no/lib.so: tools/gpu/trace.c says how it is built"),
        (("--keep", "x"), "--keep: needs --trace"),
    ],
)
def test_what_cannot_work_is_said_before_a_program_runs(ran: Any, words: Any, said: str, capsys: Any) -> None:
    with pytest.raises(SystemExit):
        ran(*words)
    assert capsys.readouterr().err.splitlines()[-1].endswith(f"error: {said}")


def test_without_a_gpu_nothing_runs(ran: Any, monkeypatch: pytest.MonkeyPatch, capsys: Any, tmp_path: Path) -> None:
    monkeypatch.setattr(machine, "describe", lambda: {"gpus": []})
    assert runner.main([str(tmp_path / "built"), "--out", str(tmp_path / "out.json")]) == 1
    assert capsys.readouterr().err == "foreign: no GPU: nvidia-smi -L lists none\n"
