"""overlap explain --gpu: one kernel beside one communication kernel: screens, JSON, and how it fails."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.cli.narrow import says_the_same

GOLDEN = Path(__file__).parent / "golden"
ROOT = Path(__file__).resolve().parents[2]
NCCL = {"comm-threads": 288, "comm-registers": 96, "comm-static-smem": 21568, "comm-dynamic-smem": 82240}
GEMM = {"gpu": "h100", "threads": 128, "registers": 224, "dynamic-smem": "48KiB", **NCCL}


def options(**changes) -> list[str]:
    asked = {**GEMM, **{name.replace("_", "-"): value for name, value in changes.items()}}
    return [f"--{name}={value}" for name, value in asked.items() if value is not None]


MINE = "tests/cli/golden/explain.yaml"  # rules on lines 6, 9, 11
SCREENS = {
    "make-room": options(),
    "smaller-communication": options(comm_threads=640),
    "below-keep": options(registers=32, dynamic_smem=0),
    "many-sizes": options(threads=32, registers=16, dynamic_smem=0, comm_threads=32, comm_dynamic_smem=0,
                          comm_static_smem=0),
    "no-room": options(threads=384, registers=168, dynamic_smem=0),
    "cannot-launch": options(threads=2000),
    "nowhere": options(gpu="a40", comm_dynamic_smem=99999),
    "policy": options(policy=MINE, kernel="gemm", registers=32, dynamic_smem=0),
    "in-windows": options(policy=MINE, kernel="flash_attention"),
    "no-rule": options(policy=MINE, kernel="gemm", blocks=100),
    "amd": options(gpu="mi250x", threads=256, registers=64, static_smem=8192, dynamic_smem=0, comm_threads=256,
                   comm_registers=280, comm_static_smem=19808, comm_dynamic_smem=0, keep_at_least="25%"),
}  # fmt: skip


@pytest.mark.parametrize("name", SCREENS)
def test_a_screen_is_golden_and_fits(overlap, library, name):
    words = SCREENS[name]
    wide, narrow = (
        overlap("explain", *words, cwd=ROOT, env={"COLUMNS": columns, "PYTHONIOENCODING": "utf-8"})
        for columns in ("80", "60")
    )
    if os.environ.get("OVERLAP_WRITE_GOLDEN"):
        (GOLDEN / f"explain-{name}.txt").write_text(wide.stdout, encoding="utf-8")
    assert (wide.returncode, wide.stderr, wide.stdout) == (0, "", golden(name))
    lines = wide.stdout.splitlines()
    assert len(lines) <= 22
    assert max(map(len, lines)) <= 80
    says_the_same(narrow.stdout, wide.stdout)


def golden(name):
    return (GOLDEN / f"explain-{name}.txt").read_text()


def test_json_is_one_object_on_stdout(overlap, library):
    done = overlap("explain", *options(), "--json")
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    assert (found["control"], found["dynamic_shared_memory"], found["reason"]) == ("make_room", 115713, "shaped")
    assert found["windows"] == [{"blocks": 1, "minimum": 115713, "maximum": 127616, "inflates": True}]


def test_the_published_sentence(overlap, library):
    found = json.loads(overlap("explain", *options(comm_threads=640, comm_static_smem=20832), "--json").stdout)
    assert found["help"] == "NCCL_NTHREADS=256 with NCCL_ALGO=Ring would: k=1, 115,713 to 128,256 bytes"


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["README.md"], "README.md is no trace that we can read"),
        (["/bin/ls"], "/bin/ls is no trace that we can read"),
        (["/dev/null"], "/dev/null is a pipe, a socket or a device"),
    ],
    ids=lambda value: " ".join(value[-2:]) if isinstance(value, list) else "",
)
def test_a_mistake_about_files_is_one_sentence(overlap, library, arguments, error):
    done = overlap("explain", *arguments, cwd=ROOT)
    assert (done.returncode, done.stdout) == (2, "")
    first, *hints = done.stderr.splitlines()
    assert first.startswith(f"overlap: error: {error}")
    assert all(hint.startswith("overlap: help: ") for hint in hints) and len(hints) <= 1


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        pytest.param(["--gpu=h100"], "missing required options: --threads, --registers\n", id="a GPU alone"),
        pytest.param(options(comm_threads=None), "missing required option: --comm-threads", id="one missing"),
        pytest.param(options(gpu="h10"), "--gpu: no GPU is called `h10`", id="unknown GPU"),
        pytest.param(["--json", *options(gpu="h10")], "--gpu: no GPU is called `h10`", id="unknown GPU, as JSON"),
        pytest.param(options(threads=-5), "--threads: `-5` is below 0", id="negative"),
        pytest.param([*options(threads=None), "--threads", "-5"], "--threads: `-5` is below 0", id="negative, apart"),
        pytest.param(options(dynamic_smem="96kb"), "--dynamic-smem: `96kb` is not a size", id="size"),
        pytest.param(options(shape="mak_room"), "--shape: `mak_room` is not a shape", id="shape"),
        pytest.param(options(keep_at_least="150%"), "--keep-at-least: `150%` is not between", id="percentage"),
        pytest.param(options(policy="a100"), "`a100` is not for NVIDIA H100 80GB HBM3: every launch is counted there",
                     id="policy for another GPU"),
        pytest.param(options(policy="no-such"), "there is no policy `no-such`", id="policy"),
        pytest.param(options(policy="observe", shape="leave"), "--shape: goes without a policy", id="both"),
        pytest.param(["--thread", "1"], "unrecognized arguments: --thread", id="unknown option"),
        pytest.param(["--threads"], "argument --threads: expected one argument", id="no value"),
    ],
)  # fmt: skip
def test_a_usage_error_is_one_sentence(overlap, library, arguments, error):
    done = overlap("explain", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    first, *hints = done.stderr.splitlines()
    assert f"{first}\n".startswith(f"overlap: error: {error}")
    assert all(hint.startswith("overlap: help: ") for hint in hints) and len(hints) <= 1


def test_a_policy_that_is_for_the_gpu_is_named(overlap, library):
    assert "help: `h100` is: --policy h100" in overlap("explain", *options(policy="a100")).stderr


def test_what_cannot_be_launched_is_no_failure(overlap, library):
    for changes in ({"threads": 0}, {"threads": 10**12}, {"registers": 300}, {"dynamic_smem": 10**13}):
        done = overlap("explain", *options(**changes), "--json")
        found = json.loads(done.stdout)
        assert (done.returncode, found["native_blocks"], found["control"]) == (0, 0, "leave")
        assert found["reason"] == "cannot_launch"
        assert found["dynamic_shared_memory"] == changes.get("dynamic_smem", 49152)
