"""Every launch is seen, once, whichever way the program found the driver; and nothing else about it is different."""

from __future__ import annotations

import pytest
from interposing import BLOCKS, ONE, WAYS, Build, Runner, same, smallest_size

ENTRIES = ("launch", "ex", "coop", "launch_ptsz", "ex_ptsz", "coop_ptsz", "extra")
WORDS = ["ptx=k", "stream=-2"] + [
    f"{entry}=k,{blocks},256,{dynamic},{stream}"
    for entry in ENTRIES
    for blocks, dynamic, stream in ((BLOCKS if entry[:4] != "coop" else 100, 0, 0), (7, 2048, 1))
]


@pytest.mark.parametrize("way", WAYS)
def test_launches_made_are_launches_counted(way: str, bare: Runner, preloaded: Runner) -> None:
    without, observed = bare(WORDS, way), preloaded(WORDS, "observe", way)
    assert without.status == 0
    assert [launch["result"] for launch in without.launches] == [0] * 14
    same(observed, without)
    assert observed.totals["launches"] == 14


@pytest.mark.parametrize("way", WAYS)
def test_hot_launches_are_counted_and_passed_on_alike(way: str, bare: Runner, preloaded: Runner) -> None:
    words = ["ptx=k"] + [
        word for entry in ENTRIES if "coop" not in entry for word in ("repeat=50", f"{entry}=k,10,256,64")
    ]
    without, observed = bare(words, way), preloaded(words, "observe", way)
    assert len({launch["parameters"] for launch in without.launches}) == 250  # every launch has its own
    same(observed, without)
    assert observed.totals["launches"] == 250


@pytest.mark.parametrize("way", WAYS)
def test_shaping_changes_the_size_and_nothing_else(way: str, bare: Runner, preloaded: Runner) -> None:
    without, shaped = bare(WORDS, way), preloaded(WORDS, ONE, way)
    same(shaped, without, but=["dynamic_shared"])
    assert shaped.totals["launches"] == 14
    size = smallest_size(1)
    wanted = [size if blocks["blocks"] == BLOCKS else blocks["dynamic_shared"] for blocks in without.launches]
    assert shaped.sizes == wanted
    assert wanted.count(size) == 5


def test_a_program_with_all_ways_at_once_is_counted_by_way(bare: Runner, preloaded: Runner, build: Build) -> None:
    words = f"nccl={build.nccl()} ptx=k launch=k,{BLOCKS},256,0 ncclk=k,{BLOCKS},256,0"
    without, observed = bare(words, "dlsym"), preloaded(words, "observe", "dlsym")
    same(observed, without)
    assert observed.totals["launches"] == 1 + 1


def test_the_answer_to_a_wrong_launch_is_the_drivers(bare: Runner, preloaded: Runner) -> None:
    words = [
        "ptx=k",
        "launch=k,0,256,0",
        "launch=k,1,0,0",
        "launch=k,1,4096,0",
        "launch=k,1,256,99999999",
        "attr=8:-1,77:1",
        "ex=k,1,32,0",
    ]
    for way in WAYS:
        same(preloaded(words, ONE, way), bare(words, way))
