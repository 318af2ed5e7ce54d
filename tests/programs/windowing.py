"""windows.c, the interpreter of programs of launches, records and waits, as a process of interposing.py. Its operations
are those of tests/windows/operations.py."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Callable, NamedTuple

import pytest
from interposing import Build, Done, Runner, rule

from pyshim.launch import plan
from pyshim.report import collect, findings
from pyshim.stats.page import Page
from pyshim.stats.trace import Launch

POLICY = rule("{blocks_per_sm: 1}", when="overlapping", match="kernel: k")
ALWAYS = rule("{blocks_per_sm: 1}", when="always", match="kernel: k")
AUTO = rule("{blocks_per_sm: 1}", when="overlapping", match="kernel: k", more="communication: {priority: auto}")
# Streams 0 to 2 are like those of torch, 3 and 4 blocking ones.
STREAMS = "ns0,1,0,0 ns1,1,0,0 ns2,1,0,0 ns3,0,0,0 ns4,0,0,0 " + " ".join(f"e--,{n},0,0" for n in range(8)) + " "


class Ran(NamedTuple):
    done: Done
    launches: list[Launch]  # of the trace, where there is one
    remarks: list[str]
    pages: tuple[Page, ...] = ()

    @property
    def reasons(self) -> dict[str, int]:
        return {reason: count for reason, count in self.done.reasons.items() if reason != "communication"}

    @property
    def answers(self) -> str:
        """Of the launches of k in the trace: i inside, o outside, - not asked for."""
        letters = {True: "i", False: "o", None: "-"}
        return "".join(letters[launch.overlapping] for launch in self.launches if launch.kernel == "k")


Windowed = Callable[..., Ran]


@pytest.fixture
def windowed(build: Build, preloaded: Runner, tmp_path: Path) -> Windowed:
    """windowed(program, policy=POLICY, trace=False, env={}): one program, or several."""
    numbers = itertools.count()

    def run(
        program: str | Sequence[str], policy: str = POLICY, trace: bool = False, env: dict[str, str] | None = None
    ) -> Ran:
        folder = tmp_path / f"windows{next(numbers)}"
        (folder / "pages").mkdir(parents=True)
        lines = [program] if isinstance(program, str) else list(program)
        (folder / "lines").write_text("".join(f"{line}\n" for line in lines))
        made = build("windows", "windows.c", "-DWAY_LINKED", link=[plan.SIMULATED_DRIVER])
        more: dict[str, Any] = {"OVERLAP_TRACE": "1"} if trace else {}
        with (folder / "lines").open() as text:
            done = preloaded(
                (),
                policy,
                program=made,
                stdin=text,
                report=folder / "pages",
                env={"SIMGPU_MULTIPROCESSORS": "2", "SIMGPU_INVALID": "crashes", **more, **(env or {})},
            )
        assert done.status == 0, done.stderr
        assert not {*done.stdout.split()} - {"0"}, f"a call failed: {lines} {done.stdout}"
        launches: list[Launch] = []
        for _, read in collect.traces([str(folder / "pages")]):
            assert hasattr(read, "launches"), read
            launches += read.launches
        collected = collect.collect(str(folder / "pages"))
        return Ran(done, launches, findings.remarks(collected), collected.pages)

    return run
