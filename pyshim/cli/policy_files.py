"""What `overlap policy check` and `show` say of policy files."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from errno import EBADF
from pathlib import Path
from typing import TYPE_CHECKING

from pyshim.cli import ui
from pyshim.counts import counted
from pyshim.errors import FINDINGS, USAGE, OverlapError
from pyshim.policy import document, files
from pyshim.policy.finding import STYLES, Finding, quote, render
from pyshim.policy.reader import Reading, read_bytes, read_file
from pyshim.policy.table import compile_table, fingerprint
from pyshim.start import chosen
from pyshim.start.environment import DEFAULT_POLICY

if TYPE_CHECKING:
    from pyshim.policy.gpus import KnownGpu

STDIN = "<stdin>"


def check(names: Sequence[str], strict: bool) -> int:
    """Print what is wrong with these, and return an exit status."""
    if names.count("-") > 1:
        raise OverlapError("stdin can be read once", "name - once", USAGE)
    readings = [reading for value in names for name in _names(value) for reading in _read_all(name)]
    ui.answer(_as_text(readings))
    return 0 if all(reading.ok and not (strict and reading.findings) for reading in readings) else FINDINGS


def _names(value: str) -> list[str]:
    """Return what `auto` stands for; everything else is one file, folder or name."""
    return chosen.named(value, os.environ) if value == DEFAULT_POLICY else [value]


def _read_all(name: str) -> list[Reading]:
    folder = Path(name)
    if name == "-" or not os.path.isdir(name) or ("/" not in name and _is_policy(name)):
        return [_read(name)]
    if not os.access(name, os.R_OK | os.X_OK):
        finding = Finding("unreadable", "the folder cannot be read by this user", hint="chmod u+rx on it")
        return [Reading(name, "", None, (finding,))]
    files = sorted(folder.glob("*.yaml"))
    if files:
        return [_read(str(file)) for file in files]
    finding = Finding("no-policy", "the folder holds no file that ends in .yaml", hint="name the files")
    return [Reading(name, "", None, (finding,))]


def _is_policy(name: str) -> bool:
    try:
        files.find(name, os.environ)
    except OverlapError:
        return False
    return True


def _read(name: str) -> Reading:
    """stdin, or the policy that --policy takes."""
    if name == "-":
        return _read_stdin()
    try:
        path = files.find(name, os.environ)
    except OverlapError as error:
        return Reading(name, "", None, (Finding("missing-file", error.sentence, hint=error.hint or ""),))
    return _compiled(read_file(path, environment=os.environ))


def _read_stdin() -> Reading:
    try:
        if sys.stdin is None:
            raise OSError(EBADF, "it is closed")
        data = sys.stdin.buffer.read(document.MAX_BYTES + 1)
    except OSError as error:
        finding = Finding("unreadable", f"stdin cannot be read: {error.strerror}", hint="name the file instead")
        return Reading(STDIN, "", None, (finding,))
    return _compiled(read_bytes(data, STDIN, environment=os.environ))


def _compiled(reading: Reading) -> Reading:
    if reading.policy is not None:
        try:
            compile_table([reading.policy])
        except OverlapError as error:
            finding = Finding("too-large", error.sentence, 1, 1, error.hint or "")
            return Reading(reading.file, reading.source, None, (*reading.findings, finding))
    return reading


def _as_text(readings: list[Reading]) -> str:
    """Return the findings, with empty lines around those of a file, and none between files without findings."""
    parts = []
    for before, reading in zip([None, *readings], readings):
        gap = "\n" if before and (before.findings or reading.findings) else ""
        parts.append(gap + _of_one(reading))
    return "\n".join(parts)


def _of_one(reading: Reading) -> str:
    columns = ui.width() if ui.is_to_terminal() else 240
    text = render(reading.file, reading.source, reading.findings, columns, ui.paint)
    counts = [_count(reading, severity) for severity in STYLES]
    if reading.policy is not None:
        counts[0] = ui.paint("ok", "green") + f", {counted(len(reading.policy.rules), 'rule')}"
    told = f"{ui.printable(reading.file)}: {', '.join(count for count in counts if count)}"
    return f"{text}{chr(10) if text else ''}{told}"


def _count(reading: Reading, severity: str) -> str:
    found = sum(finding.severity == severity for finding in reading.findings)
    return counted(found, severity) if found else ""


def show(value: str, on: str | None) -> int:
    """Print the policy, with every default filled in. on: a GPU; of several policies the one for it."""
    from pyshim.policy import gpus
    from pyshim.policy.model import as_text

    gpu = gpus.named(on) if on is not None else None
    readings = [_read(name) for name in chosen.named(value, os.environ)]
    wrong = [reading for reading in readings if reading.policy is None]
    if wrong:
        ui.diagnose(_as_text(wrong))
        return FINDINGS
    reading = _one(value, readings, gpu)
    policy = reading.policy
    assert policy is not None
    lines = [f"# {policy.name}{f' on {gpu.name}' if gpu else ''}, as the library sees it; hash {fingerprint(policy)}"]
    lines += [f"# {ui.printable(reading.file)}", *as_text(policy).splitlines()]
    ui.answer("\n".join(lines))
    return 0


def _one(value: str, readings: list[Reading], gpu: KnownGpu | None) -> Reading:
    """Return the policy that the library takes on the GPU, by asking the library itself."""
    from pyshim.start.chosen import index_for

    if gpu is None:
        if len(readings) > 1:
            names = ", ".join(reading.policy.name for reading in readings if reading.policy)
            raise OverlapError(f"{quote(value)} is several policies: {names}", "name one of them, or --gpu", USAGE)
        return readings[0]
    data = compile_table([reading.policy for reading in readings if reading.policy])
    index = index_for(data, gpu.name, gpu.architecture)
    if index is None:
        sentence = f"{quote(value)} is not for {gpu.name}: every launch is counted there and left alone"
        raise OverlapError(sentence, "overlap policy show auto --gpu " + gpu.key, FINDINGS)
    return readings[index]
