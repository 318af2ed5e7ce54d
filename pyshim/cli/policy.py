"""Check policy files, list policies and GPUs, print what policies resolve to and their JSON Schema, size kernels."""

from __future__ import annotations

import argparse
import json
import os

from pyshim.cli import ui

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


def _check(options: argparse.Namespace) -> int:
    from pyshim.cli.policy_files import check

    return check(options.file, options.strict)


def _show(options: argparse.Namespace) -> int:
    from pyshim.cli.policy_files import show

    return show(options.policy, options.gpu)


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
    from pyshim.policy.files import names
    from pyshim.policy.gpus import known

    policies = [policy for name in names(os.environ) for policy in _listed(name)]
    if options.json:
        answer = {
            "policies": [{"name": name, "gpu": list(gpus)} for name, gpus in policies],
            "gpus": [gpu._asdict() for gpu in known()],
        }
        ui.answer(json.dumps(answer, indent=2))
        return 0
    ui.table(("policy", "for"), [(name, ", ".join(gpus) or "every GPU") for name, gpus in policies], (0, 1))
    ui.show()
    ui.table(list(_GPUS.values()), [[getattr(gpu, name) for name in _GPUS] for gpu in known()], (0, 1, 2))
    return 0


def _listed(name: str) -> list[tuple[str, tuple[str, ...]]]:
    """Return the name and the GPUs of a policy, or warn of its mistakes. The build has kept those of shipped ones."""
    from pyshim.start.environment import shipped

    kept = shipped(name, os.environ)
    if kept:
        return [(asked.policy, asked.gpus) for asked in kept.asked]
    from pyshim.policy.files import find
    from pyshim.policy.reader import read_file

    reading = read_file(find(name, os.environ), environment=os.environ)
    if reading.policy:
        return [(reading.policy.name, reading.policy.gpus)]
    ui.say(f"warning: {reading.file} has mistakes: overlap policy check {reading.file}")
    return []


def _room(options: argparse.Namespace) -> int:
    from pyshim.cli.explain import show
    from pyshim.policy import gpus
    from pyshim.room.room import as_json, footprint, look, screen

    gpu = gpus.named(options.gpu)
    kernel = footprint("--kernel", options.kernel)
    answer = look(gpu, kernel, None if options.comm is None else footprint("--comm", options.comm))
    if options.json:
        ui.answer(json.dumps(as_json(answer), indent=2))
    else:
        show(screen(answer))
    return 0


def _schema(args: argparse.Namespace) -> int:
    from pyshim.policy.model import schema_text

    ui.answer(schema_text().rstrip("\n"))
    return 0
