"""The key `compute`: rules, each of which says for some launches what is done to them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import yaml

from pyshim.policy import known
from pyshim.policy.finding import quote
from pyshim.policy.key import made, mapping
from pyshim.policy.model import MAX_RULES
from pyshim.policy.nodes import has_error
from pyshim.policy.parts import MAX_PATTERNS, PartsReader
from pyshim.policy.rule import Match, Rule
from pyshim.policy.shadow import shadowed
from pyshim.policy.values import pattern_covers
from pyshim.policy.words import KEEP


@dataclass(frozen=True)
class _Read:
    rule: Rule
    own_when: bool
    node: yaml.Node


class RuleReader(PartsReader):
    # Patterns of kernels and of libraries that the policy calls communication.
    communicating: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())

    def rules(self, node: yaml.Node) -> tuple[tuple[Rule, bool], ...] | None:
        """Read each rule, and whether it has its own `when`."""
        items = self.items(node, "`compute`", "write each rule as `- match: ...`, or [] for none")
        if items is None:
            return None
        if len(items) > MAX_RULES:
            sentence = f"the policy has more than {MAX_RULES} rules"
            self.note(items[MAX_RULES], "too-large", sentence, "a rule may list several kernels")
            return None
        good: list[_Read] = []
        sound: list[_Read] = []
        for item in items:
            before = len(self.findings)
            read = self._rule(item)
            if read is None or has_error(self.findings[before:]):
                continue
            good.append(read)
            # A key that was misspelt would make its rule look wider than it is meant, and a name one that it is not.
            if before == len(self.findings):
                sound.append(read)
        self._note_useless(sound)
        return tuple((read.rule, read.own_when) for read in good)

    def _note_useless(self, sound: list[_Read]) -> None:
        if self.patterns > MAX_PATTERNS:
            return
        places = {id(read.rule): read.node for read in sound}
        rules = [read.rule for read in sound]
        for rule, earlier in shadowed(rules):
            lines = [str(other.line) for other in earlier]
            takers = (
                f"the one on line {lines[0]} takes"
                if len(lines) == 1
                else f"those on lines {', '.join(lines[:-1])} and {lines[-1]} together take"
            )
            sentence = f"this rule can never match: {takers} all that it could"
            hint = "the first match wins: move this rule up, or remove it"
            self.note(places[id(rule)], "shadowed", sentence, hint, "warning")
        for rule in rules:
            pattern = only_communication(rule.match, *self.communicating)
            if pattern and rule.shape.kind != "leave":
                sentence = f"this rule never acts: what {quote(pattern)} matches is communication, and never shaped"
                hint = "remove the rule; what is done to communication stands under `communication`"
                self.note(places[id(rule)], "communication", sentence, hint, "warning")

    def _rule(self, node: yaml.Node) -> _Read | None:
        found = mapping(self, node, "a rule", Rule, "compute[]")
        if found is None:
            return None
        nodes, said = found
        rule = replace(made(Rule, said), line=node.start_mark.line + 1)
        if "carveout" not in said and rule.shape.kind != "leave":
            rule = replace(rule, carveout="max")
        if "keep_at_least" not in nodes and rule.shape.kind == "make_room":
            rule = replace(rule, keep_at_least=KEEP)
        return _Read(rule, "when" in said, node)

    def note_unknown(self) -> None:
        """Note unknown patterns of a policy without mistakes."""
        for node, text, pattern in self.unremarked:
            self.note_bad(node, known.unknown(text, pattern, self.communicating[0]), "note")


def only_communication(match: Match, kernels: tuple[str, ...], libraries: tuple[str, ...]) -> str:
    """One of the patterns of a rule that can match communication only, or the empty string where others may match.

    kernels, libraries: what the policy itself calls communication.
    """
    own = match.patterns()
    if own and all(known.is_communication(pattern, kernels) for pattern in own):
        return own[0]
    wide_ones = (*known.COMMUNICATION_LIBRARIES, *libraries)
    if match.libraries and all(any(pattern_covers(wide, one) for wide in wide_ones) for one in match.libraries):
        return match.libraries[0]
    return ""
