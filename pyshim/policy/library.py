"""Policies by file or by name: what a --policy value means."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations

from pyshim.errors import LAUNCHER_FAILED, OverlapError
from pyshim.policy import gpus
from pyshim.policy.files import find as find
from pyshim.policy.files import names as names
from pyshim.policy.files import names_hint
from pyshim.policy.files import shipped_directory as shipped_directory
from pyshim.policy.finding import headline, quote
from pyshim.policy.model import Policy
from pyshim.policy.reader import Reading, read_file

AUTO = "auto"

# The shipped policies that `auto` carries, in this order: the last one is for every GPU.
DEFAULTS: tuple[str, ...] = ("mi250x", "mi300x", "default")


def load(value: str, environment: Mapping[str, str]) -> tuple[Policy, ...]:
    """Return the policies of a --policy value. Raises OverlapError (125): missing, wrong, or two for one GPU."""
    wanted = named(value, environment)
    policies = tuple(_policy(name, environment) for name in wanted)
    for first, second in combinations(zip(wanted, policies), 2):
        _check_apart(first, second)
    return policies


def named(value: str, environment: Mapping[str, str]) -> list[str]:
    """Return the files and names in a --policy value, `auto` written out. Raises OverlapError (125) for none."""
    items = [item.strip() for item in value.split(",")]
    if not all(items):
        raise OverlapError(f"the policy {quote(value)} has an empty name", names_hint(environment), LAUNCHER_FAILED)
    return [name for item in items for name in (DEFAULTS if item == AUTO else (item,))]


def _policy(name: str, environment: Mapping[str, str]) -> Policy:
    reading = read_file(find(name, environment), environment=environment)
    if reading.policy is None:
        raise _error(reading)
    return reading.policy


def _error(reading: Reading) -> OverlapError:
    """Return the first mistake, as one line; the others are one command away."""
    errors = [finding for finding in reading.findings if finding.severity == "error"]
    rest = f"for all {len(errors)} mistakes: overlap policy check {reading.file}" if len(errors) > 1 else ""
    hint = "; ".join(part for part in (errors[0].hint, rest) if part)
    return OverlapError(headline(reading.file, errors[0]), hint or None, LAUNCHER_FAILED)


def _check_apart(first: tuple[str, Policy], second: tuple[str, Policy]) -> None:
    """Refuse a second policy for the same GPU: the library takes the first one that fits.

    A policy for every GPU may stand behind others: it is for the rest."""
    (name, policy), (other_name, other) = first, second
    if gpus.apart(policy.gpus, other.gpus) or (policy.gpus and not other.gpus):
        return
    both = set(gpus.matching(policy.gpus)) & set(gpus.matching(other.gpus))
    where = min(gpu.name for gpu in both) if both else "the same GPUs"
    sentence = f"the policies {quote(name)} and {quote(other_name)} are both for {where}"
    raise OverlapError(sentence, "combine policies whose `gpu` differ; one for every GPU stands last", LAUNCHER_FAILED)
