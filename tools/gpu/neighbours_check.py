"""Do communication and computation share a multiprocessor where the planner says that there is room? One JSON object.

    python -m tools.gpu.neighbours_check [FILE]      (of results of neighbours.cu; the one in results/ if none is named)

By preferred carve-out (of computation, of communication; -1: the driver's choice), cells: where both say so; where
both say no; where the planner alone does, `too_much`; where only the machine does, `too_little`. These are listed.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pyshim.explain.answer import Explainer

RESULTS = Path(__file__).resolve().parent / "results" / "neighbours.json"
GPU = "h200"
SAID = {(True, True): "room", (False, False): "no_room", (True, False): "too_much", (False, True): "too_little"}


def room(explainer: Explainer, low: dict[str, int], high: dict[str, int]) -> bool:
    """Return whether one block of high fits beside all blocks of low that a multiprocessor holds, by the planner."""
    request = {"gpu": GPU, "comm_static_smem": 0, "dynamic_smem": low["dynamic"], "comm_dynamic_smem": high["dynamic"]}
    for key in ("threads", "registers"):
        request |= {key: low[key], f"comm_{key}": high[key]}
    answer = explainer.answer(request)
    if answer["native_blocks"] != low["blocks"]:
        raise SystemExit(f"{low}: {answer['native_blocks']} blocks are resident by the planner")
    return bool(answer["control"] == "room_already")


def compare(rows: Iterable[dict[str, Any]], communication_blocks: int = 32) -> dict[str, Any]:
    """Rows of neighbours.json; a cell is shared if all blocks of communication were beside computation, always."""
    explainer = Explainer({})
    counts: dict[str, dict[str, int]] = {}
    wrong: list[dict[str, Any]] = []
    for row in rows:
        shared = row["beside"] == communication_blocks
        if not shared and row["beside"] != 0:
            raise SystemExit(f"{row}: not the same for all blocks")
        said = SAID[room(explainer, row["low"], row["high"]), shared]
        of_carveout = counts.setdefault("{}, {}".format(*row["carveout"]), dict.fromkeys(SAID.values(), 0))
        of_carveout[said] += 1
        if said.startswith("too_"):
            wrong.append({"said": said, **{key: row[key] for key in ("low", "high", "carveout")}})
    return {"cells": counts, "wrong": wrong}


def main() -> int:
    file = Path(sys.argv[1]) if len(sys.argv) > 1 else RESULTS
    print(json.dumps(compare(json.loads(file.read_text(encoding="utf-8"))["samples"])))
    return 0


if __name__ == "__main__":
    sys.exit(main())
