"""A pytest plugin: tests against a library that the compiler has instrumented.

    pytest -p tools.checks.sanitizer --sanitizer address|thread|coverage [TEST...]     default: interpose, launch

The tree is copied, what tests preload is built there with the flags of one kind, and pytest runs there: whatever names
the library, in which process ever, gets this one. A sanitizer's runtime must come before everything else that is
preloaded: tests take its path from OVERLAP_TEST_PRELOAD, which the product never reads, and the programs that are to be
instrumented, too, take their flags from OVERLAP_TEST_FLAGS (tests/fuzz/test_stress.py). What a sanitizer says goes into
files, and any of them is a failure, so nothing is lost with the output of a process that nobody looks at. coverage
prints which lines of C were run through, and fails where they are fewer than --least percent.

Tests with the mark plain("why", sanitized=True), or coverage=True, are left out, for the reason that they give.
"""

from __future__ import annotations

import collections
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tools.checks import shim_build

ROOT = Path(__file__).resolve().parents[2]
FLAGS = ("-std=c11", "-D_GNU_SOURCE", "-O1", "-g", "-fno-omit-frame-pointer")
KINDS = {
    "address": ("-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"),
    "thread": ("-fsanitize=thread",),
    "coverage": ("--coverage", "-fprofile-update=atomic"),
}
RUNTIME = {"address": "libasan.so", "thread": "libtsan.so"}
# These run inside dlsym, before a sanitizer's runtime has started.
BEFORE_ANYTHING = {"dlsym.c", "elf.c", "libc.c", "name.c", "next.c", "object.c"}
OTHERS = ("simgpu", "hip7", "runtime12", "runtime13")
SUITES = ("tests/interpose", "tests/launch")
NOT_COPIED = shutil.ignore_patterns(
    ".git", ".venv", ".tests", "_lib", "__pycache__", ".*_cache", ".hypothesis", "build", "dist"
)
EXIT_CODE = 66  # of a process in which a sanitizer has found something
# A thread takes over the records of one that the kernel no longer knows (tgkill: ESRCH): an order that
# ThreadSanitizer does not see.
UNSEEN = "race:launcher_take\n"


class Failed(Exception):
    """What went wrong, with the output that says so."""


def compiler() -> list[str]:
    return shlex.split(os.environ.get("CC", "gcc"))


def compile_one(command: Sequence[object], cwd: Path | None = None) -> str:
    """Its output; raises Failed."""
    words = [str(word) for word in command]
    done = subprocess.run(words, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode:
        raise Failed(f"{shlex.join(words)}\nended with {done.returncode}\n{done.stdout}")
    return done.stdout


def runtime(kind: str) -> str:
    """Of the sanitizer; empty where the kind has none."""
    if kind not in RUNTIME:
        return ""
    return os.path.realpath(compile_one([*compiler(), f"-print-file-name={RUNTIME[kind]}"]).strip())


def library(kind: str, shim: Path, objects: Path, made: Path) -> None:
    """shim: its sources. objects: a folder for what the compiler leaves."""
    objects.mkdir(exist_ok=True)

    def one(path: Path) -> Path:
        out = objects / f"{path.parent.name}-{path.stem}.o"
        flags = () if path.name in BEFORE_ANYTHING and kind in RUNTIME else KINDS[kind]
        compile_one([*compiler(), *FLAGS, *flags, "-fPIC", "-fvisibility=hidden", f"-I{shim}", "-c", path, "-o", out])
        return out

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        parts = list(pool.map(one, sorted(path for path in shim.rglob("*") if path.suffix in (".c", ".S"))))
    link = [flag for flag in shim_build.load().arguments("shim") if flag.startswith("-Wl,")]
    compile_one([*compiler(), *KINDS[kind], "-shared", *link, *parts, "-o", made], cwd=shim.parent)


def tree(kind: str, folder: Path) -> Path:
    """The copy, built."""
    root = Path(shutil.copytree(ROOT, folder / "tree", ignore=NOT_COPIED))
    build = shim_build.load(root)
    build.build(only="shim")  # the header, and shipped policies
    flags = () if kind == "coverage" else (*KINDS[kind], "-O1")
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(lambda artifact: build.build_one(artifact, build.OUTPUT, flags), OTHERS))
    library(kind, root / "shim", folder / "objects", build.OUTPUT / build.FILES["shim"])
    return root


def environment(kind: str, root: Path, found: Path) -> dict[str, str]:
    """Of pytest. found: where sanitizers write."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("OVERLAP_", "SIMGPU", "LD_"))}
    clean["PYTHONPATH"] = str(root)
    first = runtime(kind)
    if not first:
        # A process may be without files or memory, which the counters' own lines would say on its stderr.
        return {**clean, "GCOV_ERROR_FILE": os.devnull}
    unseen = found.with_name("unseen")
    unseen.write_text(UNSEEN, encoding="ascii")
    thread = f"exitcode={EXIT_CODE}:die_after_fork=0:ignore_noninstrumented_modules=1:suppressions={unseen}"
    address = f"log_path={found}/address:exitcode={EXIT_CODE}:detect_leaks=0:verify_asan_link_order=0"
    return {
        **clean,
        "LD_PRELOAD": first,
        "OVERLAP_TEST_PRELOAD": first,
        "OVERLAP_TEST_FLAGS": shlex.join(KINDS[kind]),
        # Leaks: valgrind sees what is left more exactly. A program may die by its own signal.
        "ASAN_OPTIONS": f"{address}:handle_segv=0:allocator_may_return_null=1",
        "TSAN_OPTIONS": f"log_path={found}/thread:{thread}",
        "UBSAN_OPTIONS": f"log_path={found}/undefined:print_stacktrace=1:exitcode={EXIT_CODE}",
    }


def findings(found: Path) -> list[str]:
    """One of each."""
    texts = [path.read_text(encoding="utf-8", errors="replace") for path in sorted(found.iterdir())]
    by_summary: dict[str, str] = {}
    for text in texts:
        summary = re.search(r"^SUMMARY: .*", text, re.M)
        by_summary.setdefault(summary.group() if summary else text[:200], text)
    return list(by_summary.values())


def suite(kind: str, folder: Path, tests: Sequence[str], least: float = 0) -> str:
    """Runs them; what pytest says goes to the terminal. Raises Failed."""
    found = folder / "found"
    found.mkdir()
    root = tree(kind, folder)
    left_out = "sanitized" if kind in RUNTIME else kind
    options = ["-q", "-m", f"not plain({left_out}=True)", "--numprocesses", "auto", "--dist", "loadfile"]
    command = [sys.executable, "-m", "pytest", *options, *(tests or SUITES)]
    if kind == "thread" and shutil.which("setarch"):
        command = ["setarch", "-R", *command]  # its shadow memory and random addresses do not always agree
    status = subprocess.run(command, cwd=root, env=environment(kind, root, found), check=False).returncode
    said = findings(found)
    if said or status:
        raise Failed("\n".join([*said[:20], f"pytest ended with {status}; {len(said)} different findings"]))
    return f"{' '.join(tests or SUITES)}: no finding"


# ---- The plugin ----


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("sanitizer", "a library that the compiler has instrumented")
    group.addoption("--sanitizer", choices=tuple(KINDS), help="build it so, and run the tests against that")
    group.addoption("--least", type=float, default=90, help="coverage: percent of the lines (default 90)")


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> int | None:
    """Run the tests of the command line in a process of their own; None: pytest goes on, without a sanitizer."""
    kind, tests = config.option.sanitizer, config.option.file_or_dir
    if not kind:
        return None
    with tempfile.TemporaryDirectory(prefix="overlap-sanitizer-") as scratch:
        os.chmod(scratch, 0o755)  # tests become other users
        try:
            run = coverage if kind == "coverage" else suite
            print(f"{kind}: {run(kind, Path(scratch), tests, config.option.least)}", file=sys.stderr)
        except Failed as error:
            print(f"{kind}: FAILED: {error}", file=sys.stderr)
            return 1
    return 0


# ---- Lines that tests run through ----


def lines(objects: Path, root: Path) -> dict[str, dict[int, bool]]:
    """By file of the library, its lines with code, and whether any process ran through them."""
    seen: dict[str, dict[int, bool]] = collections.defaultdict(dict)
    for notes in sorted(objects.glob("*.gcno")):
        command = ["gcov", "--json-format", "--stdout", notes.name]
        done = subprocess.run(command, cwd=objects, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
        for file in json.loads(done.stdout)["files"]:
            path = Path(os.path.normpath(objects / file["file"]))
            if root / "shim" not in path.parents:
                continue
            own = seen[str(path.relative_to(root))]
            for line in file["lines"]:
                number = line["line_number"]
                own[number] = own.get(number, False) or line["count"] > 0
    return seen


def ranges(numbers: Sequence[int]) -> str:
    """1-3 7 9-10"""
    said: list[list[int]] = []
    for number in numbers:
        if said and said[-1][1] == number - 1:
            said[-1][1] = number
        else:
            said.append([number, number])
    return " ".join(str(first) if first == last else f"{first}-{last}" for first, last in said)


def coverage(kind: str, folder: Path, tests: Sequence[str], least: float) -> str:
    """Prints a table by file. Raises Failed where a test fails, or fewer percent of the lines were run through."""
    failed = None
    try:
        suite(kind, folder, tests or ("tests/core", *SUITES))
    except Failed as error:
        failed = error
    seen = lines(folder / "objects", folder / "tree")
    print(f"{'lines':>6} {'run':>6} {'%':>6}  file, and lines that were not run")
    for name, own in sorted(seen.items()):
        missing = ranges([number for number, run in sorted(own.items()) if not run])
        ran = sum(own.values())
        print(f"{len(own):6} {ran:6} {100 * ran / len(own):6.1f}  {name}  {missing}".rstrip())
    total, ran = sum(map(len, seen.values())), sum(sum(own.values()) for own in seen.values())
    percent = 100 * ran / total
    print(f"{total:6} {ran:6} {percent:6.1f}  shim/ (C; assembler is not counted)")
    if failed:
        raise failed
    if percent < least:
        raise Failed(f"{percent:.1f} % of the lines, which should be {least} %")
    return f"{percent:.1f} % of {total:,} lines of C"
