"""A file into which the traces of several processes were merged is taken apart again.

Calls of different processes have the same correlation numbers; a kernel of Kineto says on which GPU it ran, not which
process launched it. Each GPU's kernels go to the process whose calls fit: the same number, and not later than the
kernel. Where two processes fit alike, their work cannot be told apart, and nothing true can be said.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from math import inf

from pyshim.errors import OverlapError
from pyshim.profiles.record import Trace
from pyshim.profiles.store import Store

_ENOUGH = 0.9  # of a GPU's kernels fit one process
_SAMPLES = 2000  # kernels of a GPU
_SLACK_US = 50.0  # of the clocks of host and GPU


def take_apart(trace: Trace, store: Store) -> None:
    """Give each record its process, where the calls are of several. Raises OverlapError."""
    others = {form.process for form in store.calls.forms} - {None}
    if (
        not others
        or trace.kind not in ("pytorch", "jax")
        or any(form.process is not None for form in store.works.forms)
    ):
        return
    calls: defaultdict[int, list[tuple[float, int | None]]] = defaultdict(list)
    column = store.calls
    for index, correlation in enumerate(column.correlation):
        calls[correlation].append((column.start[index], column.process(index)))
    owners = _owners(store, calls)
    for device, votes in owners.items():
        if votes and votes.most_common(1)[0][1] < _ENOUGH * sum(votes.values()):
            raise OverlapError(
                f"{trace.path} holds the traces of {len(others) + 1} processes under the same numbers, and work on GPU "
                f"{device} may be of {len(votes)} of them",
                "explain the files from which it was merged: overlap explain FOLDER",
            )
    works = store.works
    of_device = {device: votes.most_common(1)[0][0] for device, votes in owners.items() if votes}
    works.forms = [form._replace(process=of_device.get(form.device)) for form in works.forms]
    trace.warnings.append(f"{trace.path} holds {len(others) + 1} processes: each is looked at by itself")


def _owners(store: Store, calls: dict[int, list[tuple[float, int | None]]]) -> dict[int, Counter[int | None]]:
    """Return by GPU how many of its kernels each process may have launched last."""
    works = store.works
    owners: defaultdict[int, Counter[int | None]] = defaultdict(Counter)
    for index, correlation in enumerate(works.correlation):
        votes = owners[works.forms[works.form[index]].device]
        if sum(votes.values()) >= _SAMPLES:
            continue
        fitting: dict[int | None, float] = {}
        for start_us, process in calls.get(correlation, ()):
            if start_us <= works.start[index] + _SLACK_US:
                fitting[process] = works.start[index] - start_us
        if fitting:
            votes[min(fitting, key=lambda process: fitting.get(process, inf))] += 1
    return owners
