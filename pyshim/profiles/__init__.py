"""Traces of GPUs that people already have: of torch.profiler, nsys, rocprofv3 and JAX; and of our simulated GPU."""

from __future__ import annotations

import os
import re
import stat
import zlib

from pyshim.errors import OverlapError
from pyshim.profiles.store import StoredTrace
from pyshim.unreadable import unreadable

_MAGIC = b"SQLite format 3\0"
_HEAD = 1 << 16
# The first event of SIMGPU_TRACE names the process so.
_SIMULATED = re.compile(r'^\[\s*\{"name": "process_name".*?"simulated[",]')
_ROCPROF = re.compile(r'^\{\s*"rocprofiler-sdk-tool"')
# An object with keys, or an array of events: other JSON cannot be told by its beginning.
_CHROME = re.compile(r'^(\{\s*("|$)|\[\s*(\{|$|\]))')

# What an event, or the object around events, has and other JSON has not.
_EVENTS = re.compile(r'"(traceEvents|ph)"\s*:')

# Of the same profilers, in a form that is not read: how to get one that is.
_INSTEAD = {
    (".nsys-rep", ".qdrep"): "nsys export --type sqlite {}",
    (".xplane.pb",): "jax.profiler.trace(DIR, create_perfetto_trace=True) writes perfetto_trace.json.gz beside it",
    (".pftrace", ".otf2", ".csv"): "rocprofv3 --output-format json --sys-trace -- PROGRAM writes JSON",
    (".db", ".rocpd"): "rocprofv3 --output-format json --sys-trace -- PROGRAM writes JSON",
}


def open_trace(path: str) -> StoredTrace:
    """Open a trace by its content, whatever it is called. Raise OverlapError if it cannot be read or is none."""
    head = _head(path)
    if head.startswith(_MAGIC):
        from pyshim.profiles.nsys import NsysTrace

        return NsysTrace(path)
    text = head.decode("utf-8-sig", "replace").lstrip()
    if _ROCPROF.match(text):
        from pyshim.profiles.rocprof import RocprofTrace

        return RocprofTrace(path)
    from pyshim.profiles.chrome import KinetoTrace, SimulatedTrace

    if _SIMULATED.match(text):
        return SimulatedTrace(path)
    if _CHROME.match(text):
        return KinetoTrace(path)
    hint = (
        "known are: JSON of torch.profiler (export_chrome_trace), sqlite of nsys export, JSON of rocprofv3, "
        "perfetto_trace.json.gz of JAX, SIMGPU_TRACE"
    )
    for endings, instead in _INSTEAD.items():
        if path.endswith(endings):
            hint = instead.format(path)
    raise OverlapError(f"{path} is {'no trace that we can read' if head else 'empty'}", hint)


def is_trace(path: str) -> bool:
    """Return whether a file looks like a trace, by its beginning."""
    try:
        head = _head(path)
    except OverlapError:
        return False
    text = head.decode("utf-8-sig", "replace").lstrip()
    known = head.startswith(_MAGIC) or _ROCPROF.match(text) or _SIMULATED.match(text)
    return bool(known or (_CHROME.match(text) and _EVENTS.search(text)))


def _head(path: str) -> bytes:
    try:
        kind = os.stat(path).st_mode
        if not (stat.S_ISREG(kind) or stat.S_ISDIR(kind)):  # reading a pipe would wait for its writer
            raise OverlapError(f"{path} is a pipe, a socket or a device", "keep the trace in a file")
        with open(path, "rb") as file:
            data = file.read(_HEAD)
    except OSError as error:
        raise unreadable(path, error) from error
    if not data.startswith(b"\x1f\x8b"):
        return data
    try:
        return zlib.decompressobj(31).decompress(data, _HEAD)
    except zlib.error:
        return b"not what gzip writes"
