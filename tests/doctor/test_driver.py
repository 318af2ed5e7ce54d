"""The driver is asked by a process of its own: real libraries of simulated GPUs, and stubs that fail in every way."""

from __future__ import annotations

import json
import os
import re
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any, Callable

import psutil
import pytest
from doctoring import Compile, Lines, Look, states

from pyshim.doctor import ask, machine
from pyshim.start import driver

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def driven(look: Look, stub: Callable[..., str]) -> Callable[..., Lines]:
    """Run a check on a machine whose driver is the stub."""
    return lambda check, machine=None, **environment: look(
        check, machine=machine, LD_LIBRARY_PATH=stub(), **environment
    )


def test_the_driver_answers(driven: Callable[..., Lines]) -> None:
    assert driven("driver", STUB_COUNT="2") == [
        ("ok", "NVIDIA's driver answers (CUDA 12.8): 2 GPUs", ""),
        ("ok", "GPUs 0-1: NVIDIA A100-SXM4-80GB (sm_80), 108 multiprocessors, 80 GiB", ""),
    ]


def test_the_kernel_modules_version_is_told(driven: Callable[..., Lines], tmp_path: Path) -> None:
    (tmp_path / "proc/driver/nvidia").mkdir(parents=True)
    text = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build  (me@here)\nGCC 15.3.0\n"
    (tmp_path / "proc/driver/nvidia/version").write_text(text)
    assert driven("driver")[0][1] == "NVIDIA's driver answers (CUDA 12.8, kernel module 580.159.04): 1 GPU"


def test_a_driver_that_hangs_is_killed_with_what_it_started(driven: Callable[..., Lines], tmp_path: Path) -> None:
    child = tmp_path / "child"
    lines = driven("driver", machine={"patience": 0.5}, STUB_INIT="hang", STUB_CHILD=str(child))
    assert states(lines) == ["fail"]
    assert lines[0][1] == (
        "NVIDIA's driver: libcuda.so.1: the process that asked it was killed: it did not answer in time"
    )
    left = int(child.read_text())
    with suppress(psutil.NoSuchProcess):
        ended, _ = psutil.wait_procs([psutil.Process(left)], timeout=20)
        assert ended or psutil.Process(left).status() == psutil.STATUS_ZOMBIE


def test_a_driver_that_crashes_is_told(driven: Callable[..., Lines]) -> None:
    lines = driven("driver", STUB_INIT="crash")
    assert states(lines) == ["fail"] and "died of SIGABRT" in lines[0][1]


@pytest.mark.parametrize(
    ("code", "words", "hint"),
    [
        ("100", "error 100 (CUDA_ERROR_NO_DEVICE)", "CUDA_VISIBLE_DEVICES"),
        ("802", "error 802 (CUDA_ERROR_OF_THE_STUB)", "nvidia-fabricmanager"),
        ("803", "error 803", "another version than the kernel module"),
        ("777", "error 777", "nvidia-smi"),
    ],
)
def test_an_error_of_the_driver_has_its_own_hint(driven: Any, code: str, words: str, hint: str) -> None:
    ((state, sentence, said),) = driven("driver", STUB_INIT=code)
    assert state == "fail" and words in sentence and hint in said


def test_what_hides_every_gpu_is_the_hint(driven: Callable[..., Lines]) -> None:
    ((state, _, hint),) = driven("driver", STUB_INIT="100", CUDA_VISIBLE_DEVICES="-1")
    assert (state, hint) == ("fail", "unset CUDA_VISIBLE_DEVICES, which hides every GPU")


def test_a_driver_without_gpus(driven: Callable[..., Lines]) -> None:
    assert states(driven("driver", STUB_COUNT="0")) == ["fail"]


def test_a_kernel_module_without_its_library(look: Look) -> None:
    ((state, sentence, hint),) = look("driver", ("/proc/driver/nvidia/version",))
    assert state == "fail" and "it does not load" in sentence and "--gpus all" in hint


def test_a_library_that_is_no_driver(look: Look, tmp_path: Path) -> None:
    (tmp_path / "libcuda.so.1").write_bytes(b"nothing")
    ((state, sentence, _),) = look("driver", LD_LIBRARY_PATH="ROOT")
    assert state == "fail" and "it does not load" in sentence


def test_a_gpu_that_no_program_may_use(driven: Callable[..., Lines]) -> None:
    assert states(driven("driver", STUB_COMPUTE_MODE="2")) == ["ok", "fail"]
    assert states(driven("driver", STUB_COMPUTE_MODE="3")) == ["ok", "ok"]


HIP = """
const char *hipGetErrorName(int code) { return code == 100 ? "hipErrorNoDevice" : "?"; }
int hipGetDeviceCount(int *count) { *count = 0; for (int code = CODE;;) if (code) return code; }
"""


@pytest.mark.parametrize(
    ("code", "words"),
    [("100", "AMD's runtime: error 100 (hipErrorNoDevice)"), ("0", "was killed: it did not answer in time")],
)
def test_amds_runtime_that_fails_or_hangs(look: Look, compiled: Compile, code: str, words: str) -> None:
    library = compiled("libamdhip64.so.6", HIP.replace("CODE", code), "-shared", "-fPIC")
    machine = {"patience": 0.5}
    first, second = look("driver", ("/dev/kfd",), machine=machine, LD_LIBRARY_PATH=str(library.parent))
    assert first[0] == "ok" and second[0] == "fail" and words in second[1] and second[2]


SIMULATED = [("h100", "nvidia"), ("mi250x", "amd")]


@pytest.mark.parametrize(("gpu", "vendor"), SIMULATED)
def test_simulated_gpus(overlap: Any, library: Any, gpu: str, vendor: str) -> None:
    done = overlap("doctor", "--simulate", f"{gpu},3", "--json")
    found = json.loads(done.stdout)
    told = [check["sentence"] for check in found["checks"] if check["check"] == "driver"]
    name = driver.parse(gpu).name
    assert len(told) == 2 and told[0].startswith("the simulated") and told[0].endswith(": 3 GPUs")
    assert told[1].startswith(f"GPUs 0-2: {name} (")
    policy = [check["sentence"] for check in found["checks"] if check["check"] == "policy"]
    assert policy == [f"policy {'mi250x' if gpu == 'mi250x' else 'default'} is for GPUs 0-2 ({name})"]


def test_amds_numbers_are_where_the_library_reads_them() -> None:
    """One fact, two languages: HIP_PROPERTIES_* of the header, in the order of struct hip_properties."""
    header = (ROOT / "shim/hip/hip_abi.h").read_text()
    for version, function in (("R0600", "hipGetDevicePropertiesR0600"), ("R0000", "hipGetDeviceProperties")):
        row = re.search(rf"HIP_PROPERTIES_{version} \{{(.*)\}}", header)
        assert row
        numbers = [int(number) for number in row[1].split(",")]
        size, multiprocessors, architecture = numbers[0], numbers[4], numbers[6]
        assert ask.HIP_PROPERTIES[function] == (size, multiprocessors, architecture)


def test_nvidias_numbers_are_those_of_its_header() -> None:
    bindings = pytest.importorskip("cuda.bindings.driver").CUdevice_attribute
    names = {
        "multiprocessors": "MULTIPROCESSOR_COUNT",
        "compute_mode": "COMPUTE_MODE",
        "major": "COMPUTE_CAPABILITY_MAJOR",
        "minor": "COMPUTE_CAPABILITY_MINOR",
    }
    for word, name in names.items():
        assert int(getattr(bindings, f"CU_DEVICE_ATTRIBUTE_{name}")) == ask.CUDA_ATTRIBUTES[word]


def test_a_policy_that_is_for_no_gpu_here(driven: Callable[..., Lines]) -> None:
    assert driven("policy")[0][:2] == ("ok", "policy default is for GPU 0 (NVIDIA A100-SXM4-80GB)")
    assert driven("policy", machine={"policy": "a100-paper"})[0][:2] == (
        "ok",
        "policy a100-paper is for GPU 0 (NVIDIA A100-SXM4-80GB)",
    )
    ((state, sentence, _),) = driven("policy", machine={"policy": "h100-paper"})
    assert state == "fail" and "policy h100-paper is not for GPU 0 (NVIDIA A100-SXM4-80GB)" in sentence
    ((state, sentence, _),) = driven("policy", OVERLAP_POLICY="nonsense")
    assert state == "fail" and sentence.startswith("OVERLAP_POLICY=nonsense: there is no policy")
    assert driven("policy", OVERLAP_POLICY="off") == []
    assert driven("policy", machine={"policy": "h100"})[0][2] == "the policy default is for every GPU"
    assert driven("policy", STUB_NAME="NVIDIA T4")[0][1] == "policy default is for GPU 0 (NVIDIA T4)"
    for text, words in (("garbage", "is not base64"), ("Z2FyYmFnZQ==", "OVERLAP_TABLE: ")):
        ((state, sentence, hint),) = driven("policy", OVERLAP_TABLE=text)
        assert state == "fail" and words in sentence and "unset it" in hint


def test_the_policy_of_an_overlap_run_around_it(overlap_run: Any, library: Any) -> None:
    command = [sys.executable, "-m", "pyshim", "doctor", "--json"]
    done = overlap_run("--policy", "h100", "--simulate", "a100", *command, env={"LD_PRELOAD": ""})
    found = json.loads(done.stdout)
    told = [check for check in found["checks"] if check["check"] == "policy"]
    assert [check["state"] for check in told] == ["fail"], told
    assert told[0]["sentence"].startswith(
        "the policy from around this command (overlap-run, a module, a prolog) is not"
    )
    preloaded = [check["sentence"] for check in found["checks"] if check["check"] == "preloads"]
    assert preloaded == ["LD_PRELOAD has our library already"]


def test_nothing_is_left_in_the_report_of_an_overlap_run_around_it(
    overlap_run: Any, library: Any, tmp_path: Path
) -> None:
    command = [sys.executable, "-m", "pyshim", "doctor"]
    done = overlap_run("--report", str(tmp_path / "report"), "--simulate", "h100", *command)
    assert "the simulated driver answers (CUDA 13.0): 1 GPU" in done.stdout, done.stderr
    assert [path.suffix for path in (tmp_path / "report" / "last").iterdir()] == [".json"]


def test_our_library_is_silent_in_the_process_that_asks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The library's line at exit must not be taken for a message of the driver."""
    script = tmp_path / "ask.py"
    script.write_text("import os, sys; print(os.environ['OVERLAP_RUN'], file=sys.stderr); sys.exit(3)")
    monkeypatch.setattr(machine, "_ASK", str(script))
    answer = machine.ask("cuda", "libcuda.so.1", {**os.environ, "OVERLAP_RUN": "on"}, 20)
    assert answer.error == "the process that asked it ended with status 3 (off)"


def test_answers_that_make_no_sense(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number, text in enumerate(("[]", "{}", '{"version": "x"}', '{"version": 1, "gpus": [{}]}', "", "{")):
        script = tmp_path / f"{number}.py"
        script.write_text(f"import os, sys; os.write(int(sys.argv[3]), {text!r}.encode())")
        monkeypatch.setattr(machine, "_ASK", str(script))
        answer = machine.ask("cuda", "libcuda.so.1", os.environ, 20)
        assert (answer.gpus, answer.error) == ((), "the process that asked it gave no answer that makes sense"), text
