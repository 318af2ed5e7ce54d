"""Every reader of what somebody else may have made, fed with bytes from anywhere; and random calls of a driver, with
and without the library. Exits 1 on any finding.

    python -m tools.checks.fuzz [NAME...] [--seconds N] [--jobs N] [--json FILE] [--keep DIR]
                                     default: all, 60 seconds each
    python -m tools.checks.fuzz --readers N      the readers N seconds each, all calls (.ci/run: 15)
    python -m tools.checks.fuzz calls [--calls N] [--seed N] [--seconds N]    default: a million;
                             calls5, calls7: those of HIP, a fifth each
    python -m tools.checks.fuzz --repeat FILE    an input that was a finding, once more

Readers in C are programs of tests/fuzz/*_fuzz.c under the address and undefined-behaviour sanitizers: by libFuzzer,
where there is clang with it or Debian's can be installed, else by mutations of our own. Readers in Python are the
properties of tests/fuzz/test_readers.py, which hypothesis tries to break for as long (tests/fuzz/reading.py).

Calls (tests/fuzz/differ.py): programs of random calls run without the library and under several policies; what every
call answers, and what reaches the simulated driver, must be the same but for what the policy may change.

A finding: a crash, what a sanitizer says, an exception that is none of ours, an input that takes far too long, or a
difference. Its input stays in DIR (.fuzz) with the command that repeats it; that of a property is printed, and stays in
.hypothesis, so that the next run of the test begins with it.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shlex
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FUZZ = ROOT / "tests" / "fuzz"

FLAGS = ("-std=c11", "-D_GNU_SOURCE", "-O1", "-g", "-fno-omit-frame-pointer", f"-I{ROOT / 'shim'}")
SANITIZE = ("-fsanitize=address,undefined", "-fno-sanitize-recover=undefined")
# libstdc++, in which libFuzzer is written, goes into the program: another machine may have another one, or none.
LIBFUZZER = ("-fsanitize=fuzzer", "-DWITH_LIBFUZZER", "-nostdlib++", "-Wl,-Bstatic", "-lstdc++", "-Wl,-Bdynamic", "-lm")
DECIDING = ("policy_table", "match", "decide", "planner", "occupancy", "gpu")
# By name: the source in tests/fuzz, what it is compiled with.
PROGRAMS = {
    "table": ("table_fuzz.c", *(f"shim/core/{name}.c" for name in DECIDING)),
    "page": ("page_fuzz.c", "shim/core/stats.c", "shim/core/rows.c", "shim/core/match.c"),
}
PROPERTIES = {
    name: f"tests/fuzz/test_readers.py::test_{name}" for name in ("policies", "programs", "reports", "traces")
}
# By name: which driver's, and what share of the calls.
CALLS = {"calls": ("cuda", 1), "calls5": ("hip5", 5), "calls7": ("hip7", 5)}
# Of Debian, by release: the version of clang, whose package of libFuzzer has it in its name.
CLANG = {"bookworm": 14, "trixie": 19}
SECONDS = 60  # for each reader
SLOW = 25  # seconds for one input of a program
STILL = 60.0  # seconds without a new input: it hangs
STATE = struct.Struct("<QQQ")  # struct fuzz_state of tests/fuzz/fuzz.h: size, tried, accepted, then the input


class Failed(Exception):
    """What went wrong, with the output that says so."""


@dataclass
class Count:
    name: str
    engine: str
    tried: int = 0
    accepted: int = 0
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    covered: str = ""  # what the engine says of what was reached
    finding: str = ""  # the file


@dataclass
class Job:
    name: str
    command: list[str]
    state: Path
    log: Path
    begun: float = field(default_factory=time.monotonic)
    tried: int = -1
    moved: float = field(default_factory=time.monotonic)  # when there was a new input
    process: subprocess.Popen[bytes] | None = None

    def start(self, names: Mapping[str, str]) -> None:
        limits = "allocator_may_return_null=1:exitcode=66"
        given = {**names, "ASAN_OPTIONS": limits, "UBSAN_OPTIONS": "print_stacktrace=1"}
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("OVERLAP_", "LD_PRELOAD"))}
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                self.command, cwd=ROOT, stdout=log, stderr=log, stdin=subprocess.DEVNULL, env={**clean, **given}
            )

    def ended(self, count: Count) -> bool:
        """Whether it has; kills one that hangs."""
        assert self.process
        count.seconds = round(time.monotonic() - self.begun, 1)
        _, count.tried, count.accepted = self.seen()
        if count.tried != self.tried:
            self.tried, self.moved = count.tried, time.monotonic()
        elif self.name not in PROPERTIES and time.monotonic() - self.moved > STILL:
            os.kill(self.process.pid, signal.SIGKILL)  # Popen.kill() would look first whether it has ended
        pid, status, usage = os.wait4(self.process.pid, os.WNOHANG)
        if not pid:
            return False
        self.process.returncode = os.waitstatus_to_exitcode(status)
        count.cpu_seconds = round(usage.ru_utime + usage.ru_stime, 1)
        _, count.tried, count.accepted = self.seen()
        return True

    def seen(self) -> tuple[int, int, int]:
        try:
            with self.state.open("rb") as file:
                size, tried, accepted = STATE.unpack(file.read(STATE.size))
        except (OSError, struct.error):
            return 0, 0, 0
        return size, tried, accepted

    def input(self) -> bytes:
        with self.state.open("rb") as file:
            size, *_ = STATE.unpack(file.read(STATE.size))
            return file.read(size)


def run(command: Iterable[object]) -> None:
    words = [str(word) for word in command]
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode:
        raise Failed(f"{shlex.join(words)}\nended with {done.returncode}\n{done.stdout}")


# ---- programs ----


def libfuzzer() -> str | None:
    """A clang that has libFuzzer; None where there is none, nor a way to it."""
    from tests import debian

    try:
        version = CLANG.get(debian.codename())
        if version:
            debian.install(["clang", f"libclang-rt-{version}-dev"], ["clang"])
    except (debian.Missing, OSError) as missing:
        say(f"no clang installed: {missing}")
    return shutil.which("clang")


def build(folder: Path, names: Iterable[str]) -> str:
    """The programs and their seeds. Returns what drives them."""
    from tests.fuzz import seeds

    clang, engine = libfuzzer(), "libFuzzer"
    for name in names:
        source, *rest = PROGRAMS[name]
        words = [FUZZ / source, *(word if word.startswith("-") else ROOT / word for word in rest)]
        common = [*FLAGS, *SANITIZE, *words, "-o", folder / name]
        try:
            if clang:
                run([clang, *common, *LIBFUZZER])
        except Failed as failed:
            say(f"without libFuzzer: {str(failed).splitlines()[-1]}")
            clang = None
        if not clang:
            engine = "own mutations"
            run([*shlex.split(os.environ.get("CC", "gcc")), *common])
        given = folder / f"{name}-seeds"
        given.mkdir(exist_ok=True)
        for seed, data in seeds.SEEDS[name]().items():
            (given / seed).write_bytes(data)
    return engine


def program(scratch: Path, name: str, seconds: int, engine: str) -> list[str]:
    if engine == "libFuzzer":
        corpus = scratch / f"{name}-corpus"
        corpus.mkdir()
        limits = [f"-max_total_time={seconds}", f"-timeout={SLOW}", "-rss_limit_mb=4096", "-max_len=65536"]
        told = ["-print_final_stats=1", f"-artifact_prefix={scratch}/"]
        return [str(scratch / name), *limits, *told, str(corpus), str(scratch / f"{name}-seeds")]
    given = sorted(map(str, (scratch / f"{name}-seeds").iterdir()))
    return [str(scratch / name), "mutate", str(seconds), *given]


def property_of(name: str) -> list[str]:
    return [sys.executable, "-m", "pytest", "-q", "-c", str(ROOT / "pyproject.toml"), PROPERTIES[name]]


def everything() -> list[str]:
    """The longest first: the million calls would be alone at the end."""
    return [*CALLS, *PROGRAMS, *PROPERTIES]


def calls(name: str, options: argparse.Namespace) -> list[str]:
    driver, share = CALLS[name]
    limits = [
        "--calls",
        str(options.calls // share),
        "--seed",
        str(options.seed),
        "--seconds",
        str(options.seconds or 0),
    ]
    return [sys.executable, "-m", "tests.fuzz.differ", "--vendor", driver, *limits]


# ---- side by side ----


def fuzz(names: list[str], engine: str, options: argparse.Namespace, scratch: Path) -> list[Count]:
    waiting = list(names)
    running: list[tuple[Job, Count]] = []
    counts = []
    while waiting or running:
        while waiting and len(running) < options.jobs:
            name = waiting.pop(0)
            isprogram = name in PROGRAMS
            seconds = options.seconds or options.readers
            if isprogram:
                command = program(scratch, name, seconds, engine)
            else:
                command = calls(name, options) if name in CALLS else property_of(name)
            job = Job(name, command, scratch / f"{name}.state", scratch / f"{name}.log")
            job.start({"OVERLAP_FUZZ_SECONDS": str(seconds)} if name in PROPERTIES else {"FUZZ_STATE": str(job.state)})
            running.append((job, Count(name, engine if isprogram else "hypothesis" if name in PROPERTIES else "")))
        time.sleep(0.2)
        for job, count in running:
            if job.ended(count):
                judge(job, count, options.keep)
                counts.append(count)
                say(line(count))
        running = [(job, count) for job, count in running if count not in counts]
    return counts


def judge(job: Job, count: Count, keep: Path) -> None:
    """What the log says; a finding's input is kept."""
    assert job.process
    text = job.log.read_text(encoding="utf-8", errors="replace")
    covered = re.findall(r"\bcov: (\d+)", text)
    count.covered = f"{int(covered[-1]):,} edges" if covered else ""
    if told := re.search(r"seconds: ([\d,]+) inputs, ([\d,]+) accepted", text):
        count.tried, count.accepted = (int(number.replace(",", "")) for number in told.groups())
    if not job.process.returncode:
        return
    if job.name in PROPERTIES:
        if job.process.returncode != 1:  # of pytest: a test has failed
            raise Failed(f"{shlex.join(job.command)}\nended with {job.process.returncode}\n{text[-4000:]}")
        count.finding = PROPERTIES[job.name]
        say(f"{job.name}: FOUND SOMETHING\n{text[-6000:]}")
        return
    if not job.tried:
        raise Failed(f"{shlex.join(job.command)}\ndid not begin\n{text[-4000:]}")
    data = job.input()
    keep.mkdir(parents=True, exist_ok=True)
    file = keep / f"{job.name}-{hashlib.sha256(data).hexdigest()[:12]}"
    file.write_bytes(data)
    count.finding = str(file)
    hangs = f" (killed after {STILL:.0f} seconds without a new input)" if job.process.returncode == -9 else ""
    say(f"{job.name}: FOUND SOMETHING{hangs}\n{text[-6000:]}")


def line(count: Count) -> str:
    words = [f"{count.tried:,} inputs", f"{count.accepted:,} accepted", f"{count.cpu_seconds:,} CPU seconds"]
    how = "pytest" if count.name in PROPERTIES else "tools.checks.fuzz --repeat"
    again = f": again: .venv/bin/python -m {how} {shlex.quote(count.finding)}" if count.finding else ""
    return f"{count.name}: {count.engine}: {', '.join([*words, *filter(None, [count.covered])])}{again}"


def repeat(file: Path, programs: Path, engine: str) -> int:
    name = file.name.split("-")[0]
    if name in PROGRAMS:
        how = [] if engine == "libFuzzer" else ["repeat"]
        command = [str(programs / name), *how, str(file)]
    elif name in CALLS:
        command = [sys.executable, "-m", "tests.fuzz.differ", "--repeat", str(file)]
    else:
        raise Failed(f"{file} is not named after one of: {', '.join((*PROGRAMS, *CALLS))}")
    try:
        status = subprocess.run(command, check=False, timeout=2 * STILL).returncode
    except subprocess.TimeoutExpired:
        status = -9
    say(f"{file}: {f'ended with {status}' if status else 'no finding'}")
    return 1 if status else 0


def say(text: str) -> None:
    print(f"fuzz: {text}", file=sys.stderr, flush=True)


def main() -> int:
    assert __doc__
    shape = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=shape)
    parser.add_argument("name", nargs="*", metavar="NAME", help=", ".join(everything()))
    parser.add_argument("--seconds", type=int, help="for each, calls included")
    readers = f"for each, without a limit to calls (default {SECONDS})"
    parser.add_argument("--readers", type=int, default=SECONDS, metavar="SECONDS", help=readers)
    parser.add_argument("--calls", type=int, default=1_000_000, help="of a driver (default 1,000,000)")
    parser.add_argument("--seed", type=int, default=1, help="of the first program of calls")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="side by side (default: the cores)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="the counts")
    parser.add_argument("--keep", type=Path, default=ROOT / ".fuzz", metavar="DIR", help="for findings")
    parser.add_argument("--repeat", type=Path, metavar="FILE")
    options = parser.parse_args()
    names = options.name or everything()
    if unknown := set(names) - set(everything()):
        parser.error(f"unknown: {', '.join(sorted(unknown))}")
    if options.repeat:
        names = [options.repeat.name.split("-")[0]]
    try:
        with tempfile.TemporaryDirectory(prefix="overlap-fuzz-") as folder:
            scratch = Path(folder)
            engine = build(scratch, [name for name in names if name in PROGRAMS])
            if options.repeat:
                return repeat(options.repeat, scratch, engine)
            counts = fuzz(names, engine, options, scratch)
    except (Failed, OSError) as error:
        say(f"FAILED: {error}")
        return 1
    if options.json:
        options.json.write_text(json.dumps([asdict(count) for count in counts], indent=1) + "\n", encoding="utf-8")
    return 1 if any(count.finding for count in counts) else 0


if __name__ == "__main__":
    sys.exit(main())
