"""NULL in place of an event: the driver refuses it, and so it must be with the library."""

from __future__ import annotations

import pytest
from interposing import Build, Runner, same

from pyshim.launch import plan


@pytest.mark.parametrize("policy", ["observe", "h100", "h100-paper"])
def test_no_event(policy: str, build: Build, bare: Runner, preloaded: Runner) -> None:
    program = build("no-event", "no_event.c", link=[plan.SIMULATED_DRIVER])
    done, without = preloaded(policy=policy, program=program), bare(program=program)
    assert "recorded: 400\n" in without.stdout
    same(done, without, ["priority", "dynamic_shared"])
