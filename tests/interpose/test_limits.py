"""The limit of dynamic shared memory is raised for us and believed by the program, whoever sets it at the same time."""

from __future__ import annotations

import pytest
from interposing import ONE, Build, Runner, same, smallest_size

# Two targets for one kernel: blocks of 512 threads get another size than those of 256.
TWO_TARGETS = """compute:
  - {match: {kernel: "*", threads: 512}, shape: {blocks_per_sm: 1}, when: always}
  - {match: {kernel: "*"}, shape: {blocks_per_sm: 2}, when: always}"""


@pytest.mark.parametrize(("word", "policy"), [("set", ONE), ("sizes", TWO_TARGETS)], ids=["set", "sizes"])
def test_threads_that_quarrel_about_it_see_no_error(
    word: str, policy: str, build: Build, bare: Runner, preloaded: Runner
) -> None:
    stub = build.library("limiting/libcuda.so.1", "stub_driver.c", "-DCOUNTS", "-DSLOW")
    program = build("limits", "limits.c", link=[stub])
    env = {"LD_LIBRARY_PATH": str(stub.parent)}
    without, done = bare([word], program=program, env=env), preloaded([word], policy, program=program, env=env)
    assert without.stdout == "failed: 0\n"
    same(done, without)
    # Rarely one comes between our two calls; then the driver refuses, the launch is made as asked, and the kernel left.
    assert sum(done.reasons.values()) == 4 * 60 * 40
    assert done.totals["refused"] <= 4
    for _ in range(3):
        if done.totals["refused"]:
            done = preloaded([word], policy, program=program, env=env)
    assert done.reasons["shaped"] > 4 * 60 * 40 // 2


@pytest.mark.parametrize("attribute", [8, 9])
def test_setting_what_was_set_costs_no_questions(attribute: int, build: Build, preloaded: Runner) -> None:
    """8 with its own value, 9 (the carveout): decisions stay."""
    stub = build.library("limiting/libcuda.so.1", "stub_driver.c", "-DCOUNTS", "-DSLOW")
    program = build("counting", "counting.c", link=[stub])
    done = preloaded([str(attribute)], ONE, program=program, env={"LD_LIBRARY_PATH": str(stub.parent)})
    assert done.stdout == f"bad: 0, largest size: {smallest_size(1)}, asked: 0\n"
    assert done.reasons == {"shaped": 100}
