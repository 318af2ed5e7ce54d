"""Small C programs as real processes on the simulated GPU, with and without the library preloaded.

Each program is compiled once (compile_once.py). `bare` and `preloaded` run one in an environment that the product
itself has made; what comes back is everything that can be seen from outside: status, output, the driver's log of
launches, the report.
"""

from __future__ import annotations

import functools
import itertools
import json
import os
import platform
import select
import shlex
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from pyshim.report import as_json as summary
from pyshim.report import collect
from pyshim.start import plan
from pyshim.start.environment import environment
from pyshim.start.environment import preload as preload_of

PROGRAMS = Path(__file__).resolve().parent
WAYS = {"symbol": "LINKED", "dlsym": "DLSYM", "proc_address": "PROC", "proc_address_v2": "PROC2"}
FLAGS = ("-std=gnu11", "-D_GNU_SOURCE", "-g", "-O1", "-fno-optimize-sibling-calls", "-Wall", "-Werror")

# 32 registers, 256 threads: eight blocks on a multiprocessor of an H100, 1,056 in one wave; 2,112 of 128 threads. No
# more than needed: the simulated GPU takes a microsecond for each.
BLOCKS = 2200
NCCL = "ncclDevKernel_AllReduce_Sum_f32_RING_LL"
TOLD = "driver says"
H100_SHARED, RESERVED, GRANULE = 233472, 1024, 128


def rule(
    shape: str,
    when: str = "always",
    match: str = 'kernel: "*"',
    more: str = "streams: {raise: off}",
) -> str:
    """A policy of one rule, which leaves streams as they are unless `more` says otherwise."""
    return f"{more}\ncompute: [{{match: {{{match}}}, shape: {shape}, when: {when}}}]"


ONE = rule("{blocks_per_sm: 1}")


def glibc() -> tuple[int, ...]:
    """The version of the C library that runs here; empty where it is another one."""
    name, version = platform.libc_ver()
    return tuple(map(int, version.split(".")[:2])) if name == "glibc" else ()


@functools.cache
def smallest_size(blocks: int) -> int:
    """The smallest dynamic size with at most so many resident blocks, without static shared memory, on an H100."""
    return next(
        size for size in range(0, 232449) if H100_SHARED // (-(-(size + RESERVED) // GRANULE) * GRANULE) <= blocks
    )


@dataclass
class Done:
    """What a process left behind."""

    status: int
    stdout: str
    stderr: str
    launches: list[dict[str, Any]] = field(default_factory=list)  # the driver's log
    report: dict[str, Any] = field(default_factory=dict)
    pages: Path | None = None  # that the report is of

    @property
    def sizes(self) -> list[int]:
        return [launch["dynamic_shared"] for launch in self.launches]

    @property
    def told(self) -> list[int]:
        """What the driver itself answered, asked behind everybody's back (`driver=`)."""
        return [int(line.split()[-1]) for line in self.stdout.splitlines() if line.startswith(TOLD)]

    @property
    def seen(self) -> str:
        """The output without that."""
        return "".join(line for line in self.stdout.splitlines(True) if not line.startswith(TOLD))

    @property
    def in_graphs(self) -> list[dict[str, Any]]:
        """Kernels of graphs that were launched."""
        return [launch for launch in self.launches if launch["graph"]]

    @property
    def priorities(self) -> list[int]:
        return [launch["priority"] for launch in self.launches]

    @property
    def totals(self) -> dict[str, Any]:
        return dict(self.report["totals"])

    @property
    def reasons(self) -> dict[str, int]:
        return dict(self.totals["reasons"])


def same(with_library: Done, without: Done, but: Sequence[str] = ()) -> None:
    """The program saw the same, and so did the driver, apart from the named fields of a launch."""
    assert with_library.status == without.status, with_library.stderr
    assert with_library.seen == without.seen
    assert with_library.stderr == without.stderr
    assert _without(with_library.launches, but) == _without(without.launches, but)


def _without(launches: list[dict[str, Any]], names: Sequence[str]) -> list[dict[str, Any]]:
    return [{name: value for name, value in launch.items() if name not in names} for launch in launches]


class Build:
    """Programs and libraries, each compiled at most once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.made: dict[str, Path] = {}

    def __call__(self, name: str, source: str, *flags: str, link: Sequence[Any] = ()) -> Path:
        if name not in self.made:
            out = self.folder / name
            out.parent.mkdir(parents=True, exist_ok=True)
            command = [
                *shlex.split(os.environ.get("CC", "cc")),
                *FLAGS,
                # Relative, because the folder is another one in each run, and the compiler keeps what it made.
                f"-Wl,-rpath,$ORIGIN/{os.path.relpath(self.folder, out.parent)}",
                *flags,
                str(PROGRAMS / source),
            ]
            subprocess.run([*command, "-o", str(out), *map(str, link), "-ldl", "-pthread"], check=True)
            self.made[name] = out
        return self.made[name]

    def library(self, name: str, source: str, *flags: str, link: Sequence[Any] = ()) -> Path:
        return self(name, source, "-shared", "-fPIC", f"-Wl,-soname,{Path(name).name}", *flags, link=link)

    def client(self, way: str = "symbol") -> Path:
        """The program that does what its arguments say, with one way into the driver."""
        link = [plan.SIMULATED_DRIVER] if way == "symbol" else []
        return self(f"client-{way}", "client.c", f"-DWAY_{WAYS[way]}", link=link)

    def deep(self) -> Path:
        """Asks the driver behind everybody's back."""
        if os.environ.get("OVERLAP_TEST_PRELOAD"):
            pytest.skip("sanitizers refuse RTLD_DEEPBIND, by which that goes")
        return self.library("libdeep.so", "deep.c", link=[plan.SIMULATED_DRIVER])

    def nccl(self) -> Path:
        return self.library("libnccl.so.2", "nccl.c", link=[plan.SIMULATED_DRIVER])


@pytest.fixture(scope="session")
def build(tmp_path_factory: pytest.TempPathFactory) -> Build:
    return Build(tmp_path_factory.mktemp("programs"))


@pytest.fixture(scope="session")
def simulated(clean_environment: Mapping[str, str]) -> dict[str, str]:
    """The environment of a program on the simulated GPU, nothing preloaded."""
    made = plan.make(plan.Request(policy="observe", simulate="h100"), clean_environment)
    return environment(clean_environment, made.settings._replace(library=None))


@pytest.fixture(scope="session")
def table_of(
    clean_environment: Mapping[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], Mapping[str, str]]:
    """policy: a shipped name, or the text of a policy without its first lines -> what overlap-run would set for it."""
    folder = tmp_path_factory.mktemp("policies")
    made: dict[str, Mapping[str, str]] = {}

    def environment_of(policy: str) -> Mapping[str, str]:
        if policy not in made:
            asked = policy
            if "\n" in policy or ":" in policy:
                asked = str(folder / f"policy{len(made)}.yaml")
                Path(asked).write_text(f'policy: 1\nname: test\ngpu: ["NVIDIA *"]\n{policy}\n', encoding="ascii")
            settings = plan.make(plan.Request(policy="observe", simulate="h100"), clean_environment).settings
            # As on a real GPU, which the launcher does not know: the library finds out whether the policy fits.
            table = plan.make(plan.Request(policy=asked), clean_environment).settings.table
            made[policy] = environment(clean_environment, settings._replace(table=table))
        return made[policy]

    return environment_of


Runner = Callable[..., Done]


@pytest.fixture
def bare(build: Build, simulated: Mapping[str, str], tmp_path: Path) -> Runner:
    """bare(words, way="symbol" | program=PATH): without the library."""
    numbers = itertools.count()

    def run(
        words: str | Sequence[str] = (),
        way: str = "symbol",
        program: Any = None,
        env: Mapping[str, str] | None = None,
        **more: Any,
    ) -> Done:
        log = tmp_path / f"bare{next(numbers)}.launches"
        return run_program(
            program or build.client(way),
            words,
            {**simulated, "SIMGPU_LAUNCHES": str(log), **(env or {})},
            log,
            more,
        )

    return run


@pytest.fixture
def preloaded(build: Build, table_of: Callable[[str], Mapping[str, str]], tmp_path: Path) -> Runner:
    """preloaded(words, policy="observe"): with it, and a report. preload: what LD_PRELOAD holds; {} is the library."""
    numbers = itertools.count()

    def run(
        words: str | Sequence[str] = (),
        policy: str = "observe",
        way: str = "symbol",
        program: Any = None,
        env: Mapping[str, str] | None = None,
        report: Path | None = None,
        preload: str = "{}",
        **more: Any,
    ) -> Done:
        number = next(numbers)
        log, pages = tmp_path / f"preloaded{number}.launches", report or tmp_path / f"report{number}"
        if report is None:
            pages.mkdir()
        ours = {"OVERLAP_REPORT": str(pages), "SIMGPU_LAUNCHES": str(log)}
        made = {**table_of(policy), **ours, "LD_PRELOAD": preload.format(plan.LIBRARY), **(env or {})}
        done = run_program(program or build.client(way), words, made, log, more)
        if pages.is_dir():
            done.report, done.pages = report_of(pages), pages
        return done

    return run


def report_of(pages: Path) -> dict[str, Any]:
    return summary.as_json(collect.collect(str(pages)), [])


def with_runtime(env: Mapping[str, str]) -> dict[str, str]:
    """Preload the runtime of a library built with a sanitizer (tools/checks/sanitizer.py) before all else."""
    first = os.environ.get("OVERLAP_TEST_PRELOAD")
    return {**env, "LD_PRELOAD": preload_of(env.get("LD_PRELOAD", ""), first)} if first else dict(env)


def ended(process: subprocess.Popen[bytes], timeout: float) -> int:
    """Its status. `wait(timeout)` would look every now and then, up to 50 ms after the end."""
    try:
        descriptor = os.pidfd_open(process.pid)
    except (AttributeError, OSError):  # an old system, or a Python that was built on one
        return process.wait(timeout)
    try:
        if not select.select([descriptor], [], [], timeout)[0]:
            raise subprocess.TimeoutExpired(process.args, timeout)
    finally:
        os.close(descriptor)
    return process.wait()


def run_program(
    program: Any, words: str | Sequence[Any], env: Mapping[str, str], log: Path, more: dict[str, Any]
) -> Done:
    # Files, not pipes: the end of a process is its end, whoever it has left behind.
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        command = [str(program), *map(str, words.split() if isinstance(words, str) else words)]
        timeout = more.pop("timeout", 300)
        more = {"stdin": subprocess.DEVNULL, **more}
        with subprocess.Popen(command, env=with_runtime(env), stdout=out, stderr=err, **more) as process:
            try:
                status = ended(process, timeout)
            except BaseException:  # as subprocess.run does
                process.kill()
                raise
        texts = [(file.seek(0), file.read().decode("utf-8", "replace"))[1] for file in (out, err)]
    lines = log.read_text().splitlines() if log.exists() else []
    return Done(status, texts[0], texts[1], [json.loads(line) for line in lines])
