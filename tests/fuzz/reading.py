"""What the properties in test_readers.py share: bytes that are almost a file, and a limit to what one of them may take.

In `make test` hypothesis tries a hundred inputs of each. `make fuzz` (tools/checks/fuzz.py) sets OVERLAP_FUZZ_SECONDS:
each property then tries others until the time is over, and ends as skipped, with their number. What hypothesis finds,
it makes small, prints, and keeps in .hypothesis, so that the next run of the test tries it first.
"""

from __future__ import annotations

import os
import resource
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st

SECONDS = float(os.environ.get("OVERLAP_FUZZ_SECONDS", "0"))
MEMORY = 4 << 30  # bytes of address space, under `make fuzz`
EDGES = (0, 1, 2, 3, 7, 8, 16, 99, 100, 127, 128, 255, 256, 4095, 32767, 65535, 1 << 31, (1 << 32) - 1)
# Explaining a failure again and again takes longer than finding it.
FUZZ = settings(
    deadline=None,
    max_examples=10**9 if SECONDS else 100,
    phases=(Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink),
    suppress_health_check=list(HealthCheck),
    print_blob=True,
)


class TooSlow(BaseException):
    """No handler of the code under test takes it for something of its own."""


def _late(_signal: int, _frame: FrameType | None) -> None:
    raise TooSlow


class Reader:
    """One property: how many inputs it was given, how many of these were accepted, and until when there are more."""

    def __init__(self, slowest: float) -> None:
        self.slowest = slowest  # seconds of CPU that an input may take
        self.tried = self.accepted = 0
        self.end = 0.0
        self.failed = False  # hypothesis makes the input smaller: that is not ended

    @contextmanager
    def limited(self) -> Iterator[None]:
        if SECONDS and not self.tried:
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, resource.getrlimit(resource.RLIMIT_AS)[1]))
            self.end = time.monotonic() + SECONDS
        if SECONDS and time.monotonic() > self.end and not self.failed:
            pytest.skip(f"{SECONDS:g} seconds: {self.tried:,} inputs, {self.accepted:,} accepted")
        self.tried += 1
        before = signal.signal(signal.SIGPROF, _late)
        signal.setitimer(signal.ITIMER_PROF, self.slowest)
        try:
            yield
        except TooSlow:
            self.failed = True
            raise AssertionError(f"no end within {self.slowest:g} seconds of CPU") from None
        except BaseException:
            self.failed = True
            raise
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
            signal.signal(signal.SIGPROF, before)

    def __call__(self, one: Callable[[Any], bool], given: Any) -> None:
        """Raise AssertionError if `one` takes far too long, and what it raises."""
        with self.limited():
            self.accepted += bool(one(given))


def almost(seeds: Sequence[bytes], words: Sequence[bytes]) -> st.SearchStrategy[bytes]:
    """One of the seeds after up to four changes, or any bytes."""
    place = st.integers(0, max(map(len, seeds)))
    number = st.builds(
        lambda value, width, order: (value & (1 << 8 * width) - 1).to_bytes(width, order),
        st.sampled_from(EDGES) | st.integers(0, (1 << 64) - 1),
        st.sampled_from((1, 2, 4, 8)),
        st.sampled_from(("little", "big")),
    )
    piece = st.builds(lambda seed, at, size: seed[at : at + size], st.sampled_from(seeds), place, st.integers(1, 200))
    new = st.sampled_from(words) | st.sampled_from(words) | number | piece | st.binary(max_size=5)
    times = st.sampled_from((1, 1, 1, 1, 2, 40))
    change = st.tuples(place, st.sampled_from((0, 0, 0, 1, 4, 8, 60)), new, times)
    changed = st.builds(_changed, st.sampled_from(seeds), st.lists(change, max_size=4))
    return st.one_of(changed, changed, changed, st.binary(max_size=200))


def _changed(seed: bytes, changes: list[tuple[int, int, bytes, int]]) -> bytes:
    made = bytearray(seed)
    for place, removed, new, times in changes:
        at = place % (len(made) + 1)
        made[at : at + removed] = new * times
    return bytes(made)
