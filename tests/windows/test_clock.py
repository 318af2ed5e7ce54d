"""The model that judges the library, against the virtual clock: what it has in order never ran at the same time."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tests.windows.clock import calls_of, disagreements
from tests.windows.compare import story
from tests.windows.generate import random_program
from tests.windows.interpreter import Interpreter, Outcome
from tests.windows.operations import program_of
from tests.windows.targets import Target, compile_to, environment_of

PROGRAMS, EACH = 400, 200


def interpreter_with_clock(target: Target, base: Mapping[str, str], folder: Path) -> Interpreter:
    costs = folder / "costs.yaml"
    costs.write_text(
        '- {kernel: "nccl*", block_us: 200}\n', encoding="ascii"
    )  # long enough for others to begin meanwhile
    more = {"SIMGPU_TIMELINE": str(folder / "timeline"), "SIMGPU_COSTS": str(costs)}
    env = {**environment_of(base, folder, target), **more}
    return Interpreter(compile_to(folder, target), env, folder)


def test_what_ran_at_the_same_time_was_not_in_order(
    target: Target, clean_environment: Mapping[str, str], tmp_path: Path
) -> None:
    interpreter = interpreter_with_clock(target, clean_environment, tmp_path)
    options = {"without": interpreter.missing(), "vendor": target.vendor}
    programs = [random_program(seed, **options) for seed in range(PROGRAMS)]
    outcomes: list[Outcome] = []
    for first in range(0, PROGRAMS, EACH):
        outcomes += interpreter.run(programs[first : first + EACH])
    interpreter.close()
    calls, pairs = calls_of(tmp_path / "timeline"), 0
    for program, outcome in zip(programs, outcomes):
        found, beside = disagreements(program, outcome.results, calls)
        assert not found, story(program, found)
        pairs += beside
    assert not list(calls), "kernels that no program launched"
    assert pairs > PROGRAMS  # there was something to disagree about


def test_a_wrong_order_is_seen(target: Target, clean_environment: Mapping[str, str], tmp_path: Path) -> None:
    """The model of another program than the one that ran: it waits."""
    interpreter = interpreter_with_clock(target, clean_environment, tmp_path)
    streams = "ns0,1,0,0 ns1,1,0,0 e--,0,0,0 "
    # The first launches of a process take longer: the library asks about their kernels.
    ran = program_of(streams + "cs0,0,0,0 ks1,0,0,0 S--,0,0,0 cs0,0,0,0 ks1,0,0,0")
    told = program_of(streams + "cs0,0,0,0 ks1,0,0,0 S--,0,0,0 cs0,0,0,0 rs0,0,0,0 ws1,0,0,0 ks1,0,0,0")
    interpreter.run([ran])
    interpreter.close()
    found, beside = disagreements(ran, [0] * len(ran), calls_of(tmp_path / "timeline"))
    assert found == []
    assert beside >= 1
    found, _ = disagreements(told, [0] * len(told), calls_of(tmp_path / "timeline"))
    assert found == ["operations 9 and 6 ran at the same time, but are in order"]
