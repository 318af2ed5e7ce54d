"""A file into which the traces of several processes were merged is taken apart again.

Calls of different processes have the same correlation numbers; a kernel of Kineto says on which GPU it ran, not which
process launched it. A process can own a GPU if each kernel on it has a call of its number there, made before it began.
Where that leaves more than one process for a GPU, or several processes share one, their work cannot be told apart, and
nothing true can be said.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Optional

from pyshim.errors import OverlapError
from pyshim.profiles.record import Trace
from pyshim.profiles.store import Store

_ALL_BUT = 0.01  # of a GPU's kernels: may lack a call, or share one
_SLACK_US = 1.0  # of the clocks of host and GPU

Calls = dict[int, dict[Optional[int], float]]  # by number: when each process called


def take_apart(trace: Trace, store: Store) -> None:
    """Give each kernel and copy its process, where the calls are of several. Raises OverlapError."""
    processes = {form.process for form in store.calls.forms}
    told = any(form.process is not None for form in store.works.forms)
    if len(processes) < 2 or told or trace.kind not in ("pytorch", "jax"):
        return
    calls: Calls = defaultdict(dict)
    column = store.calls
    graphs: set[int] = set()
    for index, correlation in enumerate(column.correlation):
        form = column.forms[column.form[index]]
        calls[correlation][form.process] = column.start[index]
        if "GraphLaunch" in form.name:
            graphs.add(correlation)
    owners = {device: _possible(store, device, calls, graphs) for device in {form.device for form in store.works.forms}}
    for _ in owners:  # a GPU of which the owner is known is nobody else's
        sure = {device: next(iter(possible)) for device, possible in owners.items() if len(possible) == 1}
        taken = Counter(sure.values())
        owners = {
            device: possible if device in sure else {one for one in possible if not taken[one]}
            for device, possible in owners.items()
        }
    for device, possible in sorted(owners.items()):
        if len(possible) != 1:
            raise OverlapError(
                f"{trace.path} holds the traces of {len(processes)} processes under the same numbers, and does not say "
                f"which of them used GPU {device}",
                "explain the files from which it was merged: overlap explain FOLDER",
            )
    store.works.forms = [form._replace(process=next(iter(owners[form.device]))) for form in store.works.forms]


def _possible(store: Store, device: int, calls: Calls, graphs: set[int]) -> set[int | None]:
    """Return the processes that can own a GPU; none where several share it."""
    works = store.works
    fitting: Counter[int | None] = Counter()
    numbers: Counter[int] = Counter()
    own = [form.device == device for form in works.forms]
    for index, form in enumerate(works.form):
        if own[form]:
            correlation, start_us = works.correlation[index], works.start[index]
            numbers[correlation] += correlation not in graphs
            fitting.update(
                process for process, called in calls.get(correlation, {}).items() if called <= start_us + _SLACK_US
            )
    count = sum(own[form] for form in works.form)
    if sum(number - 1 for number in numbers.values() if number > 1) > _ALL_BUT * count:
        return set()
    return {process for process, number in fitting.items() if number >= (1 - _ALL_BUT) * count}
