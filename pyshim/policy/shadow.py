"""Rules that can never match, because earlier ones take everything that they could."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pyshim.policy.rule import Match, Rule
from pyshim.policy.values import is_wild, pattern_covers
from pyshim.policy.words import Range

RANGES = ("blocks", "threads", "registers", "waves_percent", "resident_blocks")
# Comparisons of two patterns; a policy that takes more than a second of them is not searched to the end.
_BUDGET = 200_000


def shadowed(rules: Sequence[Rule]) -> list[tuple[Rule, tuple[Rule, ...]]]:
    """Return rules that earlier ones, alone or together, certainly leave no launch, each with those."""
    found = []
    cost = [0]
    for index, rule in enumerate(rules):
        takers = _takers(rule, rules[:index], cost)
        if takers:
            found.append((rule, takers))
        if cost[0] > _BUDGET:
            break
    return found


def _takers(rule: Rule, earlier: Sequence[Rule], cost: list[int]) -> tuple[Rule, ...]:
    near = [other for other in earlier if _ranges_meet(other.match, rule.match)]
    own = rule.match.patterns() or ("*",)
    for other in near:
        cost[0] += len(own) * max(1, len(other.match.patterns()))
        if cost[0] > _BUDGET:
            return ()
        if covers(other.match, rule.match):
            return (other,)
    if len(near) < 2:
        return ()
    used: list[Rule] = []
    for part in _parts(rule, own):
        taking = [other for other in near if _takes(other, part)]
        chain = _chain(taking, rule.match)
        if not chain:
            return ()
        used += chain
    return tuple(other for other in near if any(other is one for one in used))


@dataclass(frozen=True)
class _Part:
    """One pattern of kernels and one of libraries of a rule."""

    kernel: str
    library: str  # empty: any, and none


def _parts(rule: Rule, own: tuple[str, ...]) -> Iterator[_Part]:
    for kernel in own:
        for library in rule.match.libraries or ("",):
            yield _Part(kernel, library)


def _takes(other: Rule, part: _Part) -> bool:
    """Whatever the numbers of the launch are."""
    libraries = (part.library,) if part.library else ()
    return _any_covers(other.match.patterns(), (part.kernel,), every="*") and _any_covers(
        other.match.libraries, libraries, every=""
    )


def _chain(taking: Sequence[Rule], match: Match) -> list[Rule]:
    """Return the rules that together take every number of launches that `match` asks for."""
    for name in RANGES:
        rest = [other for other in RANGES if other != name]
        fit = [rule for rule in taking if all(_range(rule.match, other).covers(_range(match, other)) for other in rest)]
        fit.sort(key=lambda rule: _range(rule.match, name).minimum)
        wanted, used = _range(match, name), []
        reached = wanted.minimum
        for rule in fit:
            part = _range(rule.match, name)
            if part.minimum <= reached <= part.maximum:
                used.append(rule)
                reached = part.maximum + 1
        if reached > wanted.maximum:
            return used
    return []


def _ranges_meet(one: Match, other: Match) -> bool:
    return all(
        _range(one, name).minimum <= _range(other, name).maximum
        and _range(other, name).minimum <= _range(one, name).maximum
        for name in RANGES
    )


def _range(match: Match, name: str) -> Range:
    found: Range = getattr(match, name)
    return found


def covers(wide: Match, narrow: Match) -> bool:
    """Return whether `wide` certainly matches everything that `narrow` matches."""
    return (
        all(_range(wide, name).covers(_range(narrow, name)) for name in RANGES)
        and _any_covers(wide.patterns(), narrow.patterns(), every="*")
        # A launch may come from no library that is known, so even `*` is narrower there than no pattern at all.
        and _any_covers(wide.libraries, narrow.libraries, every="")
    )


def _any_covers(wide: tuple[str, ...], narrow: tuple[str, ...], every: str) -> bool:
    if not wide or every in wide:
        return True
    if not narrow:
        return False
    same = set(wide)
    globs = [pattern for pattern in wide if is_wild(pattern)]
    return all(pattern in same or any(pattern_covers(glob, pattern) for glob in globs) for pattern in narrow)
