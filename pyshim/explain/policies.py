"""Policies as the library reads them: from a --policy value to the rule that decides a launch, as a user reads it.

Which rule is for a launch is the library's answer, not ours.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pyshim import _native
from pyshim.explain import planner
from pyshim.explain.planner import Rule, member
from pyshim.explain.request import Shape, parse, written
from pyshim.launch.policies import index_for
from pyshim.policy import gpus, library, places
from pyshim.policy import model as policy_model
from pyshim.policy.gpus import KnownGpu
from pyshim.policy.layout import Sections, View, assemble
from pyshim.policy.model import UNLIMITED, Policy
from pyshim.policy.table import compile_table, guarded
from pyshim.traces.names import plain


@dataclass(frozen=True)
class PolicyRule:
    """A rule in the words of the policy language. None: it stands in no policy."""

    asked: Rule
    policy: str | None
    line: int | None
    shape: str
    when: str = "always"
    place: str | None = None  # FILE:LINE

    @property
    def json(self) -> dict[str, object]:
        """What every answer says of the rule."""
        kept = {"keep_at_least": self.asked.keep, "when": self.when}
        return {"policy": self.policy, "line": self.line, "shape": self.shape, **kept}


def own_rule(shape: Shape | None, keep: int | None) -> PolicyRule:
    """Return the rule of a request without a policy, make_room by default. keep: keep_at_least, percent."""
    kind, value, text, default = shape or parse("make_room")
    return PolicyRule(Rule(kind, value, default if keep is None else keep), None, None, text)


class Compiled:
    """The table of a --policy value, as overlap-run would make it here.

    Raises OverlapError if a policy is missing or wrong.
    """

    def __init__(self, value: str, environment: Mapping[str, str]) -> None:
        self.models = tuple(library.load(value, environment))
        self.data = compile_table(self.models)
        self._written = [rule for model in self.models for rule in guarded(model.rules)]
        self._view = View(self.data)

    def index_for(self, gpu: KnownGpu) -> int | None:
        """Return the index of the policy that is for a GPU; None if no policy is."""
        return index_for(self.data, gpu.name, gpu.architecture)

    def model_for(self, gpu: KnownGpu) -> Policy | None:
        """Return the policy that is for a GPU."""
        index = self.index_for(gpu)
        return None if index is None else self.models[index]

    def only_gpu(self) -> str | None:
        """Return the key of the GPU that the policies are for; None if they are for several known GPUs, or for none."""
        found = {gpu.key for model in self.models for gpu in gpus.matching(model.gpus)}
        return found.pop() if len(found) == 1 else None

    def rule(self, policy: int, index: int) -> PolicyRule:
        """Return a rule of one of the policies. index: in the table."""
        rule, text = self._view.rules[index], self._written[index]
        return PolicyRule(
            Rule(rule.shape, rule.value, rule.keep_at_least),
            self._view.text(self._view.policies[policy].name),
            _native.line_of(rule.line)[0],
            written(rule.shape, rule.value),
            "always" if rule.when == member("WHEN", "always") else "overlapping",
            place(text),
        )

    def is_communication(self, policy: int, kernel: str, caller: str) -> bool:
        """Whether the policy itself declares a launch to be communication."""
        own, matches = self._view.policies[policy], self._view.matches
        names = (planner.encoded(kernel), planner.encoded(plain(kernel)))
        by_library = bool(caller) and matches(own.libraries, planner.encoded(caller))
        return by_library or any(matches(own.kernels, name) for name in names)


def table_of(rule: Rule) -> bytes:
    """Return the table of one policy with one rule, for every launch at any time."""
    everything = dict.fromkeys(("threads", "waves_percent", "resident_blocks"), (0, UNLIMITED))
    shaped = {"shape": rule.shape, "value": rule.value, "keep_at_least": rule.keep, "when": member("WHEN", "always")}
    return assemble([{"rule_count": 1}], [{**everything, **shaped}], Sections())


def place(rule: policy_model.Rule) -> str | None:
    """Return FILE:LINE of a rule, the file's name alone for a shipped policy; None if the rule stands in no file."""
    if not rule.file:
        return None
    path = Path(rule.file)
    file = path.name if path.parent == places.shipped_directory() else rule.file
    return f"{file}:{rule.line}"
