"""Summarize a run in three sentences: what was done, what it gained or why it cannot, and what to do next.

Pages hold counts and no time of the GPU, so no sentence claims a gain, and none denies one: where nothing was changed
it says which condition of the rule did not hold, by stream. `overlap tune` measures.
"""

from __future__ import annotations

import os
import re
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from pyshim.counts import counted
from pyshim.pages.judged import judged, observes
from pyshim.pages.page import may_have_more_streams, sentences
from pyshim.policy.room_command import room_command
from pyshim.report import streams
from pyshim.report.collect import Collected, is_running, running, some
from pyshim.report.kernels import COMMUNICATION, RAISED, SHAPED, kernels
from pyshim.start.environment import DEFAULT_POLICY, GPU_MEANT
from pyshim.start.folder import LAST, RAISE_SHARE
from pyshim.start.program import BUNDLED

if TYPE_CHECKING:
    from pyshim.pages.page import Page, Stream
    from pyshim.start.folder import Run

_BY_FAR = 0.9
_JUDGED_FROM = 16  # waits of a device (shim/core/judge.h)
_NAMED = "yours"  # the arm of a policy that is not the default
_TUNED = "tuned"  # the name of the policy that `overlap tune` writes
_LONGEST = 160  # characters of a command that is repeated
_WOULD = ("would_be_raised", "graphs_would_be_raised")
_OTHER_REASONS = SHAPED | {COMMUNICATION, RAISED}
_EXPLAIN = "overlap explain TRACE (torch.profiler or nsys) shows what waits behind what"
# What to do about the commonest reason for which computation was left alone.
_NEXT = {
    "no_communication_seen": "if the program communicates by kernels of its own, name them in the policy: "
    '`communication: {kernels: [all, "NAME*"]}`',
    "no_rule": "compare the `match` of the rules with the kernels of overlap report --json: names, threads, blocks",
}
_ARITHMETIC = ("below_keep", "no_room_")


class Verdict(NamedTuple):
    done: str
    gain: str
    next: str


def verdict(collected: Collected) -> Verdict:
    counts = _Counts(collected)
    if not collected.pages or not counts.opened:
        return _no_gpu(counts)
    if not counts.sum("launches") and not counts.sum("graph_launches"):
        return _no_launch(counts)
    alive = len(running(collected.pages))
    so_far = f"so far, with {alive:,} process{'es' * (alive != 1)} still running: " if alive else ""
    if counts.observed:
        return _observed_streams(counts, so_far)
    return Verdict(so_far + _done(counts), *_outcome(counts))


@dataclass(frozen=True)
class _Counts:
    collected: Collected

    @property
    def pages(self) -> tuple[Page, ...]:
        return self.collected.pages

    def sum(self, name: str) -> int:
        return sum(getattr(page, name) for page in self.pages)

    @cached_property
    def streams(self) -> list[Stream]:
        """Return the streams that are raised now, or were at their end."""
        return self._with("raised")

    @cached_property
    def would_be_raised(self) -> list[Stream]:
        """Return the streams of processes that only observe which the default would raise."""
        return self._with("would be raised")

    def _with(self, outcome: str) -> list[Stream]:
        every = ((page, stream) for page in self.pages for stream in page.streams)
        return [stream for page, stream in every if judged(page, stream).outcome == outcome]

    @property
    def observed(self) -> bool:
        """Whether streams were judged, and all processes that used a GPU only observe."""
        used = [page for page in self.pages if page.devices]
        return bool(used) and all(map(observes, used)) and any(page.streams or page.judgements for page in used)

    @property
    def opened(self) -> bool:
        return any(page.opened_gpu or page.devices or page.launches for page in self.pages)

    @property
    def changed(self) -> bool:
        raised = self.streams or self.sum("streams_created_raised") or self.carried
        return bool(raised or self.sum("shaped"))

    @property
    def carried(self) -> int:
        """Return the launches, of kernels and graphs, on streams while they were raised."""
        return self.sum("raised") + self.sum("graphs_raised")

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
        return self.collected.runs[0] if self.collected.runs else None


def _no_gpu(counts: _Counts) -> Verdict:
    run, pages = counts.run, len(counts.pages)
    if run and not pages and is_running(run):
        return Verdict(
            "nothing yet: the program is running, and has not opened a GPU with the library loaded",
            "not known",
            f"overlap report {shlex.quote(counts.collected.directories[0])} again, once it has launched something",
        )
    if not pages and (hosts := some(counts.collected.without_driver)):
        return Verdict(
            f"nothing: there is no GPU driver on {hosts}",
            "nothing can be gained without a GPU",
            f"run it on a machine with a GPU; overlap doctor on {hosts} shows what was looked for",
        )
    if run and run.obstacle and not pages:
        sentence, hint = run.obstacle
        return Verdict(f"nothing: {sentence}", "not known: no launch was seen", hint)
    program = run.command[0].rpartition("/")[2] if run and run.command else "the program"
    who = f"none of {pages:,} processes" if pages > 1 else "the process" if pages else f"no process of {program}"
    opened = f"{who} {'did not open' if pages == 1 else 'opened'} a GPU with the library loaded"
    if not pages:
        opened += ", or its page of the report could not be written"
    gain = "not known: no launch was seen"
    if counts.simulated:
        return Verdict(
            f"nothing: {opened}",
            f"{gain}. The simulated driver serves programs that open libcuda.so.1 or libamdhip64.so themselves; those "
            "that ship NVIDIA's runtime library, such as PyTorch, do not run on it",
            "overlap demo runs a program that does; for PyTorch: overlap explain TRACE (torch.profiler or nsys)",
        )
    return Verdict(f"nothing: {opened}", gain, f"{_doctor(counts)} shows why the library sees no launch")


def _no_launch(counts: _Counts) -> Verdict:
    where = _where(counts)
    why = "the program launched nothing, or its launches bypass a preloaded library (as with RTLD_DEEPBIND)"
    following = f"{_doctor(counts)} shows the routes to a GPU in its files"
    if not any(page.ended for page in counts.pages) and not running(counts.pages):
        why = "no process exited normally: killed or ended by _exit, maybe before a launch, or running on another host"
        following = f"read what the program printed; if that says nothing: {following}"
    return Verdict(f"nothing: a GPU was opened and no launch was seen{where}", f"not known: {why}", following)


def _done(counts: _Counts) -> str:
    """Return what was raised and what was shaped, of how many, and where."""
    said = f"{_raised(counts)}, {counts.sum('shaped'):,} shaped, {counts.sum('communication'):,} of communication"
    return f"{said}{_graphs(counts)}{_would(counts)}{_where(counts)}"


def _would(counts: _Counts) -> str:
    """Return what the default would raise in those processes of the run that only observe."""
    streams, launches = len(counts.would_be_raised), sum(counts.sum(name) for name in _WOULD)
    if not streams and not launches:
        return ""
    what = counted(streams, "more stream") if streams else "more streams for a time"
    return f"; where the policy only observes, the default would raise {what} ({counted(launches, 'launch')})"


def _graphs(counts: _Counts) -> str:
    graphs = counts.sum("graph_launches") - counts.sum("graphs_raised")
    return f"; {graphs:,} graph launch{'es were' if graphs != 1 else ' was'} left as made" if graphs else ""


def _raised(counts: _Counts) -> str:
    """In the words of the run's last line (shim/core/stats.c)."""
    count, created = len(counts.streams), counts.sum("streams_created_raised")
    if count:
        judged = sum(len(page.streams) for page in counts.pages)
        least = "at least " if any(map(may_have_more_streams, counts.pages)) else ""
        what = f"{count:,} of {least}{judged:,} stream{'s' * (judged != 1)}"
    elif created:
        what = f"{created:,} {'stream at its creation' if created == 1 else 'streams at their creation'}"
    else:
        what = "streams for a time" if counts.carried else "no stream"
    raised = {"launch": counts.sum("raised"), "graph": counts.sum("graphs_raised")}
    of = {"launch": counts.sum("launches"), "graph": counts.sum("graph_launches")}
    if of["launch"] and not raised["graph"]:
        del of["graph"]
    elif not of["launch"]:
        del of["launch"]
    said = (f"{raised[name]:,} of {counted(number, name)}" for name, number in of.items())
    return f"raised {what} ({', '.join(said)})"


def _where(counts: _Counts) -> str:
    """Return the end of a sentence: how many processes these are, the policies and the GPUs."""
    count, steps = len(counts.pages), len([step for step in counts.collected.steps if step.pages])
    of = f" of {steps:,} steps" if steps > 1 else ""
    who = f"{count:,} process{'es' * (count != 1)}{of}"
    named = [policy for policy in counts.policies if policy]
    policy = f"policy {some(named)}" if named else "no policy"
    on = f" on {'simulated ' if counts.simulated else ''}{some(counts.gpus)}" if counts.gpus else ""
    return f": {who}, {policy}{on}"


def _outcome(counts: _Counts) -> tuple[str, str]:
    """Return what was gained, or why nothing was changed, and what to do next."""
    if counts.changed:
        said = "not measured: a report counts launches, and times nothing on the GPU"
        if counts.simulated:
            said = "not known (simulated GPU)"
        return "; ".join([said, *_limits(counts)]), _measure(counts, _policy(counts))
    if counts.reasons and set(counts.reasons) <= {"observe_only", "unknown_limits"}:
        return _observed(counts)
    why, following = [_why_not_raised(counts)], _EXPLAIN
    if counts.reasons and any(page.rules for page in counts.pages):
        reason, launches = counts.reasons.most_common(1)[0]
        of = f"{launches:,} of {counted(sum(counts.reasons.values()), 'computation launch')}"
        were = "was" if sum(counts.reasons.values()) == 1 else "were"
        why.append(f"{of} {were} not shaped: {sentences().get(reason, reason)} ({reason})")
        following = _NEXT.get(reason) or (_room(counts, reason) if reason.startswith(_ARITHMETIC) else _EXPLAIN)
    return f"nothing was changed: {'; '.join(why)}", following


def _room(counts: _Counts, reason: str) -> str:
    """Return the command about the kernel that was left alone for a reason most often."""
    every = [kernel for kernel in kernels(counts.collected) if kernel.reasons.get(reason) and kernel.footprint.threads]
    most = max(every, key=lambda kernel: kernel.reasons[reason], default=None)
    if most is None:
        return f"{room_command(next(iter(counts.gpus), ''))} says which sizes make room, if any"
    of = f" for {most.plain}" if most.plain else ""
    return f"{room_command(most.device_name, *most.footprint)} says which sizes make room{of}, if any"


def _observed_streams(counts: _Counts, so_far: str) -> Verdict:
    """Return what the default would have done in a run under `observe`, whose streams were judged."""
    launches, graphs = counts.sum("launches"), counts.sum("graph_launches")
    every = [stream for page in counts.pages for stream in page.streams]
    told = " and ".join(counted(number, name) for number, name in ((launches, "launch"), (graphs, "graph")) if number)
    of = counted(len(every), "stream")
    on_them = sum(counts.sum(name) for name in _WOULD)
    if counts.would_be_raised or on_them:
        share = f"({100 * on_them / (launches + graphs):.0f} % of {told})"
        waits = "the host waits" if counts.sum("waits") else "other streams wait"
        them = "them" if len(counts.would_be_raised) != 1 else "it"
        what = f"{len(counts.would_be_raised):,} of {of}" if counts.would_be_raised else "streams for a time"
        done = f"would raise {what} {share}: {waits} for {them}"
        gain, following = f"not known, because nothing was changed{_where(counts)}", _measure(counts, None)
    else:
        own = all(stream.status == streams.PROGRAMS for stream in every) and bool(every)
        done = f"would raise none of {of} ({told})" if every else f"would raise no stream ({told})"
        if own:
            done += ": the priorities that the program gives its streams decide"
        gain = f"none from the default: {'; '.join(streams.conditions(counts.collected)) or 'all streams have ended'}"
        following = _EXPLAIN
    return Verdict(f"{so_far}observed; the default {done}", gain, following)


def _observed(counts: _Counts) -> tuple[str, str]:
    named = [policy for policy in counts.policies if policy]
    why = f"the policy {some(named)} only counts"
    if not named:
        what = "the driver did not report the limits of" if "unknown_limits" in counts.reasons else "no policy is for"
        why = f"{what} {some(counts.gpus) or 'this GPU'}"
    following = f"{_again(counts, DEFAULT_POLICY, 'default')} runs it under the default policy"
    if not named:
        meant = {one.get("name"): one.get(GPU_MEANT) for run in counts.collected.runs for one in run.policies}
        corrected = [f"in the policy {name}, {said}" for name, said in meant.items() if said]
        following = "; or ".join([*corrected, following])
    return f"nothing was changed, because {why}", following


def _why_not_raised(counts: _Counts) -> str:
    """Return for each stream that was judged the condition of the rule that did not hold."""
    found = streams.conditions(counts.collected)
    if found:
        return f"no stream is raised: {'; '.join(found)}"
    if counts.sum("judgements"):
        return "no stream is raised: all have ended, or none has launched anything"
    if counts.gpus and not any(name.startswith("NVIDIA") for name in counts.gpus):
        return "no stream was raised: HIP takes a priority only when a stream is created (`streams: {created_by: ...}`)"
    shares = {policy.get("name"): policy.get(RAISE_SHARE) for run in counts.collected.runs for policy in run.policies}
    known = {shares.get(policy) for policy in counts.policies if policy}
    if known == {"0"}:
        return f"no stream was judged: the policy {some(filter(None, counts.policies))} raises none"
    none = "the policy raises none, or " if not known or known & {"0", None} else ""
    waits = max((page.waits for page in counts.pages), default=0)
    if waits >= _JUDGED_FROM:
        few = f"fewer than {_JUDGED_FROM} of {waits:,} waits were for a stream that launches kernels and can be raised"
        return f"no stream was judged: {none}{few}; waits for a context or a default stream do not count"
    return f"no stream was judged: {none}the program waited for streams fewer than {_JUDGED_FROM} times"


def _limits(counts: _Counts) -> Iterator[str]:
    """Yield what may bound the gain."""
    capped = sum(page.reasons.get("capped_without_room", 0) for page in counts.pages)
    shaped = counts.sum("shaped")
    if shaped and capped >= _BY_FAR * shaped:
        yield (
            f"communication still does not fit beside {capped:,} of the {counted(shaped, 'shaped launch')}, which may "
            "have cost time; `shape: leave` in the rule avoids that"
        )
    if counts.streams and not counts.carried:
        yield "nothing was launched on a stream while it was raised: at most its copies may have gained"
    if not counts.streams and not counts.sum("streams_created_raised"):
        yield _why_not_raised(counts)


def _measure(counts: _Counts, policy: str | None) -> str:
    """Return the way to learn what changes gain: those of this policy; of the default: None."""
    if counts.policies == [_TUNED]:
        where = "; on a machine with the GPU, tune again" if counts.simulated else ""
        return f"nothing: overlap tune chose this policy{where}"
    arm = f"--arm {shlex.quote(f'{_NAMED}={policy}')} " if policy not in (None, "default") else ""
    launcher = "LAUNCHER " if counts.run and (counts.run.expected_world_size or 1) > 1 else ""
    program = "PROGRAM" if _bundled(counts) else _command(counts)
    tune = f"overlap tune {arm}-- {launcher}{program}, which runs it without changes and with them, in turns"
    if counts.simulated:
        return f"on a machine with the GPU{', with a program of your own' * _bundled(counts)}: {tune}"
    return tune


def _again(counts: _Counts, policy: str | None, folder: str) -> str:
    """Return a command that runs the program again. folder: what the name of the report ends with."""
    run = counts.run
    words = [*["LAUNCHER"] * bool(run and (run.expected_world_size or 1) > 1), "overlap-run"]
    if run and run.simulate:
        words += ["--simulate", run.simulate]
    if policy:
        words += ["--policy", policy]
    return f"{shlex.join(words)} --report {shlex.quote(_beside(counts, folder))} {_command(counts)}"


def _bundled(counts: _Counts) -> bool:
    """Whether the program, or one that a launcher or a shell starts, is ours: they run with --simulate only."""
    said = " ".join(counts.run.command or ()) if counts.run and counts.run.simulate else ""
    return any(re.search(rf"(?<![\w.-]){re.escape(name)}(?![\w.-])", said) for name in BUNDLED)


def _beside(counts: _Counts, ending: str) -> str:
    """Return the name of another report folder, beside the one that this run is in."""
    path = os.path.normpath(counts.collected.directories[0])
    around = os.path.dirname(path) or os.curdir
    path = around if os.path.islink(os.path.join(around, LAST)) else path
    return f"{path if path != os.curdir else os.path.abspath(path)}-{ending}"


def _policy(counts: _Counts) -> str | None:
    run = counts.run
    policies: Sequence[Mapping[str, str | None]] = run.policies if run else ()
    if len(policies) != 1 or len(counts.policies) > 1:
        return None
    file = policies[0].get("file")
    return file if file and "/" in file else policies[0].get("name")  # of a shipped one the file is a bare name


def _doctor(counts: _Counts) -> str:
    """Return the diagnosis of the program, on the GPU of the run."""
    simulate = f"--simulate {counts.run.simulate} " if counts.run and counts.run.simulate else ""
    return f"overlap doctor {simulate}{_command(counts)}"


def _command(counts: _Counts) -> str:
    run = counts.run
    said = shlex.join(run.command) if run and run.command else ""
    return said if said and len(said) <= _LONGEST else "PROGRAM"
