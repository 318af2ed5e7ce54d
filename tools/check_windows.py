"""Many random programs on the simulated GPU: is what the library says about each launch true?

python tools/check_windows.py [--programs 100000] [--seed N] [--jobs 2] [--json]
python tools/check_windows.py --line 'ns0,1,0,0 ...'     one program, told in words

Each program is run with the library preloaded. What may run beside what is worked out from the whole program, apart
from the library (tests/windows/model.py). A launch said to be in a window that is ordered behind all communication is
a wrong claim. A launch said to be outside that could overlap must be one of the cases of shim/core/WINDOWS.md.
Status 1: a wrong claim, an unexplained answer, or a launch whose size does not fit its answer.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "windows")]

from compare import Counts, check, compare, story  # noqa: E402
from generate import random_program, smallest  # noqa: E402
from interpreter import Interpreter, compile_to, environment_of  # noqa: E402
from operations import Program, program_of  # noqa: E402

BATCH = 200
FOREIGN = ("OVERLAP_", "SIMGPU", "LD_")


def made(folder: Path, proc_address: bool) -> Interpreter:
    clean = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}
    return Interpreter(compile_to(folder, proc_address), environment_of(clean, folder), folder)


def work(job: tuple[int, int, bool, int]) -> tuple[Counts, list[tuple[Program, list[str]]]]:
    """Programs by their numbers, and the first few on which the library is wrong, made small."""
    first, last, proc_address, longest = job
    counts, failed = Counts(), []
    with tempfile.TemporaryDirectory(prefix="check-windows-") as folder:
        interpreter = made(Path(folder), proc_address)
        missing = interpreter.missing()
        for begin in range(first, last, BATCH):
            seeds = range(begin, min(begin + BATCH, last))
            programs = [random_program(seed, longest=longest, without=missing) for seed in seeds]
            failed += check(interpreter, programs, counts)
        small = [smaller(interpreter, program, found) for program, found in failed[:5]]
        interpreter.close()
    return counts, small + failed[5:]


def smaller(interpreter: Interpreter, program: Program, found: list[str]) -> tuple[Program, list[str]]:
    def fails(shorter: Program) -> bool:
        return bool(compare(shorter, interpreter.run([shorter])[0], Counts()))

    if not fails(program):
        return program, [*found, "(not when it runs alone: what ran before it matters)"]
    program = smallest(program, fails)
    return program, compare(program, interpreter.run([program])[0], Counts())


def one(line: str, proc_address: bool) -> int:
    program = program_of(line)
    with tempfile.TemporaryDirectory(prefix="check-windows-") as folder:
        interpreter = made(Path(folder), proc_address)
        outcome = interpreter.run([program])[0]
        interpreter.close()
    found = compare(program, outcome, Counts())
    print(story(program, found))
    print("results", *outcome.results)
    for at, answer in outcome.answers.items():
        print(at, answer)
    return 1 if found else 0


def told(counts: Counts, failed: list[tuple[Program, list[str]]], seconds: float) -> str:
    share = 100 * counts.exact / max(counts.launches, 1)
    lines = [
        f"{counts.programs} programs in {seconds:.0f} s",
        f"launches of computation: {counts.launches}, of communication: {counts.communication}",
        f"said to be in a window: {counts.claims}, of these wrong: {counts.wrong}",
        f"exact: {counts.exact} ({share:.1f} %)",
        f"outside although possible: {sum(counts.conservative.values())}, unexplained: {counts.unexplained}",
    ]
    lines += [f"  case {case}: {number}" for case, number in sorted(counts.conservative.items())]
    return "\n".join([*lines, f"programs with a finding: {len(failed)}"])


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--programs", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--longest", type=int, default=40, help="operations of a program")
    parser.add_argument("--proc-address", action="store_true", help="reach the driver through cuGetProcAddress")
    parser.add_argument("--line", help="run one program instead")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    if asked.line:
        return one(asked.line, asked.proc_address)
    start = time.monotonic()
    step = -(-asked.programs // asked.jobs)
    first = asked.seed * 1_000_000_000
    ends = [min((job + 1) * step, asked.programs) for job in range(asked.jobs)]
    jobs = [(first + job * step, first + end, asked.proc_address, asked.longest) for job, end in enumerate(ends)]
    counts = Counts()
    failed: list[tuple[Program, list[str]]] = []
    with multiprocessing.Pool(asked.jobs) as pool:
        for part, found in pool.imap_unordered(work, jobs):
            counts.add(part)
            failed += found
    seconds = time.monotonic() - start
    failed.sort(key=lambda one: len(one[0]))
    if asked.json:
        smallest_first = [{"program": " ".join(map(str, program)), "found": found} for program, found in failed[:20]]
        print(json.dumps({**counts.as_json(), "seconds": round(seconds, 1), "findings": smallest_first}))
    else:
        print(told(counts, failed, seconds))
        for program, words in failed[:3]:
            print("\n" + story(program, words))
    return 1 if failed or counts.wrong or counts.unexplained else 0


if __name__ == "__main__":
    sys.exit(main())
