"""`--simulate GPU[:hold|drain|backfill][,COUNT]`: which simulated GPU, and is there such a one?"""

from __future__ import annotations

from typing import NamedTuple

from pyshim.enums import DISPATCH_RULES
from pyshim.errors import LAUNCHER_FAILED, OverlapError

MOST = 16


class Gpu(NamedTuple):
    key: str  # h100
    name: str  # as the driver says it
    architecture: str  # sm_90
    vendor: str
    rule: str
    number: int

    @property
    def value(self) -> str:
        """For the variable SIMGPU."""
        return f"{self.key}:{self.rule},{self.number}"


def parse(text: str) -> Gpu:
    """Parse a --simulate value. Raises OverlapError with 125 where the GPU, the rule or the count is not known."""
    from difflib import get_close_matches

    from pyshim.policy.gpus import named

    front, comma, number = text.partition(",")
    key, colon, rule = front.partition(":")
    try:
        gpu = named(key)
    except OverlapError as error:
        error.status = LAUNCHER_FAILED
        raise
    if colon and rule not in DISPATCH_RULES:
        close = get_close_matches(rule.lower(), DISPATCH_RULES, n=1)
        hint = f"did you mean {close[0]}? " if close else ""
        hint += f"known: {', '.join(DISPATCH_RULES)}"
        raise OverlapError(f"no dispatch rule is called {rule!r}", hint, LAUNCHER_FAILED)
    if comma and not (number.isascii() and number.isdigit() and len(number) < 4 and 1 <= int(number) <= MOST):
        hint = f"write 1 to {MOST}: --simulate {key},2"
        raise OverlapError(f"{number!r} is not a number of GPUs", hint, LAUNCHER_FAILED)
    count = int(number) if comma else 1
    return Gpu(gpu.key, gpu.name, gpu.architecture, gpu.vendor, rule or DISPATCH_RULES[0], count)
