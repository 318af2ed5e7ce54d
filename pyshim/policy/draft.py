"""What one policy file says by itself, and what it says together with the policy that it extends."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from pyshim.policy.model import (
    AUTO,
    INHERIT,
    OFF,
    Carveout,
    Critical,
    Dispatch,
    Footprint,
    Policy,
    Priority,
    Rule,
    When,
)
from pyshim.policy.origins import Origins

# Stands for `footprint: measured`, which must be told from nothing said.
MEASURED = Footprint(0, 0, 0, 0)


@dataclass(frozen=True)
class Streams:
    created_by: tuple[str, ...] = ()
    priority: Priority = INHERIT


@dataclass(frozen=True)
class Draft:
    """None: the file says nothing about it."""

    name: str = ""
    gpus: tuple[str, ...] | None = None
    when: When | None = None
    dispatch: Dispatch | None = None
    critical: Critical | None = None
    kernels: tuple[str, ...] = ()
    families: tuple[str, ...] | None = None
    libraries: tuple[str, ...] = ()
    priority: Priority | None = None
    streams: Streams | None = None
    footprint: Footprint | None = None
    carveout: Carveout | None = None  # of communication
    reserve_cus: int | None = None
    fixed_size: tuple[str, ...] = ()
    rules: tuple[tuple[Rule, bool], ...] = ()  # whether the rule has its own `when`
    environment: Mapping[str, str] = field(default_factory=dict)
    all_ranks_environment: Mapping[str, str] = field(default_factory=dict)
    origins: Origins = field(default_factory=Origins)


def extended(own: Draft, base: Draft) -> Draft:
    """Own rules come first, own values stand over the base's; what only adds (communication, kernels that are never
    shaped, variables) adds."""
    said = {*own.environment, *own.all_ranks_environment}
    return Draft(
        name=own.name,
        gpus=base.gpus if own.gpus is None else own.gpus,
        when=own.when or base.when,
        dispatch=own.dispatch or base.dispatch,
        critical=own.critical or base.critical,
        kernels=_both(own.kernels, base.kernels),
        families=base.families if own.families is None else own.families,
        libraries=_both(own.libraries, base.libraries),
        priority=own.priority or base.priority,
        streams=own.streams or base.streams,
        footprint=own.footprint or base.footprint,
        carveout=own.carveout or base.carveout,
        reserve_cus=base.reserve_cus if own.reserve_cus is None else own.reserve_cus,
        fixed_size=_both(own.fixed_size, base.fixed_size),
        rules=own.rules + tuple((replace(rule, depth=rule.depth + 1), when) for rule, when in base.rules),
        environment=_over(own.environment, base.environment, said),
        all_ranks_environment=_over(own.all_ranks_environment, base.all_ranks_environment, said),
        origins=own.origins.over(base.origins),
    )


def resolved(draft: Draft) -> Policy:
    """With every default filled in."""
    streams = draft.streams or Streams()
    when = draft.when or "overlapping"
    return Policy(
        name=draft.name,
        gpus=draft.gpus or (),
        dispatch=draft.dispatch or "unknown",
        kernels=draft.kernels,
        families=draft.families or (),
        libraries=draft.libraries,
        priority=draft.priority or AUTO,
        stream_creators=streams.created_by,
        stream_priority=streams.priority,
        critical=draft.critical or OFF,
        footprint=None if draft.footprint == MEASURED else draft.footprint,
        communication_carveout=draft.carveout or "keep",
        reserve_cus=draft.reserve_cus or 0,
        fixed_size=draft.fixed_size,
        rules=tuple(rule if own else replace(rule, when=when) for rule, own in draft.rules),
        environment=dict(draft.environment),
        all_ranks_environment=dict(draft.all_ranks_environment),
    )


def _both(own: tuple[str, ...], base: tuple[str, ...]) -> tuple[str, ...]:
    return own + tuple(item for item in base if item not in own)


def _over(own: Mapping[str, str], base: Mapping[str, str], said: set[str]) -> dict[str, str]:
    """A variable that the extending policy moves from one kind to the other is not set by both."""
    return {**{name: value for name, value in base.items() if name not in said}, **own}
