"""Exit statuses, in one table: command, status, meaning."""

from __future__ import annotations

from pyshim.errors import FINDINGS, LAUNCHER_FAILED, USAGE

EXITS = (
    ("overlap-run", "PROGRAM's own", "it was started; 128+N where signal N ended it, as a shell says it"),
    ("overlap-run", str(LAUNCHER_FAILED), "overlap-run failed before it started PROGRAM, or `--strict` refused"),
    ("overlap-run", "126", "PROGRAM is not executable"),
    ("overlap-run", "127", "PROGRAM was not found"),
    ("overlap", "0", "done; warnings are no findings, unless `--check` says so"),
    ("overlap", str(FINDINGS), "findings: mistakes, something that fails, an empty report, a warning under `--check`"),
    ("overlap", str(USAGE), "wrong options or input"),
    ("overlap", "130", "interrupted; `overlap tune` says what is known so far, also with 143 for SIGTERM"),
)
