"""The key `compute`: rules, each of which says for some launches what is done to them."""

from __future__ import annotations

from dataclasses import replace

import yaml

from pyshim.policy.key import made, mapping
from pyshim.policy.model import MAX_RULES
from pyshim.policy.nodes import has_error
from pyshim.policy.parts import PartsReader
from pyshim.policy.rule import Rule
from pyshim.policy.words import KEEP


class RuleReader(PartsReader):
    def rules(self, node: yaml.Node) -> tuple[Rule, ...] | None:
        items = self.items(node, "`compute`", "write each rule as `- match: ...`, or [] for none")
        if items is None:
            return None
        if len(items) > MAX_RULES:
            sentence = f"the policy has more than {MAX_RULES} rules"
            self.note(items[MAX_RULES], "too-large", sentence, "a rule may list several kernels")
            return None
        good = []
        for item in items:
            before = len(self.findings)
            read = self._rule(item)
            if read is not None and not has_error(self.findings[before:]):
                good.append(read)
        return tuple(good)

    def _rule(self, node: yaml.Node) -> Rule | None:
        found = mapping(self, node, "a rule", Rule, "compute[]")
        if found is None:
            return None
        nodes, said = found
        rule = replace(made(Rule, said), line=node.start_mark.line + 1)
        if "keep_at_least" not in nodes and rule.shape.kind == "make_room":
            rule = replace(rule, keep_at_least=KEEP)
        return rule
