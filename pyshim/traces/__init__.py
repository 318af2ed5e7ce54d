"""Traces of GPUs that people already have: of the PyTorch profiler, of nsys, and of our simulated GPU."""

from __future__ import annotations

from pyshim.traces.opened import open_trace
from pyshim.traces.record import MemoryOperation, Record, Span, Trace, TracedLaunch

__all__ = ["MemoryOperation", "Record", "Span", "Trace", "TracedLaunch", "open_trace"]
