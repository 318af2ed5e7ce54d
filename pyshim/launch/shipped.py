"""What the shipped policies compile to, kept in _lib/shipped.json by the build: starting a program then parses nothing.

A checkout is built again by `make` where a policy or its reader has changed.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Optional

from pyshim.launch.variables import Asked

NAME = "shipped.json"
KEPT = os.path.join(os.path.dirname(os.path.dirname(os.path.realpath(__file__))), "_lib", NAME)
_SUFFIX = ".yaml"

# Table in base64, what is said of its policies, what they ask to be set: the fields of policies.Chosen.
Kept = tuple[str, tuple[Mapping[str, Optional[str]], ...], tuple[Asked, ...]]


def look_up(value: str, environment: Mapping[str, str], path: str = KEPT) -> Kept | None:
    """Return a kept table; None where the value may mean something else (pyshim/policy/reader.py)."""
    is_file = value.endswith(_SUFFIX) and os.path.isfile(value)
    if is_file or "/" in value or environment.get("OVERLAP_POLICY_PATH"):
        return None
    import json

    try:
        with open(path, "rb") as file:
            data: Any = json.load(file)
        found = data[value[: -len(_SUFFIX)] if value.endswith(_SUFFIX) else value]
        return found["table"], tuple(found["described"]), tuple(_asked(*item) for item in found["asked"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _asked(policy: str, gpus: list[str], vendors: list[str], environment: Mapping[str, str]) -> Asked:
    return Asked(policy, tuple(gpus), tuple(vendors), environment)
