"""Commands without the start of an interpreter, which would cost most of their processor time.

`overlap` runs in this process; what becomes its program, or needs a process of its own, in a fork of it.

What the command sees and leaves is that of a process: file descriptors 1 and 2, environment, working directory.
"""

from __future__ import annotations

import os
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TextIO

from pyshim.cli import main, ui
from pyshim.start.folder import SEARCH


def overlap(
    arguments: Sequence[str | Path], env: Mapping[str, str] | None = None, cwd: str | Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Return exit status, stdout and stderr. env: all variables; None: those of this process."""
    files = [os.memfd_create(name) for name in ("stdout", "stderr")]
    try:
        with _surroundings(env, cwd), _output(files), _searches():
            status = _status([os.fspath(argument) for argument in arguments])
        out, err = map(_read, files)
    finally:
        for file in files:
            os.close(file)
    return subprocess.CompletedProcess(list(map(str, arguments)), status, out, err)


def forked(
    command: Callable[[], int], arguments: Sequence[str | Path], env: Mapping[str, str], **more: Any
) -> subprocess.CompletedProcess[str]:
    """Call a command in a child of this process, which has its modules already. more: for subprocess.run()."""

    def child() -> None:
        os.environ.clear()
        os.environ.update(env)
        sys.argv = ["overlap", *(os.fspath(argument) for argument in arguments)]
        ui.choose(quiet=False)
        with open(0, encoding="utf-8", closefd=False) as sys.stdin, _writer(1) as sys.stdout, _writer(2) as sys.stderr:
            status = _ended(command)
        os._exit(status)

    # The child has begun as a copy of this process, and never gets to the program that is named here.
    plain = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "encoding": "utf-8", "timeout": 300}
    return subprocess.run(["overlap"], preexec_fn=child, restore_signals=False, **{**plain, **more})


def _ended(command: Callable[[], int]) -> int:
    try:
        return command()
    except SystemExit as ended:  # argparse's
        return int(ended.code or 0)
    except BaseException:
        traceback.print_exc()
        return 1


def _status(arguments: Sequence[str]) -> int:
    ui.choose(quiet=False)  # the only state that one call leaves to the next
    try:
        return main(arguments)
    except SystemExit as ended:  # argparse's
        return int(ended.code or 0)


@contextmanager
def _surroundings(env: Mapping[str, str] | None, cwd: str | Path | None) -> Iterator[None]:
    variables, folder = dict(os.environ), Path.cwd()
    try:
        if env is not None:
            os.environ.clear()
            os.environ.update(env)
        if cwd is not None:
            os.chdir(cwd)
        yield
    finally:
        os.environ.clear()
        os.environ.update(variables)
        os.chdir(folder)


@contextmanager
def _output(files: Sequence[int]) -> Iterator[None]:
    """Take file descriptors 1 and 2 into these files: programs that a command starts write there, too."""
    before = sys.stdout, sys.stderr
    for stream in before:
        stream.flush()
    kept = [os.dup(1), os.dup(2)]
    for number, file in enumerate(files, 1):
        os.dup2(file, number)
    try:
        with _writer(1) as sys.stdout, _writer(2) as sys.stderr:
            yield
    finally:
        sys.stdout, sys.stderr = before
        for number, file in enumerate(kept, 1):
            os.dup2(file, number)
            os.close(file)


@contextmanager
def _searches() -> Iterator[None]:
    """Give back the folders of `overlap tune`, which it holds until its process ends."""
    before = set(_held())
    try:
        yield
    finally:
        for descriptor in set(_held()) - before:
            os.close(descriptor)


def _held() -> Iterator[int]:
    for name in os.listdir("/proc/self/fd"):
        with suppress(OSError):  # that of the folder itself is closed
            if os.readlink(f"/proc/self/fd/{name}").endswith(f"/{SEARCH}"):
                yield int(name)


def _writer(number: int) -> TextIO:
    return open(number, "w", encoding="utf-8", closefd=False)


def _read(file: int) -> str:
    return os.pread(file, os.fstat(file).st_size, 0).decode("utf-8", "surrogateescape")
