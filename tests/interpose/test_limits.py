"""The limit of dynamic shared memory is raised for us and believed by the program, whoever sets it at the same time."""

from __future__ import annotations

import pytest
from interposing import BLOCKS, ONE, Build, Runner, same, smallest_size

# Two targets for one kernel: blocks of 512 threads get another size than those of 256.
TWO_TARGETS = """when: always
compute:
  - {match: {kernel: "*", threads: 512}, shape: {blocks_per_sm: 1}}
  - {match: {kernel: "*"}, shape: {blocks_per_sm: 2}}"""


@pytest.mark.parametrize(("word", "policy"), [("set", ONE), ("sizes", TWO_TARGETS)], ids=["set", "sizes"])
def test_threads_that_quarrel_about_it_see_no_error(
    word: str, policy: str, build: Build, bare: Runner, preloaded: Runner
) -> None:
    stub = build.library("limiting/libcuda.so.1", "counting_driver.c")
    program = build("limits", "limits.c", link=[stub])
    env = {"LD_LIBRARY_PATH": str(stub.parent)}
    without, done = bare([word], program=program, env=env), preloaded([word], policy, program=program, env=env)
    assert without.stdout == "failed: 0\n"
    same(done, without)
    # Rarely one comes between our two calls; then the driver refuses, the launch is made as asked, and the kernel left.
    assert sum(done.reasons.values()) == 4 * 60 * 40
    assert done.totals["refused"] <= 4
    assert done.reasons["shaped"] > 4 * 60 * 40 // 2


@pytest.mark.parametrize("attribute", [8, 9])
def test_setting_what_was_set_costs_no_questions(attribute: int, build: Build, preloaded: Runner) -> None:
    """8 with its own value, 9 (the carveout): decisions stay."""
    stub = build.library("limiting/libcuda.so.1", "counting_driver.c")
    program = build("counting", "counting.c", link=[stub])
    done = preloaded([str(attribute)], ONE, program=program, env={"LD_LIBRARY_PATH": str(stub.parent)})
    assert done.stdout == f"bad: 0, largest size: {smallest_size(1)}, asked: 0\n"
    assert done.reasons == {"shaped": 100}


def test_a_limit_that_was_set_on_another_device_is_not_taken_for_this_ones(bare: Runner, preloaded: Runner) -> None:
    shaped, own = f"launch=k,{BLOCKS},256,0", f"launch=k,{BLOCKS},256,80000"
    words = f"lib=k set=k,8,80000 {shaped} {own} device=1 set=k,8,60000 {shaped} {own} launch=k,{BLOCKS},256,60000 "
    words += f"device=0 {own} {own} {shaped} get=k,8 device=1 {own} get=k,8"
    env = {"SIMGPU": "h100,2"}
    without, done = bare(words, env=env), preloaded(words, ONE, env=env)
    assert without.stdout.count("launch: 1\n") == 2
    same(done, without, but=["dynamic_shared"])
    assert done.totals["refused"] == 0


def test_a_refusal_is_remembered_for_every_device(bare: Runner, preloaded: Runner) -> None:
    words = f"lib=k repeat=6 launch=k,{BLOCKS},256,0 device=1 repeat=6 launch=k,{BLOCKS},256,0"
    env = {"SIMGPU": "h100,2", "SIMGPU_REFUSE": "k:50000"}
    without, done = bare(words, env=env), preloaded(words, ONE, env=env)
    assert (done.status, done.stdout) == (without.status, without.stdout)
    assert done.sizes == [smallest_size(1)] + [0] * 12
    assert done.totals["refused"] == 1
    assert done.reasons == {"refused": 12}
