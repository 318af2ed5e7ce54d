"""The library under the compiler's sanitizers. Exits 1 on any finding.

    python -m tools.checks.sanitize [address] [thread] [analyzer] [--keep DIR]     default: address thread
    python -m tools.checks.sanitize suite-address|suite-thread|coverage|valgrind [--tests TEST...]

    address   AddressSanitizer and UndefinedBehaviorSanitizer: library, simulated driver, tests/fuzz/stress.c
    thread    ThreadSanitizer, likewise
    analyzer  gcc -fanalyzer over the library's sources
    suite-address  the tests that start real processes, with all that they preload built so: instrumented.py
    suite-thread  likewise
    coverage  likewise, and with those of core/; prints which lines of C were run through
    valgrind  tests/interpose/test_memcheck.py with all of its cases

The stress program runs once as it is, and once so that streams are waited for and raised; every launch that it made
must be in the report's pages. Then
tests/programs/churn.c: threads that launch while modules, streams, contexts and graphs come and go. And
tests/fuzz/stress_hip.c on a simulated HIP runtime, called by its exported functions.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tools.checks import instrumented, shim_build
from tools.checks.instrumented import FLAGS, Failed, compiler
from tools.checks.instrumented import KINDS as SANITIZE
from tools.simgpu.hip.image import Kernel, image

ROOT = Path(__file__).resolve().parents[2]

FINDING = re.compile(r"ERROR: \w+Sanitizer|WARNING: ThreadSanitizer|runtime error:|SUMMARY: \w+Sanitizer")
CHURNING = 64  # threads
POLICY = """policy: 1
name: stress
compute:
  - {match: {kernel: "*gemm"}, shape: {blocks_per_sm: 1}, when: always}
  - {match: {kernel: "elementwise*"}, shape: {blocks_per_sm: 50%}, when: always}
  - {match: {kernel: "shape_*"}, shape: {blocks_per_sm: 2}, when: always}
  - {match: {kernel: room}, shape: make_room, when: always}
"""
HIP = """policy: 1
name: stress
compute:
  - {match: {kernel: "*gemm"}, shape: {blocks_per_sm: 1}, when: always}
  - {match: {kernel: "elementwise*"}, shape: make_room, when: overlapping}
"""
HIP_KERNELS = ("gemm", "asked_gemm", "elementwise", "ncclDevKernel_Generic_2")
HIP_VERSION = "7"
WAITS = """policy: 1
name: waits
compute: [{match: {kernel: k}, shape: {blocks_per_sm: 1}, when: overlapping}]
"""


def run(command: Sequence[object], **more: object) -> str:
    done = subprocess.run(
        [str(word) for word in command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        **more,
    )  # type: ignore[call-overload]
    output = str(done.stdout)
    if done.returncode or FINDING.search(output):
        raise Failed(f"{shlex.join(str(word) for word in command)}\nended with {done.returncode}\n{output}")
    return output


def build(kind: str, folder: Path) -> tuple[Path, Path, Path]:
    """Library, simulated driver, program."""
    shim = Path(shutil.copytree(ROOT / "shim", folder / "shim"))
    library, driver, program = folder / "liboverlap.so", folder / "libcuda.so.1", folder / "stress"
    instrumented.library(kind, shim, folder / "objects", library)
    includes = [f"-I{ROOT / 'shim'}", f"-I{ROOT / 'shim' / 'core'}"]
    simulated = sorted((ROOT / "tools" / "simgpu").glob("*.c"))
    shared = ["-fPIC", "-shared", "-fvisibility=hidden", "-Wl,-soname,libcuda.so.1", "-Wl,-Bsymbolic"]
    run([*compiler(), *FLAGS, *SANITIZE[kind], *shared, *includes, *simulated, "-o", driver, "-lm", "-pthread"])
    programs = ROOT / "tests" / "programs"
    for source in (ROOT / "tests" / "fuzz" / "stress.c", programs / "churn.c"):
        made = [*compiler(), *FLAGS, *SANITIZE[kind], source, driver, f"-Wl,-rpath,{folder}"]
        run([*made, "-o", folder / source.stem, "-ldl", "-pthread"])
    return library, driver, program


def build_hip(kind: str, folder: Path) -> Path:
    """The simulated runtime, the code object and the program that uses them."""
    kernels = [Kernel(name, vgprs=256, agprs=8, static_shared=8192, max_threads=256) for name in HIP_KERNELS]
    (folder / "kernels").write_bytes(image(kernels))
    runtime = folder / f"libamdhip64.so.{HIP_VERSION}"
    flags = [flag for flag in FLAGS if flag.startswith(("-O", "-g", "-f"))]
    given = shim_build.load().hip_arguments(HIP_VERSION, folder)
    run([*compiler(), *given, *flags, *SANITIZE[kind], "-o", runtime], cwd=ROOT)
    program = folder / "stress_hip"
    made = [*compiler(), *FLAGS, *SANITIZE[kind], f'-DRUNTIME="{runtime.name}"', ROOT / "tests/fuzz/stress_hip.c"]
    run([*made, runtime, f"-Wl,-rpath,{folder}", "-o", program, "-ldl", "-pthread"])
    return program


def stress_hip(kind: str, folder: Path, fixed: Sequence[str], threads: int, rounds: int) -> str:
    program = build_hip(kind, folder)
    report = folder / "report-hip"
    report.mkdir()
    env = {**environment(kind, folder / "liboverlap.so", report), "SIMGPU": "mi250x"}
    env = {**env, "OVERLAP_TABLE": table(HIP), "SIMGPU_MULTIPROCESSORS": "4"}
    output = run([*fixed, program, threads, rounds, folder / "kernels"], env=env, timeout=600)
    made = sum(int(count) for count in re.findall(r"^(?:parent|child) (\d+)$", output, re.M))
    counted = totals(report, 2)
    if counted["launches"] != made or not counted["shaped"] or counted["refused"] or counted["raised"]:
        raise Failed(f"stress_hip made {made} launches, and the pages say {json.dumps(counted)}\n{output}")
    return f"{made:,} launches of HIP, {counted['shaped']:,} shaped"


def table(policy_text: str = POLICY) -> str:
    from pyshim.policy import reader
    from pyshim.policy.layout import encode
    from pyshim.policy.table import compile_table

    policy = reader.read_bytes(policy_text.encode(), "stress.yaml").policy
    assert policy is not None
    return encode(compile_table([policy]))


# A thread takes over the records of one that the kernel no longer knows (tgkill: ESRCH): an order that
# ThreadSanitizer does not see.
UNSEEN = "race:launcher_take\n"


def environment(kind: str, library: Path, report: Path) -> dict[str, str]:
    suppressions = library.with_name("suppressions")
    suppressions.write_text(UNSEEN, encoding="ascii")
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("OVERLAP_", "SIMGPU", "LD_"))}
    return {
        **clean,
        "LD_PRELOAD": f"{instrumented.runtime(kind)} {library}",
        "OVERLAP_TABLE": table(),
        "OVERLAP_REPORT": str(report),
        "SIMGPU": "h100",
        "SIMGPU_REFUSE": "refused*:50000",
        "ASAN_OPTIONS": "detect_leaks=0:abort_on_error=0:exitcode=66",
        "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1:exitcode=66",
        "TSAN_OPTIONS": "halt_on_error=0:exitcode=66:die_after_fork=0:second_deadlock_stack=1"
        f":suppressions={suppressions}",
    }


def stress(kind: str, folder: Path, threads: int, rounds: int) -> str:
    library, _, program = build(kind, folder)
    said = []
    # ThreadSanitizer's shadow memory and random addresses do not always agree.
    fixed = ["setarch", "-R"] if kind == "thread" and shutil.which("setarch") else []
    report = folder / "report"
    report.mkdir()
    output = run([*fixed, program, threads, rounds], env=environment(kind, library, report), timeout=600)
    made = sum(int(count) for count in re.findall(r"^(?:parent|child) (\d+)$", output, re.M))
    counted = totals(report)
    if counted["launches"] != made or not counted["shaped"] or not counted["refused"]:
        raise Failed(f"the program made {made} launches, and the pages say {json.dumps(counted)}\n{output}")
    said.append(f"{made:,} launches, {counted['shaped']:,} shaped, {counted['refused']} refused")
    report = folder / "report-churn"
    report.mkdir()
    env = {**environment(kind, library, report), "SIMGPU_MULTIPROCESSORS": "4"}
    output = run([*fixed, folder / "churn", CHURNING, 24], env=env, timeout=600)
    if f"failed: 0, launches: {totals(report, 1)['launches']}\n" not in output:
        raise Failed(f"churn: {totals(report, 1)}: {output}")
    said.append(stress_waits(library, program, fixed, threads, rounds, kind))
    said_of_hip = stress_hip(kind, folder, fixed, threads, rounds)
    return "; ".join(said) + f"; {CHURNING} threads while everything came and went; {said_of_hip}"


def stress_waits(library: Path, program: Path, fixed: Sequence[str], threads: int, rounds: int, kind: str) -> str:
    """Streams that threads wait for are raised and lowered."""
    report = library.parent / "report-waits"
    report.mkdir()
    env = {**environment(kind, library, report), "OVERLAP_TABLE": table(WAITS), "SIMGPU_MULTIPROCESSORS": "4"}
    output = run([*fixed, program, threads, rounds, "wait"], env=env, timeout=600)
    made = sum(int(count) for count in re.findall(r"^(?:parent|child) (\d+)$", output, re.M))
    counted = totals(report)
    if counted["launches"] != made or not counted["raised"]:
        raise Failed(f"stress wait made {made} launches, and the pages say {json.dumps(counted)}\n{output}")
    return f"{made:,} launches that are waited for, {counted['raised']:,} on raised streams"


def totals(report: Path, expected: int = 3) -> dict[str, int]:
    """Summed over the pages, read by the header: the command line needs a report that overlap-run has made."""
    from pyshim import _native

    lib, ffi = _native.library(), _native.ffi
    counts = {"launches": 0, "shaped": 0, "refused": 0, "raised": 0}
    pages = sorted(report.glob("*.page"))
    for path in pages:
        page = ffi.new("struct overlap_page *")
        data = path.read_bytes()  # it ends behind the shards that there are
        ffi.memmove(page, data, len(data))
        totals = ffi.new("struct overlap_totals *")
        lib.overlap_page_totals(page, totals)
        counts["launches"] += sum(totals.rows)
        counts["shaped"] += sum(n for reason, n in enumerate(totals.reasons) if lib.overlap_reason_shapes(reason))
        counts["refused"] += totals.counters[lib.OVERLAP_COUNTER_REFUSED]
        counts["raised"] += totals.counters[lib.OVERLAP_COUNTER_RAISED]
    if len(pages) != expected:
        raise Failed(f"{len(pages)} pages for a process and its children")
    # Another thread may have moved a launch to another reason: a cell may be negative, the sum over a page is not.
    return {name: count % 2**64 for name, count in counts.items()}


def analyzer(folder: Path) -> str:
    found = []
    sources = sorted((ROOT / "shim").rglob("*.c"))
    for path in sources:
        command = [
            "gcc",
            *FLAGS,
            "-O2",
            "-fanalyzer",
            "-Wall",
            "-Wextra",
            "-Wconversion",
            f"-I{ROOT / 'shim'}",
            "-c",
            path,
        ]
        output = run([*command, "-o", folder / "analyzed.o"])
        if "warning:" in output:
            found.append(output)
    if found:
        raise Failed("\n".join(found))
    return f"{len(sources)} files"


def valgrind(folder: Path) -> str:
    file = "tests/interpose/test_memcheck.py"
    command = [sys.executable, "-m", "pytest", "-q", "--numprocesses", "auto", "--basetemp", folder / "tests", file]
    return run(command, cwd=ROOT, env={**os.environ, "OVERLAP_TEST_MEMCHECK": "all"}).splitlines()[-1]


def main() -> int:
    parser = argparse.ArgumentParser(description="the library under the compiler's sanitizers")
    parser.add_argument("what", nargs="*", metavar="WHAT", help="see above (default: address thread)")
    parser.add_argument("--threads", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=300, help="launches of each thread (default 300)")
    parser.add_argument("--tests", nargs="+", default=[], metavar="TEST", help="as pytest takes them (default: all)")
    parser.add_argument("--least", type=float, default=90, help="coverage: percent of the lines (default 90)")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep what is built")
    options = parser.parse_args()
    jobs = {
        "address": lambda folder: stress("address", folder, options.threads, options.rounds),
        "thread": lambda folder: stress("thread", folder, options.threads, options.rounds),
        "analyzer": analyzer,
        "suite-address": lambda folder: instrumented.suite("address", folder, options.tests),
        "suite-thread": lambda folder: instrumented.suite("thread", folder, options.tests),
        "coverage": lambda folder: instrumented.coverage(folder, options.tests, options.least),
        "valgrind": valgrind,
    }
    wanted = options.what or ["address", "thread"]
    if unknown := set(wanted) - set(jobs):
        parser.error(f"unknown: {', '.join(sorted(unknown))}")
    failed = 0
    with tempfile.TemporaryDirectory(prefix="overlap-sanitize-") as scratch:
        os.chmod(scratch, 0o755)  # tests become other users
        for name in wanted:
            folder = (options.keep or Path(scratch)) / name
            folder.mkdir(parents=True)
            try:
                print(f"sanitize: {name}: {jobs[name](folder)}", file=sys.stderr)
            except (Failed, subprocess.TimeoutExpired) as error:
                failed += 1
                print(f"sanitize: {name}: FAILED: {error}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
