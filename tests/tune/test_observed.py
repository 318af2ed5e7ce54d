"""What the first run shows: the sets of variables that fit, and a metric in what the program prints."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from pyshim.tune import measure, observed
from pyshim.tune.measure import Metric
from pyshim.tune.observed import Seen

Run = Callable[..., "subprocess.CompletedProcess[str]"]
ON_H100 = ("--simulate", "h100", "--metric")
ITERATION = (*ON_H100, "([0-9.]+) ms an iteration")
STEP = (*ON_H100, '"milliseconds": ([0-9.]+)')
STENCIL = ("demo-stencil", "-", "plain", "6", "stencil/style-0")  # six steps, and the last one counts


def test_without_options_the_sets_that_fit_are_tried_and_said(overlap: Run, tmp_path: Path) -> None:
    """The bundled stencil has kernels of NCCL, and no PyTorch, no UCX and one host."""
    done = overlap("tune", *STEP, "--json", "--", *STENCIL, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "tries --set nccl, because the program loads libnccl.so" in done.stderr
    answer = json.loads(done.stdout)
    names = [arm["name"] for arm in answer["arms"]]
    assert answer["kept"] == "default" and "default NCCL_MIN_CTAS=16" in names
    assert not any("UCX" in name or "CONNECTIONS" in name for name in names)
    shutil.rmtree(tmp_path / "tune-1" / "observed")  # the choice is kept elsewhere, too
    again = overlap("tune", "--resume", "tune-1", "--json", cwd=tmp_path)
    assert json.loads(again.stdout) == answer, again.stderr


def test_an_arm_or_a_variable_named_is_all_that_is_tried(overlap: Run, tmp_path: Path) -> None:
    for words, arms in ((("--arm", "idle=observe"), ["idle"]), (("--try", "X=1"), ["default X=1"])):
        done = overlap("tune", *STEP, *words, "--json", "--", *STENCIL, cwd=tmp_path)
        answer = json.loads(done.stdout)
        assert [arm["name"] for arm in answer["arms"]] == ["bare", "default", *arms] and "--set" not in done.stderr
        assert not (Path(tmp_path) / answer["directory"] / "observed").exists()


def test_a_program_without_a_gpu_has_no_set(overlap: Run, tmp_path: Path) -> None:
    (tmp_path / "program").write_text("#!/bin/sh\necho 0.1 ms an iteration\n")
    (tmp_path / "program").chmod(0o755)
    done = overlap("tune", *ITERATION, "--", "./program", cwd=tmp_path)
    assert done.returncode == 1 and "no process of the first run used a GPU where the library saw it" in done.stderr
    assert "`overlap doctor ./program` says why" in done.stderr
    again = overlap("tune", "--resume", "tune-1", cwd=tmp_path)
    assert again.returncode == 1 and "no process of the first run used a GPU" in again.stderr


def test_a_program_that_fails_under_observe_runs_as_it_is(overlap: Run, tmp_path: Path) -> None:
    (tmp_path / "program").write_text('#!/bin/sh\n[ -z "$OVERLAP_REPORT" ] || exit 3\necho 0.1 ms an iteration\n')
    (tmp_path / "program").chmod(0o755)
    done = overlap("tune", *ITERATION, "--", "./program", cwd=tmp_path)
    assert done.returncode == 0 and "answer  leave it as it is" in done.stdout, done.stderr


@pytest.mark.parametrize(
    ("libraries", "hosts", "sets"),
    [
        ({"libnccl.so.2", "libtorch_cuda.so"}, 1, ["nccl", "pytorch"]),
        ({"libnccl.so.2", "libtorch_cuda.so"}, 2, ["nccl", "pytorch", "nccl-network"]),
        ({"libtorch_cuda.so"}, 2, []),
        ({"libmpi.so.40", "libucp.so.0"}, 2, ["mpi"]),
        ({"libmpi.so.40"}, 2, []),
        ({"librccl.so.1"}, 2, []),
    ],
)
def test_sets_follow_from_libraries_and_hosts(libraries: set[str], hosts: int, sets: list[str]) -> None:
    seen = Seen(frozenset(libraries), hosts, 0, None, False)
    assert seen.sets == sets
    said = observed.chosen(seen.sets, seen)
    assert all(f"--set {name}" in said for name in sets) and ("because" in said) is bool(sets)


def test_the_libraries_of_a_process_are_those_it_has_mapped() -> None:
    assert any(name.startswith("libc.so") for name in observed.mapped(os.getpid()))
    assert observed.mapped(2**22 + 1) == set()


def lines(form: str, *figures: object) -> str:
    return "".join(form.format(at, figure) + "\n" for at, figure in enumerate(figures, 1))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("start\n0.099 ms an iteration\n", ("([0-9.]+) ms an iteration", False)),
        (lines("step {}: {} ms", 104.2, 103, 105), ("([0-9.]+) ms", False)),
        (lines("step {}: loss 2.1, {} it/s", 12.5, 12.7, 12.1), ("([0-9.]+) it/s", True)),
        (lines("step time {1}", 0.5, 0.4, 0.45), ("step time ([0-9.eE+-]+)", False)),
        (lines("iter {}/100 time/step (s): {}", 0.5, 0.4, 0.45), None),
        (lines("step {} after {} s", 1.0, 2.1, 3.2), None),  # a clock
        (lines("step {}: loss {}", 3.2, 3.1, 3.3), None),
        (lines('{{"step": {}, "milliseconds": {}}}', 0.14, 0.12, 0.13), ('milliseconds": ([0-9.eE+-]+)', False)),
        (lines("step_ms={1}", 140, 120, 130), ("step_ms=([0-9.eE+-]+)", False)),
        (lines("mass = {1}", 140, 120, 130), None),
        ("loss 3\n", None),
        ("step 3: 5 ms\n", None),  # a single line may be anything
    ],
)
def test_a_metric_is_offered_that_fits_the_output(text: str, expected: tuple[str, bool] | None) -> None:
    found = observed.metric(text)
    assert (found and found[:2]) == expected
    if found:
        assert Metric(found[0], found[1]).read(text) > 0 and found[2] in text


def test_without_a_metric_it_says_what_whole_runs_hide(overlap: Run, tmp_path: Path) -> None:
    (tmp_path / "mpirun").write_text("#!/bin/sh\nfor i in 1 2 3; do echo step $i: 10$i.5 ms; done\n")
    (tmp_path / "mpirun").chmod(0o755)
    path = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = overlap("tune", "--limit", "2s", "--", "mpirun", "./program", cwd=tmp_path, env=path)
    assert done.returncode == 0, done.stderr
    assert re.search("without --metric, whole runs of [0-9.]+ s are compared, their start included", done.stderr)
    assert "it prints \"step 3: 103.5 ms\": --metric '([0-9.]+) ms' compares that" in " ".join(done.stderr.split())


def test_what_recurs_at_a_steady_rate_is_told_from_what_does_not() -> None:
    begin, steady = observed.rate([(1, 0), (2, 0), (5, 10), (6, 20), (7, 30), (8, 40), (9, 50)])
    assert begin == 5 and steady
    assert observed.rate([(1, 0), (5, 10), (6, 90), (7, 95), (8, 98), (9, 100)]) == (5, False)
    assert observed.rate([(1, 0), (5, 10), (6, 20), (7, 30)]) == (None, False), "too few to tell"
    assert observed.rate([(1, 0), (5, 2), (6, 3), (7, 4), (8, 5)]) == (None, False)
    seen = Seen(frozenset(), 1, 50, 5.0, True)
    said = observed.advice(seen, 9.0, "nothing")
    assert (
        "runs of 9.0 s are compared, their start included: 5.0 s pass before steps recur at a steady rate (50 " in said
    )
    assert "let the program print the time of a step" in said


def test_a_long_output_is_read_whole_and_kept_in_part(tmp_path: Path) -> None:
    file = tmp_path / "output.txt"
    code = "seq 400000; echo step 7 ms; seq 400000; echo end"
    run = measure.run(("sh", "-c", code), dict(os.environ), str(file), 60, Metric("step ([0-9]+) ms"))
    assert run.value == 7
    text = file.read_text()
    assert len(text) < 3 << 19 and text.startswith("1\n2\n") and text.endswith("400000\nend\n")
    assert "bytes are left out]" in text


def test_a_line_that_is_cut_says_so() -> None:
    """It broke off inside a word."""
    said = observed.offer("total 12.5 s " + "of an iteration " * 10)
    quoted = said.split('"')[1]
    assert quoted.endswith("...") and len(quoted) <= 80
    assert set(quoted[:-3].split()) <= {"total", "12.5", "s", "of", "an", "iteration"}
    assert '"total 12.5 s"' in observed.offer("total 12.5 s")
    said = observed.offer("it took 3 ms a step " + "of an iteration " * 10)
    assert said.startswith('it prints "it took 3 ms a step ') and said.split('"')[1].endswith("...")
