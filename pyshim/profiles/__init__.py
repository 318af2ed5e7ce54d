"""Traces of GPUs that people already have: of the PyTorch profiler, of nsys, and of our simulated GPU."""

from __future__ import annotations

import os
import re
import stat
import zlib

from pyshim.errors import OverlapError
from pyshim.profiles.record import Trace

_MAGIC = b"SQLite format 3\0"
_HEAD = 1 << 16
# The first event of SIMGPU_TRACE names the process so.
_SIMULATED = re.compile(r'^\[\s*\{"name": "process_name".*?"simulated, rule ')
# An object with keys, or an array of events: other JSON cannot be told by its beginning.
_CHROME = re.compile(r'^(\{\s*("|$)|\[\s*(\{|$|\]))')


def open_trace(path: str) -> Trace:
    """Open a trace by its content, whatever it is called. Raise OverlapError if it cannot be read or is none."""
    head = _head(path)
    if head.startswith(_MAGIC):
        from pyshim.profiles.nsys import NsysTrace

        return NsysTrace(path)
    from pyshim.profiles.chrome import KinetoTrace, SimulatedTrace

    text = head.decode("utf-8-sig", "replace").lstrip()
    if _SIMULATED.match(text):
        return SimulatedTrace(path)
    if _CHROME.match(text):
        return KinetoTrace(path)
    hint = "known are: JSON of torch.profiler (export_chrome_trace), sqlite of nsys export, SIMGPU_TRACE"
    if path.endswith((".nsys-rep", ".qdrep")):
        hint = f"nsys export --type sqlite {path}"
    raise OverlapError(f"{path} is {'no trace that we can read' if head else 'empty'}", hint)


def _head(path: str) -> bytes:
    try:
        kind = os.stat(path).st_mode
        if not (stat.S_ISREG(kind) or stat.S_ISDIR(kind)):  # reading a pipe would wait for its writer
            raise OverlapError(f"{path} is a pipe, a socket or a device", "keep the trace in a file")
        with open(path, "rb") as file:
            data = file.read(_HEAD)
    except OSError as error:
        raise OverlapError(f"{path} cannot be read: {error.strerror or error}") from error
    if not data.startswith(b"\x1f\x8b"):
        return data
    try:
        return zlib.decompressobj(31).decompress(data, _HEAD)
    except zlib.error:
        return b"not what gzip writes"
