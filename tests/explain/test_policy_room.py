"""overlap policy room: one kernel beside one communication kernel, asked as a user asks."""

from __future__ import annotations

import json
import os
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from gpu_def import KEYS
from hypothesis import given
from hypothesis import strategies as st

from pyshim.cli import main
from pyshim.errors import OverlapError
from pyshim.policy import gpus
from pyshim.room import planner, room
from pyshim.room.planner import BlockFootprint, Case, RoomRule, member
from tests.cli.narrow import says_the_same

GOLDEN = Path(__file__).parent / "golden"
GEMM, NCCL = "128:224:0:48KiB", "288:96:21568:82240"
VERDICTS = {
    "room already",
    "sizes make room",
    "no size makes room",
    "no room",
    "the kernel cannot be launched",
    "communication fits nowhere",
}

Answer = Callable[..., dict[str, Any]]


class Ask:
    """ask("128:224", comm="288:96") -> exit status, stdout, stderr."""

    def __init__(self, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
        self.capfd, self.monkeypatch = capfd, monkeypatch

    def __call__(
        self, kernel: str, *more: str, gpu: str = "h100", comm: str | None = NCCL, columns: int = 80
    ) -> tuple[int, str, str]:
        self.monkeypatch.setenv("COLUMNS", str(columns))
        beside = [] if comm is None else [f"--comm={comm}"]
        status = main(["policy", "room", f"--gpu={gpu}", f"--kernel={kernel}", *beside, *more])
        return (status, *self.capfd.readouterr())


@pytest.fixture
def ask(library: Any, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Ask:
    return Ask(capfd, monkeypatch)


@pytest.fixture
def answer(ask: Ask) -> Answer:
    def read(kernel: str, **options: Any) -> dict[str, Any]:
        status, out, err = ask(kernel, "--json", **options)
        assert (status, err) == (0, "")
        found: dict[str, Any] = json.loads(out)
        return found

    return read


SCREENS: dict[str, tuple[str, dict[str, Any]]] = {
    "sizes": (GEMM, {}),
    "below-half": ("128:32", {}),
    "many-sizes": ("32:16", {"comm": "32:96"}),
    "already": ("128:32:0:100KiB", {"comm": "32:32"}),
    "smaller-communication": (GEMM, {"comm": "640:96:21568:82240"}),
    "no-size": (GEMM, {"comm": "288:96:36800:82240"}),
    "no-room": ("384:168", {"comm": None}),
    "cannot-launch": ("2000:224", {}),
    "nowhere": (GEMM, {"gpu": "a40", "comm": "288:96:21568:99999"}),
    "amd": ("256:64:8192", {"gpu": "mi250x", "comm": "256:280:19808"}),
}


@pytest.mark.parametrize("name", SCREENS)
def test_a_screen_is_golden_and_ends_with_a_verdict_and_a_next_step(ask: Ask, name: str) -> None:
    kernel, options = SCREENS[name]
    status, wide, err = ask(kernel, **options)
    if os.environ.get("OVERLAP_WRITE_GOLDEN"):
        (GOLDEN / f"{name}.txt").write_text(wide, encoding="utf-8")
    assert (status, err, wide) == (0, "", (GOLDEN / f"{name}.txt").read_text(encoding="utf-8"))
    says_the_same(ask(kernel, columns=60, **options)[1], wide)
    assert len(wide.splitlines()) <= 20 and max(map(len, wide.splitlines())) <= 80
    assert verdicts(wide) <= VERDICTS
    assert re.search(r"^verdict  .*\n(         .*\n)?next     \w", wide, re.MULTILINE)


def test_every_verdict_has_a_screen() -> None:
    shown = "".join((GOLDEN / f"{name}.txt").read_text(encoding="utf-8") for name in SCREENS)
    assert verdicts(shown) == VERDICTS


def verdicts(screens: str) -> set[str]:
    return {line.partition(":")[0] for line in re.findall(r"^verdict  (.*)", screens, re.MULTILINE)}


def test_json(answer: Answer) -> None:
    assert answer(GEMM) == {
        "gpu": "h100",
        "kernel": {
            "threads": 128, "registers": 224, "static": 0, "dynamic": 49152, "resident": 2, "limit": "registers"
        },
        "communication": {
            "threads": 288, "registers": 96, "static": 21568, "dynamic": 82240, "resident": 2, "limit": "registers"
        },
        "source": None,
        "sizes": [{"blocks": 1, "minimum": 115713, "maximum": 127616}],
        "beside": 1,
        "verdict": "sizes make room",
        "resource": None,
        "next": "write in a rule: shape: make_room; then time a whole step, for the kernel keeps 50 % of its blocks",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("kernel", "comm", "verdict", "resource"),
    [
        (GEMM, "288:96:36800:82240", "no size makes room", "shared_memory"),
        (GEMM, "640:96:21568:82240", "no room", "registers"),
        ("1024:32", "1056:16", "communication fits nowhere", "warps"),
        ("1024:16", "1024:16:0:100", "sizes make room", None),
        ("1536:16", "32:16", "the kernel cannot be launched", None),
        ("1024:32", "1024:48", "no room", "registers"),
    ],
)
def test_the_resource_that_forbids_it(
    answer: Answer, kernel: str, comm: str, verdict: str, resource: str | None
) -> None:
    found = answer(kernel, comm=comm)
    assert (found["verdict"], found["resource"]) == (verdict, resource)


SHARED = "bytes of shared memory, static and dynamic together"


@pytest.mark.parametrize(
    ("kernel", "gpu", "sentence"),
    [
        ("1025:32", "h100", "a block has at most 1,024 threads"),
        ("128:256", "h100", "a thread has at most 255 registers, a block 65,536"),
        ("1024:65", "h100", "a thread has at most 255 registers, a block 65,536"),
        ("128:64:200000:48KiB", "h100", f"a block has at most 232,448 {SHARED}"),
        ("256:64:0:65537", "mi250x", f"a block has at most 65,536 {SHARED}"),
    ],
)
def test_what_is_to_be_corrected(answer: Answer, kernel: str, gpu: str, sentence: str) -> None:
    assert answer(kernel, gpu=gpu, comm="32:32")["next"] == f"correct --kernel: {sentence}"
    assert answer("32:32", gpu=gpu, comm=kernel)["next"] == f"correct --comm: {sentence}"


def test_communication_is_the_newest_unless_it_is_given(answer: Answer) -> None:
    for gpu, block, source in (
        ("h100", (544, 96, 36800, 82240), "NCCL 2.32.3"),
        ("a100", (544, 96, 14144, 82240), "NCCL 2.32.3"),
        ("mi250x", (256, 360, 19808, 0), "RCCL 7.2.4 unroll 4 by hipExtLaunchKernel"),
    ):
        found = answer("128:32", gpu=gpu, comm=None)
        assert found["source"] == source
        assert tuple(found["communication"].values())[:4] == block
    assert {answer("128:32", gpu=gpu, comm=None)["gpu"] for gpu in KEYS} == set(KEYS)


FORM = "not THREADS:REGISTERS[:STATIC[:DYNAMIC]]"
EXAMPLE = "{option} 128:224:0:48KiB"


@pytest.mark.parametrize("option", ["--kernel", "--comm"])
@pytest.mark.parametrize(
    ("text", "error", "hint"),
    [
        ("128", FORM, EXAMPLE),
        ("1:2:3:4:5", FORM, EXAMPLE),
        ("", FORM, EXAMPLE),
        ("0:224", "threads: `0` is not between 1 and 4,294,967,295", "write a number in between"),
        ("128:-3", "registers: `-3` is not between 1 and 4,294,967,295", "write a number in between"),
        ("128:x", "registers: `x` is not a whole number", "write decimal digits only"),
        ("128:1.5", "registers: `1.5` is not a whole number", "write decimal digits only"),
        ("128:32:1kb", "static: `1kb` is not a size", "did you mean `1KiB`?"),
        ("128:32:0:x", "dynamic: `x` is not a size", "write 96KiB, 1MiB or a number of bytes"),
        ("128:32:0:4GiB", "dynamic: `4GiB` is too large", "write at most 4095MiB"),
    ],
)
def test_what_is_no_footprint_gets_one_error_and_a_next_step(
    ask: Ask, option: str, text: str, error: str, hint: str
) -> None:
    status, out, err = ask(text) if option == "--kernel" else ask(GEMM, comm=text)
    help_line = f"overlap: help: {hint.format(option=option)}"
    assert (status, out, err.splitlines()) == (2, "", [f"overlap: error: {option} {text}: {error}", help_line])


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["--kernel", GEMM], "the following arguments are required: --gpu"),
        (["--gpu", "h100"], "the following arguments are required: --kernel"),
        (["--gpu", "h10", "--kernel", GEMM], "no GPU is called `h10`"),
        (["--gpu", "h100", "--kernel", GEMM, "more"], "unrecognized arguments: more"),
    ],
)
def test_a_usage_error_is_one_sentence(
    capfd: pytest.CaptureFixture[str], library: Any, words: list[str], error: str
) -> None:
    assert main(["policy", "room", *words]) == 2
    out, err = capfd.readouterr()
    first, hint = err.splitlines()
    assert (out, first) == ("", f"overlap: error: {error}") and hint.startswith("overlap: help: ")


@pytest.mark.parametrize("option", ["--gpu=h100", "--threads", "--comm-dynamic-smem", "--keep_at_least", "--policy"])
def test_explain_says_what_replaces_its_options(capfd: pytest.CaptureFixture[str], option: str) -> None:
    assert main(["explain", option, "128"]) == 2
    out, err = capfd.readouterr()
    form = "THREADS:REGISTERS[:STATIC[:DYNAMIC]]"
    assert out == ""
    assert err.endswith(f"\noverlap: help: for one kernel write overlap policy room --gpu GPU --kernel {form}\n")


@given(text=st.text(alphabet="0123456789:KMGiB x-.", max_size=24))
def test_any_text_is_a_footprint_or_one_error(library: Any, text: str) -> None:
    try:
        block = room.footprint("--kernel", text)
    except OverlapError as error:
        assert "\n" not in error.sentence and error.hint and error.status == 2
        return
    found = room.look(gpus.named("h100"), block, None)
    assert found.verdict in VERDICTS and found.next


def test_what_is_promised_is_kept(library: Any) -> None:
    """The rule that is written makes that room in the library; a setting that is named leads to room."""
    source, ruled, followed = random.Random(3), 0, 0
    for _ in range(5000):
        gpu = gpus.named(source.choice(KEYS))
        kernel, communication = random_blocks(source, gpu.key)
        found = room.look(gpu, kernel, communication)
        assert found.verdict in VERDICTS and found.next
        refused = {"no room", "no size makes room", "communication fits nowhere"}
        assert (found.resource is not None) == (found.verdict in refused)
        if found.verdict == "sizes make room":
            keep = re.search(r"keep_at_least: (\d+)%", found.next)
            case = Case(
                gpu, kernel, communication, RoomRule(member("SHAPE", "make_room"), 0, int(keep[1]) if keep else 50)
            )
            done, first = planner.plan(case), found.plan.windows[0]
            assert (done.control, done.blocks, done.dynamic) == ("make_room", first.blocks, first.minimum), case
            ruled += 1
        if setting := re.search(r"set (.*) for all ranks", found.next):
            smaller = {
                "NCCL_NTHREADS=256 with NCCL_ALGO=Ring": communication._replace(threads=min(288, communication[0])),
                "NCCL_NTHREADS=128 with NCCL_ALGO=Ring": communication._replace(threads=min(160, communication[0])),
                "RCCL_UNROLL_FACTOR=0": communication._replace(registers=min(280, communication[1])),
            }[setting[1]]
            assert room.look(gpu, kernel, smaller).verdict in ("sizes make room", "room already")
            followed += 1
    assert ruled > 500 and followed > 100, (ruled, followed)


def random_blocks(source: random.Random, gpu: str) -> tuple[BlockFootprint, BlockFootprint]:
    """Return a kernel, and a block of NCCL, RCCL or something smaller."""
    nccl = (source.choice((160, 288, 544, 640)), 96, source.choice((6176, 7104, 20832, 21568, 36800)), 82240)
    communication = (256, source.choice((280, 316, 356)), 19808, 0) if gpu.startswith("mi") else nccl
    if source.random() < 0.4:
        communication = (32 * source.randint(1, 20), source.randint(16, 128), source.randint(0, 30_000), 0)
    threads = 32 * source.randint(1, 32) if source.random() < 0.9 else source.randint(1, 2000)
    registers = source.randint(8, min(256, 70_000 // threads))  # nearly all can be launched
    static = source.choice((0, 0, 1024, 16384, source.randint(0, 48000)))
    dynamic = source.choice((0, 16384, 49152, source.randint(0, 160_000)))
    return BlockFootprint(threads, registers, static, dynamic), BlockFootprint(*communication)
