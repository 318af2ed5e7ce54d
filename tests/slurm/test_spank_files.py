"""What the SPANK plugin reads: the library, the policies, and damaged files."""

from __future__ import annotations

import os
import random
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import spank
from spank_double import BATCH, IN_VAIN, INHERITED, PLAIN, Change, Double, compile_c, users

from pyshim import preload

# --- the library

BROKEN: dict[str, Change] = {
    "missing": lambda double: Path(double.library).unlink(),
    "of another architecture": lambda double: spank.foreign(Path(double.library)),
    "of 32 bits": lambda double: spank.overwrite(Path(double.library), 4, b"\x01"),
    "a program": lambda double: spank.overwrite(Path(double.library), 16, b"\x02"),
    "short": lambda double: Path(double.library).write_bytes(b"\x7fELF"),
    "no library": lambda double: Path(double.library).write_text("export LD_PRELOAD=x\n" * 100),
    "a folder": lambda double: (Path(double.library).unlink(), Path(double.library).mkdir()),
    "a pipe": lambda double: (Path(double.library).unlink(), os.mkfifo(double.library)),
    "a dangling link": lambda double: (Path(double.library).unlink(), Path(double.library).symlink_to("nowhere")),
}


@pytest.mark.parametrize("change", BROKEN.values(), ids=BROKEN)
def test_without_the_library_nothing_is_set(double: Double, change: Change) -> None:
    outside = double.task("h100", BATCH, **PLAIN, OVERLAP_REPORT="/r").variables
    change(double)
    done = double.task("h100", **PLAIN, OVERLAP_REPORT="/r")
    assert done.variables == {**PLAIN, "OVERLAP_REPORT": "/r"}
    assert re.fullmatch(r"verbose: comm-overlap: \S+ cannot be loaded here: the task runs without it\n", done.said)
    leaked = double.task("h100", **{**outside, INHERITED: "h100"}).variables
    assert leaked["LD_PRELOAD"] == "/lib/libmine.so", "the loader would complain in every process"


def preloads() -> Iterator[str]:
    yield from ("", ":", " ", "a", "/a.so:/b.so", "/a.so /b.so", f"/x/{spank.NAME}", f":{spank.NAME}: :/b.so:")
    yield from (f"/b.so:/l/libasan.so.8:/x/{spank.NAME}:/l/libclang_rt.tsan-x86_64.so", "/lib/libasan", "/libasan2.so")
    yield from ("/libasan_x.so:/libubsan.so:/libhwasan.so.0", f"/x/{spank.NAME}.1", "libtsan.so/x", "/lib/$LIB/x.so")
    words = ["/l/libasan.so.8", "libtsan.so", "/usr/lib/libm.so", f"/o/{spank.NAME}", spank.NAME, "x", ""]
    dice = random.Random(6)
    for _ in range(40):
        yield "".join(dice.choice(words) + dice.choice(": ") for _ in range(dice.randrange(1, 9)))


def test_the_list_of_libraries_is_that_of_overlap_run(double: Double) -> None:
    for value in preloads():
        done = double.task("h100", BATCH, LD_PRELOAD=value)
        assert done.variables["LD_PRELOAD"] == preload.merge(value, double.library), value


# --- policies

FORBIDDEN = (
    *("PATH", "LD_LIBRARY_PATH", "LD_AUDIT", "BASH_ENV", "ENV", "HOME", "IFS", "PYTHONPATH", "GLIBC_TUNABLES", "RANK"),
    *("SLURM_JOB_ID", "PMI_RANK", "CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"),
    *("GPU_DEVICE;X", "TORCH-A", "TORCH_", "OVERLAP_"),
)
LINES = {
    "an injected line": ("export TORCH_A=1\nLD_PRELOAD=/tmp/evil.so", {"TORCH_A": "1"}),
    "print and unset": ("print hello\nunset PATH\nexport TORCH_A=1", {"TORCH_A": "1"}),
    "a blank in front": (" export TORCH_A=1", {}),
    "no export": ("TORCH_A=1", {}),
    "no sign": ("export TORCH_A", {}),
    "no name": ("export =1", {}),
    "an empty value": ("export TORCH_A=", {"TORCH_A": ""}),
    "many signs": ("export TORCH_A=a=b", {"TORCH_A": "a=b"}),
    "the whole alphabet": ("export TORCH_A=azAZ09._/+:=@%~,-", {"TORCH_A": "azAZ09._/+:=@%~,-"}),
    "a number in front": ("export 1TORCH=1", {}),
    "small letters": ("export torch_a=1", {}),
    "ours": ("export OVERLAP_QUIET=1", {"OVERLAP_QUIET": "1"}),
    "a sign that is not allowed": (
        "".join(f"export TORCH_A=a{sign}b\n" for sign in " \t\r\"'$`;&|<>\\(){}[]*?!#^\x1b\x7fä") + "export TORCH_B=1",
        {"TORCH_B": "1"},
    ),
    "a variable that is not allowed": (
        "".join(f"export {name}=1\n" for name in FORBIDDEN) + "export TORCH_B=1",
        {"TORCH_B": "1"},
    ),
}


@pytest.mark.parametrize("lines, wanted", LINES.values(), ids=LINES)
def test_of_a_policy_only_good_lines_are_taken(double: Double, lines: str, wanted: dict[str, str]) -> None:
    table = spank.policy(double.prefix, "mine", lines)
    done = double.task("mine").variables
    plain = {name: value for name, value in done.items() if not name.startswith("OVERLAP_ADDED_")}
    assert plain == {"OVERLAP_TABLE": table, "LD_PRELOAD": double.library, **wanted}


def test_of_many_lines_some_are_taken(double: Double) -> None:
    spank.policy(double.prefix, "mine", *(f"export TORCH_{number}=1" for number in range(200)))
    taken = {name for name in double.task("mine").variables if name.startswith("TORCH_")}
    assert taken == {f"TORCH_{number}" for number in range(64)}


def test_the_last_line_needs_no_end(double: Double) -> None:
    file = double.prefix / "env" / "h100.env"
    file.write_text(file.read_text().rstrip("\n"))
    assert double.task("h100").variables["TORCH_NCCL_OF"] == "h100"


def test_what_the_task_has_set_stays(double: Double) -> None:
    done = double.task("h100", TORCH_NCCL_OF="mine", OVERLAP_QUIET="0")
    assert done.variables["TORCH_NCCL_OF"] == "mine"
    assert "OVERLAP_ADDED_TORCH_NCCL_OF" not in done.variables, "nobody may take it back"


def test_what_a_file_of_nccl_sets_stays(double: Double, tmp_path: Path) -> None:
    spank.policy(double.prefix, "mine", "export NCCL_CGA_CLUSTER_SIZE=2", "export TORCH_A=1")
    (double.home / ".nccl.conf").write_text("#NCCL_A=1\nNCCL_CGA_CLUSTER_SIZE=4\n")
    assert "NCCL_CGA_CLUSTER_SIZE" not in double.task("mine").variables
    assert double.task("mine").variables["TORCH_A"] == "1"
    (double.home / ".nccl.conf").write_text("#NCCL_CGA_CLUSTER_SIZE=4\nNCCL_CGA_CLUSTER_SIZES=4\n")
    assert double.task("mine").variables["NCCL_CGA_CLUSTER_SIZE"] == "2"
    conf = tmp_path / "nccl.conf"
    conf.write_text("NCCL_CGA_CLUSTER_SIZE =4")
    assert "NCCL_CGA_CLUSTER_SIZE" not in double.task("mine", NCCL_CONF_FILE=str(conf)).variables


NO_POLICY: dict[str, Change] = {
    "missing": lambda path: path.unlink(),
    "empty": lambda path: path.write_bytes(b""),
    "without a table": lambda path: path.write_text(f"export LD_PRELOAD=/x/{spank.NAME}\n"),
    "without a library": lambda path: path.write_text("export OVERLAP_TABLE=abc\n"),
    "with a table that is none": lambda path: path.write_bytes(path.read_bytes() + b"export OVERLAP_TABLE=a b\n"),
    "with another library": lambda path: path.write_bytes(path.read_bytes() + b"export LD_PRELOAD=/bin/true\n"),
    "with two libraries": lambda path: path.write_bytes(
        path.read_bytes() + f"export LD_PRELOAD=/a.so:/b/{spank.NAME}\n".encode()
    ),
    "with a NUL": lambda path: path.write_bytes(path.read_bytes() + b"\0"),
    "with lines of Windows": lambda path: path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n")),
    "too long": lambda path: path.write_bytes(path.read_bytes() + b"#" * (1 << 18)),
    "with a table that no task can hold": lambda path: path.write_bytes(
        path.read_bytes() + b"export OVERLAP_TABLE=" + b"A" * 130_000 + b"\n"
    ),
    "a folder": lambda path: (path.unlink(), path.mkdir()),
    "a pipe": lambda path: (path.unlink(), os.mkfifo(path)),
    "a device": lambda path: (path.unlink(), path.symlink_to("/dev/zero")),
}


@pytest.mark.parametrize("change", NO_POLICY.values(), ids=NO_POLICY)
def test_what_is_no_policy_changes_nothing(double: Double, change: Callable[[Path], object]) -> None:
    change(double.prefix / "env" / "h100.env")
    done = double.task("h100", **PLAIN)
    assert done.variables == {**PLAIN, **IN_VAIN}
    assert done.said.startswith("verbose: comm-overlap: ")


@pytest.mark.parametrize("where", ["the user", "the site"])
def test_a_pipe_in_place_of_a_choice_is_not_waited_for(double: Double, where: str) -> None:
    os.mkfifo(double.home / ".config/overlap-run/policy" if where == "the user" else double.prefix / "default")
    assert double.task(**PLAIN).variables == PLAIN


@pytest.mark.parametrize("prefix", ["relative", "/with space", "/with:colon", "/" + "x" * 5000, ""])
def test_a_prefix_that_cannot_be_used(double: Double, prefix: str) -> None:
    arguments = (f"prefix={prefix}",)
    assert double.task("h100", arguments=arguments, **PLAIN).variables == {**PLAIN, **IN_VAIN}
    assert double.task("off", arguments=arguments, **PLAIN).variables["OVERLAP_RUN"] == "off"


# --- damaged files


@pytest.mark.parametrize("how", ["corrupt", "truncate"])
def test_nothing_is_read_outside_of_the_bytes(double: Double, tmp_path: Path, how: str) -> None:
    fuzz = tmp_path / "fuzz"
    sources = [spank.ROOT / "tests/fuzz/spank_fuzz.c", *(spank.SOURCES / f"{name}.c" for name in ("site", "preload"))]
    compile_c(sources, fuzz)
    seeds = [double.prefix / "env" / "h100.env", tmp_path / "preload"]
    seeds[1].write_text(f"/l/libasan.so.8 :/x/{spank.NAME}:libclang_rt.tsan.so:/y")
    done = subprocess.run([str(fuzz), how, *map(str, seeds)], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    tried, accepted = map(int, done.stdout.split())
    assert tried == sum(seed.stat().st_size for seed in seeds) * (10 if how == "corrupt" else 1)
    assert 0 < accepted < tried


def test_random_environments_and_files(double: Double) -> None:
    """The sanitizers are the judges; the status is 0."""
    dice = random.Random(22)
    names = ["OVERLAP_RUN", "OVERLAP_TABLE", "LD_PRELOAD", "OVERLAP_ADDED_A", "OVERLAP_ADDED_", "", "OVERLAP_POLICY"]
    words = ["off", "h100", "observe", double.library, "", "x" * 300, "=", "\udcff", "libasan.so", ":", "\n"]
    for number in range(60):
        given = {dice.choice(names): "".join(dice.choices(words, k=dice.randrange(4))) for _ in range(8)}
        lines = ("".join(map(chr, dice.choices(range(1, 127), k=60))) for _ in range(20))
        spank.policy(double.prefix, "observe", *lines)
        users(double, dice.choice(["observe", "h100", "\r\n", "\0", "x" * 9999]))
        done = double.task(dice.choice(["-", "off", "h100", "observe", "?"]), dice.choice([0, BATCH]), **given)
        assert done.status == 0, number
