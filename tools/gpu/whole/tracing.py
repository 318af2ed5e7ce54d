"""Traces of torch.profiler that say what waited for what, as `overlap explain` reads them.

    python -m tools.gpu.whole.tracing STEPS <JOBS

JOBS, JSON: a list of [FILE, LIBRARY, PROGRAM, ARGUMENT, ...]. Of each, STEPS steps of a program of this folder, which
was built as a library (program.h says what it exports), are recorded into FILE, in a child of its own.
"""

from __future__ import annotations

import ctypes
import json
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile, record_function, schedule

CUDA_EVENT = (
    36  # CUPTI_ACTIVITY_KIND_CUDA_EVENT: rows of waits do not name their event without it (pytorch/kineto#1552)
)
WARM = 2
LEARNT = 20  # steps before a record


def loaded(name: str) -> ctypes.CDLL:
    """Return the library of that name that PyTorch has loaded. Raises SystemExit."""
    maps = Path("/proc/self/maps").read_text(encoding="utf-8")
    found = re.search(rf"\S*/{re.escape(name)}[.\d]*$", maps, re.MULTILINE)
    if not found:
        raise SystemExit(f"PyTorch has not loaded {name}")
    return ctypes.CDLL(found[0], ctypes.RTLD_GLOBAL)


def traced(step: Callable[[], Any], wait: Callable[[], None], path: str, steps: int) -> None:
    """Record as many steps into the file; os.devnull: run them without a record."""
    if path == os.devnull:
        for _ in range(WARM + steps):
            step()
        wait()
        return
    config = torch._C._profiler._ExperimentalConfig(enable_cuda_sync_events=True)
    with profile(
        activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA],
        schedule=schedule(wait=0, warmup=WARM, active=steps, repeat=1),
        on_trace_ready=lambda profiler: profiler.export_chrome_trace(path),
        experimental_config=config,
    ) as profiler:
        if torch.cuda.is_available() and (status := loaded("libcupti.so").cuptiActivityEnable(CUDA_EVENT)):
            raise SystemExit(f"CUPTI refuses the records of events: {status}")
        for left in reversed(range(WARM + steps)):
            with record_function("step"):
                step()
            if left == 0:
                wait()  # or the last step ends where the host does
            profiler.step()


def one(path: str, name: str, words: list[str], steps: int) -> None:
    """In a child: the program, opened and stepped by this process."""
    library = ctypes.CDLL(name)
    arguments = (ctypes.c_char_p * len(words))(*(word.encode() for word in words))
    if library.program_open(len(words), arguments):
        raise SystemExit(f"{name} cannot be opened with {words[1:]}")
    library.program_reset()
    for _ in range(LEARNT):
        library.program_step()
    library.program_wait()
    traced(library.program_step, library.program_wait, path, steps)


def main() -> int:
    failed = 0
    for path, name, *words in json.load(sys.stdin):
        child = os.fork()  # before CUDA is initialised: PyTorch is imported once
        if child == 0:
            status = 1
            try:
                one(path, name, words, int(sys.argv[1]))
                status = 0
            except BaseException as error:  # the child must not return into the loop
                print(f"{path}: {error}", file=sys.stderr, flush=True)
            os._exit(status)
        failed += os.waitpid(child, 0)[1] != 0
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
