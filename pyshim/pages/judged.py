"""What the rule did, or under `observe` would do, about a stream: the only place that knows how a page says it."""

from __future__ import annotations

from typing import Literal, NamedTuple

from pyshim.pages.page import Page, Stream

Outcome = Literal["raised", "would be raised", "not raised"]
RAISED = "raised"  # the status of a stream for which all conditions of the rule hold
_OBSERVE = "observe"  # the policy that judges and raises nothing


class Judged(NamedTuple):
    outcome: Outcome
    why: str  # the first condition of the rule that did not hold, one of STREAM_STATUSES; empty where all hold


def judged(page: Page, stream: Stream) -> Judged:
    """Return what the latest judgement did, or would do, about a stream of this page.

    A process whose policy is `observe` judges by the same code as the default and raises nothing. The record of a
    stream then has the status that it would have under the default, and no priority. So one record means `raised` or
    `would be raised`, by the policy of the stream's device. Reports ask this function, and compare neither policies
    nor statuses themselves.
    """
    if stream.status != RAISED:
        return Judged("not raised", stream.status)
    return Judged("would be raised" if observes(page, stream.device) else "raised", "")


def observes(page: Page, device: int | None = None) -> bool:
    """Return whether the process only observes on a device, given by the driver's index; None: on all of them."""
    policies = [each.policy for each in page.devices if device is None or each.index == device]
    return bool(policies) and all(policy == _OBSERVE for policy in policies)


def carried(page: Page) -> int:
    """Return the launches on streams while they were raised, or while the default would have had them raised."""
    return page.raised
