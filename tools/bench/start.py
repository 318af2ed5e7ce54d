"""What the library adds to the start, the end and the memory of programs that use no GPU: most programs of a job.

Each figure is taken with nothing preloaded, with an empty library, and with ours: unarmed, armed with the default
policies, and off. A variable of some kilobytes costs by itself, whichever library reads it; so the empty library is
also measured with one. Microseconds are medians of interleaved runs and depend on the machine. Instructions (callgrind:
user space, the loader included), page faults and memory are the same in every run, but for Python: where its objects
lie moves the instructions by one in a thousand.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from pyshim import _native
from pyshim.start import plan

HERE = Path(__file__).resolve().parent
# The program, and how often it is started for each round.
PROGRAMS = {
    "/bin/true": (["/bin/true"], 200),
    "bash -c true": (["bash", "-c", "true"], 60),
    "python -c pass": ([sys.executable, "-c", "pass"], 10),
}
# As the library is linked (shim/build.py): another mapping, or other rights of one, is a system call of the loader.
LINK = ("-shared", "-fPIC", "-Wl,-z,lazy", "-Wl,-z,norelro", "-Wl,-z,noseparate-code")
LIMIT = 16 << 20  # bytes that an unprivileged program may lock
# Over an empty preload, armed; of /bin/true: other programs are noisier than the budget in microseconds.
BUDGET = {"microseconds": 60, "instructions": 40_000, "page faults": 12, "data KiB": 256, "locked KiB": 1024}

Variables = Mapping[str, str]
Row = dict[str, object]


def compile_all(folder: Path) -> None:
    """Compile the programs, and the library that holds nothing but some thread-local storage, as ours has."""
    compiler = [os.environ.get("CC", "cc"), "-O2", "-std=c11", "-D_GNU_SOURCE"]
    (folder / "empty.c").write_text("__thread char own[640];\n")
    for name in ("spawn", "memory"):
        subprocess.run([*compiler, str(HERE / f"{name}.c"), "-o", str(folder / name)], check=True)
    subprocess.run([*compiler, str(folder / "empty.c"), *LINK, "-o", str(folder / "empty.so")], check=True)


def variants(folder: Path) -> dict[str, dict[str, str]]:
    """Return the variables of each variant, by its name."""
    table = plan.make(plan.Request(), {}).settings.table or ""
    library, empty = str(_native.SHIM), str(folder / "empty.so")
    return {
        "bare": {},
        "empty": {"LD_PRELOAD": empty},
        "variable": {"LD_PRELOAD": empty, "OVERLAP_TABLE": table},
        "unarmed": {"LD_PRELOAD": library},
        "armed": {"LD_PRELOAD": library, "OVERLAP_TABLE": table},
        "off": {"LD_PRELOAD": library, "OVERLAP_TABLE": table, "OVERLAP_RUN": "off"},
    }


def clean() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith(("OVERLAP_", "LD_PRELOAD"))}


def spawned(
    folder: Path, count: int, program: list[str], chosen: Mapping[str, Variables]
) -> tuple[dict[str, float], dict[str, int]]:
    """Return the microseconds to start and end the program, and its page faults, by variant."""
    words = [
        "@".join([one.get("LD_PRELOAD", "-"), one.get("OVERLAP_TABLE", ""), one.get("OVERLAP_RUN", "")])
        for one in chosen.values()
    ]
    command = [str(folder / "spawn"), str(count), *words, "--", *program]
    done = subprocess.run(command, env=clean(), check=True, capture_output=True, text=True)
    found = [line.split() for line in done.stdout.splitlines()]
    times = {name: float(time) for name, (time, _) in zip(chosen, found)}
    return times, {name: int(faults) for name, (_, faults) in zip(chosen, found)}


def instructions(program: list[str], variables: Variables) -> int:
    """Return how many instructions the program executes from its first to its last; needs valgrind."""
    command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", *program]
    env = {**clean(), "PYTHONHASHSEED": "0", **variables}
    done = subprocess.run(command, env=env, check=True, capture_output=True, text=True)
    return int(re.findall(r"Collected : (\d+)", done.stderr)[-1])


def memory(folder: Path, variables: Variables) -> dict[str, int]:
    """Return KiB of address space, data and locked pages of a small program, and the error of mlockall under LIMIT."""
    asked = {}
    for limit in (0, LIMIT):
        command = [str(folder / "memory"), str(limit)]
        done = subprocess.run(command, env={**clean(), **variables}, check=True, capture_output=True, text=True)
        asked[limit] = [int(word) for word in done.stdout.split()]
    size, data, locked, _ = asked[0]
    return {"size KiB": size, "data KiB": data, "locked KiB": locked, "error of mlockall": asked[LIMIT][-1]}


def row(what: str, measure: str, found: Mapping[str, float]) -> Row:
    over: Row = {f"{name}_over_empty": round(found[name] - found["empty"], 1) for name in ("unarmed", "armed")}
    budget = BUDGET.get(measure) if what in ("/bin/true", "memory") else None
    return {"what": what, "measure": measure, **found, **over, "budget": budget}


def rows(folder: Path, rounds: int) -> list[Row]:
    """Return a row for each program and measure. folder: where compile_all() has put its programs."""
    chosen = variants(folder)
    made: list[Row] = []
    for name, (program, count) in PROGRAMS.items():
        times, faults = spawned(folder, count * rounds, program, chosen)
        made += [row(name, "microseconds", times), row(name, "page faults", faults)]
        if shutil.which("valgrind"):
            counted = {which: instructions(program, one) for which, one in chosen.items()}
            made.append(row(name, "instructions", counted))
    held = {which: memory(folder, one) for which, one in chosen.items()}
    for measure in ("size KiB", "data KiB", "locked KiB"):
        made.append(row("memory", measure, {which: one[measure] for which, one in held.items()}))
    errors = {which: one["error of mlockall"] for which, one in held.items()}
    said = {which: os.strerror(error) if error else "locked" for which, error in errors.items()}
    made.append({"what": "mlockall", "measure": f"within {LIMIT >> 20} MiB", **said})
    ours = [str(Path(sys.executable).with_name("overlap-run")), "--quiet", "--policy", "observe", "true"]
    through = {"bare": chosen["bare"]}
    over = (
        spawned(folder, 3 * rounds, ours, through)[0]["bare"]
        - spawned(folder, 3 * rounds, ["true"], through)[0]["bare"]
    )
    made.append({"what": "overlap-run true", "measure": "microseconds", "over_bare": round(over), "budget": 60_000})
    return made
