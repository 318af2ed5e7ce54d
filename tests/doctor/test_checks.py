"""overlap doctor: each check, on folders that stand for machines, and the command itself."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from doctoring import Compile, Look, states

from pyshim import _native
from pyshim.doctor import checks, devices
from pyshim.doctor.machine import Machine
from pyshim.errors import OverlapError

KFD = ("/dev/kfd",)


def test_a_machine_without_anything_is_told_what_to_do(look: Look) -> None:
    assert look("driver") == [
        (
            "fail",
            "no GPU driver found (libcuda.so.1, /dev/kfd): programs run unchanged",
            "on a machine without a GPU: overlap-run --simulate h100 PROGRAM",
        )
    ]
    for check in checks.CHECKS:
        lines = look(check.name)
        assert all(state == "ok" for state, _, _ in lines) or check.name in ("driver", "profilers"), check.name
        assert bool(lines) is (check.name != "program"), check.name


def test_amds_driver(look: Look) -> None:
    assert states(look("driver", KFD)) == ["ok", "warn"], "a driver without a runtime"
    ((state, sentence, _), _) = look("driver", access=False)
    assert (state, sentence) == ("fail", "this user may not read and write /dev/kfd, so HIP finds no GPU")


def test_a_device_is_asked_for_reading_and_writing(tmp_path: Path) -> None:
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev" / "kfd").write_bytes(b"")
    asked = []
    machine = Machine({}, str(tmp_path), lambda path, mode: bool(asked.append((path, mode))))
    assert [line.state for line in devices.drivers(machine)] == ["fail", "warn"]
    assert asked == [(str(tmp_path / "dev" / "kfd"), os.R_OK | os.W_OK)]


@pytest.mark.parametrize(
    "environment",
    [
        {"OVERLAP_REPRT": "x", "OVERLAP_trace": "1"},
        {"OVERLAP_REPRT": "", "OVERLAPS": "x"},
        *({"CUDA_DEVICE_MAX_CONNECTIONS": value} for value in ("abc", "0", "33")),
    ],
)
def test_variables(look: Look, environment: dict[str, str]) -> None:
    found = look("variables", **environment)
    assert states(found) == ["warn"] * sum(name != "OVERLAPS" for name in environment)
    for (_, sentence, hint), name in zip(found, environment):
        assert sentence.startswith(name) and hint


@pytest.mark.parametrize("environment", [{"OVERLAP_RUN": "off"}, {"OVERLAP_POLICY": "off"}])
def test_what_switches_the_library_off_is_in_the_way(look: Look, environment: dict[str, str]) -> None:
    ((state, sentence, hint),) = look("variables", **environment)
    assert (state, hint) == ("fail", "unset it") and "overlap-run does nothing here" in sentence


def test_our_own_variables_are_known(look: Look) -> None:
    """Those of the library, of the commands and of our other parts, as the reference has them."""
    text = (Path(__file__).resolve().parents[2] / "docs" / "reference.md").read_text(encoding="utf-8")
    names = re.findall(r"^- `(OVERLAP_\w+)`", text, re.M)
    assert len(names) > 9
    assert states(look("variables", **dict.fromkeys(names, "x"))) == ["ok"]


def test_a_name_a_letter_off_one_of_ours_has_a_hint(look: Look) -> None:
    ((_, sentence, hint),) = look("variables", OVERLAP_REPRT="x")
    assert sentence == "OVERLAP_REPRT is no variable of ours, so it does nothing" and "OVERLAP_REPORT" in hint


def test_the_variable_that_hides_every_gpu_is_the_hint(overlap: Any, library: Any) -> None:
    done = overlap("doctor", "--simulate", "mi250x", env={"HIP_VISIBLE_DEVICES": ""})
    assert done.returncode == 1
    assert done.stdout.startswith("in the way: AMD's runtime: error 100 (hipErrorNoDevice)\n")
    assert "      -> unset HIP_VISIBLE_DEVICES, which hides every GPU\n" in done.stdout


def test_the_library(look: Look, library: Any) -> None:
    ((state, sentence, _),) = look("library")
    assert state == "ok" and sentence.startswith("the library loads into programs (version ") and "glibc 2" in sentence


ABORT = "#include <stdlib.h>\n__attribute__((constructor)) static void start(void) { abort(); }"


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("int overlap_abi_version(void) { return 999; }", "has layout 999, and this package"),
        ("int another;", "has no layout number, and this package"),
        (ABORT, "died of SIGABRT"),
        ("int missing(void); __attribute__((constructor)) static void f(void) { missing(); }", "missing"),
        (None, "cannot be preloaded"),
    ],
)
def test_a_library_that_does_not_load_into_programs(
    look: Look,
    library: Any,
    compiled: Compile,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    source: Any,
    words: str,
) -> None:
    path = tmp_path / "liboverlap.so"
    if source is None:
        path.write_text("not a library")
    else:
        path = compiled("liboverlap.so", source, "-shared", "-fPIC")
    monkeypatch.setattr(_native, "SHIM", path)
    ((state, sentence, hint),) = look("library")
    assert state == "fail" and words in sentence and hint == _native.AGAIN


@pytest.mark.parametrize("folder", ["missing", "a folder"])
def test_a_library_that_is_not_there_or_in_a_folder_with_spaces(
    look: Look, library: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str
) -> None:
    path = tmp_path / folder / "liboverlap.so"
    if folder == "a folder":
        path.parent.mkdir()
        path.write_bytes(b"")
    monkeypatch.setattr(_native, "SHIM", path)
    ((state, sentence, _),) = look("library")
    assert state == "fail" and ("is missing" in sentence or "LD_PRELOAD cannot hold" in sentence)


def test_a_check_that_raises_is_reported_and_the_others_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(machine: Machine) -> Iterator[Any]:
        yield from ()
        raise ValueError("over\nhere")

    def wrong(machine: Machine) -> Iterator[Any]:
        yield from ()
        raise OverlapError("a sentence", "a hint")

    made = (checks.Check("one", broken), checks.Check("two", wrong), checks.CHECKS[1])
    monkeypatch.setattr(checks, "CHECKS", made)
    found = [tuple(checked.line) for checked in checks.run(Machine({"OVERLAP_RUN": "off"}))]
    assert found[0][:2] == ("warn", "the check one made a mistake (ValueError: over here)")
    assert found[1] == ("fail", "a sentence", "a hint")
    assert len(found) == 3


def test_every_line_that_is_not_ok_says_what_to_do(look: Look) -> None:
    everything = {"OVERLAP_RUN": "off", "CUDA_DEVICE_MAX_CONNECTIONS": "1", "CUDA_LAUNCH_BLOCKING": "1"}
    lines = [line for check in checks.CHECKS for line in look(check.name, KFD, access=False, **everything)]
    assert {"warn", "fail"} <= set(states(lines))
    for state, sentence, hint in lines:
        assert state in ("ok", "warn", "fail")
        assert bool(hint) == (state != "ok"), sentence
        assert not sentence.endswith(".") and "\n" not in sentence + hint


def test_the_command(overlap: Any, library: Any) -> None:
    words = ("doctor", "--simulate", "h100")
    found = json.loads(overlap(*words, "--json").stdout)
    assert (found["ok"], found["verdict"], found["version"]) == (True, "nothing is in the way", 1)
    assert found["checks"][0].keys() == {"check", "state", "sentence", "hint"}
    assert {"check": "library", "state": "ok"}.items() <= found["checks"][0].items()
    shown = overlap(*words, env={"LD_BIND_NOT": "1\x1b[31m"})
    assert (shown.returncode, shown.stderr) == (0, "")
    assert shown.stdout.startswith("nothing is in the way; warning: LD_BIND_NOT=1")
    assert "\nok    the library loads into programs" in shown.stdout
    assert "\nwarn  LD_BIND_NOT=1" in shown.stdout and "\x1b" not in shown.stdout


def test_what_is_in_the_way_is_the_first_line_and_exit_status_1(overlap: Any, library: Any) -> None:
    env = {"CUDA_LAUNCH_BLOCKING": "1", "OVERLAP_RUN": "off"}
    done = overlap("doctor", "--simulate", "h100", env=env)
    first = "in the way: OVERLAP_RUN=off: overlap-run does nothing here (and 1 more)"
    assert (done.returncode, done.stdout.splitlines()[0]) == (1, first)
    found = json.loads(overlap("doctor", "--simulate", "h100", "--json", env=env).stdout)
    assert (found["ok"], found["verdict"]) == (False, first)
    assert overlap("doctor", env={"LD_LIBRARY_PATH": ""}).returncode == (not os.path.exists("/dev/nvidiactl"))


@pytest.mark.parametrize(
    ("arguments", "status"),
    [(("nosuch",), 1), (("--policy", "nosuch"), 1), (("--simulate", "nosuch"), 2), (("--nosuch",), 2)],
)
def test_a_finding_is_1_and_usage_is_2(overlap: Any, library: Any, arguments: tuple[str, ...], status: int) -> None:
    done = overlap("doctor", *arguments)
    assert done.returncode == status
    assert "Traceback" not in done.stderr and (done.stderr if status == 2 else done.stdout).count("nosuch") >= 1


def test_nothing_is_written_and_pytorch_is_not_imported(
    overlap: Any, library: Any, tmp_path: Path, clean_environment: dict[str, str]
) -> None:
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch/__init__.py").write_text("raise SystemExit('torch was imported')")
    done = overlap("doctor", "--simulate", "h100", "python3", env={
        "PYTHONPATH": f"{clean_environment['PYTHONPATH']}:{tmp_path}", "HOME": str(tmp_path), "TMPDIR": str(tmp_path),
        "PYTHONDONTWRITEBYTECODE": "1",
    }, cwd=tmp_path)  # fmt: skip
    assert "torch was imported" not in done.stdout + done.stderr
    assert sorted(os.listdir(tmp_path)) == ["torch"] and os.listdir(tmp_path / "torch") == ["__init__.py"]


def test_a_warning_is_said_in_the_first_line(overlap: Any, library: Any, tmp_path: Path) -> None:
    (tmp_path / "odd").write_bytes(b"\x7fELF cut off")
    (tmp_path / "odd").chmod(0o755)
    done = overlap("doctor", "--simulate", "h100", str(tmp_path / "odd"))
    assert done.stdout.startswith(f"nothing is in the way; warning: {tmp_path}/odd: it is no ELF file"), done.stdout
