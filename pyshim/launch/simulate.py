"""`--simulate GPU[:hold|drain|backfill][,COUNT]`: which simulated GPU, and is there such a one?"""

from __future__ import annotations

from typing import NamedTuple

from pyshim.errors import LAUNCHER_FAILED, OverlapError
from pyshim.launch.dispatch import RULES as RULES
from pyshim.launch.driver import SIMULATED_RULE

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
    """Raises OverlapError with 125 where the GPU, the rule or the count is not known."""
    from pyshim.policy.gpus import known

    front, comma, number = text.partition(",")
    key, colon, rule = front.partition(":")
    gpus = {gpu.key: gpu for gpu in known() if gpu.simulated}
    if key.lower() not in gpus:
        raise _unknown("simulated GPU", key, sorted(gpus))
    if colon and rule not in RULES:
        raise _unknown("dispatch rule", rule, RULES)
    if comma and not (number.isascii() and number.isdigit() and len(number) < 4 and 1 <= int(number) <= MOST):
        hint = f"write 1 to {MOST}: --simulate {key},2"
        raise OverlapError(f"{number!r} is not a number of GPUs", hint, LAUNCHER_FAILED)
    gpu = gpus[key.lower()]
    count = int(number) if comma else 1
    return Gpu(gpu.key, gpu.name, gpu.architecture, gpu.vendor, rule or SIMULATED_RULE, count)


def _unknown(what: str, word: str, names: list[str] | tuple[str, ...]) -> OverlapError:
    from difflib import get_close_matches

    close = get_close_matches(word.lower(), names, n=1)
    hint = f"did you mean {close[0]}? " if close else ""
    return OverlapError(f"no {what} is called {word!r}", f"{hint}known: {', '.join(names)}", LAUNCHER_FAILED)
