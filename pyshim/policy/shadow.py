"""Rules that can never match, because an earlier one takes everything that they could."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

from pyshim.policy.kernels import patterns
from pyshim.policy.model import Match, Rule
from pyshim.policy.values import is_wild


def shadowed(rules: Sequence[Rule]) -> list[tuple[Rule, Rule]]:
    """(rule, the earlier one that takes all of it). What several earlier rules take together is not looked for."""
    found = []
    for index, rule in enumerate(rules):
        earlier = next((other for other in rules[:index] if _takes(other, rule)), None)
        if earlier:
            found.append((rule, earlier))
    return found


def _takes(earlier: Rule, rule: Rule) -> bool:
    """A rule that acts under one dispatch rule only leaves all launches to later rules under another."""
    return earlier.when_dispatch in ("unknown", rule.when_dispatch) and covers(earlier.match, rule.match)


def covers(wide: Match, narrow: Match) -> bool:
    """Whether everything that `narrow` matches is matched by `wide`. True only if that is certain."""
    return (
        wide.blocks.covers(narrow.blocks)
        and wide.threads.covers(narrow.threads)
        and wide.registers.covers(narrow.registers)
        and wide.waves_percent.covers(narrow.waves_percent)
        and wide.resident_blocks.covers(narrow.resident_blocks)
        and _any_covers(patterns(wide), patterns(narrow), every="*")
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


def pattern_covers(wide: str, narrow: str) -> bool:
    """Whether every name that `narrow` matches is matched by `wide`. True only if that is certain."""
    if wide in (narrow, "*"):
        return True
    if not is_wild(narrow):
        return fnmatchcase(narrow, wide)
    # With stars alone in `wide`, wildcards of `narrow` can only fall to those stars: its text stands for all its names.
    # A set may hold a letter that `wide` asks for, so it cannot stand for itself.
    return "?" not in wide and "[" not in wide and "[" not in narrow and fnmatchcase(narrow, wide)
