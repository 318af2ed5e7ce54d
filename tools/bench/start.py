"""What the library adds to the start and end of programs that use no GPU, which is what most programs of a job are.

In turn: with nothing preloaded, with an empty library, and with ours: not armed, armed with the default policies, and
off. A variable of some kilobytes costs by itself, whoever reads it; so the empty library is also measured beside one.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from pyshim import _native
from pyshim.launch import plan

BUDGET = 10  # microseconds over an empty preload
# The program, and how often it is started for each round.
PROGRAMS = {
    "/bin/true": (["/bin/true"], 200),
    "bash -l": (["bash", "-l", "-c", "true"], 3),
    "python -c pass": ([sys.executable, "-c", "pass"], 10),
}
FOUND = ("bare", "empty", "variable", "not_armed", "armed", "off")


def spawned(folder: Path, count: int, variants: list[str], program: list[str]) -> list[float]:
    """Microseconds to start and end the program, by variant of its preload."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("OVERLAP_", "LD_PRELOAD"))}
    command = [str(folder / "spawn"), str(count), *variants, "--", *program]
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    return [float(line) for line in done.stdout.split()]


def found_bare(row: dict[str, object]) -> float:
    return float(str(row["bare"]))


def rows(folder: Path, rounds: int) -> list[dict[str, object]]:
    table = plan.make(plan.Request(), {}).settings.table
    library, empty = str(_native.SHIM), str(folder / "empty.so")
    variants = ["-", empty, f"{empty}@{table}", library, f"{library}@{table}", f"{library}@{table}@off"]
    made: list[dict[str, object]] = []
    for name, (program, count) in PROGRAMS.items():
        found = dict(zip(FOUND, spawned(folder, count * rounds, variants, program)))
        over = {f"{how}_over_empty": round(found[how] - found["empty"], 1) for how in FOUND[2:]}
        made.append({"what": name, "bare": found["bare"], "empty_preload": found["empty"], **over, "budget": BUDGET})
    made[1]["budget"] = made[2]["budget"] = None  # bash -l starts others; python is no quieter than the budget
    ours = [str(Path(sys.executable).with_name("overlap-run")), "--quiet", "--policy", "observe", "true"]
    through = spawned(folder, 3 * rounds, ["-"], ours)[0]
    over_true = round(through - found_bare(made[0]))
    made.append({"what": "overlap-run true", "armed_over_bare": over_true, "budget": 60_000})
    return made
