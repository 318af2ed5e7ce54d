"""The answer as --json prints it: every number of the text, and more."""

from __future__ import annotations

from dataclasses import asdict, fields

from pyshim.diagnosis.advice import next_step
from pyshim.diagnosis.estimate import ERRORS
from pyshim.diagnosis.exposed import Kind
from pyshim.diagnosis.look import TraceAnswer, member_name, names
from pyshim.diagnosis.result import ProcessResult
from pyshim.diagnosis.shares import Shares

_NOT_PRINTED = ("picture", "pictured", "collectives", "kinds", "setting")


def as_json(answer: TraceAnswer) -> dict[str, object]:
    """Return everything."""
    named = names(answer.processes)
    return {
        "verdict": answer.verdicts[0].kind,
        "verdicts": [
            {"kind": found.kind, "cost_us": _round(found.cost_us), "text": found.text} for found in answer.verdicts
        ],
        "next": next_step(answer),
        "source": answer.source,
        "gpus": list(dict.fromkeys(gpu.name for one in answer.found for gpu in one.trace.gpus.values())),
        "simulated": answer.simulated,
        "worst": answer.processes.index(answer.worst),
        "processes": [{"name": name, **_process(one)} for name, one in zip(named, answer.processes)],
        "ranks": _ranks(answer),
        "estimate": ERRORS._asdict(),
        "untold": answer.untold,
        "notes": list(answer.notes),
    }


def _process(one: ProcessResult) -> dict[str, object]:
    kept = {field.name: getattr(one, field.name) for field in fields(one) if field.name not in _NOT_PRINTED}
    found = {name: _plain(value) for name, value in kept.items()}
    more = {name: _round(getattr(one, name)) for name in ("communication_us", "hidden_us", "idle_us")}
    found["gpus"] = {str(device): _plain(shares) for device, shares in one.gpus.items()}
    return {**found, **more, "collectives": [_kind(kind) for kind in one.kinds]}


def _kind(kind: Kind) -> dict[str, object]:
    causes = {cause: _round(time) for cause, time in kind.causes.items()}
    return {name: _plain(value) for name, value in asdict(kind).items()} | {"causes": causes}


def _ranks(answer: TraceAnswer) -> dict[str, object] | None:
    if answer.ranks is None:
        return None
    rows = [
        {name: _plain(value) for name, value in row._asdict().items() if name != "member"}
        | {"name": member_name(row.member, answer.processes), "process": row.member[0], "device": row.member[1]}
        for row in answer.ranks.rows
    ]
    return {
        "shared_us": _round(answer.ranks.shared_us),
        "waiting_us": _round(answer.ranks.waiting_us),
        "late": [member_name(row.member, answer.processes) for row in answer.ranks.late()],
        "rows": rows,
    }


def _plain(value: object) -> object:
    """Return a value of JSON: rows of dataclasses as objects, times to a ten-thousandth of a microsecond."""
    if isinstance(value, float):
        return _round(value)
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        return [_plain(item) for item in value]
    if hasattr(value, "__dataclass_fields__") and not isinstance(value, type):
        found = {name: _plain(item) for name, item in asdict(value).items()}  # type: ignore[call-overload]
        return found | {"communication_us": _round(value.communication_us)} if isinstance(value, Shares) else found
    return value


def _round(value: float) -> float:
    return round(value, 4)
