"""The page of one report: from what `overlap report --json` prints, format version 1."""

from __future__ import annotations

import shlex
import time
from collections import Counter
from collections.abc import Mapping
from typing import Any

from pyshim.html import draw, kernels
from pyshim.html.cadence import cadence
from pyshim.html.page import page
from pyshim.html.processes import COLUMNS, Processes, name, program
from pyshim.report import many
from pyshim.report.streams import outcome
from pyshim.report.text import reasons_of

Data = Mapping[str, Any]
_COUNTED = {
    "launches": "launches",
    "shaped": "shaped",
    "communication": "of communication",
    "raised": "on raised streams",
    "refused": "refused by the driver",
    "graph_launches": "whole graphs",
}
_KINDS = {"shaped": "shaped", "raised": "raised", "refused": "refused"}


def report(data: Data) -> str:
    """Return the page. data: as `overlap report --json` prints it; names in it may hold anything."""
    every, totals = data["processes"], data["totals"]
    devices = Counter((device["name"], device["policy"]) for process in every for device in process["devices"])
    return page(
        "report.html",
        title=_title(data),
        data=data,
        date=_date,
        command=shlex.join,
        ranks={process["rank"] for process in every if process["rank"] is not None},
        hosts=sorted({process["host"] for process in every}),
        libraries=sorted({process["library"] for process in every}),
        gpus=sorted(devices.items(), key=str),
        counted=_COUNTED,
        reasons=reasons_of(totals["reasons"]),
        kinds=_KINDS,
        bar=draw.bar,
        rules=kernels.rules(data["rules"]),
        kernels=kernels.kernels(data["kernels"]),
        legend=kernels.LEGEND,
        processes=Processes(every),
        columns=COLUMNS,
        name=name,
        program=program,
        few=many.FEW,
        streams=[(process, stream) for process in every for stream in process["streams"]],
        outcome=outcome,
        cadence=cadence(every),
    )


def _title(data: Data) -> str:
    commands = [run["command"] for run in data["runs"] if run["command"]]
    if commands:
        return shlex.join(commands[0])
    programs = Counter(process["program"].rpartition("/")[2] for process in data["processes"])
    return programs.most_common(1)[0][0] if programs else "no process"


def _date(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S %z", time.localtime(seconds))
