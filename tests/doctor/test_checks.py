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
            "warn",
            "no driver of a GPU: neither libcuda.so.1 nor /dev/kfd is there",
            "on a machine without a GPU: overlap-run --simulate h100 PROGRAM",
        )
    ]
    quiet = {
        "switched-off",
        "hip-runtime",
        "hardware-queues",
        "stream-priority",
        "cu-mask",
        "dispatch-table",
    }
    quiet |= {"visible-devices", "sharing", "users", "program", "own-variables"}
    for check in checks.CHECKS:
        lines = look(check.name)
        assert all(state == "ok" for state, _, _ in lines) or check.name in ("driver", "profilers"), check.name
        assert bool(lines) is (check.name not in quiet), check.name


def test_amds_driver(look: Look) -> None:
    assert states(look("driver", KFD)) == ["ok"]
    ((state, sentence, _),) = look("driver", access=False)
    assert (state, sentence) == ("fail", "this user may not read and write /dev/kfd, so HIP finds no GPU")


def test_a_device_is_asked_for_reading_and_writing(tmp_path: Path) -> None:
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev" / "kfd").write_bytes(b"")
    asked = []
    machine = Machine({}, str(tmp_path), (), lambda path, mode: bool(asked.append((path, mode))))
    assert [line.state for line in devices.drivers(machine)] == ["fail"]
    assert asked == [(str(tmp_path / "dev" / "kfd"), os.R_OK | os.W_OK)]


def test_hip_runtimes_are_found_where_the_loader_looks(look: Look, tmp_path: Path) -> None:
    assert states(look("hip-runtime", KFD)) == ["warn"], "a driver without a runtime"
    (line,) = look("hip-runtime", ("/opt/rocm/lib/libamdhip64.so.6", "/opt/rocm/lib/libamdhip64.so.6.4.3"))
    assert line == ("ok", f"HIP runtime: libamdhip64.so.6 ({tmp_path}/opt/rocm/lib/libamdhip64.so.6)", "")
    cache = tmp_path / "etc" / "ld.so.cache"
    cache.parent.mkdir()
    cache.write_bytes(
        b"glibc-ld.so.cache1.1\0libamdhip64.so.7\0/usr/lib/here/libamdhip64.so.7\0libc.so.6\0/lib/libc.so.6\0"
    )
    (line,) = look("hip-runtime")
    assert line[0] == "warn" and "libamdhip64.so.7 (/usr/lib/here/libamdhip64.so.7)" in line[1]
    (line,) = look("hip-runtime", ("/mine/libamdhip64.so.5",), LD_LIBRARY_PATH="ROOT/nothing:ROOT/mine")
    assert f"libamdhip64.so.5 ({tmp_path}/mine/libamdhip64.so.5)" in line[1]


def test_the_runtime_of_pytorch(look: Look) -> None:
    (line,) = look("hip-runtime", ("/site/torch/lib/libamdhip64.so", "/site/torch/lib/libc10.so"), packages=("site",))
    assert line[0] == "ok" and line[1].endswith("site/torch/lib/libamdhip64.so)")


@pytest.mark.parametrize(
    ("environment", "state", "words"),
    [
        ({}, "warn", "GPU_MAX_HW_QUEUES is not set, which means 4: "),
        ({"GPU_MAX_HW_QUEUES": "8"}, "warn", "without TORCH_NCCL_HIGH_PRIORITY=1"),
        ({"TORCH_NCCL_HIGH_PRIORITY": "0"}, "warn", "without TORCH_NCCL_HIGH_PRIORITY=1"),
        ({"TORCH_NCCL_HIGH_PRIORITY": "1"}, "ok", "queues of its own"),
        ({"GPU_MAX_HW_QUEUES": "8", "TORCH_NCCL_HIGH_PRIORITY": "true"}, "ok", "GPU_MAX_HW_QUEUES=8"),
        ({"GPU_MAX_HW_QUEUES": "1", "TORCH_NCCL_HIGH_PRIORITY": "1"}, "warn", "run one after the other"),
        ({"GPU_MAX_HW_QUEUES": "16"}, "warn", "13.6 % slower"),
        ({"GPU_MAX_HW_QUEUES": "0"}, "warn", "is not a number of queues"),
        ({"GPU_MAX_HW_QUEUES": "many"}, "warn", "is not a number of queues"),
    ],
)
def test_hardware_queues(look: Look, environment: dict[str, str], state: str, words: str) -> None:
    (line,) = look("hardware-queues", KFD, **environment)
    assert line[0] == state and words in line[1]


def test_amds_runtime_beside_nvidias_driver_is_not_mentioned(look: Look) -> None:
    runtime = ("/opt/rocm/lib/libamdhip64.so.5",)
    assert states(look("hardware-queues", runtime)) == ["warn"], "no driver at all: a login node"
    assert look("hardware-queues", ("/proc/driver/nvidia/version",)) == []
    assert look("visible-devices", HIP_VISIBLE_DEVICES="0", CUDA_VISIBLE_DEVICES="1") == []
    assert states(look("hardware-queues", KFD)) == ["warn"], "GPUs of both"


def test_a_number_of_queues_is_told_without_a_driver_too(look: Look) -> None:
    assert states(look("hardware-queues", GPU_MAX_HW_QUEUES="2")) == ["warn"]


@pytest.mark.parametrize(
    ("check", "environment", "lines"),
    [
        ("stream-priority", {"DEBUG_HIP_IGNORE_STREAM_PRIORITY": "1"}, 1),
        ("stream-priority", {"DEBUG_HIP_IGNORE_STREAM_PRIORITY": "0"}, 0),
        ("cu-mask", {"ROC_GLOBAL_CU_MASK": "0xff", "HSA_CU_MASK": "0:0-7"}, 2),
        ("cu-mask", {"HSA_CU_MASK": ""}, 0),
        ("dispatch-table", {"ROCPROFILER_REGISTER_ENABLED": "0", "ROCP_TOOL_LIBRARIES": "libtool.so"}, 2),
        ("dispatch-table", {"ROCPROFILER_REGISTER_ENABLED": "1"}, 0),
        ("switched-off", {"OVERLAP_RUN": "off"}, 1),
        ("switched-off", {"OVERLAP_RUN": "on"}, 0),
        ("switched-off", {"OVERLAP_POLICY": "off"}, 1),
        ("own-variables", {"OVERLAP_REPRT": "x", "OVERLAP_trace": "1"}, 2),
        ("own-variables", {"OVERLAP_REPRT": "", "OVERLAPS": "x"}, 1),
        ("variables", {"CUDA_DEVICE_MAX_CONNECTIONS": "abc"}, 1),
        ("variables", {"CUDA_DEVICE_MAX_CONNECTIONS": "0"}, 1),
        ("variables", {"CUDA_DEVICE_MAX_CONNECTIONS": "33"}, 1),
    ],
)
def test_variables(look: Look, check: str, environment: dict[str, str], lines: int) -> None:
    found = look(check, **environment)
    assert states(found) == ["warn"] * lines
    for (_, sentence, hint), name in zip(found, environment):
        assert sentence.startswith(name) and hint


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, []),
        ({"HIP_VISIBLE_DEVICES": "0,1"}, ["ok"]),
        ({"HIP_VISIBLE_DEVICES": "0,1", "CUDA_VISIBLE_DEVICES": "0, 1"}, ["ok"]),
        ({"HIP_VISIBLE_DEVICES": "0", "CUDA_VISIBLE_DEVICES": "1"}, ["warn"]),
        ({"ROCR_VISIBLE_DEVICES": "2,3", "HIP_VISIBLE_DEVICES": "0,1"}, ["ok"]),
        ({"ROCR_VISIBLE_DEVICES": "2,3", "HIP_VISIBLE_DEVICES": "2,3"}, ["fail"]),
        ({"ROCR_VISIBLE_DEVICES": "2", "CUDA_VISIBLE_DEVICES": "1"}, ["fail"]),
        ({"ROCR_VISIBLE_DEVICES": "GPU-1,GPU-2", "HIP_VISIBLE_DEVICES": "1"}, ["ok"]),
        ({"HIP_VISIBLE_DEVICES": "-1"}, ["warn"]),
        ({"CUDA_VISIBLE_DEVICES": ""}, ["warn"]),
    ],
)
def test_visible_devices(look: Look, environment: dict[str, str], expected: list[str]) -> None:
    assert states(look("visible-devices", KFD, **environment)) == expected


def test_only_variables_that_hide_every_gpu_are_reported_for_nvidia(look: Look) -> None:
    assert look("visible-devices", HIP_VISIBLE_DEVICES="0", CUDA_VISIBLE_DEVICES="1") == []
    assert states(look("visible-devices", CUDA_VISIBLE_DEVICES="-1")) == ["warn"]


def test_our_own_variables_are_known(look: Look) -> None:
    """Those of the library, of the commands and of our other parts, as the reference has them."""
    text = (Path(__file__).resolve().parents[2] / "docs" / "reference.md").read_text(encoding="utf-8")
    names = re.findall(r"^\| `(OVERLAP_\w+)` \|", text, re.M)
    assert len(names) > 9
    assert look("own-variables", **dict.fromkeys(names, "x")) == []


def test_a_name_a_letter_off_one_of_ours_has_a_hint(look: Look) -> None:
    ((_, sentence, hint),) = look("own-variables", OVERLAP_REPRT="x")
    assert sentence == "OVERLAP_REPRT is no variable of ours, so it does nothing" and "OVERLAP_REPORT" in hint


@pytest.mark.parametrize("value", ["2", "8", "32"])
def test_numbers_of_connections(look: Look, value: str) -> None:
    assert states(look("variables", CUDA_DEVICE_MAX_CONNECTIONS=value)) == ["ok"]


def test_the_variable_that_hides_every_gpu_comes_before_the_error_and_is_its_hint(overlap: Any, library: Any) -> None:
    done = overlap("doctor", "--simulate", "mi250x", env={"HIP_VISIBLE_DEVICES": ""})
    told = done.stdout.split("driver and GPUs\n")[1].splitlines()
    assert done.returncode == 1
    assert told[:4] == [
        "warn  HIP_VISIBLE_DEVICES= hides every GPU",
        "      -> unset it, unless this is meant",
        "FAIL  AMD's runtime: error 100 (hipErrorNoDevice)",
        "      -> unset HIP_VISIBLE_DEVICES, which hides every GPU",
    ]


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

    made = (checks.Check("one", "x", broken), checks.Check("two", "x", wrong), checks.CHECKS[1])
    monkeypatch.setattr(checks, "CHECKS", made)
    found = [tuple(checked.line) for checked in checks.run(Machine({"OVERLAP_RUN": "off"}))]
    assert found[0][:2] == ("warn", "the check one made a mistake (ValueError: over here)")
    assert found[1] == ("fail", "a sentence", "a hint")
    assert len(found) == 3


def test_every_line_that_is_not_ok_says_what_to_do(look: Look) -> None:
    everything = {
        "OVERLAP_RUN": "off",
        "GPU_MAX_HW_QUEUES": "1",
        "HSA_CU_MASK": "1",
        "ROCP_TOOL_LIBRARIES": "a",
        "ROCPROFILER_REGISTER_ENABLED": "0",
        "CUDA_DEVICE_MAX_CONNECTIONS": "1",
        "ROCR_VISIBLE_DEVICES": "0",
        "HIP_VISIBLE_DEVICES": "1",
        "DEBUG_HIP_IGNORE_STREAM_PRIORITY": "1",
    }
    lines = [line for check in checks.CHECKS for line in look(check.name, KFD, access=False, **everything)]
    assert {"warn", "fail"} <= set(states(lines))
    for state, sentence, hint in lines:
        assert state in ("ok", "warn", "fail")
        assert bool(hint) == (state != "ok"), sentence
        assert not sentence.endswith(".") and "\n" not in sentence + hint


def test_the_command(overlap: Any, library: Any) -> None:
    done = overlap("doctor", "--json", env={"HSA_CU_MASK": "1"})
    found = json.loads(done.stdout)
    assert (done.returncode, done.stderr, found["ok"], found["version"]) == (0, "", True, 1)
    assert found["checks"][0].keys() == {"check", "state", "sentence", "hint"}
    assert {"check": "library", "state": "ok"}.items() <= found["checks"][0].items()
    shown = overlap("doctor", env={"HSA_CU_MASK": "1\x1b[31m"})
    assert (shown.returncode, shown.stderr) == (0, "")
    assert shown.stdout.startswith("the library\nok    the library loads into programs")
    assert "\nwarn  HSA_CU_MASK=1" in shown.stdout and "\x1b" not in shown.stdout


def test_a_failure_is_exit_status_1(overlap: Any, library: Any, tmp_path: Path) -> None:
    (tmp_path / "libamdhip64.so.6").write_bytes(b"")
    wrong = {"LD_LIBRARY_PATH": str(tmp_path), "ROCR_VISIBLE_DEVICES": "0", "HIP_VISIBLE_DEVICES": "4"}
    done = overlap("doctor", env=wrong)
    assert done.returncode == 1
    assert "\nFAIL  HIP_VISIBLE_DEVICES=4 counts among the 1 " in done.stdout
    assert json.loads(overlap("doctor", "--json", env=wrong).stdout)["ok"] is False


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
    assert done.returncode == 0 and "torch was imported" not in done.stderr
    assert sorted(os.listdir(tmp_path)) == ["torch"] and os.listdir(tmp_path / "torch") == ["__init__.py"]
