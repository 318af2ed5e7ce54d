"""Check policy files, list policies and GPUs, print what policies resolve to and their JSON Schema, size kernels."""

from __future__ import annotations

import argparse
import json
import os
import sys
from errno import EBADF
from pathlib import Path
from typing import TYPE_CHECKING

from pyshim.cli import ui
from pyshim.errors import FINDINGS, USAGE, OverlapError
from pyshim.policy import document, library
from pyshim.policy.finding import STYLES, Finding, quote, render
from pyshim.policy.reader import Reading, read_bytes, read_file
from pyshim.policy.table import compile_table, fingerprint

if TYPE_CHECKING:
    from pyshim.policy.gpus import KnownGpu

STDIN = "<stdin>"

_CHECK = """\
examples:
  overlap policy check mine.yaml
  overlap policy check --strict policies/ && sbatch job.sh

exit status: 0 no mistakes, 1 mistakes (with --strict: or warnings), 2 usage"""

_SHOW = """\
Policies that it extends are merged. The output is itself an equivalent policy.

examples:
  overlap policy show mine.yaml
  overlap policy show auto --gpu h100
  overlap policy show h100-paper > mine.yaml

exit status: 0, 1 the policy has mistakes or is not for that GPU, 2 usage"""

_SCHEMA = """\
For editors with yaml-language-server (VS Code, Neovim, Emacs and others): save it beside the policy, and name that
file in the first line of the policy.

example:
  overlap policy schema > policy.schema.json
  # yaml-language-server: $schema=./policy.schema.json

The schema covers keys, words and numbers; `overlap policy check` finds the rest."""


_ROOM = """\
Numbers of kernels: `overlap explain TRACE --full`, or ncu. On AMD, registers are VGPRs and AGPRs together.

examples:
  overlap policy room --gpu h100 --kernel 128:224:0:48KiB
  overlap policy room --gpu a40 --kernel 64:96 --comm 288:96

exit status: 0 success, 2 usage"""


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "policy",
        help="check policy files, list policies and GPUs",
        description=__doc__,
        epilog="example: overlap policy check mine.yaml",
    )
    verbs = parser.add_subparsers(metavar="COMMAND", required=True)
    check = verbs.add_parser(
        "check",
        help="find every mistake in policy files",
        description="Find every mistake in policy files, and in what they extend. Nothing is run and no GPU is needed.",
        epilog=_CHECK,
    )
    check.add_argument(
        "file",
        nargs="+",
        metavar="FILE",
        help="a file, a folder of *.yaml, the name of a shipped policy, auto, - for stdin",
    )
    check.add_argument("--strict", action="store_true", help="exit with 1 on warnings, too")
    check.set_defaults(run=_check)
    show = verbs.add_parser(
        "show", help="print a policy with every default filled in", description=_SHOW_LINE, epilog=_SHOW
    )
    show.add_argument("policy", metavar="POLICY", help="a file or a name, as for overlap-run --policy")
    show.add_argument(
        "--gpu", metavar="GPU", help="the policy that applies on this GPU: h100, or another of `overlap policy list`"
    )
    show.set_defaults(run=_show)
    listed = verbs.add_parser(
        "list",
        help="list policies and GPUs",
        description=_LIST_LINE,
        epilog="For AMD, the numbers are those of one die and of one compute unit. On a real GPU the library takes all "
        "of them from the driver.",
    )
    listed.add_argument("--json", action="store_true", help="print one JSON object, also with threads and registers")
    listed.set_defaults(run=_list)
    room = verbs.add_parser(
        "room", help="say which sizes make room beside one kernel", description=_ROOM_LINE, epilog=_ROOM
    )
    room.add_argument("--gpu", metavar="GPU", required=True, help="h100, or another of `overlap policy list`")
    form = "THREADS:REGISTERS[:STATIC[:DYNAMIC]]"
    room.add_argument(
        "--kernel",
        metavar="FOOTPRINT",
        required=True,
        help=f"{form}: threads of a block, registers of a thread, bytes of shared memory",
    )
    room.add_argument(
        "--comm", metavar="FOOTPRINT", help="of the communication kernel (default: the newest NCCL or RCCL)"
    )
    room.add_argument("--json", action="store_true", help="print one JSON object")
    room.set_defaults(run=_room)
    schema = verbs.add_parser(
        "schema", help="print the JSON Schema of policy files", description=_SCHEMA_LINE, epilog=_SCHEMA
    )
    schema.set_defaults(run=_schema)


_SHOW_LINE = "Print a policy as the library sees it, with every default filled in."
_LIST_LINE = (
    "List the policies that can be named here, and the GPUs that are known by name, with the shared memory of one "
    "multiprocessor in bytes."
)
_ROOM_LINE = (
    "Say whether a block of communication fits beside the resident blocks of one kernel: which sizes of dynamic shared "
    "memory make room, or which resource forbids it."
)
_SCHEMA_LINE = "Print the JSON Schema of policy files, for completion and checks in editors."


# ---- check ----


def _check(args: argparse.Namespace) -> int:
    if args.file.count("-") > 1:
        raise OverlapError("stdin can be read once", "name - once", USAGE)
    readings = [reading for value in args.file for name in _names(value) for reading in _read_all(name)]
    ui.answer(_as_text(readings))
    return 0 if all(reading.ok and not (args.strict and reading.findings) for reading in readings) else FINDINGS


def _names(value: str) -> list[str]:
    """Return what `auto` stands for; everything else is one file, folder or name."""
    return library.named(value, os.environ) if value == library.AUTO else [value]


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
        library.find(name, os.environ)
    except OverlapError:
        return False
    return True


def _read(name: str) -> Reading:
    """stdin, or the policy that --policy takes."""
    if name == "-":
        return _read_stdin()
    try:
        path = library.find(name, os.environ)
    except OverlapError as error:
        return Reading(name, "", None, (Finding("missing-file", error.sentence, hint=error.hint or ""),))
    return _compiled(read_file(path, environment=os.environ))


def _read_stdin() -> Reading:
    try:
        if sys.stdin is None:
            raise OSError(EBADF, "it is closed")
        data = sys.stdin.buffer.read(document.MAX_BYTES + 1)
    except OSError as error:
        finding = Finding("unreadable", f"stdin cannot be read: {error.strerror}")
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
        counts[0] = ui.paint("ok", "green") + f", {_plural(len(reading.policy.rules), 'rule')}"
    told = f"{ui.printable(reading.file)}: {', '.join(count for count in counts if count)}"
    return f"{text}{chr(10) if text else ''}{told}"


def _count(reading: Reading, severity: str) -> str:
    found = sum(finding.severity == severity for finding in reading.findings)
    return _plural(found, severity) if found else ""


def _plural(count: int, word: str) -> str:
    return f"{count} {word}{'' if count == 1 else 's'}"


# ---- show ----


def _show(args: argparse.Namespace) -> int:
    from pyshim.policy import gpus
    from pyshim.policy.model import as_text

    gpu = gpus.named(args.gpu) if args.gpu is not None else None
    readings = [_read(name) for name in library.named(args.policy, os.environ)]
    wrong = [reading for reading in readings if reading.policy is None]
    if wrong:
        ui.diagnose(_as_text(wrong))
        return FINDINGS
    reading = _one(args.policy, readings, gpu)
    policy = reading.policy
    assert policy is not None
    lines = [f"# {policy.name}{f' on {gpu.name}' if gpu else ''}, as the library sees it; hash {fingerprint(policy)}"]
    lines += [f"# {ui.printable(reading.file)}", *as_text(policy).splitlines()]
    ui.answer("\n".join(lines))
    return 0


def _one(value: str, readings: list[Reading], gpu: KnownGpu | None) -> Reading:
    """Return the policy that the library takes on the GPU, by asking the library itself."""
    from pyshim.launch.policies import index_for

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


# ---- list ----

_GPUS = {
    "key": "key",
    "name": "name",
    "architecture": "arch",
    "multiprocessors": "SMs",
    "shared_memory": "shared",
    "shared_memory_per_block": "of a block",
    "memory_gib": "GiB",
}


def _list(options: argparse.Namespace) -> int:
    from pyshim.policy.gpus import known

    found = [read_file(library.find(name, os.environ), environment=os.environ) for name in library.names(os.environ)]
    policies = [reading.policy for reading in found if reading.policy]
    for reading in found:
        if not reading.policy:
            ui.say(f"warning: {reading.file} has mistakes: overlap policy check {reading.file}")
    if options.json:
        answer = {
            "policies": [{"name": policy.name, "gpu": list(policy.gpus)} for policy in policies],
            "gpus": [gpu._asdict() for gpu in known()],
        }
        ui.answer(json.dumps(answer, indent=2))
        return 0
    ui.table(("policy", "for"), [(policy.name, ", ".join(policy.gpus) or "every GPU") for policy in policies], (0, 1))
    ui.show()
    ui.table(list(_GPUS.values()), [[getattr(gpu, name) for name in _GPUS] for gpu in known()], (0, 1, 2))
    return 0


# ---- room ----


def _room(options: argparse.Namespace) -> int:
    from pyshim.cli.explain import show
    from pyshim.explain.room import as_json, footprint, look, screen
    from pyshim.policy import gpus

    gpu = gpus.named(options.gpu)
    kernel = footprint("--kernel", options.kernel)
    answer = look(gpu, kernel, None if options.comm is None else footprint("--comm", options.comm))
    if options.json:
        ui.answer(json.dumps(as_json(answer), indent=2))
    else:
        show(screen(answer))
    return 0


# ---- schema ----


def _schema(args: argparse.Namespace) -> int:
    from pyshim.policy.model import schema_text

    ui.answer(schema_text().rstrip("\n"))
    return 0
