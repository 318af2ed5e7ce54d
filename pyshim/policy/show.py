"""A policy with every default filled in, as YAML that is itself an equivalent policy."""

from __future__ import annotations

from typing import Any

import yaml

from pyshim.policy.key import shown
from pyshim.policy.model import VERSION, Policy


def as_values(policy: Policy) -> dict[str, Any]:
    """Return a policy as texts, numbers, lists and mappings; without keys that are not said and have no default."""
    values: dict[str, Any] = _said({"policy": VERSION, **shown(policy, "")})
    return values


def as_text(policy: Policy) -> str:
    return yaml.safe_dump(as_values(policy), sort_keys=False, default_flow_style=None, width=100)


def _said(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _said(inner) for key, inner in value.items() if inner is not None}
    return [_said(inner) for inner in value] if isinstance(value, list) else value
