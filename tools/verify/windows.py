"""Many random programs on the simulated GPU: is what the library says of each true?

Each program is run with the library preloaded. What may run beside what is
worked out from the whole program, apart from the library
(tests/windows/model.py). A launch said to be in a window that is ordered behind
all communication is a wrong claim. A launch said to be outside that could
overlap must be one of the cases of shim/core/WINDOWS.md. Both rates are printed.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import re
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]

try:
    from pyshim import _native
    from tests.windows.compare import Counts, check, compare, story
    from tests.windows.conservative import CASES
    from tests.windows.generate import random_program, smallest
    from tests.windows.interpreter import Interpreter
    from tests.windows.legal import ended
    from tests.windows.operations import NotAProgram, Program, program_of
    from tests.windows.targets import VENDORS, Target, compile_to, environment_of
except ModuleNotFoundError as error:
    print(f"windows.py: error: {error.name} is not installed: make setup, then .venv/bin/python", file=sys.stderr)
    sys.exit(2)

SHORTEST = 5  # operations of a random program, besides those that make streams and events
END = """example: two streams, communication on the first, computation on the second
  python -m tools.verify.windows --line 'ns0,1,0,0 ns1,1,0,0 cs0,0,0,0 ks1,0,0,0'
The words of a program are explained in tests/windows/operations.py. It needs
make setup, whose Python is .venv/bin/python, and a C compiler.

exit status: 0 all is true; 1 a wrong claim, an unexplained answer, or a launch
whose size does not fit its answer; 2 the options are wrong, or no make setup"""
BATCH = 200
BATCH_LEARNT = 12  # the library counts for so many programs at least, before it looks at times only
FOREIGN = ("OVERLAP_", "SIMGPU", "LD_")


def made(folder: Path, target: Target) -> Interpreter:
    clean = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}
    return Interpreter(compile_to(folder, target), environment_of(clean, folder, target), folder)


def work(job: tuple[int, int, Target, int]) -> tuple[Counts, list[tuple[Program, list[str]]]]:
    """Programs by their numbers, and the first few on which the library is wrong, made small."""
    first, last, target, longest = job
    counts, failed = Counts(), []
    with tempfile.TemporaryDirectory(prefix="check-windows-") as folder:
        interpreter = made(Path(folder), target)
        missing = interpreter.missing()
        batch = BATCH_LEARNT if target.critical else BATCH
        options: dict[str, Any] = {"longest": longest, "without": missing, "vendor": target.vendor}
        options["repeated"] = target.critical
        for begin in range(first, last, batch):
            seeds = range(begin, min(begin + batch, last))
            programs = [random_program(seed, **options) for seed in seeds]
            failed += check(interpreter, programs, counts)
            if target.critical:
                interpreter.close()
        small = [smaller(interpreter, program, found) for program, found in failed[:5]]
        interpreter.close()
    return counts, small + failed[5:]


def smaller(interpreter: Interpreter, program: Program, found: list[str]) -> tuple[Program, list[str]]:
    def fails(shorter: Program) -> bool:
        interpreter.close()  # what it has learnt would matter
        return bool(compare(shorter, interpreter.run([shorter])[0], Counts()))

    if not fails(program):
        return program, [*found, "(not when it runs alone: what ran before it matters)"]
    program = smallest(program, fails)
    interpreter.close()
    return program, compare(program, interpreter.run([program])[0], Counts())


def one(program: Program, target: Target) -> int:
    with tempfile.TemporaryDirectory(prefix="check-windows-") as folder:
        interpreter = made(Path(folder), target)
        outcome = interpreter.run([program])[0]
        interpreter.close()
    found = compare(program, outcome, Counts())
    print(story(program, found))
    print("results", *outcome.results)
    for at, answer in outcome.answers.items():
        print(at, answer)
    return 1 if found else 0


def by_number(item: tuple[str, int]) -> tuple[int, str]:
    case = item[0]
    return int(case) if case.isdigit() else 99, case


def named(case: str) -> str:
    """By its number in shim/core/WINDOWS.md, where it has one."""
    return f"case {case} ({CASES[case]})" if case.isdigit() else f"{case} ({CASES.get(case, 'no case says so')})"


def told(counts: Counts, failed: list[tuple[Program, list[str]]], seconds: float) -> str:
    share = 100 * counts.exact / max(counts.launches, 1)
    lines = [
        f"{counts.programs} programs in {seconds:.0f} s",
        f"launches of computation: {counts.launches}, of communication: {counts.communication}",
        f"said to be in a window: {counts.claims}, of these wrong: {counts.wrong}",
        f"said to be on a critical stream: {counts.critical}, of these wrong: {counts.not_critical}",
        f"exact: {counts.exact} ({share:.1f} %)",
        f"outside although possible: {sum(counts.conservative.values())}, unexplained: {counts.unexplained}",
    ]
    lines += [f"  {named(case)}: {number}" for case, number in sorted(counts.conservative.items(), key=by_number)]
    return "\n".join([*lines, f"programs with a finding: {len(failed)}"])


def parsed() -> tuple[argparse.Namespace, Target, Program | None]:
    """Ends with status 2 and one sentence where something is wrong."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        epilog=END,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        usage="%(prog)s [options]",
    )
    for name, default, least, what in (
        ("--programs", 100_000, 1, "how many"),
        ("--seed", 0, 0, "which ones: the same seed makes the same programs"),
        ("--jobs", 2, 1, "processes side by side"),
        ("--longest", 40, SHORTEST, "operations of a program at most, besides those that make streams"),
    ):
        parser.add_argument(
            name,
            type=number_from(least),
            default=default,
            metavar="N",
            help=f"{what}; from {least} (default: {default})",
        )
    parser.add_argument("--vendor", choices=VENDORS, default="nvidia", help="whose calls (default: nvidia)")
    parser.add_argument(
        "--runtime", type=int, choices=(5, 6, 7), default=7, help="the release of AMD's HIP (default: 7)"
    )
    parser.add_argument(
        "--proc-address",
        action="store_true",
        help="reach the driver through cuGetProcAddress, or through hipGetProcAddress (from 6)",
    )
    parser.add_argument("--critical", action="store_true", help="programs that repeat themselves, under critical: auto")
    parser.add_argument("--line", metavar="PROGRAM", help="run this one program instead, and tell what was said of it")
    parser.add_argument("--json", action="store_true", help="the counts as one object on stdout")
    asked = parser.parse_args()
    target = Target(asked.vendor, asked.proc_address, asked.runtime, asked.critical)
    if asked.proc_address and asked.vendor == "amd" and asked.runtime < 6:
        parser.exit(2, "windows.py: error: --proc-address: HIP 5 has no hipGetProcAddress: --runtime 6 or 7\n")
    program = None
    if asked.line is not None:
        try:
            program = ended(program_of(asked.line))
        except NotAProgram as error:
            parser.exit(2, f"windows.py: error: --line: {error}; see tests/windows/operations.py\n")
    if not (_native.SHIM.exists() and target.library.exists()):
        parser.exit(2, "windows.py: error: the library was not built: make setup\n")
    return asked, target, program


def number_from(least: int) -> Callable[[str], int]:
    def number(text: str) -> int:
        if not re.fullmatch(r"[0-9]{1,12}", text) or int(text) < least:
            raise argparse.ArgumentTypeError(f"{text!r} is not a number from {least}")
        return int(text)

    return number


def main() -> int:
    asked, target, program = parsed()
    if program is not None:
        return one(program, target)
    start = time.monotonic()
    side_by_side = min(asked.jobs, asked.programs)
    step = -(-asked.programs // side_by_side)
    first = asked.seed * 1_000_000_000
    ends = [min((job + 1) * step, asked.programs) for job in range(side_by_side)]
    jobs = [(first + job * step, first + end, target, asked.longest) for job, end in enumerate(ends)]
    counts = Counts()
    failed: list[tuple[Program, list[str]]] = []
    with multiprocessing.Pool(side_by_side) as pool:
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
