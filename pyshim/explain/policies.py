"""Policies as the library reads them: which of their rules is for a launch is the library's answer, not ours."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pyshim import _native
from pyshim.explain import shape
from pyshim.launch import dispatch
from pyshim.policy import gpus, library, places
from pyshim.policy.layout import View
from pyshim.policy.model import UNLIMITED, Match, Policy, Range, Rule
from pyshim.policy.table import compile_table, guarded

_MOST = 6  # patterns of a rule that are told


class Compiled:
    """The table of a --policy value, as overlap-run would make it here: with what `overlap probe` found out. Raises
    OverlapError where a policy is missing or wrong."""

    def __init__(self, value: str, environment: Mapping[str, str]) -> None:
        self.models = tuple(policy for policy, _ in dispatch.filled_in(library.load(value, environment), environment))
        self.data = compile_table(self.models)
        self._written = [rule for model in self.models for rule in guarded(model.rules)]
        self._view = View(self.data)

    def policy(self, index: int) -> Any:
        return self._view.policies[index]

    def rule(self, index: int) -> Any:
        return self._view.rules[index]

    def said(self, policy: Any, index: int) -> dict[str, object]:
        """A rule of one of our policies, as answers have it."""
        found = self._view.rules[index]
        return {
            "policy": self._view.text(policy.name),
            "line": _native.line_of(found.line)[0],
            "shape": shape.written(found.shape, found.value),
            "keep_at_least": found.keep_at_least,
            "when": "always" if found.when == _native.header().OVERLAP_WHEN_ALWAYS else "overlapping",
        }

    def written(self, index: int) -> dict[str, object]:
        """More of the rule, as its file says it."""
        rule = self._written[index]
        match = "kernels that compute and communicate at once" if rule.guard else match_words(rule.match)
        return {"when_dispatch": rule.when_dispatch, "place": place(rule), "match": match}

    def behind(self, policy: int, rule: int) -> bytearray | None:
        """The table without the rules of a policy up to this one; None where it is the last."""
        own = self._view.policies[policy]
        left = own.first_rule + own.rule_count - (rule + 1)
        if left == 0:
            return None
        data = bytearray(self.data)
        changed = View(data).policies[policy]
        changed.first_rule, changed.rule_count = rule + 1, left
        return data

    def is_communication(self, policy: Any, kernel: bytes, caller: bytes) -> bool:
        """Whether the policy itself calls this launch communication. policy: one of ours."""
        plain = _native.ffi.new("char[512]")
        _native.library().overlap_plain_name(kernel, plain, len(plain))
        return (
            self._view.matches(policy.kernels, kernel)
            or self._view.matches(policy.kernels, _native.ffi.string(plain))
            or bool(caller and self._view.matches(policy.libraries, caller))
        )


def only_gpu(models: tuple[Policy, ...]) -> str | None:
    """The GPU, by its key, that policies are for; None where they are for several that are known, or for none."""
    found = {gpu.key for model in models for gpu in gpus.matching(model.gpus)}
    return found.pop() if len(found) == 1 else None


def place(rule: Rule) -> str | None:
    """FILE:LINE; a policy of ours is told by its file's name alone. None: the rule stands in no file."""
    if not rule.file:
        return None
    path = Path(rule.file)
    file = path.name if path.parent == places.shipped_directory() else rule.file
    return f"{file}:{rule.line}"


def match_words(match: Match) -> str:
    """What a rule matches, as its file would say it."""
    words = [_listed("kernel", (*match.sets, *match.kernels)), _listed("library", match.libraries)]
    for name in ("blocks", "threads", "registers", "resident_blocks"):
        words.append(_compared(name, getattr(match, name), 1))
    words.append(_compared("waves", match.waves_percent, 100))
    return ", ".join(filter(None, words)) or "every kernel"


def _listed(name: str, patterns: tuple[str, ...]) -> str:
    shown = patterns if len(patterns) <= _MOST else (*patterns[: _MOST - 1], f"{len(patterns) - _MOST + 1} more")
    return f"{name} {' or '.join(shown)}" if patterns else ""


def _compared(name: str, found: Range, parts: int) -> str:
    least, most = (f"{value / parts:g}" if parts > 1 else f"{value}" for value in (found.minimum, found.maximum))
    if found.minimum == found.maximum:
        return f"{name} {least}"
    ends = [f">={least}"] * (found.minimum > 0) + [f"<={most}"] * (found.maximum < UNLIMITED)
    return f"{name} {' and '.join(ends)}" if ends else ""
