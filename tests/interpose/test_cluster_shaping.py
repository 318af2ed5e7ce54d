"""Launches in clusters are shaped only where the driver says that enough clusters still fit."""

from __future__ import annotations

import pytest
from interposing import BLOCKS, ONE, Build, Runner, rule, same, smallest_size

SIZE = smallest_size(1)
HALF = 'compute: [{match: {kernel: "*"}, shape: {blocks_per_sm: 4}, keep_at_least: 50%, when: always}]'
FOUR = {"SIMGPU_MULTIPROCESSORS": "4"}  # a slice: a cluster of eight needs two blocks on each


def ex(width: int = 2, blocks: int = BLOCKS, threads: int = 256, dynamic: int = 0) -> str:
    return f"attr=4:{width}:1:1 ex=k,{blocks},{threads},{dynamic}"


@pytest.mark.parametrize("way", ["symbol", "dlsym", "proc_address_v2"])
@pytest.mark.parametrize("load", ["ptx", "lib"])
def test_shaped_where_they_fit(load: str, way: str, bare: Runner, preloaded: Runner) -> None:
    words = f"{load}=k " + f"{ex()} " * 4 + f"{ex(2, 100)} launch=k,{BLOCKS},256,0"
    done, without = preloaded(words, ONE, way), bare(words, way)
    assert [launch["cluster"] for launch in without.launches] == [2] * 5 + [1]
    same(done, without, but=["dynamic_shared"])
    assert done.sizes == [SIZE] * 4 + [0, SIZE]
    assert done.reasons == {"shaped": 5, "one_wave": 1}


@pytest.mark.parametrize(
    ("width", "policy", "env", "reason"),
    [
        (8, ONE, {}, "shaped"),
        (8, ONE, FOUR, "cluster"),  # not one would fit: the driver would refuse the launch
        (4, ONE, FOUR, "shaped"),
        (8, rule("{blocks_per_sm: 2}"), FOUR, "shaped"),
        (8, rule("{blocks_per_sm: 3}"), FOUR, "shaped"),
        (2, HALF, {}, "shaped"),
        (8, HALF, {"SIMGPU_MULTIPROCESSORS": "5"}, "cluster"),  # 5 of 8 as asked, 2 of 5 left
        (2, HALF, {"SIMGPU_MULTIPROCESSORS": "5"}, "shaped"),
    ],
)
def test_enough_of_them_must_fit(
    width: int, policy: str, env: dict[str, str], reason: str, bare: Runner, preloaded: Runner
) -> None:
    words = "ptx=k " + f"{ex(width)} " * 3
    done, without = preloaded(words, policy, env=env), bare(words, env=env)
    same(done, without, but=["dynamic_shared"])
    assert done.reasons == {reason: 3}
    assert done.totals["refused"] == 0


def test_other_clusters_than_those_that_were_checked_are_left_alone(bare: Runner, preloaded: Runner) -> None:
    words = f"ptx=k {ex(4)} {ex(8)} {ex(4)} {ex(2)} attr=4:1:1:1 ex=k,{BLOCKS},256,0 {ex(4)} {ex(8, 4000, 512)}"
    done, without = preloaded(words, ONE, env=FOUR), bare(words, env=FOUR)
    same(done, without, but=["dynamic_shared"])
    assert done.sizes == [SIZE, 0, SIZE, 0, SIZE, SIZE, 0]
    assert done.reasons == {"shaped": 4, "cluster": 3}


@pytest.mark.parametrize("attributes", ["2:1", "6:1"])
def test_what_forbids_shaping_otherwise_forbids_it_here(attributes: str, bare: Runner, preloaded: Runner) -> None:
    words = f"ptx=k attr=4:2:1:1,{attributes} ex=k,{1000 if attributes == '2:1' else BLOCKS},256,0"
    same(preloaded(words, ONE), bare(words))


@pytest.mark.parametrize("load", ["ptx", "lib"])
@pytest.mark.parametrize(("width", "shaped"), [(8, False), (4, True)])
def test_clusters_that_a_function_requires(
    width: int, shaped: bool, load: str, bare: Runner, preloaded: Runner
) -> None:
    """Set by the program, also for a kernel that was shaped before."""
    launches = f"launch=k,{BLOCKS},256,0 " * 4
    required = f"set=k,11,{width} set=k,12,1 set=k,13,1 "
    if load == "lib":
        required = required.replace("set=", "function=k set=", 1)
    for words in (f"{load}=k {required}{launches}", f"{load}=k {launches}{required}{launches}"):
        done, without = preloaded(words, ONE, env=FOUR), bare(words, env=FOUR)
        assert without.launches[-1]["cluster"] == width
        same(done, without, but=["dynamic_shared"])
        assert done.sizes[-4:] == [SIZE if shaped else 0] * 4
        assert done.totals["refused"] == 0


def test_a_refusal_is_launched_again_as_asked(bare: Runner, preloaded: Runner) -> None:
    env = {"SIMGPU_REFUSE": "k:50000"}
    words = "ptx=k " + f"{ex()} " * 3
    done, without = preloaded(words, ONE, env=env), bare(words, env=env)
    assert (done.status, done.stdout) == (without.status, without.stdout)
    assert done.sizes == [SIZE, 0, 0, 0]
    assert done.reasons == {"refused": 3}


def test_on_a_gpu_without_clusters(bare: Runner, preloaded: Runner, build: Build) -> None:
    env = {"SIMGPU": "a100"}
    words = f"ptx=k {ex()} launch=k,{BLOCKS},256,0"
    done, without = preloaded(words, ONE, env=env), bare(words, env=env)
    assert "ex: 801" in without.stdout
    assert (done.status, done.stdout) == (without.status, without.stdout)
    assert [launch["result"] for launch in done.launches if launch["cluster"] == 1][-1] == 0
