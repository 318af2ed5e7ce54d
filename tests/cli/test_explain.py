"""overlap explain: its help, its screens, where answers go, and how it fails."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pyshim.policy.gpus import known

GOLDEN = Path(__file__).parent / "golden"
ROOT = Path(__file__).resolve().parents[2]
NCCL = {"comm-threads": 288, "comm-registers": 96, "comm-static-smem": 21568, "comm-dynamic-smem": 82240}
GEMM = {"gpu": "h100", "threads": 128, "registers": 224, "dynamic-smem": "48KiB", **NCCL}


def options(**changes) -> list[str]:
    asked = {**GEMM, **{name.replace("_", "-"): value for name, value in changes.items()}}
    return [f"--{name}={value}" for name, value in asked.items() if value is not None]


def test_help_is_golden_and_fits_a_terminal(overlap):
    done = overlap("explain", "--help")
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == (GOLDEN / "overlap-explain.txt").read_text()
    assert max(map(len, done.stderr.splitlines())) <= 80


def test_help_names_every_gpu(overlap, library):
    from pyshim.cli.explain import GPUS

    assert GPUS.split(", ") == [gpu.key for gpu in known()]


SCREENS = {
    "make-room": options(),
    "smaller-communication": options(comm_threads=640),
    "below-keep": options(registers=32, dynamic_smem=0),
    "many-sizes": options(threads=32, registers=16, dynamic_smem=0, comm_threads=32, comm_dynamic_smem=0,
                          comm_static_smem=0),
    "no-room": options(threads=384, registers=168, dynamic_smem=0),
    "cannot-launch": options(threads=2000),
    "nowhere": options(gpu="a40", comm_dynamic_smem=99999),
    "policy": options(policy=GOLDEN / "explain.yaml", kernel="gemm", registers=32, dynamic_smem=0),
    "in-windows": options(policy=GOLDEN / "explain.yaml", kernel="flash_attention"),
    "no-rule": options(policy=GOLDEN / "explain.yaml", kernel="gemm", blocks=100),
    "amd": options(gpu="mi250x", threads=256, registers=64, static_smem=8192, dynamic_smem=0, comm_threads=256,
                   comm_registers=280, comm_static_smem=19808, comm_dynamic_smem=0, keep_at_least="25%"),
}  # fmt: skip


@pytest.mark.parametrize("name", SCREENS)
def test_a_screen_is_golden_and_fits(overlap, library, name):
    done = overlap("explain", *SCREENS[name])
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert done.stderr == (GOLDEN / f"explain-{name}.txt").read_text()
    assert len(done.stderr.splitlines()) <= 30
    assert max(map(len, done.stderr.splitlines())) <= 80


def test_json_is_one_object_on_stdout(overlap, library):
    done = overlap("explain", *options(), "--json")
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    assert (found["control"], found["dynamic_shared_memory"], found["reason"]) == ("make_room", 115713, "shaped")
    assert found["windows"] == [{"blocks": 1, "minimum": 115713, "maximum": 127616, "inflates": True}]


def test_the_published_sentence(overlap, library):
    found = json.loads(overlap("explain", *options(comm_threads=640, comm_static_smem=20832), "--json").stdout)
    assert found["help"] == "NCCL_NTHREADS=256 with NCCL_ALGO=Ring would: k=1, 115,713 to 128,256 bytes"


FATBIN, DEMO = "tests/simgpu/data/kernels.fatbin", "tools/demo/demo_sm90.cubin"
SURVEYS = {
    "from-fatbin": ["--from", FATBIN, "--threads", "128"],
    "from-demo": ["--from", DEMO, "--gpu", "h100", "--comm-from", DEMO, "--shape", "blocks_per_sm=50%"],
    "from-sets": ["--from", DEMO, FATBIN, "--gpu", "h100", "--comm-threads", "96", "--comm-registers", "32",
                  "--comm-static-smem", "60KiB"],
}  # fmt: skip


@pytest.mark.parametrize("name", SURVEYS)
def test_a_survey_is_golden(overlap, library, name):
    done = overlap("explain", *SURVEYS[name], cwd=ROOT)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert done.stderr == (GOLDEN / f"explain-{name}.txt").read_text()
    assert max(map(len, done.stderr.splitlines())) <= 100


def test_a_survey_as_json_is_one_object(overlap, library):
    done = overlap("explain", "--from", FATBIN, "--gpu", "a40", "--json", cwd=ROOT)
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    assert [answer["kernel"] for answer in found["groups"][0]["answers"]] == ["_Z5empty1SPi", "bounded", "saxpy"]


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["--from", "README.md"], "README.md: neither an ELF file nor a fat binary nor a code object"),
        (["--from", "/bin/ls"], "/bin/ls: no GPU code in it"),
        (["--from", FATBIN, "--gpu", "h10"], "--gpu: no GPU is called `h10`"),
        (["--from", FATBIN, "--registers", "10"], "--registers goes without --from"),
        (["--from", FATBIN, "--shape", "x"], "--shape: `x` is not a shape"),
        (["--from", FATBIN, "--kernel", "a["], "`a[` has a `[` without a `]`"),
        (["--from", FATBIN, "--comm-threads", "64"], "needed, and not said: --comm-registers"),
        (["--from", FATBIN, "--comm-kernel", "x"], "--comm-kernel goes with --comm-from FILE"),
        (["--from", FATBIN, "--comm-from", DEMO, "--comm-threads", "64"], "--comm-threads goes without --comm-from"),
        (["--from", FATBIN, "--policy", "no-such"], "there is no policy `no-such`"),
        (["--comm-from", DEMO], "--comm-from and --comm-kernel go with --from"),
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
        pytest.param([], "needed, and not said: --gpu, --threads, --registers, --comm-threads, --comm-registers",
                     id="nothing"),
        pytest.param(options(comm_threads=None), "needed, and not said: --comm-threads", id="one missing"),
        pytest.param(options(gpu="h10"), "--gpu: no GPU is called `h10`", id="unknown GPU"),
        pytest.param(options(threads=-5), "--threads: `-5` is below 0", id="negative"),
        pytest.param([*options(threads=None), "--threads", "-5"], "--threads: `-5` is below 0", id="negative, apart"),
        pytest.param(options(dynamic_smem="96kb"), "--dynamic-smem: `96kb` is not a size", id="size"),
        pytest.param(options(shape="mak_room"), "--shape: `mak_room` is not a shape", id="shape"),
        pytest.param(options(keep_at_least="150%"), "--keep-at-least: `150%` is not between", id="percentage"),
        pytest.param(options(policy="no-such"), "there is no policy `no-such`", id="policy"),
        pytest.param(options(policy="observe", shape="leave"), "--shape: goes without a policy", id="both"),
        pytest.param(["--stdin"], "--stdin goes with --json and nothing else", id="stdin without json"),
        pytest.param(["--stdin", "--json", "--gpu", "h100"], "--stdin goes with --json and nothing else", id="stdin"),
        pytest.param(["--thread", "1"], "unrecognized arguments: --thread", id="unknown option"),
        pytest.param(["--threads"], "argument --threads: expected one argument", id="no value"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("json_too", [False, True])
def test_a_usage_error_is_one_sentence(overlap, library, arguments, error, json_too):
    before = ["--json"] if json_too and "--stdin" not in arguments else []
    done = overlap("explain", *before, *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    first, *hints = done.stderr.splitlines()
    assert first.startswith(f"overlap: error: {error}")
    assert all(hint.startswith("overlap: help: ") for hint in hints) and len(hints) <= 1


def test_a_gpu_is_guessed(overlap, library):
    assert "overlap: help: did you mean `h100`?; known: a100, a40, " in overlap("explain", *options(gpu="h10")).stderr


def test_what_cannot_be_launched_is_no_failure(overlap, library):
    for changes in ({"threads": 0}, {"threads": 10**12}, {"registers": 300}, {"dynamic_smem": 10**13}):
        done = overlap("explain", *options(**changes), "--json")
        found = json.loads(done.stdout)
        assert (done.returncode, found["native_blocks"], found["control"]) == (0, 0, "leave")
        assert found["reason"] == "cannot_launch"
        assert found["dynamic_shared_memory"] == changes.get("dynamic_smem", 49152)


def test_a_name_cannot_move_the_cursor(overlap, library, tmp_path):
    (tmp_path / "mine.yaml").write_text("policy: 1\nname: mine\ncompute: []\ncommunication: {priority: highest}\n")
    done = overlap("explain", *options(policy=str(tmp_path / "mine.yaml"), kernel="a\x1b[31mb"))
    assert done.returncode == 0
    assert "\x1b" not in done.stderr
