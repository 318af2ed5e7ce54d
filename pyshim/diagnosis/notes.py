"""Notes in front of a short answer: of many that say the same about other files, one that counts them."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence

from pyshim.counts import counted

_FEW = 2  # of one kind are shown
_MOST = 5  # kinds
_PATH = re.compile(r"\S*/\S*|\S+\.(?:json|gz|sqlite|pb)\b\S*")
_NUMBER = re.compile(r"\d[\d,.]*")


def shortened(notes: Sequence[str]) -> Iterator[str]:
    """Yield the notes, those of one kind as the first of them and how many more there are."""
    kinds: defaultdict[str, list[str]] = defaultdict(list)
    for note in notes:
        kinds[_NUMBER.sub("#", _PATH.sub("FILE", note))].append(note)
    groups = list(kinds.values())
    for own in groups[:_MOST]:
        if len(own) <= _FEW:
            yield from own
        else:
            yield f"{own[0]} (and {len(own) - 1:,} more notes like this one: --full has them)"
    rest = sum(map(len, groups[_MOST:]))
    if rest:
        yield f"{counted(rest, 'more note', 'more notes')} of other kinds: --full has them"
