"""What a --policy value means, what policies compile to, and which variables the user has set himself.

A start that needs neither loads none of this (plan.py).

python -m pyshim.start.chosen OUTPUT writes OUTPUT/shipped.json, a step of the build: what every shipped policy, and
`auto`, compile to.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from itertools import combinations
from typing import TYPE_CHECKING

from pyshim.errors import LAUNCHER_FAILED, OverlapError
from pyshim.policy.model import OBSERVED
from pyshim.start.driver import text
from pyshim.start.environment import DEFAULT_POLICY, GPU_MEANT, SHIPPED, Chosen, PolicySettings
from pyshim.start.folder import EXTENDS, RAISE_SHARE

if TYPE_CHECKING:
    from pathlib import Path

    from pyshim.policy.model import Policy
    from pyshim.policy.reader import Reading
    from pyshim.start.driver import SimulatedGpu


# The shipped policies that `auto` carries, in this order: the last one is for every GPU.
DEFAULTS: tuple[str, ...] = ("mi250x", "mi300x", "default")


def fits(table: str, gpu: SimulatedGpu) -> bool:
    """Return whether a policy of the table, in base64, is for a GPU."""
    from pyshim.policy import layout

    return index_for(layout.decode(table), gpu.name, gpu.architecture) is not None


def index_for(table: bytes | bytearray, gpu: str, architecture: str) -> int | None:
    """Return the index of the table's policy for a GPU, by the driver's name for it; None if no policy is for it."""
    from pyshim import _native

    index: int = _native.library().overlap_policy_for(table, gpu.encode(), architecture.encode())
    return None if index == 0xFFFFFFFF else index


def observing() -> str:
    """Return a table without policies: every launch is counted and left alone, and no message is printed."""
    from pyshim.policy import layout, table

    return layout.encode(table.compile_table(()))


def load(value: str, environment: Mapping[str, str]) -> tuple[Policy, ...]:
    """Return the policies of a --policy value. Raises OverlapError (125): missing, wrong, or two for one GPU."""
    wanted = named(value, environment)
    policies = tuple(_policy(name, environment) for name in wanted)
    for first, second in combinations(zip(wanted, policies), 2):
        _check_apart(first, second)
    return policies


def named(value: str, environment: Mapping[str, str]) -> list[str]:
    """Return the files and names in a --policy value, `auto` written out. Raises OverlapError (125) for none."""
    from pyshim.policy.files import names_hint
    from pyshim.policy.finding import quote

    items = [item.strip() for item in value.split(",")]
    if not all(items):
        raise OverlapError(f"the policy {quote(value)} has an empty name", names_hint(environment), LAUNCHER_FAILED)
    return [name for item in items for name in (DEFAULTS if item == DEFAULT_POLICY else (item,))]


def _policy(name: str, environment: Mapping[str, str]) -> Policy:
    from pyshim.policy.files import find
    from pyshim.policy.reader import read_file

    reading = read_file(find(name, environment), environment=environment)
    if reading.policy is None:
        raise _error(reading)
    return reading.policy


def _error(reading: Reading) -> OverlapError:
    """Return the first mistake, as one line; the others are one command away."""
    from pyshim.policy.finding import headline

    errors = [finding for finding in reading.findings if finding.severity == "error"]
    rest = f"for all {len(errors)} mistakes: overlap policy check {reading.file}" if len(errors) > 1 else ""
    hint = "; ".join(part for part in (errors[0].hint, rest) if part)
    return OverlapError(headline(reading.file, errors[0]), hint or None, LAUNCHER_FAILED)


def _check_apart(first: tuple[str, Policy], second: tuple[str, Policy]) -> None:
    """Refuse a second policy for the same GPU: the library takes the first one that fits.

    A policy for every GPU may stand behind others: it is for the rest."""
    from pyshim.policy import gpus
    from pyshim.policy.finding import quote

    (name, policy), (other_name, other) = first, second
    if gpus.apart(policy.gpus, other.gpus) or (policy.gpus and not other.gpus):
        return
    both = set(gpus.matching(policy.gpus)) & set(gpus.matching(other.gpus))
    where = min(gpu.name for gpu in both) if both else "the same GPUs"
    if not policy.gpus:
        where = "every GPU" if not other.gpus else f"{where}: the first one is for every GPU"
    sentence = f"the policies {quote(name)} and {quote(other_name)} are both for {where}"
    raise OverlapError(sentence, "combine policies whose `gpu` differ; one for every GPU stands last", LAUNCHER_FAILED)


def compiled(value: str, environment: Mapping[str, str]) -> Chosen:
    """Compile the policies of --policy. Raises OverlapError with 125 for a missing or invalid one."""
    from pyshim.policy import gpus, layout, table

    try:
        policies = load(value, environment)
        data = table.compile_table(policies)
    except OverlapError as error:
        error.status = LAUNCHER_FAILED
        raise
    described = tuple(
        {
            "name": policy.name,
            "hash": table.fingerprint(policy),
            "file": file,
            RAISE_SHARE: "0" if policy.raise_share == OBSERVED else str(policy.raise_share),
            **_meant(policy),
            **_extended(policy),
        }
        for policy, file in zip(policies, _files(value, environment))
    )
    asked = tuple(
        PolicySettings(
            policy.name,
            policy.gpus,
            tuple(sorted(gpus.vendors(policy.gpus))),
            dict(policy.environment),
        )
        for policy in policies
    )
    return Chosen(layout.encode(data), described, asked)


def _meant(policy: Policy) -> dict[str, str]:
    """Return, for names in `gpu` that no known GPU has, what may have been meant, as `overlap policy check` says it."""
    from pyshim.policy import gpus

    hints = {pattern: gpus.meant(pattern) for pattern in policy.gpus if gpus.is_unknown(pattern)}
    said = [f"{gpus.unknown(pattern)}: {hint}" for pattern, hint in hints.items() if hint]
    return {GPU_MEANT: "; ".join(said)} if said else {}


def _extended(policy: Policy) -> dict[str, str]:
    """Return the files of the policies that it extends, by how far away they are, of those that have rules."""
    from pathlib import Path

    return {f"{EXTENDS}{rule.depth}": _named(Path(rule.file)) for rule in policy.rules if rule.depth and rule.file}


def _files(value: str, environment: Mapping[str, str]) -> list[str]:
    """Of a user's policy the path, of a shipped one the bare name: the machine that built the package says nothing."""
    from pyshim.policy.files import find

    return [_named(find(name, environment)) for name in named(value, environment)]


def _named(path: Path) -> str:
    from pyshim.policy.files import shipped_directory

    path = path.resolve()
    return path.name if path.parent == shipped_directory().resolve() else str(path)


def nccl_files(base: Mapping[str, str], etc: str) -> dict[str, str]:
    """Return, by variable, the file that sets it: versions of NCCL read different ones, so all of them count."""
    homes = [base.get("HOME", ""), _home()]
    files = [base.get("NCCL_CONF_FILE", ""), *(f"{home}/.nccl.conf" for home in homes if home), etc]
    found: dict[str, str] = {}
    for path in files:
        for name in _names(path) if path else ():
            found.setdefault(name, path)
    return found


def _names(path: str) -> list[str]:
    """Return the names in lines NAME=VALUE as NCCL reads them: # begins a comment only at the start of a line."""
    lines = text(path).split("\n")
    return [line.partition("=")[0].strip() for line in lines if "=" in line and not line.startswith("#")]


def _home() -> str:
    """As the system says it, which is whom NCCL asks."""
    import pwd

    try:
        return pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:
        return ""


def without_users(wanted: Mapping[str, str], base: Mapping[str, str], etc: str) -> tuple[dict[str, str], list[str]]:
    """Return what the user has not set, in the environment or for NCCL, and a sentence for each of the others."""
    files = nccl_files(base, etc)
    kept, left = {}, []
    for name, value in wanted.items():
        if name in base:
            left.append(f"{name} is left as it is set: {base[name]}")
        elif name in files:
            left.append(f"{name} is left to {files[name]}, which sets it")
        else:
            kept[name] = value
    return kept, left


def write_shipped(output: str) -> None:
    """Write OUTPUT/shipped.json: by name, the fields of Chosen."""
    import json

    from pyshim.pages.untrusted import write_whole
    from pyshim.policy.files import names

    kept = {name: compiled(name, {})._asdict() for name in (DEFAULT_POLICY, *names({}))}
    write_whole(os.path.join(output, SHIPPED), json.dumps(kept, sort_keys=True).encode("ascii"), mode=0o666)


if __name__ == "__main__":
    write_shipped(sys.argv[1])
