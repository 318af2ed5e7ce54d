"""Measure how this GPU schedules while a high-priority block fits on no
multiprocessor: whether it holds lower-priority blocks back or keeps starting
them. Takes about a second of the GPU. overlap-run uses the stored result,
under the same driver, for policies with `dispatch: unknown`.
"""  # noqa: D205 (the description of the command)

from __future__ import annotations

import argparse
import os
import time
from typing import TYPE_CHECKING, Any, NamedTuple

from pyshim.errors import FINDINGS, USAGE, OverlapError

if TYPE_CHECKING:
    from argparse import _SubParsersAction

    from pyshim.doctor import gpus
    from pyshim.doctor.gpus import Gpu
    from pyshim.doctor.machine import Machine
    from pyshim.probe.ask import Asked

EPILOG = """\
results, while a high-priority block fits nowhere:
  hold      no lower-priority block starts
  drain     none on the multiprocessor reserved for it
  backfill  lower-priority blocks go on starting

examples:
  overlap probe
  overlap probe --device 1 --json
  overlap probe --simulate a100:backfill

exit status: 0 measured, 1 no result (nothing is stored), 2 wrong usage"""
# Rule -> what it does, and what that means for policies.
RULES = {
    "hold": (
        "while a raised block fits nowhere, no block of lower priority starts on the whole GPU",
        "beside kernels of several waves raised communication gets in as soon as blocks end: priority is enough, and "
        "rules with `when_dispatch: backfill` do nothing",
    ),
    "drain": (
        "while a raised block fits nowhere, no block of lower priority starts on the multiprocessor chosen for it",
        "raised communication gets in as soon as that one is free, and costs the rest of the GPU nothing; rules with "
        "`when_dispatch: backfill` do nothing",
    ),
    "backfill": (
        "while a raised block fits nowhere, blocks of lower priority take what is freed, and it waits for their end",
        "priority is not enough for large blocks of communication: rules with `when_dispatch: backfill` act, and make "
        "room for them",
    ),
}
_CANNOT = {
    "no-priorities": (
        "it knows no priority of streams, so nothing is ever raised on it",
        "nothing to do: what policies say of priority and dispatch has no effect here",
    ),
    "few-multiprocessors": (
        "it has too few multiprocessors to tell hold from drain",
        "nothing to do: write `dispatch` into a policy, where it is known otherwise",
    ),
    "no-whole-multiprocessor": (
        "no block can take a multiprocessor for itself, which the question needs",
        "nothing to do: write `dispatch` into a policy, where it is known otherwise",
    ),
}
_LIMIT = 60.0  # seconds; a driver without persistence mode takes ten to start eight GPUs


class _Answer(NamedTuple):
    device: int
    gpu: Gpu
    asked: Asked
    driver: str | None
    simulated: bool
    why: str  # there is no rule; empty: there is
    hint: str
    kept: str | None  # where
    not_kept: str  # why not


def add_to(commands: _SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "probe", help="measure how the GPU schedules high-priority blocks", description=__doc__, epilog=EPILOG
    )
    parser.add_argument(
        "--device",
        metavar="NUMBER",
        type=int,
        help="CUDA device number (default: the first device of each name)",
    )
    parser.add_argument("--simulate", metavar="GPU", help="measure a simulated GPU instead: h100[:hold|drain|backfill]")
    parser.add_argument(
        "--limit",
        metavar="SECONDS",
        type=float,
        default=_LIMIT,
        help=f"time out after this long on each GPU (default: {_LIMIT:g})",
    )
    parser.add_argument("--forget", action="store_true", help="remove every stored result, and stop")
    parser.add_argument("--json", action="store_true", help="print one JSON object (format version 1)")
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    if options.forget:
        return _forget()
    if not 0.1 <= options.limit <= 3600:
        raise OverlapError(f"--limit {options.limit:g}: seconds from 0.1 to 3600", None, USAGE)
    machine = _machine(options)
    from pyshim.cli import ui

    found = []
    for index, gpu in _chosen(options.device, machine):
        with ui.progress(f"asking GPU {index} ({gpu.name})"):
            found.append(_probe(index, gpu, machine, options.limit))
    if options.json:
        import json

        first, *others = [_object(answer) for answer in found]
        ui.answer(json.dumps({"version": 1, **first, "others": others}, indent=2))
    for answer in found:
        _show(answer, options.json)
    return FINDINGS if any(answer.why for answer in found) else 0


def _forget() -> int:
    from pyshim.cli import ui
    from pyshim.launch import dispatch

    try:
        gone = dispatch.forget(os.environ)
    except OSError as error:
        raise OverlapError(f"{error.filename} cannot be removed: {error.strerror}") from error
    where = dispatch.folder(os.environ) or "the cache folder, which neither XDG_CACHE_HOME nor HOME names"
    ui.say(f"forgot {gone} answer{'' if gone == 1 else 's'} in {where}")
    return 0


def _machine(options: argparse.Namespace) -> Machine:
    from pyshim.doctor.machine import Machine
    from pyshim.launch import plan

    if options.simulate is None:
        return Machine(os.environ, patience=options.limit)
    gpu, environment = plan.simulated(options.simulate, os.environ)
    return Machine(environment, simulated=gpu, patience=options.limit)


def _chosen(device: int | None, machine: Machine) -> list[tuple[int, Gpu]]:
    """Return numbers and GPUs to ask. Raises OverlapError where there are none."""
    from pyshim.launch import driver

    vendors = machine.vendors()
    if "nvidia" not in vendors:
        if "amd" in vendors:
            raise OverlapError(
                "GPUs of AMD have no answer: HIP knows no priority of a launch, and new runtimes ignore that of a "
                "stream, so no block is ever raised",
                "nothing to do: `dispatch` plays no part there (docs/explanation/limits.md)",
                USAGE if machine.simulated else FINDINGS,
            )
        raise OverlapError(
            f"no driver of NVIDIA on this machine ({driver.NAME})",
            "run it where the GPU is, or try it: overlap probe --simulate h100:backfill",
        )
    answer = machine.cuda
    assert answer is not None
    if answer.error:
        raise OverlapError(f"{driver.NAME}: {answer.error}", _what_to_do(answer, machine))
    if not answer.gpus:
        raise OverlapError("NVIDIA's driver has no GPU here", "overlap doctor says why")
    if device is None:
        names = [gpu.name for gpu in answer.gpus]
        return [(index, gpu) for index, gpu in enumerate(answer.gpus) if names.index(gpu.name) == index]
    if not 0 <= device < len(answer.gpus):
        count = len(answer.gpus)
        raise OverlapError(f"--device {device}: there is no such GPU", f"there are {count}: 0 to {count - 1}", USAGE)
    return [(device, answer.gpus[device])]


def _probe(index: int, gpu: Gpu, machine: Machine, limit: float) -> _Answer:
    from pyshim.launch import driver
    from pyshim.probe.ask import ask

    asked = ask(index, machine.environment, limit)
    identity = driver.identity(machine.environment, machine.root)
    why, hint = _why(asked, gpu, machine)
    kept, not_kept = (None, "") if why else _keep(asked, gpu, identity, machine)
    simulated = "SIMGPU" in machine.environment
    return _Answer(index, gpu, asked, identity, simulated, why, hint, kept, not_kept)


def _why(asked: Asked, gpu: Gpu, machine: Machine) -> tuple[str, str]:
    """Return why there is no answer, and what to do; both are empty if there is one."""
    from pyshim.probe import judge

    if asked.verdict.rule:
        return "", ""
    if asked.refused:
        return asked.refused.error, _what_to_do(asked.refused, machine)
    if asked.obstacle:
        return _CANNOT[asked.obstacle]
    counts, trials = asked.verdict.counts, asked.verdict.trials
    said = ", ".join(f"{counts[word]} {word}" for word in judge.WORDS if counts[word])
    if counts[judge.IGNORED] >= judge.SHARE * trials > 0:
        return (
            f"priority did nothing in {counts[judge.IGNORED]} of {trials} trials: what was raised waited for the "
            "grid's end even where it fit",
            "MPS and virtual GPUs may not pass priorities on; nothing is raised there, whatever a policy says",
        )
    if trials < judge.FEWEST:
        return (
            f"only {trials} trials ended in time ({said})",
            "try again when the GPU is idle, or with a higher --limit",
        )
    by = " (MPS is on)" if gpu.mps else ""
    return (
        f"its trials disagree: {said}, of {trials}{by}",
        "other work on the GPU does that: try again when it is idle; overlap doctor says who has it open",
    )


def _what_to_do(refused: gpus.Answer, machine: Machine) -> str:
    """Return what to do; a question that timed out, or went to a simulated GPU, says nothing about the machine."""
    from pyshim.doctor import child, devices

    late = refused.error.endswith(child.LATE)
    if late and (machine.simulated or machine.patience < _LIMIT):
        return f"give it longer than --limit {machine.patience:g} (default: {_LIMIT:g})"
    return devices.what_to_do(machine, refused)


def _keep(asked: Asked, gpu: Gpu, identity: str | None, machine: Machine) -> tuple[str | None, str]:
    """Keep the answer; return the file, or None and why it is not kept."""
    from pyshim import __version__
    from pyshim.launch import dispatch, driver

    if gpu.mps:
        return None, "MPS is on, and others' blocks may have been there, too; ask again without it"
    rule = asked.verdict.rule
    assert rule is not None
    instead = f"write `dispatch: {rule}` into your policy instead"
    if identity is None:
        return None, f"this machine does not say the version of its driver ({driver.PROC}); {instead}"
    model = (driver.models(machine.environment, machine.root) or {}).get(asked.bus.lower(), "")
    found = dispatch.Found(gpu.name, gpu.architecture, identity, rule, time.strftime("%Y-%m-%d"), model)
    more = {"trials": asked.verdict.trials, "counts": asked.verdict.counts, "overlap_run": __version__}
    try:
        return dispatch.keep(found, more, machine.environment), ""
    except dispatch.Contradiction as error:
        return None, f"{error.strerror}; none of them has an answer until overlap probe --forget"
    except OSError as error:
        why = " ".join(filter(None, (error.strerror, error.filename and f"({error.filename})")))
        return None, f"{why}; {instead}"


def _object(answer: _Answer) -> dict[str, Any]:
    from pyshim.probe import judge

    asked, run = answer.asked, answer.asked.run
    waited = [wait for trial in run.trials for wait in judge.waits(trial, run)] if run else []
    return {
        "rule": asked.verdict.rule,
        "gpu": answer.gpu.name,
        "index": answer.device,
        "architecture": answer.gpu.architecture,
        "multiprocessors": answer.gpu.multiprocessors,
        "driver": answer.driver,
        "simulated": answer.simulated,
        "trials": asked.verdict.trials,
        "counts": asked.verdict.counts,
        "seconds": round(asked.seconds, 3),
        "block_us": round(judge.block_us(run), 2) if run and run.trials else None,
        "median_wait_blocks": round(sorted(waited)[len(waited) // 2], 3) if waited else None,
        "kept": answer.kept,
        "why": answer.why or None,
    }


def _show(answer: _Answer, as_json: bool) -> None:
    from pyshim.cli import ui

    verdict = answer.asked.verdict
    simulated = "simulated " if answer.simulated else ""
    who = f"GPU {answer.device} ({simulated}{answer.gpu.name})"
    if answer.why:
        ui.tell(f"{who}: cannot tell: {answer.why}")
        ui.tell(f"help: {answer.hint}")
        return
    if not as_json:
        rule = str(verdict.rule)
        does, means = RULES[rule]
        ui.sentence(f"{who}: {rule}: {does}; {verdict.counts[rule]} of {verdict.trials} trials say so")
        ui.sentence(f"for policies: {means}")
        if answer.kept:
            kept = f"kept in {answer.kept}: used under driver {answer.driver} where a policy says `dispatch: unknown`"
            ui.sentence(kept)
    if not answer.kept:
        ui.tell(f"not kept: {answer.not_kept}")
