"""What the shipped policies compile to, kept in _lib/shipped.json by the build: starting a program then parses nothing.

The file records what it was made from (policies, header, policy reader). A checkout whose files have changed since
then does not use it. Sizes and times are compared first: reading 53 sources would be 53,000 opens in a job of 1,000
ranks. In an installed wheel the file is always current.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Optional

from pyshim import __version__
from pyshim.launch.variables import Asked

_PACKAGE = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
KEPT = os.path.join(_PACKAGE, "_lib", "shipped.json")
_INSTALLED = os.path.join(_PACKAGE, "policies")  # in a wheel only; in a checkout they are beside the package
_HEADER = os.path.join(_PACKAGE, "_lib", "overlap_abi.h")

# Table in base64, what is said of its policies, what they ask to be set: the fields of policies.Chosen.
Kept = tuple[str, tuple[Mapping[str, Optional[str]], ...], tuple[Asked, ...]]


def look_up(value: str, environment: Mapping[str, str], path: str = KEPT) -> Kept | None:
    """Return a kept table; None where the value may mean something else, or its sources differ."""
    if "/" in value or environment.get("OVERLAP_POLICY_PATH") or os.path.exists(value):
        return None
    import json

    try:
        with open(path, "rb") as file:
            data: Any = json.load(file)
        if not _is_current(data):
            return None
        found = data["policies"].get(value[:-5] if value.endswith(".yaml") else value)
        return found and (
            found["table"],
            tuple(found["described"]),
            tuple(_asked(*item) for item in found["asked"]),
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _asked(policy: str, gpus: list[str], vendors: list[str], environment: Mapping[str, str]) -> Asked:
    return Asked(policy, tuple(gpus), tuple(vendors), environment)


def _is_current(data: Any) -> bool:
    if os.path.isdir(_INSTALLED):
        return True
    # Times differ in a copy of a checkout; content decides there.
    return bool(data.get("stamp") == _stamp() or data["made_from"] == fingerprint(_HEADER))


def fingerprint(header: str) -> str:
    """Return a hash of the content of everything that a compiled policy depends on."""
    import hashlib

    digest = hashlib.sha256(__version__.encode())
    for path in _sources(header):
        with open(path, "rb") as file:
            data = file.read()
        digest.update(f"{os.path.basename(path)}\0{len(data)}\0".encode())
        digest.update(data)
    return digest.hexdigest()


def _stamp() -> list[list[Any]]:
    """Return the names, sizes and times of the same files, for which none of them is opened."""
    # The change time, too: archives and rsync restore the modification time.
    stats = [(os.path.basename(path), os.stat(path)) for path in _sources(_HEADER)]
    return [[__version__], *([name, one.st_size, one.st_mtime_ns, one.st_ctime_ns] for name, one in stats)]


def _sources(header: str) -> list[str]:
    policies = os.path.join(os.path.dirname(_PACKAGE), "policies")
    found: list[str] = []
    for folder, ending in ((os.path.join(_PACKAGE, "policy"), ".py"), (policies, ".yaml")):
        found += [os.path.join(folder, name) for name in sorted(os.listdir(folder)) if name.endswith(ending)]
    return [*found, os.path.join(_PACKAGE, "enums.py"), header]


def write(output: str, kept: Mapping[str, Mapping[str, Any]]) -> None:
    """Write what policies compiled to, by name: the fields of policies.Chosen."""
    import json

    from pyshim.stats.file import write_whole

    data: dict[str, Any] = {"made_from": fingerprint(os.path.join(output, "overlap_abi.h")), "policies": kept}
    if os.path.realpath(output) == os.path.dirname(KEPT):  # in place; a wheel has the same bytes wherever it is built
        data["stamp"] = _stamp()
    text = json.dumps(data, sort_keys=True)
    write_whole(os.path.join(output, os.path.basename(KEPT)), text.encode("ascii"), mode=0o666)
