"""The environment of the program, and becoming the program in it: same process, same signals, same terminal.

Our own variables hold only [A-Za-z0-9._/+:=@%-]: they pass through every launcher unquoted. LD_PRELOAD has our library
first, but behind sanitizer runtimes, once, and everything else as it was. Policies travel compiled, by value; what the
shipped ones compile to is kept by the build (policies.py), so that a start parses nothing.

Python changes the environment before it runs a line of ours: in the C locale it sets LC_CTYPE (PEP 538). It also
ignores SIGPIPE and SIGXFSZ. Entries without a name or without `=`, and the second of one name, do not arrive.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, NoReturn

from pyshim.errors import NOT_EXECUTABLE, NOT_FOUND, OverlapError

BUILT = os.path.join(os.path.dirname(os.path.dirname(os.path.realpath(__file__))), "_lib")
SHIPPED = "shipped.json"
DEFAULT_POLICY = "auto"  # the default: the shipped policies for all GPUs
GPU_MEANT = "gpu_meant"  # of a policy whose `gpu` names no known GPU: which one may be meant
DEFAULT_PATH = "/bin:/usr/bin"
NAME = "liboverlap.so"
# They must come first in the list of libraries, or they end the program.
SANITIZER = re.compile(r"lib(clang_rt\.)?(asan|tsan|lsan|msan|hwasan)\b")
_PRELOADABLE = re.compile(r"[A-Za-z0-9._/+=@%~,-]+\Z")
_PLAIN = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./+:=@-")
_FILE = "/proc/self/environ"  # the memory that the kernel filled when the process started
_COERCED = b"LC_CTYPE"

# Bits as in SigIgn of /proc/self/status: which of Python's two signals were ignored before it started. Set by the
# installed commands (tools/release); without them neither is known, and the default is more likely.
ignored_signals = 0


class Settings(NamedTuple):
    """What a run asks for. None, False and empty: not asked for, so an outer overlap-run's word stays."""

    library: str | None = None  # as LD_PRELOAD names it; None: the program runs without the library
    table: str | None = None  # base64
    report: str | None = None  # absolute path of the run's folder
    quiet: bool = False
    launcher_pid: int | None = None
    simulated_driver: str | None = None  # folder that holds a libcuda.so.1
    simulated_gpu: str | None = None  # GPU,COUNT
    simulated_programs: str | None = None  # folder of programs for it, found where PATH has no others
    simulated_runtime: str | None = None  # HIP's, in a folder of its own, for simulated GPUs of AMD
    defaults: Mapping[str, str] = {}  # of policies: set only where the user has not


class PolicySettings(NamedTuple):
    """What one policy asks to be set."""

    policy: str
    gpus: tuple[str, ...]
    vendors: tuple[str, ...]
    environment: Mapping[str, str]


class Chosen(NamedTuple):
    """What policies compile to."""

    table: str  # base64
    described: tuple[Mapping[str, str | None], ...]  # name, hash, file, raise_share
    asked: tuple[PolicySettings, ...]  # by each of them


def shipped(value: str, base: Mapping[str, str], path: str = os.path.join(BUILT, SHIPPED)) -> Chosen | None:
    """Return what a shipped policy compiles to; None where the name may mean another one (pyshim/policy/reader.py)."""
    is_file = value.endswith(".yaml") and os.path.isfile(value)
    if is_file or "/" in value or base.get("OVERLAP_POLICY_PATH"):
        return None
    import json

    try:
        with open(path, "rb") as file:
            data: Any = json.load(file)
        found = data[value[: -len(".yaml")] if value.endswith(".yaml") else value]
        asked = (
            PolicySettings(policy, tuple(gpus), tuple(vendors), names)
            for policy, gpus, vendors, names in found["asked"]
        )
        return Chosen(found["table"], tuple(found["described"]), tuple(asked))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def environment(base: Mapping[str, str], settings: Settings) -> dict[str, str]:
    """Return `base` with what the settings ask for. Applied twice it is the same as once."""
    result = dict(base)
    if settings.library is not None:
        result["LD_PRELOAD"] = preload(base.get("LD_PRELOAD", ""), settings.library)
        result.update(_ours(settings))
        for name, value in settings.defaults.items():
            result.setdefault(name, value)
    if settings.simulated_driver is not None and settings.simulated_gpu is not None:
        path = _first(base.get("LD_LIBRARY_PATH", ""), settings.simulated_driver)
        if settings.simulated_runtime is not None:
            path = _first(path, os.path.dirname(settings.simulated_runtime))
        result["LD_LIBRARY_PATH"] = path
        if settings.simulated_programs:
            folders, last = base.get("PATH", DEFAULT_PATH), settings.simulated_programs
            result["PATH"] = folders if last in folders.split(":") else f"{folders}:{last}"
        result["TRITON_LIBCUDA_PATH"] = settings.simulated_driver
        result["SIMGPU"] = settings.simulated_gpu
    return result


def _ours(settings: Settings) -> dict[str, str]:
    values = {
        "OVERLAP_TABLE": settings.table,
        "OVERLAP_REPORT": None if settings.report is None else quote(settings.report),
        "OVERLAP_QUIET": "1" if settings.quiet else None,
        "OVERLAP_LAUNCHER_PID": None if settings.launcher_pid is None else str(settings.launcher_pid),
    }
    return {name: value for name, value in values.items() if value is not None}


def quote(path: str) -> str:
    """Percent-encode every byte that is not in our alphabet, and % itself."""
    return "".join(chr(byte) if byte in _PLAIN else f"%{byte:02X}" for byte in os.fsencode(path))


def unquote(value: str) -> str:
    from urllib.parse import unquote_to_bytes

    return os.fsdecode(unquote_to_bytes(os.fsencode(value)))


def without_table(value: str, table: str | None, policies: Sequence[str | None]) -> str:
    """Return the value of a variable for a person: the names of policies and a checksum for their table."""
    if not table or table not in value:
        return value
    names = ", ".join(filter(None, policies))
    return value.replace(table, f"[{names}: table {checksum(table)}, {len(table):,} characters]")


def checksum(encoded: str) -> str | None:
    """Return what pages name a table by, 8 hexadecimal digits; None for what is no table. encoded: in base64.

    It is the fourth number of the head (pyshim/policy/layout.py)."""
    from base64 import b64decode

    try:
        head = b64decode(encoded[:24])  # 18 bytes
        return f"{int.from_bytes(head[12:16], 'little'):08x}" if encoded else None
    except ValueError:
        return None


def _first(value: str, folder: str) -> str:
    # An empty entry means the working directory: it is kept where it was, and none is made of an empty variable.
    others = [entry for entry in value.split(":") if entry != folder] if value else []
    return ":".join([folder, *others])


def variables(base: Mapping[str, str], settings: Settings) -> dict[str, str]:
    """Return the variables that policies set for the program."""
    wanted = settings.defaults if settings.library is not None else {}
    return {name: value for name, value in sorted(wanted.items()) if name not in base}


def added(base: Mapping[str, str], result: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that `result` adds to `base` or changes."""
    return {name: value for name, value in result.items() if base.get(name) != value}


def preloaded(value: str) -> list[str]:
    """Return the entries of LD_PRELOAD; the loader takes spaces and colons alike."""
    return [entry for entry in re.split("[ :]", value) if entry]


def is_sanitizer(library: str) -> bool:
    return bool(SANITIZER.match(os.path.basename(library)))


def can_preload(path: str) -> bool:
    """Return whether the loader takes it for one file: no separator, no $ORIGIN, nothing that launchers would quote."""
    return bool(_PRELOADABLE.match(path))


def preload(value: str, library: str) -> str:
    """Return LD_PRELOAD with the library in it, in place of another copy of it: two would decide twice."""
    name = os.path.basename(library)
    others = [entry for entry in preloaded(value) if os.path.basename(entry) != name]
    first = [entry for entry in others if is_sanitizer(entry)]
    return ":".join([*first, library, *(entry for entry in others if entry not in first)])


class TooLong(Exception):
    """Arguments and environment together are more than the system takes."""


def execute(path: str, command: Sequence[str], variables: Mapping[str, str]) -> NoReturn:
    """Start the program. Raises OverlapError with 126 or 127, or TooLong where less environment may help."""
    _restore_signals()
    try:
        _execve(path, command, variables)
    except OSError as error:
        if error.errno == errno.E2BIG:
            raise TooLong from error
        status = NOT_FOUND if error.errno == errno.ENOENT else NOT_EXECUTABLE  # as env(1)
        reason, hint = error.strerror, None
        if error.errno == errno.ENOENT and os.path.exists(path):
            reason, hint = "the interpreter or loader that it names does not exist", line_ends(path)
        raise OverlapError(f"{command[0]}: {reason}", hint, status) from error


def line_ends(path: str) -> str | None:
    """Return what to do with a script whose first line ends as in Windows; None for any other file."""
    try:
        with open(path, "rb") as file:
            first = file.readline(256)
    except OSError:
        return None
    if not (first.startswith(b"#!") and first.endswith(b"\r\n")):
        return None
    import shlex

    return f"its lines end as in Windows: sed -i 's/\\r$//' {shlex.quote(path)}"


def _execve(path: str, command: Sequence[str], variables: Mapping[str, str]) -> NoReturn:
    named = {name: value for name, value in variables.items() if name}  # os.environ has "" for an entry `=x`
    try:
        os.execve(path, list(command), named)
    except OSError as error:
        if error.errno != errno.ENOEXEC:
            raise
    # As execvp and every shell do with a text file that has no #! line.
    os.execve("/bin/sh", ["/bin/sh", path, *command[1:]], named)


def restore() -> None:
    """Undo in os.environ what the start of Python did. Without /proc, LC_CTYPE stays as Python set it."""
    try:
        with open(_FILE, "rb") as file:
            entries = [entry.partition(b"=") for entry in file.read().split(b"\0")[:-1]]
    except OSError:
        return
    before = {name: value for name, equals, value in reversed(entries) if equals}  # the first of each name counts
    now = dict(os.environb)
    if {**before, _COERCED: b""} != {**now, _COERCED: b""}:
        return  # a start-up file of this Python (sitecustomize) changed more, or wrote its title over the memory
    if _COERCED in before:
        os.environb[_COERCED] = before[_COERCED]
    else:
        os.environb.pop(_COERCED, None)


def _restore_signals() -> None:
    """Undo what the start of Python did to signals; a program that ignores SIGPIPE sees failed writes, not its end."""
    import signal

    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_IGN if ignored_signals >> (number - 1) & 1 else signal.SIG_DFL)
