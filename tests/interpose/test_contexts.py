"""A context takes its kernels with it; what is made next may have their addresses, and is another kernel."""

from __future__ import annotations

import pytest
from interposing import ONE, Build, Runner, same, smallest_size

from pyshim.start import plan


@pytest.mark.parametrize("kind", ["", "lib"])
@pytest.mark.parametrize("end", ["created", "primary", "reset"])
def test_a_context_that_comes_back_starts_anew(
    end: str, kind: str, build: Build, bare: Runner, preloaded: Runner
) -> None:
    program = build("contexts", "contexts.c", link=[plan.SIMULATED_DRIVER])
    words = [end, *kind.split()]
    without, done = bare(words, program=program), preloaded(words, ONE, program=program)
    assert "bad: 0, same handle: 3" in without.stdout, "nothing was tested"
    same(done, without, but=["dynamic_shared"])
    assert done.totals["refused"] == 0
    assert done.reasons == {"shaped": 30 if kind else 18, "invalid_as_asked": 6}
    assert {launch["dynamic_shared"] for launch in done.launches if launch["result"] == 0} == {smallest_size(1)}


def test_a_function_is_not_taken_for_one_of_the_context_in_which_it_was_obtained(
    build: Build, bare: Runner, preloaded: Runner
) -> None:
    """Its limit was raised before a launch that failed for that reason; the program reads back its own all the same."""
    program = build("contexts", "contexts.c", link=[plan.SIMULATED_DRIVER])
    without, done = bare(["other"], program=program), preloaded(["other"], ONE, program=program)
    assert without.stdout == "in the other: 400\nlimit 49152, launches 0 1\n", "nothing was tested"
    same(done, without, but=["dynamic_shared"])
    assert done.reasons["shaped"] >= 1


def test_a_limit_of_one_context_does_not_apply_to_launches_in_another(
    build: Build, bare: Runner, preloaded: Runner
) -> None:
    """The kernel of a library has a function in each context; which one is launched depends on the stream."""
    program = build("contexts", "contexts.c", link=[plan.SIMULATED_DRIVER])
    without, done = bare(["apart"], program=program), preloaded(["apart"], ONE, program=program)
    assert (without.status, without.stdout) == (0, "there: 0\n" * 3 + "here: 1\n"), "nothing was tested"
    same(done, without, but=["dynamic_shared"])
    assert done.reasons["shaped"] >= 3


def test_a_launch_that_fails_for_another_reason_says_nothing_of_the_context(
    build: Build, bare: Runner, preloaded: Runner
) -> None:
    """Its function ends with its context, and the next one at that address has a limit of its own."""
    program = build("contexts", "contexts.c", link=[plan.SIMULATED_DRIVER])
    failing = build.library("failing.so", "failing_launch.c")
    without = bare(["once"], program=program, env={"LD_PRELOAD": str(failing)})
    assert without.stdout == "limit 60000, launch 719\nlimit 49152, launch 1\n", "nothing was tested"
    done = preloaded(["once"], ONE, program=program, preload=f"{{}}:{failing}")
    assert (done.status, done.stdout) == (without.status, without.stdout)
