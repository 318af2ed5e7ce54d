"""Check policy files, list policies and GPUs, print what policies resolve to, and their JSON Schema for editors."""

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
    schema = verbs.add_parser(
        "schema", help="print the JSON Schema of policy files", description=_SCHEMA_LINE, epilog=_SCHEMA
    )
    schema.set_defaults(run=_schema)


_SHOW_LINE = "Print a policy as the library sees it, with every default filled in."
_LIST_LINE = (
    "List the policies that can be named here, and the GPUs that are known by name, with the shared memory of one "
    "multiprocessor in bytes."
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
    from pyshim.launch.environment import shipped

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


def _schema(args: argparse.Namespace) -> int:
    from pyshim.policy.model import schema_text

    ui.answer(schema_text().rstrip("\n"))
    return 0
