"""Summarize a run in three sentences: what was done, what it gained or why it cannot, and what to do next.

Pages hold counts and no time of the GPU, so no sentence claims a gain: `overlap report --compare` measures one.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from pyshim.launch.program import BUNDLED
from pyshim.report import trial
from pyshim.report.kernels import COMMUNICATION, SHAPED
from pyshim.report.who import some
from pyshim.stats.page import sentences

if TYPE_CHECKING:
    from pyshim.launch.folder import Run
    from pyshim.report.collect import Collected
    from pyshim.stats.page import Page
    from pyshim.stats.streams import Stream

OBSERVE = "observe"
_MOST = 0.5  # of the communication: a cause that holds for as much names the outcome
_SOME = 0.1  # likewise: a cause that is worth a clause
_BY_FAR = 0.9
_LONGEST = 160  # characters of a command that is repeated
_LEFT = {
    "major": "most of the computation runs on it",
    "programs": "the program has set its priority",
    "fixed": "its priority could not be changed",
}
# Why communication kept the priority that the program gave it, although the policy may raise it.
_KEPT = {
    "communication_unhurried": "because the program has long kernels to run before it waits for communication",
    "communication_wide": "because they take more than a third of the multiprocessors",
}
_OWN_KERNELS = (
    "if the program communicates by kernels of its own, name them in the policy: "
    '`communication: {kernels: [all, "NAME*"]}`'
)


class Verdict(NamedTuple):
    done: str
    gain: str
    next: str


def verdict(collected: Collected) -> Verdict:
    counts = _Counts(collected)
    if not collected.pages or not counts.opened:
        return _no_gpu(counts)
    if not counts.launches:
        return _no_launch(counts)
    return Verdict(_done(counts), *_outcome(counts))


@dataclass(frozen=True)
class _Counts:
    collected: Collected

    @property
    def pages(self) -> tuple[Page, ...]:
        return self.collected.pages

    def sum(self, name: str) -> int:
        return sum(getattr(page, name) for page in self.pages)

    @cached_property
    def launches(self) -> int:
        return self.sum("launches")

    @cached_property
    def shaped(self) -> int:
        return self.sum("shaped")

    @cached_property
    def communication(self) -> int:
        return self.sum("communication")

    @cached_property
    def raised(self) -> int:
        return self.sum("raised")

    @cached_property
    def critical(self) -> int:
        return self.sum("critical")

    @cached_property
    def streams(self) -> list[Stream]:
        """Return the streams that were raised."""
        return [stream for page in self.pages for stream in page.streams if stream.status == "raised"]

    @property
    def opened(self) -> bool:
        return any(page.opened_gpu or page.devices or page.launches for page in self.pages)

    @property
    def changed(self) -> bool:
        return bool(self.shaped or self.raised or self.critical or self.streams)

    @cached_property
    def reasons(self) -> Counter[str]:
        """Return the launches of computation that were left alone, by reason."""
        found: Counter[str] = Counter()
        for page in self.pages:
            found.update(page.reasons)
        return Counter({name: count for name, count in found.items() if name not in _OTHER_REASONS})

    @cached_property
    def policies(self) -> list[str | None]:
        return list(dict.fromkeys(device.policy for page in self.pages for device in page.devices))

    @cached_property
    def gpus(self) -> list[str]:
        return list(dict.fromkeys(device.name for page in self.pages for device in page.devices))

    @property
    def simulated(self) -> bool:
        return any(page.simulated for page in self.pages) or any(run.simulate for run in self.collected.runs)

    @property
    def run(self) -> Run | None:
        return self.collected.runs[-1] if self.collected.runs else None


_OTHER_REASONS = COMMUNICATION | SHAPED | {"critical"}


def _no_gpu(counts: _Counts) -> Verdict:
    run, pages = counts.run, len(counts.pages)
    program = run.command[0].rpartition("/")[2] if run and run.command else "the program"
    who = f"none of {pages:,} processes" if pages > 1 else "the process" if pages else f"no process of {program}"
    opened = f"{who} {'did not open' if pages == 1 else 'opened'} a GPU with the library loaded"
    gain = "nothing could be gained: no launch was seen"
    if counts.simulated:
        return Verdict(
            f"nothing: {opened}",
            f"{gain}. The simulated driver serves programs that open libcuda.so.1 or libamdhip64.so themselves; those "
            "that ship NVIDIA's runtime library, such as PyTorch, do not run on it",
            "overlap demo runs a program that does; for PyTorch: overlap explain --from TRACE (torch.profiler or nsys)",
        )
    return Verdict(
        f"nothing: {opened}", gain, f"overlap doctor {_command(counts)} shows why the library sees no launch"
    )


def _no_launch(counts: _Counts) -> Verdict:
    graphs = counts.sum("graph_launches")
    where = _where(counts)
    if graphs:
        return Verdict(
            f"nothing: {graphs:,} launches of whole graphs and no launch of a kernel were seen{where}",
            "nothing could be gained: no kernel of these graphs was captured where the library sees it",
            f"overlap doctor {_command(counts)} shows why the library sees no launch",
        )
    return Verdict(
        f"nothing: a GPU was opened and no launch was seen{where}",
        "nothing could be gained: the program launched nothing, or its launches bypass a preloaded library",
        f"overlap doctor {_command(counts)} shows why the library sees no launch",
    )


def _done(counts: _Counts) -> str:
    """Return what was raised and what was shaped, of how many, and where."""
    if not counts.changed:
        of = f", {counts.communication:,} of them communication," if counts.communication else ""
        return f"nothing: none of {_launches(counts.launches)}{of} was raised or shaped{_where(counts)}"
    said = []
    if counts.critical or counts.streams:
        said.append(_raised(counts))
    elif counts.raised or counts.communication:
        said.append(f"{counts.raised:,} of {counts.communication:,} communication launches raised")
    shaped = f"{counts.shaped:,} of {_launches(counts.launches)} shaped (given more dynamic shared memory)"
    return f"{'; '.join([*said, shaped if counts.shaped else 'none shaped'])}{_where(counts)}"


def _raised(counts: _Counts) -> str:
    """Return how many launches were raised, of communication and on critical streams."""
    count = len(counts.streams)
    several = "s" * (count != 1)
    carrying = [stream for stream in counts.streams if "communication" in stream.why]
    where = f"on {count:,} critical stream{several}" if count else "on critical streams"
    head = f"raised {counts.raised + counts.critical:,} of {_launches(counts.launches)}"
    it = "them" if several else "it"
    if not counts.raised and (carrying or not counts.communication):
        return f"{head} {where}" + (f", and the communication on {it} (not counted)" if carrying else "")
    if carrying and len(carrying) == count:
        where = f"on their stream{several}"
    others = f"{counts.critical:,} other{'s' * (counts.critical != 1)} {where}"
    said = f"{head}: {counts.raised:,} of {counts.communication:,} of communication and {others}"
    left = carrying and counts.raised < counts.communication
    return said + (f"; further communication on {it} is raised with {it} (not counted)" if left else "")


def _launches(count: int) -> str:
    return f"{count:,} launch{'es' * (count != 1)}"


def _where(counts: _Counts) -> str:
    """Return the end of a sentence: how many processes these are, the policies and the GPUs."""
    count, steps = len(counts.pages), len([step for step in counts.collected.steps if step.pages])
    runs = len(counts.collected.summed)
    of = f" of {runs:,} runs" if runs > 1 else f" of {steps:,} steps" if steps > 1 else ""
    who = f"{count:,} process{'es' * (count != 1)}{of}"
    named = [policy for policy in counts.policies if policy]
    policy = f"policy {some(named)}" if named else "no policy"
    on = f" on {'simulated ' if counts.simulated else ''}{some(counts.gpus)}" if counts.gpus else ""
    return f": {who}, {policy}{on}"


def _outcome(counts: _Counts) -> tuple[str, str]:
    """Return what was gained, or why nothing was, and what to do next."""
    tried = trial.gain(counts.collected)
    if tried:
        return tried
    if not counts.changed and counts.reasons and set(counts.reasons) <= {"observe_only", "unknown_limits"}:
        return _observed(counts)
    if not counts.communication and not counts.critical and not counts.streams:
        return _alone(counts)
    apart = _cannot_overlap(counts)
    if apart and not counts.critical and not counts.streams:
        return apart
    limits = [*_limits(counts)]
    if counts.changed:
        not_measured = "not measured: a report counts launches, and times nothing on the GPU"
        if counts.simulated:
            not_measured = "not known (simulated GPU)"
        return "; ".join([not_measured, *(limit for limit, _ in limits)]), _measure(counts, limits)
    if limits:
        return f"nothing was gained: {limits[0][0]}", limits[0][1] or _explain(counts)
    return _left_alone(counts)


def _observed(counts: _Counts) -> tuple[str, str]:
    named = [policy for policy in counts.policies if policy]
    if not named:
        why = "the driver did not report the limits of" if "unknown_limits" in counts.reasons else "no policy is for"
        return f"nothing was gained: {why} {some(counts.gpus) or 'this GPU'}", "overlap gpus lists the known GPUs"
    gain = f"nothing was gained: the policy {some(named)} only counts"
    default = f"{_again(counts, None, 'default')} runs it under the default policy"
    waited = counts.sum("communication_waited_for")
    if waited >= _SOME * counts.communication > 0:  # as in a stencil: what is raised there was launched before
        return (
            f"not known: the policy {some(named)} only counts. The host or later work waits at once for {waited:,} of "
            f"{counts.communication:,} communication launches, so these overlap nothing, but work launched before "
            "them may wait behind another stream",
            default,
        )
    apart = _cannot_overlap(counts)
    if apart:
        return f"{gain}, and {apart[0]}", apart[1]
    if not counts.communication:
        return (
            f"{gain}, and no communication kernel was seen",
            f"{default}: with MPI through host memory, `critical: auto` finds the halo stream; {_OWN_KERNELS}",
        )
    return gain, default


def _alone(counts: _Counts) -> tuple[str, str]:
    """Without communication and without a stream that was raised."""
    cost = f", so the {_launches(counts.shaped)} shaped can only have cost time" if counts.shaped else ""
    return f"nothing could be gained: no communication kernel was seen{cost}", _OWN_KERNELS


def _cannot_overlap(counts: _Counts) -> tuple[str, str] | None:
    """Where the program's own order leaves most communication nothing to overlap with."""
    same, waited = counts.sum("communication_same_stream"), counts.sum("communication_waited_for")
    if not counts.communication or same + waited < _BY_FAR * counts.communication:
        return None
    causes = [
        f"{same:,} are on the stream of the computation itself (same stream)" if same else "",
        f"{waited:,} are waited for at once" if waited else "",
    ]
    return (
        f"nothing could be gained: of {counts.communication:,} communication launches, "
        f"{' and '.join(filter(None, causes))}, so they overlap nothing",
        "launch computation after them that does not wait for them; in PyTorch: async_op=True and a late wait()",
    )


def _limits(counts: _Counts) -> Iterator[tuple[str, str]]:
    """Yield what bounds the gain, and the line that changes it, or nothing."""
    whole = counts.communication
    for name, because in _KEPT.items():
        kept = counts.sum(name)
        if whole and kept >= _SOME * whole:
            yield (
                f"`priority: auto` left {kept:,} of {whole:,} communication launches as they were, {because}; raising "
                "them may cost more time than it saves",
                _try_highest(counts),
            )
    same, waited = counts.sum("communication_same_stream"), counts.sum("communication_waited_for")
    if whole and same + waited >= _SOME * whole:
        of = f"{same + waited:,} of {whole:,} communication launches"
        if counts.changed:
            cause = " or ".join(
                ["waited for at once"] * bool(waited) + ["on the stream of the computation"] * bool(same)
            )
            yield (
                f"{of} are {cause}, so for them a gain can come only from starting them, and the work in front of "
                "them, earlier",
                "",
            )
        else:
            yield f"{of} could overlap nothing launched after them", ""
    capped = sum(page.reasons.get("capped_without_room", 0) for page in counts.pages)
    if counts.shaped and capped >= _BY_FAR * counts.shaped:
        yield (
            f"communication still does not fit beside {capped:,} of the {counts.shaped:,} shaped launches, which may "
            "have cost time",
            "`shape: leave` in the rule avoids that",
        )
    if not counts.changed:
        yield from _streams_left(counts)


def _try_highest(counts: _Counts) -> str:
    """Return how to raise communication that `auto` leaves, and how to learn whether that pays."""
    key, run = "communication: {priority: highest}", counts.run
    own = next((file for policy in (run.policies if run else ()) if "/" in (file := policy.get("file") or "")), "")
    base = next((policy for policy in counts.policies if policy), "h100")
    new = f"--policy mine.yaml, a file with `{{policy: 1, name: mine, extends: {base}, {key}}}`"
    how = f"`{key}` in {own}" if own else new
    return f"to raise them anyway: {how}; overlap report --compare on a real GPU shows whether that pays off"


def _streams_left(counts: _Counts) -> Iterator[tuple[str, str]]:
    for status, because in _LEFT.items():
        count = sum(stream.status == status for page in counts.pages for stream in page.streams)
        if count:
            which = "1 critical stream was" if count == 1 else f"{count:,} critical streams were"
            yield f"{which} not raised: {because}", ""


def _left_alone(counts: _Counts) -> tuple[str, str]:
    """By the commonest reason."""
    if not counts.reasons:
        return "nothing was gained: no computation was launched beside the communication", _explain(counts)
    reason, launches = counts.reasons.most_common(1)[0]
    of = f"{launches:,} of {sum(counts.reasons.values()):,} computation launches"
    if reason == "one_wave":
        libraries = some(_libraries(counts, reason))
        whose = f" of {libraries}" if libraries else ""
        return (
            f"nothing could be gained: {of} are kernels{whose} of one wave: their blocks are all resident at once, and "
            "none ends early to let communication in",
            "launch the collective before the kernel that it overlaps with; a policy cannot change the order",
        )
    following = (
        "overlap probe measures how this GPU dispatches blocks" if reason == "dispatch_unknown" else _explain(counts)
    )
    return f"nothing was gained: {of} were left alone: {sentences().get(reason, reason)} ({reason})", following


def _libraries(counts: _Counts, reason: str) -> Sequence[str]:
    """Return the libraries that launched the most for this reason, the commonest first."""
    found: Counter[str] = Counter()
    for page in counts.pages:
        for row in page.rows:
            if row.reason == reason and row.library:
                found[row.library] += row.launches
    return [name for name, _ in found.most_common(2)]


def _explain(counts: _Counts) -> str:
    return f"overlap explain --report {shlex.quote(counts.collected.directories[0])} shows what would change that"


def _measure(counts: _Counts, limits: Sequence[tuple[str, str]]) -> str:
    """Return the way to learn what the changes gained; a line of the policy where it bounds most of the gain."""
    kept = max((counts.sum(name) for name in _KEPT), default=0)
    if limits and limits[0][1] and kept >= _MOST * counts.communication > 0:
        return limits[0][1]
    if counts.simulated:
        again = _again(counts, _policy(counts), "", simulate=False)
        return f"on a machine with the GPU{', with a program of your own' * _bundled(counts)}: {again}"
    folder = shlex.quote(counts.collected.directories[0])
    before = shlex.quote(_beside(counts, OBSERVE))
    return f"{_again(counts, OBSERVE, OBSERVE)} && overlap report --compare {before} {folder}"


def _again(counts: _Counts, policy: str | None, folder: str, simulate: bool = True) -> str:
    """Return a command that runs the program again. folder: what the name of the report ends with; empty: DIR."""
    run = counts.run
    words = ["overlap-run"]
    if simulate and run and run.simulate:
        words += ["--simulate", run.simulate]
    if policy:
        words += ["--policy", policy]
    report = shlex.quote(_beside(counts, folder)) if folder else "DIR"
    return (
        f"{shlex.join(words)} --report {report} {_command(counts) if simulate or not _bundled(counts) else 'PROGRAM'}"
    )


def _bundled(counts: _Counts) -> bool:
    """Whether the program is one of ours, which run with --simulate only."""
    return bool(counts.run and counts.run.simulate and counts.run.command and counts.run.command[0] in BUNDLED)


def _beside(counts: _Counts, ending: str) -> str:
    return f"{counts.collected.directories[0].rstrip('/')}-{ending}"


def _policy(counts: _Counts) -> str | None:
    run = counts.run
    policies: Sequence[Mapping[str, str | None]] = run.policies if run else ()
    if len(policies) != 1:
        return None
    file = policies[0].get("file")
    return file if file and "/" in file else policies[0].get("name")  # of a shipped one the file is a bare name


def _command(counts: _Counts) -> str:
    run = counts.run
    said = shlex.join(run.command) if run and run.command else ""
    return said if said and len(said) <= _LONGEST else "PROGRAM"
