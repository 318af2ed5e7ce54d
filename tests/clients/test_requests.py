"""Real CUDA runtimes ask the driver for 400 functions; exactly those of driver.def are replaced, each by its own thunk.

The runtimes do not start on the simulated driver, but they look everything up first. What each request is answered
without the library says which function it means, whatever its version and flags; so these tests follow driver.def.
"""

from __future__ import annotations

import importlib.metadata
import re
import shutil
import struct
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest
from interposing import ONE, Build
from nvidia_packages import file_of, runtime_folder, runtime_library

from pyshim.start import plan
from tools.checks import driver_table

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
OURS = Path(plan.SIMULATED_DRIVER).parent
SOURCE = HERE / "runtime" / "asked.c"
NCCL = "nvidia-nccl-cu13"
NCCL_REQUESTS = HERE / "data" / "libnccl.so.2.requests"
NCCL_RECORDED = "2.32.3"
# Which runtimes, and how many functions each looks up at least.
RUNTIMES = {
    "cudart12": 380,
    "cudart13": 420,
    "static12": 380,
    "static13": 420,
    "nvcc_static": 380,
    "ours12": 80,
    "ours13": 80,
    "nccl": 400,
    "nccl_recorded": 400,
    "every": 400,
}
# Every runtime asks for these.
ALWAYS = {f"cuLaunch{kind}{form}" for kind in ("Kernel", "KernelEx", "CooperativeKernel") for form in ("", "_ptsz")}


class Request(NamedTuple):
    way: str  # dlsym's answer, or the form with four or with five arguments
    name: str
    version: int
    flags: int
    result: int
    status: int
    file: str
    offset: int


class Log(NamedTuple):
    symbols: list[str]  # that dlsym was asked for
    requests: list[Request]
    output: str


def read(path: Path, output: str) -> Log:
    symbols, requests = [], []
    for line in path.read_text().splitlines():
        words = line.split()
        if words[0] == "symbol":
            symbols.append(words[1])
        else:
            numbers = map(int, words[2:6])
            requests.append(Request(words[0], words[1], *numbers, words[6], int(words[7], 16)))
    return Log(symbols, requests, output)


def functions(library: Path) -> dict[int, set[str]]:
    """Offset -> names, of the functions of a library, hidden ones included."""
    data = library.read_bytes()
    table, size, count = struct.unpack_from("<Q", data, 40)[0], *struct.unpack_from("<HH", data, 58)
    sections = [struct.unpack_from("<IIQQQQIIQQ", data, table + index * size) for index in range(count)]
    found: dict[int, set[str]] = {}
    for kind in (11, 2):  # .dynsym, .symtab
        for _, type_, _, _, at, length, link, _, _, entry in sections:
            if type_ != kind:
                continue
            strings = sections[link][4]
            for symbol in range(at, at + length, entry):
                name, info, _, section, value, _ = struct.unpack_from("<IBBHQQ", data, symbol)
                if info & 15 == 2 and section:
                    end = data.index(b"\0", strings + name)
                    found.setdefault(value, set()).add(data[strings + name : end].decode())
    return found


def rows() -> set[str]:
    """The driver's functions that the library stands in front of."""
    return {row.name for row in driver_table.rows()}


class Proc(NamedTuple):
    base: str
    version: int
    per_thread: int


def procs() -> list[Proc]:
    """Every function of the driver API at every version that it has."""
    text = (ROOT / "tools" / "simgpu" / "api.def").read_text()
    found = re.findall(r"^ENTRY\(\w+, (\w+), (\d+), (\d)\)", text, re.M)
    return [Proc(base, int(version), int(per_thread)) for base, version, per_thread in found]


NEWEST = str(max(row.version for row in procs()))


def bases(symbols: set[str]) -> set[str]:
    """What cuGetProcAddress is asked for to get them."""
    text = (ROOT / "tools" / "simgpu" / "api.def").read_text()
    found = re.findall(r"^ENTRY\((\w+), (\w+), ", text, re.M)
    return {base for symbol, base in found if symbol in symbols}


@pytest.fixture(scope="session")
def requests_of_everything(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All of them at each of their versions, at the one before, and at the newest."""
    asked = {
        (row.base, at, flags)
        for row in procs()
        for at in (row.version - 1, row.version, int(NEWEST))
        for flags in (0, 1, 2)
    }
    path = tmp_path_factory.mktemp("requests") / "every"
    path.write_text("- 0 0\n" + "".join(f"{name} {version} {flags}\n" for name, version, flags in sorted(asked)))
    return path


@pytest.fixture(scope="session")
def command(build: Build, requests_of_everything: Path) -> Callable[[str], list[str]]:
    def program(name: str, *flags: str, link: tuple[Path | str, ...] = ()) -> str:
        return str(build(name, str(SOURCE), "-rdynamic", *flags, link=link))

    def of(runtime: str) -> list[str]:
        version = int(runtime[-2:]) if runtime[-2:].isdigit() else 0
        if runtime.startswith("cudart"):
            return [program("asked"), str(runtime_library(version)), "cudaGetDeviceCount"]
        if runtime.startswith("ours"):
            return [program("asked"), str(OURS / f"libcudart.so.{version}"), "cudaGetDeviceCount"]
        if runtime.startswith("static"):
            archive = runtime_folder(version) / "libcudart_static.a"
            return [program(f"asked-{runtime}", "-DLINKED", link=(archive, "-lrt"))]
        if runtime == "nvcc_static":
            return [str(static_by_nvcc(build.folder / "asked-nvcc"))]
        if runtime == "nccl":
            return [program("asked"), str(file_of(NCCL, "libnccl.so.2")), "ncclCommInitAll"]
        return [program("asked"), "--replay", str({"every": requests_of_everything}.get(runtime, NCCL_REQUESTS))]

    return of


def static_by_nvcc(out: Path) -> Path:
    nvcc = shutil.which("nvcc")
    if not nvcc:
        pytest.skip("needs nvcc of a CUDA toolkit")
    options = ["-cudart", "static", "-DLINKED", "-D_GNU_SOURCE", "-Xcompiler", "-rdynamic"]
    subprocess.run([nvcc, *options, str(SOURCE), "-o", str(out)], check=True)
    return out


def run(command: list[str], environment: Mapping[str, str], log: Path) -> Log:
    env = {**environment, "ASKED_LOG": str(log), "OVERLAP_QUIET": "1"}
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return read(log, done.stdout + done.stderr)


def check(
    alone: Log, with_library: Log, driver_file: Path = Path(plan.SIMULATED_DRIVER), ours: set[str] | None = None
) -> set[str]:
    """Every request was answered as it had to be; the functions that were replaced."""
    thunks, driver = functions(Path(plan.LIBRARY)), functions(driver_file)
    ours, replaced = rows() if ours is None else ours, set()
    assert with_library.output == alone.output
    assert with_library.symbols == alone.symbols
    assert len(with_library.requests) == len(alone.requests)
    for before, after in zip(alone.requests, with_library.requests):
        assert after[:6] == before[:6]  # the same was asked, and the result is the same
        found = driver[before.offset] if before.offset else set()
        meant = {name.replace("inner_", "") for name in found} & ours
        if not meant:
            assert after == before
            continue
        (name,) = meant
        assert after.file == Path(plan.LIBRARY).name, f"{before} was not replaced"
        assert f"looked_up_{name}" in thunks[after.offset], f"{before} was replaced by {thunks[after.offset]}"
        replaced.add(name)
    return replaced


Both = Callable[..., "tuple[Log, Log]"]


@pytest.fixture
def both(simulated: Mapping[str, str], table_of: Callable[[str], Mapping[str, str]], tmp_path: Path) -> Both:
    """both(command, policy, NAME=VALUE...): what it asks alone, and with the library."""

    def of(command: list[str], policy: str = ONE, **env: str) -> tuple[Log, Log]:
        alone = run(command, {**simulated, **env}, tmp_path / "alone")
        return alone, run(command, {**table_of(policy), **env}, tmp_path / "with")

    return of


@pytest.mark.parametrize("policy", ["observe", ONE])
@pytest.mark.parametrize("runtime", RUNTIMES)
def test_exactly_the_rows_of_the_table_are_replaced(
    runtime: str, policy: str, command: Callable[[str], list[str]], both: Both
) -> None:
    newest = {"SIMGPU_DRIVER_VERSION": NEWEST} if runtime == "every" else {}
    alone, with_library = both(command(runtime), policy, **newest)
    assert len(alone.requests) > RUNTIMES[runtime]
    # One question to dlsym leads to all of them, and the first of them is for no name at all.
    assert alone.symbols.count("cuGetProcAddress_v2") == 1
    assert alone.requests[0][:5] == ("dlsym", "-", 0, 0, 0)
    replaced = check(alone, with_library)
    assert replaced >= ALWAYS | {"cuGetProcAddress", "cuGetProcAddress_v2"}
    # The form with four arguments works as it is asked for, and so does the one with five.
    assert {request.way for request in with_library.requests} == {"dlsym", "four", "five"}
    if runtime == "every":
        assert replaced == rows()


@pytest.mark.parametrize("version", ["11030", "12000", "12040"])
def test_an_older_driver(version: str, command: Callable[[str], list[str]], both: Both) -> None:
    replaced = check(*both(command("every"), SIMGPU_DRIVER_VERSION=version))
    assert "cuLaunchKernel" in replaced
    assert ("cuLibraryGetKernel" in replaced) == (int(version) >= 12000)


def test_a_library_that_is_switched_off_replaces_nothing(command: Callable[[str], list[str]], both: Both) -> None:
    alone, off = both(command("every"), OVERLAP_RUN="off")
    assert off == alone


def test_the_recorded_requests_are_those_of_the_library(
    command: Callable[[str], list[str]], simulated: Mapping[str, str], tmp_path: Path
) -> None:
    """To record them: write what this compares."""
    real = run(command("nccl"), simulated, tmp_path / "log")
    if importlib.metadata.version(NCCL) != NCCL_RECORDED:
        pytest.skip(f"recorded with {NCCL} {NCCL_RECORDED}")
    asked = [" ".join(map(str, request[1:4])) for request in real.requests if request.way != "four"]
    assert asked[:-1] == NCCL_REQUESTS.read_text().splitlines()  # the last is asked.c's own


@pytest.fixture(scope="session")
def inner_driver(build: Build) -> Path:
    """A libcuda.so.1 that gives out functions which it does not export, so that only the request says what they are."""
    own = {"cuGetProcAddress", "cuGetProcAddress_v2", "cuDriverGetVersion"}
    symbols = re.findall(r"^ENTRY\((\w+)", (ROOT / "tools" / "simgpu" / "api.def").read_text(), re.M)
    table = build.folder / "functions.def"
    table.write_text("".join(f"FUNCTION({symbol})\n" for symbol in symbols if symbol not in own))
    source = str(HERE / "runtime" / "inner_driver.c")
    return build.library("inner/libcuda.so.1", source, "-fvisibility=hidden", f'-DFUNCTIONS="{table}"')


@pytest.fixture(scope="session")
def requests_of_rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of our functions, at every version at which the driver got any function, and just before."""
    by_symbol = {row.name for row in driver_table.rows()}
    versions = {at for row in procs() for at in (row.version - 1, row.version)}
    asked = {(base, at, flags) for base in bases(by_symbol) for at in versions for flags in (0, 1, 2)}
    path = tmp_path_factory.mktemp("requests") / "rows"
    path.write_text("- 0 0\n" + "".join(f"{name} {version} {flags}\n" for name, version, flags in sorted(asked)))
    return path


@pytest.mark.parametrize("older", [None, "12080", "12020", "11070", "11030"])
def test_functions_that_the_driver_does_not_export(
    older: str | None, inner_driver: Path, requests_of_rows: Path, build: Build, both: Both
) -> None:
    """Only the request tells which version is meant: resolve.c knows from which one on it is another function."""
    command = [str(build("asked", str(SOURCE), "-rdynamic")), "--replay", str(requests_of_rows)]
    here = {"LD_LIBRARY_PATH": str(inner_driver.parent), "INNER_VERSION": older or NEWEST}
    replaced = check(*both(command, **here), inner_driver)
    assert replaced == rows() if older is None else replaced < rows()
