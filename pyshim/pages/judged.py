"""What the rule did, or under `observe` would do, about a stream: the only place that knows how a page says it."""

from __future__ import annotations

from typing import Literal, NamedTuple

from pyshim.pages.page import Page, Stream, observe

Outcome = Literal["raised", "would be raised", "not raised"]
RAISED = "raised"  # the status of a stream for which all conditions of the rule hold


class Judged(NamedTuple):
    outcome: Outcome
    why: str  # the first condition of the rule that did not hold, one of STREAM_STATUSES; empty where all hold


def judged(page: Page, stream: Stream) -> Judged:
    """Return what the latest judgement did, or would do, about a stream of this page.

    Under a policy that says `raise: observe` the same code judges as under the default, and raises nothing. The record
    of a stream then has the status that it would have under the default, and no priority. So one record means `raised`
    or `would be raised`, as its device says. Reports ask this function, and compare neither policies nor statuses
    themselves.
    """
    if stream.status != RAISED:
        return Judged("not raised", stream.status)
    return Judged("would be raised" if observes(page, stream.device) else "raised", "")


def observes(page: Page, device: int | None = None) -> bool:
    """Return whether the process only observes on a device (its index), or on all that have a policy (None)."""
    return observe([each for each in page.devices if device is None or each.index == device])


def carried(page: Page) -> int:
    """Return the launches, of kernels and graphs, on streams that were raised then, or that the default would raise."""
    return page.raised + page.would_be_raised + page.graphs_raised + page.graphs_would_be_raised
