"""overlap doctor: each check on machines that are folders, and that it is told whatever it finds."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Callable

import pytest

from pyshim import _native
from pyshim.doctor import checks
from pyshim.doctor.machine import Machine
from pyshim.errors import OverlapError

Look = Callable[..., list[tuple[str, str, str]]]


@pytest.fixture
def look(tmp_path: Path) -> Look:
    """look("cu-mask", HSA_CU_MASK="1") -> (state, sentence, hint) of the lines of that check. Files are made below the
    root; access: whether devices are open to this user."""

    def looked(
        check: str, files: tuple[str, ...] = (), access: bool = True, packages: Any = (), **environment: str
    ) -> Any:
        for file in files:
            path = tmp_path / file.lstrip("/")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(b"")
        environment = {name: value.replace("ROOT", str(tmp_path)) for name, value in environment.items()}
        folders = tuple(str(tmp_path / folder) for folder in packages)
        machine = Machine(environment, str(tmp_path), folders, lambda path, mode: access)
        return [tuple(line) for line in dict(checks.CHECKS)[check](machine)]

    return looked


KFD = ("/dev/kfd",)


def states(lines: list[tuple[str, str, str]]) -> list[str]:
    return [state for state, _, _ in lines]


def test_a_machine_without_anything_is_told_what_to_do(look: Look) -> None:
    assert look("driver") == [
        (
            "warn",
            "no driver of a GPU: neither libcuda.so.1 nor /dev/kfd is there",
            "on a machine without a GPU: overlap-run --simulate h100 PROGRAM",
        )
    ]
    for name, _ in checks.CHECKS:
        if name not in ("library", "driver"):
            assert look(name) == [], name


def test_drivers(look: Look) -> None:
    assert look("driver", ("/proc/driver/nvidia/version",)) == [("ok", "NVIDIA's driver is there", "")]
    assert states(look("driver", KFD)) == ["ok", "ok"]
    lines = look("driver", access=False)
    assert states(lines) == ["ok", "fail"]
    assert lines[1][1] == "this user may not read and write /dev/kfd, so HIP finds no GPU"


def test_a_device_is_asked_for_reading_and_writing(tmp_path: Path) -> None:
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev" / "kfd").write_bytes(b"")
    asked = []
    machine = Machine({}, str(tmp_path), (), lambda path, mode: bool(asked.append((path, mode))))
    assert [line.state for line in checks.drivers(machine)] == ["fail"]
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


def test_nothing_of_amd_is_told_where_only_a_runtime_is_there_beside_nvidias_driver(look: Look) -> None:
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
        ("connections", {"CUDA_DEVICE_MAX_CONNECTIONS": "1"}, 1),
        ("connections", {"CUDA_DEVICE_MAX_CONNECTIONS": "8"}, 0),
        ("switched-off", {"OVERLAP_RUN": "off"}, 1),
        ("switched-off", {"OVERLAP_RUN": "on"}, 0),
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


def test_what_hides_gpus_is_told_for_nvidia_too_and_nothing_else(look: Look) -> None:
    assert look("visible-devices", HIP_VISIBLE_DEVICES="0", CUDA_VISIBLE_DEVICES="1") == []
    assert states(look("visible-devices", CUDA_VISIBLE_DEVICES="-1")) == ["warn"]


def test_the_library(look: Look, library: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert states(look("library")) == ["ok"]
    with monkeypatch.context() as patched:
        patched.setattr(_native, "SHIM", Path("/a folder/liboverlap.so"))
        assert states(look("library")) == ["fail"]

    def missing() -> Any:
        raise OverlapError("the library cannot be loaded: no such file", "install it")

    monkeypatch.setattr(_native, "library", missing)
    assert look("library") == [("fail", "the library cannot be loaded: no such file", "install it")]


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
    lines = [line for name, _ in checks.CHECKS for line in look(name, KFD, access=False, **everything)]
    assert {"warn", "fail"} <= set(states(lines))
    for state, sentence, hint in lines:
        assert state in ("ok", "warn", "fail")
        assert bool(hint) == (state != "ok"), sentence
        assert not sentence.endswith(".") and "\n" not in sentence + hint


def test_the_command(overlap: Any, library: Any) -> None:
    done = overlap("doctor", "--json", env={"HSA_CU_MASK": "1"})
    found = json.loads(done.stdout)
    assert (done.returncode, done.stderr, found["ok"]) == (0, "", True)
    assert {"check": "library", "state": "ok"}.items() <= found["checks"][0].items()
    shown = overlap("doctor", env={"HSA_CU_MASK": "1\x1b[31m"})
    assert (shown.returncode, shown.stdout) == (0, "")
    assert shown.stderr.startswith("ok    the library loads")
    assert "\nwarn  HSA_CU_MASK=1" in shown.stderr and "\x1b" not in shown.stderr
    assert max(map(len, shown.stderr.splitlines())) <= 80
    failed = overlap("doctor", env={"LD_LIBRARY_PATH": "", "CUDA_VISIBLE_DEVICES": "0"})
    assert failed.returncode == 0


def test_a_failure_is_exit_status_1(overlap: Any, library: Any, tmp_path: Path) -> None:
    (tmp_path / "libamdhip64.so.6").write_bytes(b"")
    wrong = {"LD_LIBRARY_PATH": str(tmp_path), "ROCR_VISIBLE_DEVICES": "0", "HIP_VISIBLE_DEVICES": "4"}
    done = overlap("doctor", env=wrong)
    assert done.returncode == 1
    assert "\nFAIL  HIP_VISIBLE_DEVICES=4 counts among the 1 " in done.stderr
    assert json.loads(overlap("doctor", "--json", env=wrong).stdout)["ok"] is False
