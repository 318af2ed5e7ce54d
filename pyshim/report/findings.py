"""What silence would hide: said without being asked, one sentence each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from pyshim.launch.folder import Run
from pyshim.report.collect import Collected
from pyshim.report.summary import policy_of
from pyshim.stats.page import Page

_SHOWN = 3


def findings(collected: Collected) -> list[str]:
    return [
        *collected.skipped,
        *_unseen(collected),
        *_ranks(collected),
        *_started(collected),
        *_differing(collected),
        *_losses(collected),
    ]


def _unseen(collected: Collected) -> Iterator[str]:
    blind = [page for page in collected.pages if page.opened_gpu and not page.launches and not page.graph_launches]
    if blind:
        yield (
            f"{_listed(blind)} opened a GPU, and no launch was seen: either nothing was launched, "
            "or the launches go a way that a preloaded library does not see (static, dlmopen, RTLD_DEEPBIND)"
        )


def _ranks(collected: Collected) -> Iterator[str]:
    """Every rank may have been started by an overlap-run of its own: then their runs are one."""
    together: dict[tuple[int | None, tuple[str, ...]], set[str]] = defaultdict(set)
    for run in collected.runs:
        together[run.expected_world_size, tuple(run.command or ())].add(run.id)
    for (expected, _), ids in together.items():
        pages = [page for page in collected.pages if page.run in ids]
        seen = {page.rank for page in pages if page.rank is not None}
        if expected and pages and seen and len(seen) < expected:
            missing = sorted(set(range(expected)) - seen)
            some = ", ".join(map(str, missing[:8])) + (", ..." if len(missing) > 8 else "")
            yield (
                f"{len(seen)} of {expected} ranks left a page; missing: {some}. "
                "They ran without the library, or used no GPU"
            )


def _started(collected: Collected) -> Iterator[str]:
    """Ranks that were given other variables may hang: each works out for itself what the others will do."""
    first = {run.id: run for run in collected.runs}
    for who, run in collected.others:
        usual = first.get(run.id, run)
        if run.environment != usual.environment:
            yield f"{who} set for the program {_set(run)}; the rank that came first {_set(usual)}"
        elif _under(run) != _under(usual):
            yield f"{who} was started under {_under(run)}; the rank that came first under {_under(usual)}"


def _set(run: Run) -> str:
    return ", ".join(f"{name}={value}" for name, value in sorted(run.environment.items())) or "nothing"


def _under(run: Run) -> str:
    policies = ", ".join(f"{policy.get('name')} ({policy.get('hash')})" for policy in run.policies)
    return f"{policies or 'no policy'}, overlap-run {run.overlap_run}"


def _differing(collected: Collected) -> Iterator[str]:
    by_gpu: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for page in collected.pages:
        for device in page.devices:
            by_gpu[device.name][device.policy or "none"] += 1
    for gpu, policies in sorted(by_gpu.items()):
        if len(policies) > 1:
            counts = ", ".join(f"{name} ({count})" for name, count in sorted(policies.items()))
            yield f"processes used {gpu} under different policies: {counts}"
    idle = [page for page in collected.pages if page.devices and policy_of(page, collected) is None]
    if idle:
        names = sorted({page.devices[0].name for page in idle})
        yield f"no policy is for {', '.join(names)}: {_listed(idle)} only counted"


def remarks(collected: Collected) -> list[str]:
    """About the program, and not wrong: nothing that we could do overlaps what the program puts in a row."""
    total = sum(page.communication for page in collected.pages)
    same = sum(page.communication_same_stream for page in collected.pages)
    waited = sum(page.communication_waited_for for page in collected.pages)
    unhurried = sum(page.communication_unhurried for page in collected.pages)
    said = []
    if same:
        said.append(
            f"same stream: {same:,} of {total:,} communication launches could not overlap anything that their thread "
            "launched behind them, because it was on their own stream. Collectives that PyTorch 2.8 and newer run with "
            "async_op=False are on the stream of the computation; with async_op=True they have one of their own"
        )
    if waited:
        said.append(
            f"waited for at once: {waited:,} of {total:,} communication launches could not overlap anything that their "
            "thread launched behind them, because all of it was told to wait for them, or the host waited first"
        )
    if unhurried:
        said.append(
            f"in no hurry: `priority: auto` left {unhurried:,} of {total:,} communication launches as they were, "
            "because computation has several long kernels to run before it waits for communication, or "
            "communication comes ahead of it; `priority: highest` in the policy raises them all the same"
        )
    return said


def _losses(collected: Collected) -> Iterator[str]:
    dropped = sum(page.trace_dropped for page in collected.pages)
    if dropped:
        yield f"{dropped:,} launches are missing in the traces: a process keeps 64 MiB, or the disk was full"


def _listed(pages: list[Page]) -> str:
    some = ", ".join(f"{page.host}:{page.pid}" for page in pages[:_SHOWN])
    more = f" and {len(pages) - _SHOWN} more" if len(pages) > _SHOWN else ""
    return f"{'processes' if len(pages) > 1 else 'process'} {some}{more}"
