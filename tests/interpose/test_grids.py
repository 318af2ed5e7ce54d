"""Programs that size their grids by what the driver says run as they do alone, whatever a policy wants to shape."""

from __future__ import annotations

import pytest
from interposing import ONE, Build, Done, Runner, same, smallest_size

from pyshim.start import plan

SIZE = smallest_size(1)
ASKS = ("persistent", "flags", "potential", "cooperative", "cluster", "captured")


def both(words: str, build: Build, bare: Runner, preloaded: Runner, env: dict[str, str] | None = None) -> Done:
    program = build("grids", "grids.c", "-DWAY_LINKED", link=[plan.SIMULATED_DRIVER])
    without, done = bare(words, program=program, env=env), preloaded(words, ONE, program=program, env=env)
    assert without.stdout.endswith("0 bad, 0\n"), without.stdout
    same(done, without, but=["dynamic_shared"])
    assert done.totals["refused"] == 0
    # The last launch, of a kernel that nobody asked about.
    assert done.sizes[-1] == SIZE
    done.launches.pop()
    without.launches.pop()
    if "late" not in words and "callback" not in words:
        same(done, without)
    return done


@pytest.mark.parametrize("slice_of", ["", "16"])
@pytest.mark.parametrize("dynamic", ["", "1000", "100000"])
@pytest.mark.parametrize("what", ASKS)
def test_never_shaped(what: str, dynamic: str, slice_of: str, build: Build, bare: Runner, preloaded: Runner) -> None:
    env = {"SIMGPU_MULTIPROCESSORS": slice_of} if slice_of else None
    done = both(f"{what} {dynamic}", build, bare, preloaded, env)
    assert done.launches


@pytest.mark.parametrize(("what", "shaped"), [("late", 3), ("callback", 1)])
@pytest.mark.parametrize("dynamic", ["", "50000"])
def test_left_alone_from_the_question_on(
    what: str, shaped: int, dynamic: str, build: Build, bare: Runner, preloaded: Runner
) -> None:
    done = both(f"{what} {dynamic}", build, bare, preloaded)
    assert done.sizes[:shaped] == [SIZE] * shaped
    assert SIZE not in done.sizes[shaped:]
