"""What kernels cost on the simulated GPU: derived from a real run's times alone, and written for one cell at a time.

costs.yaml has two lists. `computation`: rows as tools/simgpu/README.md has them, one a kernel. `communication`: how
long a stand-in takes, by variant: overhead_us + copied bytes / bytes_per_us. The simulated GPU knows costs by the names
of kernels only, so a file for it holds one size of communication.
"""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tools.gpu.overlap.cells import BARE, KINDS, STAND_INS, VARIANTS
from tools.gpu.overlap.servers import Failed, Servers

SPREAD = 0.05  # of blocks of one kernel: an assumption, times alone do not tell
HEAD = """# What the kernels of the suite cost on the simulated H200, derived by `standins.py costs` (costs.py says how)
# from the times alone of a run on a real one: {machine}.
# block_us: fitted so that the kernel alone takes as long as it did. gain: time with one resident block a
# multiprocessor over time with as many as fit. bytes_per_block: its matrices once, over its blocks. spread and sharing
# are assumptions. communication: overhead_us + copied bytes / bytes_per_us.
"""


class Costs:
    def __init__(self, file: Path | Mapping[str, Any]) -> None:
        if isinstance(file, Path):
            import yaml  # not on every machine with a GPU

            try:
                file = yaml.safe_load(file.read_text(encoding="utf-8"))
            except OSError as error:
                raise Failed(f"{error.filename}: {error.strerror}", None, 2) from None
        assert not isinstance(file, Path)
        self.computation = [dict(row) for row in file["computation"]]
        self.communication = {(row["communication"], row["variant"]): row for row in file["communication"]}

    def text(self, kernel: str, words: Mapping[str, int]) -> str:
        """Return a file of costs for the simulated GPU, with the sample's communication."""
        rows = [self._computation(row, words) for row in self.computation]
        if words.get("bytes"):
            rows.append(self._communication(words))
        return "".join(f"- {_flow(row)}\n" for row in rows)

    def _computation(self, row: Mapping[str, Any], words: Mapping[str, int]) -> dict[str, Any]:
        """A grid of its own is a persistent kernel's, whose blocks then do more each."""
        kept = {key: value for key, value in row.items() if key != "blocks"}
        if words.get("grid") and row["kernel"] == "hgemm_persistent":
            more = row["blocks"] / words["grid"]
            kept.update(block_us=round(row["block_us"] * more, 3), bytes_per_block=round(row["bytes_per_block"] * more))
        return kept

    def _communication(self, words: Mapping[str, int]) -> dict[str, Any]:
        stand_in = next(
            name
            for name, one in STAND_INS.items()
            if all(words.get(key, 0) == one.words.get(key, 0) for key in ("rate", "host"))
        )
        asked = (words.get("blocks", 24), words.get("threads", 544))
        variant = next(
            name for name, one in VARIANTS.items() if (one.get("blocks", 24), one.get("threads", 544)) == asked
        )
        row = self.communication[stand_in, variant]
        return {
            "kernel": "ncclDevKernel_*",
            "block_us": round(row["overhead_us"] + words["bytes"] / row["bytes_per_us"], 3),
            "spread": 0.02,
            "gain": 2 if asked[1] < 544 else 1,  # how many fit: blocks of communication do not slow each other
            "bytes_per_block": STAND_INS[stand_in].traffic * words["bytes"] // asked[0],
        }


def _flow(row: Mapping[str, Any]) -> str:
    return "{" + ", ".join(f"{key}: {json.dumps(value)}" for key, value in row.items()) + "}"


def write(file: Path, folder: Path) -> int:
    """Derive from a real run and print."""
    try:
        result = json.loads(file.read_text(encoding="utf-8"))
        made = derived(result, folder)
    except OSError as error:
        raise Failed(f"{error.filename}: {error.strerror}", None, 2) from None
    except (ValueError, KeyError, IndexError) as error:
        raise Failed(f"{file}: not a whole run of a real GPU ({error!r})", "standins.py run --out FILE", 2) from None
    about = result["machine"]
    names = ", ".join(gpu["name"] for gpu in about["gpus"])
    sys.stdout.write(
        HEAD.format(machine=f"{names}, driver {about['driver']}, {about['begun']}, commit {about['commit']}")
    )
    for part, rows in made.items():
        sys.stdout.write(f"{part}:\n" + "".join(f"- {_flow(row)}\n" for row in rows))
    return 0


def derived(result: Mapping[str, Any], folder: Path) -> dict[str, list[dict[str, Any]]]:
    run = result["runs"][0]
    communication = [_line(run["collectives"], name, variant) for name in STAND_INS for variant in VARIANTS]
    computation, targets = [], {}
    for kind in KINDS:
        about = result["kernels"][kind]
        times = {
            row["resident"]: statistics.median(row["ms"]) for row in run["alone"][kind] if row["carveout"] == "max"
        }
        native = statistics.median(next(row["ms"] for row in run["alone"][kind] if row["carveout"] == "default"))
        targets[kind] = native
        computation.append(
            {
                "kernel": about["symbol"],
                "block_us": round(native * 1e3 * 132 * about["resident_blocks"] / about["blocks"], 3),
                "spread": SPREAD,
                "gain": round(max(1.0, times[min(times)] / times[about["resident_blocks"]]), 3),
                "bytes_per_block": about["bytes"] // about["blocks"],
                "blocks": about["blocks"],
            }
        )
    made = {"computation": computation, "communication": communication}
    for _ in range(3):
        _fit(made, targets, folder)
    return made


def _line(rows: list[dict[str, Any]], communication: str, variant: str) -> dict[str, Any]:
    """Through the medians of two sizes."""
    own = [row for row in rows if row["communication"] == communication and row["variant"] == variant]
    (few, short), (many, long) = ((row["bytes"], statistics.median(row["ms"]) * 1e3) for row in own)
    rate = (many - few) / (long - short)
    overhead = max(0.0, short - few / rate)
    return {
        "communication": communication,
        "variant": variant,
        "overhead_us": round(overhead, 2),
        "bytes_per_us": round(many / (long - overhead)),
    }


def _fit(made: dict[str, Any], targets: Mapping[str, float], folder: Path) -> None:
    """Alone on the simulated GPU each kernel takes what it did on the real one."""
    servers = Servers(folder, "h200:hold", Costs(made).text)
    try:
        for row, (kind, target) in zip(made["computation"], targets.items()):
            took = servers.sample(BARE, kind, {"communication": 0})["ms"]
            row["block_us"] = round(row["block_us"] * target / took, 3)
    finally:
        servers.end()
