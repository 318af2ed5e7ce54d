"""Report problems that the counts alone would hide, one sentence each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence

from pyshim.counts import counted
from pyshim.pages.page import Page, Stranger, sentences
from pyshim.pages.waiting import WAITING_ROOM
from pyshim.report.as_json import policy_of
from pyshim.report.collect import Collected, Skipped, Step, ranks, running, some, which, who
from pyshim.report.kernels import kernels, rules
from pyshim.report.streams import remarks as of_streams
from pyshim.start.folder import setting, under

_ANSWERS = 4
_BY_FAR = 0.9


def findings(collected: Collected) -> list[str]:
    every = [step for step in collected.steps if step.processes]
    said = [*skipped(collected), *_unseen(collected), *_started(collected)]
    for step in every:
        title = f"{step.title}: " if len(every) > 1 else ""
        said += [title + sentence for finding in BY_STEP for sentence in finding(step)]
    return [*said, *_twice(collected), *_idle(collected), *_rules(collected), *_refused(collected)]


def skipped(collected: Collected) -> Iterator[str]:
    """Yield why files of the folder were skipped."""
    by_reason: dict[str, list[Skipped]] = defaultdict(list)
    for file in collected.skipped:
        by_reason[file.reason].append(file)
    for reason, files in by_reason.items():
        strangers = [file.stranger for file in files if file.stranger]
        whose = f": {who(strangers)}. Install one version on every host" if strangers else ""
        names = some([file.name for file in files])
        yield f"{names} {'were' if len(files) > 1 else 'was'} skipped: {reason}{whose}"


def _unseen(collected: Collected) -> Iterator[str]:
    if not collected.pages and collected.without_driver:
        yield f"no process is in the report: there is no GPU driver on {some(collected.without_driver)}"
    elif not collected.pages:
        yield (
            "no process is in the report: none opened a GPU with the library loaded, or its page of the report could "
            "not be written. overlap-run prints the cause at its start, or the library at the first use of a GPU"
        )
    blind = [page for page in collected.pages if page.opened_gpu and not page.launches and not page.graph_launches]
    if blind:
        yield (
            f"{which(blind)} opened a GPU, and no launch was seen: either nothing was launched, or the launches take a "
            "route that a preloaded library does not see (from a library opened with RTLD_DEEPBIND, for example)"
        )


def _started(collected: Collected) -> Iterator[str]:
    """Yield ranks that were given other variables: each rank predicts the others, so that they may hang."""
    found: dict[str, list[str]] = defaultdict(list)
    for who_else, run, first in collected.others:
        if run.environment != first.environment:
            found[f"set {setting(run)} for the program; the first rank set {setting(first)}"].append(who_else)
        elif under(run) != under(first):
            found[f"started under {under(run)}; the first rank under {under(first)}"].append(who_else)
    for difference, names in found.items():
        was = "" if difference.startswith("set ") else "were " if len(names) > 1 else "was "
        yield f"{some(names)} {was}{difference}"


def _missing(step: Step) -> Iterator[str]:
    if step.missing:
        yield (
            f"{len(step.ranks)} of {step.world} ranks are in the report ({who(_ranked(step))}); missing: "
            f"{ranks(step.missing)}. They ran without the library, or used no GPU: check that LD_PRELOAD, and "
            "the file that it names, reach every rank (`overlap doctor` on its host). If they were killed, and DIR is "
            "on a network file system, `overlap report DIR --fetch` on their node brings what they wrote"
        )


def _ranked(step: Step) -> list[Page | Stranger]:
    return [process for process in step.processes if process.rank is not None]


def _versions(step: Step) -> Iterator[str]:
    by_version = _by(step, lambda page: page.library)
    if len(by_version) > 1:
        yield (
            f"the version of the library differs: {_answers(by_version)}. Install the same version on every "
            "host, because the ranks wait for each other"
        )


def _tables(step: Step) -> Iterator[str]:
    by_table = _by(step, lambda page: page.table or "none")
    if len(by_table) > 1:
        named = {f"{_policies(pages)} (table {table})": pages for table, pages in by_table.items()}
        yield (
            f"the policy differs: {_answers(named)}. Choose it in one place: overlap-run, a module, or the site's "
            "TaskProlog"
        )


def _by(step: Step, answer: Callable[[Page], str]) -> dict[str, list[Page]]:
    answers: dict[str, list[Page]] = defaultdict(list)
    for page in step.pages:
        answers[answer(page)].append(page)
    return answers


def _answers(answers: dict[str, list[Page]]) -> str:
    usual = sorted(answers.items(), key=lambda item: (-len(item[1]), item[0]))
    words = [f"{answer} for {who(pages)}" for answer, pages in usual[:_ANSWERS]]
    more = len(usual) - len(words)
    return "; ".join([*words, *([f"{more} more"] if more else [])])


def _policies(pages: Sequence[Page]) -> str:
    names = dict.fromkeys(device.policy or "no policy" for page in pages for device in page.devices)
    return some(names) if names else "unknown"


def _twice(collected: Collected) -> Iterator[str]:
    """Yield ranks that were seen twice in a folder that no overlap-run has made, which may be several jobs."""
    for found in filter(None, map(twice, () if collected.named else collected.steps)):
        yield (
            f"{_seen(found)}: two jobs share the folder, one was restarted, or a rank started a helper program through "
            "a shell. Give each job its own folder"
        )


def twice(step: Step) -> dict[int, list[Page]]:
    """Return ranks of several processes, unless one started another: children inherit the rank."""
    by_rank: dict[int, list[Page]] = defaultdict(list)
    for page in step.pages:
        if page.rank is not None and not page.forked:
            by_rank[page.rank].append(page)
    result = {}
    for rank, pages in by_rank.items():
        if len(pages) > 1:
            families = {(page.host, page.pid) for page in pages}
            heads = {(page.host, page.pid, page.parent) for page in pages if (page.host, page.parent) not in families}
            # Two children of one process, which is the rank itself and uses no GPU.
            if len({(host, parent) for host, _, parent in heads}) > 1:
                result[rank] = pages
    return result


def _seen(found: dict[int, list[Page]]) -> str:
    first = min(found)
    return f"{ranks(sorted(found))} {'were' if len(found) > 1 else 'was'} seen more than once ({which(found[first])})"


def _gpus(step: Step) -> Iterator[str]:
    """Of ranks: helpers may use another one."""
    by_name: dict[str, list[Page]] = defaultdict(list)
    for page in step.pages:
        if page.rank is not None and page.devices:
            by_name[some(sorted({device.name for device in page.devices}))].append(page)
    if len(by_name) > 1:
        yield f"the GPU differs: {_answers(by_name)}. Collectives are as fast as the slowest rank"


BY_STEP = (_missing, _versions, _tables, _gpus)


def _idle(collected: Collected) -> Iterator[str]:
    idle = [page for page in collected.pages if page.devices and policy_of(page, collected) is None]
    unread = [page for page in idle if "unknown_limits" in page.reasons]
    unruled = [page for page in idle if page not in unread]
    for pages, why in ((unread, "the driver did not report the limits of"), (unruled, "no policy is for")):
        if pages:
            names = sorted({page.devices[0].name or "a GPU without a name" for page in pages})
            yield f"{why} {', '.join(names)}: {which(pages)} only counted"


def _rules(collected: Collected) -> Iterator[str]:
    """Yield rules that never acted. Rules with unrecorded launches are in remarks()."""
    for use in rules(collected):
        if use.acted or use.unsure:
            continue
        title = f"rule {use.rule.place} ({use.rule.shape})"
        if not use.matched:
            unknown = sum(page.reasons.get("unknown_footprint", 0) for page in collected.pages)
            untried = f"; on {counted(unknown, 'launch')} no rule was tried (unknown_footprint)" if unknown else ""
            yield f"{title} never matched: no launched kernel fits it, or an earlier rule matched first{untried}"
            continue
        reason, launches = next(iter(use.reasons.items()))
        yield (
            f"{title} matched {counted(use.launches, 'launch')} and never acted, {counted(launches, 'time')} by "
            f"{reason}: {sentences().get(reason, '')}"
        )


def _refused(collected: Collected) -> Iterator[str]:
    """Yield what the policy asks for and the driver refused."""
    launches = sum(page.refused for page in collected.pages)
    if launches:
        names = list(dict.fromkeys(kernel.plain for kernel in kernels(collected) if kernel.refused and kernel.plain))
        again = "they were launched again as asked, and these kernels are"
        if launches == 1:
            again = "it was launched again as asked, and its kernel is"
        yield (
            f"the driver refused {counted(launches, 'changed launch')}{f' of {some(names)}' if names else ''}; {again} "
            "left alone since then"
        )


def remarks(collected: Collected) -> list[str]:
    """Return notes on the program itself, which are no errors."""
    said = [*_ends(collected), *_left(collected), *_unrecorded(collected)]
    return [*said, *_without_room(collected), *of_streams(collected)]


def _without_room(collected: Collected) -> Iterator[str]:
    for use in rules(collected):
        capped = use.reasons.get("capped_without_room", 0)
        if capped >= _BY_FAR * max(use.shaped, 1):
            yield (
                f"rule {use.rule.place} ({use.rule.shape}): {capped:,} of {counted(use.shaped, 'launch')} "
                "that it changed are capped_without_room: the kernel loses blocks, and communication gains no "
                "room. `overlap policy room` says which sizes make room; `shape: leave` costs nothing"
            )


def _unrecorded(collected: Collected) -> Iterator[str]:
    # Only a page without room has both.
    full = [page for page in collected.pages if 0 < page.unrecorded < page.launches]
    if full:
        launches = sum(page.unrecorded for page in full)
        total = sum(page.launches for page in full)
        unsure = [use.rule.place for use in rules(collected) if use.unsure]
        whose = f"{'rules' if len(unsure) > 1 else 'rule'} {some(unsure)}"
        said = f"; whether {whose} acted on any of them is not known" if unsure else ""
        yield (
            f"{launches:,} of {total:,} launches of {which(full)} were counted without their kernel, by rule and "
            f"reason or by reason alone: a process records only a few hundred kinds of launches{said}"
        )


def _left(collected: Collected) -> Iterator[str]:
    if collected.left:
        are = "pages are" if len(collected.left) > 1 else "page is"
        yield (
            f"{len(collected.left):,} {are} in {WAITING_ROOM} of this machine only ({who(collected.left)}): "
            "`overlap report DIR --fetch` here moves what killed processes left into the report folder"
        )


def _ends(collected: Collected) -> Iterator[str]:
    # A forked child ends by _exit as a rule.
    unfinished = [page for page in collected.pages if not page.ended and not page.forked]
    alive = running(unfinished)
    for pages, what in (
        (alive, f"{'are' if len(alive) > 1 else 'is'} still running"),
        (
            [page for page in unfinished if page not in alive],
            "did not exit normally: killed, ended by _exit, or running on another host",
        ),
    ):
        if pages:
            yield f"{who(pages)} {what}"
    for found in filter(None, map(twice, collected.steps if collected.named else ())):
        yield f"{_seen(found)}: restarted, or several programs ran in a row"
