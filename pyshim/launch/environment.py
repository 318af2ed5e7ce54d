"""The environment that the preloaded library reads, as a pure function: nothing here looks at the real one.

The values of our own variables hold only [A-Za-z0-9._/+:=@%-]: they pass through every launcher unquoted.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from pyshim import preload
from pyshim.launch.program import DEFAULT_PATH
from pyshim.policy.layout import checksum

_PLAIN = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./+:=@-")


class Settings(NamedTuple):
    """What a run asks for. None, False and empty: not asked for, so an outer overlap-run's word stays."""

    library: str | None = None  # as LD_PRELOAD names it; None: the program runs without the library
    table: str | None = None  # base64
    report: str | None = None  # absolute path
    run_id: str | None = None  # 16 hexadecimal digits, with report
    quiet: bool = False
    launcher_pid: int | None = None
    simulated_driver: str | None = None  # folder that holds a libcuda.so.1
    simulated_gpu: str | None = None  # GPU:rule,COUNT
    simulated_programs: str | None = None  # folder of programs for it, found where PATH has no others
    simulated_runtimes: tuple[str, ...] = ()  # of AMD's: files, the newest last, each in a folder of its own
    defaults: Mapping[str, str] = {}  # of policies: set only where the user has not


def environment(base: Mapping[str, str], settings: Settings) -> dict[str, str]:
    """Return `base` with what the settings ask for. Applied twice it is the same as once."""
    result = dict(base)
    if settings.library is not None:
        result["LD_PRELOAD"] = preload.merge(base.get("LD_PRELOAD", ""), settings.library)
        result.update(_ours(settings))
        for name, value in settings.defaults.items():
            result.setdefault(name, value)
    if settings.simulated_driver is not None and settings.simulated_gpu is not None:
        path = _first(base.get("LD_LIBRARY_PATH", ""), settings.simulated_driver)
        for runtime in settings.simulated_runtimes:
            path = _first(path, os.path.dirname(runtime))
            result["TRITON_LIBHIP_PATH"] = runtime
        result["LD_LIBRARY_PATH"] = path
        if settings.simulated_programs:
            result["PATH"] = _last(base.get("PATH", DEFAULT_PATH), settings.simulated_programs)
        result["TRITON_LIBCUDA_PATH"] = settings.simulated_driver
        result["SIMGPU"] = settings.simulated_gpu
    return result


def _ours(settings: Settings) -> dict[str, str]:
    values = {
        "OVERLAP_TABLE": settings.table,
        "OVERLAP_REPORT": None if settings.report is None else quote(settings.report),
        "OVERLAP_RUN_ID": settings.run_id,
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


def _first(value: str, folder: str) -> str:
    # An empty entry means the working directory: it is kept where it was, and none is made of an empty variable.
    others = [entry for entry in value.split(":") if entry != folder] if value else []
    return ":".join([folder, *others])


def _last(value: str, folder: str) -> str:
    return value if folder in value.split(":") else f"{value}:{folder}"


def variables(base: Mapping[str, str], settings: Settings) -> dict[str, str]:
    """Return the variables that policies set for the program."""
    wanted = settings.defaults if settings.library is not None else {}
    return {name: value for name, value in sorted(wanted.items()) if name not in base}


def added(base: Mapping[str, str], result: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that `result` adds to `base` or changes."""
    return {name: value for name, value in result.items() if base.get(name) != value}
