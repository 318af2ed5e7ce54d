"""Which policies a run carries, compiled. Apart from plan.py, so that an inner overlap-run loads none of this.

Compiling takes longer than everything else before exec. So the build keeps what the shipped policies compile to
(shipped.py), and only a user's own file is compiled here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from pyshim.errors import LAUNCHER_FAILED, OverlapError
from pyshim.launch import shipped
from pyshim.launch.folder import EXTENDS
from pyshim.launch.variables import Asked

if TYPE_CHECKING:
    from pathlib import Path

    from pyshim.launch.simulate import Gpu
    from pyshim.policy.model import Policy

AUTO = "auto"


class Chosen(NamedTuple):
    table: str  # base64
    described: tuple[Mapping[str, str | None], ...]  # name, hash, file
    asked: tuple[Asked, ...]  # what each of them wants to be set for the program

    def fits(self, gpu: Gpu) -> bool:
        from pyshim.policy import layout

        return index_for(layout.decode(self.table), gpu.name, gpu.architecture) is not None


def index_for(table: bytes | bytearray, gpu: str, architecture: str) -> int | None:
    """Return the index of the table's policy for a GPU, by the driver's name for it; None if no policy is for it."""
    from pyshim import _native

    index: int = _native.library().overlap_policy_for(table, gpu.encode(), architecture.encode())
    return None if index == 0xFFFFFFFF else index


def choose(value: str | None, environment: Mapping[str, str]) -> Chosen:
    """Return the policies of --policy, or the default. Raises OverlapError with 125 for a missing or invalid one."""
    return _compiled(value or AUTO, environment)


def observing() -> str:
    """Return a table without policies: every launch is counted and left alone, and no message is printed."""
    from pyshim.policy import layout, table

    return layout.encode(table.compile_table(()))


def _compiled(value: str, environment: Mapping[str, str]) -> Chosen:
    kept = shipped.look_up(value, environment)
    return Chosen(*kept) if kept else compile_now(value, environment)


def compile_now(value: str, environment: Mapping[str, str]) -> Chosen:
    from pyshim.policy import gpus, layout, library, table

    try:
        policies = library.load(value, environment)
        data = table.compile_table(policies)
    except OverlapError as error:
        error.status = LAUNCHER_FAILED
        raise
    described = tuple(
        {"name": policy.name, "hash": table.fingerprint(policy), "file": file, **_extended(policy)}
        for policy, file in zip(policies, _files(value, environment))
    )
    asked = tuple(
        Asked(
            policy.name,
            policy.gpus,
            tuple(sorted(gpus.vendors(policy.gpus))),
            dict(policy.environment),
        )
        for policy in policies
    )
    return Chosen(layout.encode(data), described, asked)


def _extended(policy: Policy) -> dict[str, str]:
    """Return the files of the policies that it extends, by how far away they are, of those that have rules."""
    from pathlib import Path

    return {f"{EXTENDS}{rule.depth}": _named(Path(rule.file)) for rule in policy.rules if rule.depth and rule.file}


def _files(value: str, environment: Mapping[str, str]) -> list[str]:
    """Of a user's policy the path, of a shipped one the bare name: the machine that built the package says nothing."""
    from pyshim.policy import library

    names = [
        name for item in value.split(",") for name in (library.DEFAULTS if item.strip() == AUTO else (item.strip(),))
    ]
    return [_named(library.find(name, environment)) for name in names]


def _named(path: Path) -> str:
    from pyshim.policy import library

    path = path.resolve()
    return path.name if path.parent == library.shipped_directory().resolve() else str(path)
