"""JSON answers without a schema of their own have these fields, no more and no fewer: programs rely on the names.

A path: `a[]` is a list, a segment in CAPITALS any key, and `.*` at the end all that is below. A question mark in front:
the field is not in every answer.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from test_blocks import World

ROOT = Path(__file__).resolve().parents[2]

_POLICY = """\
policy: 1
name: fields
compute:
  - match: {kernel: "stencil_i*"}
    shape: {blocks_per_sm: 1}
  - match: {kernel: nothing}
    shape: leave
"""
_TRACE = ROOT / "tests/traces/data/stencil-nccl-events.json.gz"
COMMANDS = {
    "overlap report FOLDER --jobs --json": "overlap report run --jobs --json",
    "overlap tune ... --json": "overlap tune --simulate h100 --try X=1 --metric '([0-9]+) ms' --json -- echo 5 ms",
    "overlap explain TRACE --json": f"overlap explain {_TRACE} --json",
    "overlap policy list --json": "overlap policy list --json",
    "overlap policy room --json": "overlap policy room --gpu mi250x --kernel 256:64:8192 --json",
    "overlap doctor --json": "overlap doctor --json",
}

FIELDS = {
    "overlap report FOLDER --jobs --json": """
        version runs processes programs[] programs[].user programs[].program programs[].verdict
        programs[].verdicts.VERDICT programs[].runs programs[].ranks programs[].gpus programs[].gpu_hours
        programs[].gpu_hours_raised programs[].launches programs[].launches_raised programs[].streams
        programs[].streams_raised programs[].last ?skipped.REASON
    """,
    "overlap tune ... --json": """
        version answer kept best_so_far sure interrupted tuned use gpu driver simulated metric noise_percent
        runs directory arms[] arms[].name arms[].policy ?arms[].environment.* arms[].value arms[].change_percent
        arms[].low_percent arms[].high_percent arms[].runs arms[].verdict
    """,
    "overlap explain TRACE --json": """
        verdict verdicts[].kind verdicts[].cost_us verdicts[].text next source gpus[] simulated worst
        processes[].name processes[].path processes[].rank processes[].process processes[].devices[]
        processes[].steps processes[].count processes[].setup_us processes[].teardown_us processes[].span_us
        processes[].told processes[].untold[] processes[].shares.* processes[].gpus.* processes[].idle.*
        processes[].streams processes[].main_stream[] processes[].kernel_us processes[].collectives[].name
        processes[].collectives[].count processes[].collectives[].us processes[].collectives[].bytes
        processes[].collectives[].exposed_us processes[].collectives[].causes.CAUSE processes[].inversions[].*
        processes[].waited_us processes[].saves_us processes[].moved_us processes[].as_before_us
        processes[].saves_at_most processes[].still_us
        processes[].minor[].* processes[].major[].* processes[].one_wave_us processes[].one_wave_lost_us
        processes[].one_wave_kernel processes[].beside_us processes[].copies.* processes[].unread processes[].waits
        processes[].events_untold
        processes[].raised_us processes[].unclaimed_us processes[].unclaimed_one_wave_us processes[].refuted_us
        processes[].idle_us processes[].communication_us processes[].hidden_us processes[].faults[]
        processes[].has_priorities processes[].kernels[].* ranks ?ranks.shared_us ?ranks.waiting_us
        ?ranks.late[] ?ranks.rows[].* estimate.programs estimate.least estimate.most estimate.bounds
        estimate.bounds_most estimate.nothing estimate.missed untold[] notes[]
    """,
    "overlap policy list --json": """
        policies[].name policies[].gpu[] gpus[].key gpus[].name gpus[].architecture gpus[].vendor
        gpus[].multiprocessors gpus[].threads gpus[].blocks gpus[].registers gpus[].shared_memory
        gpus[].shared_memory_per_block gpus[].memory_gib
    """,
    "overlap policy room --json": """
        gpu kernel.* communication.* source sizes[].blocks sizes[].minimum sizes[].maximum beside verdict
        resource next
    """,
    "overlap doctor --json": """
        version ok verdict checks[].check checks[].state checks[].sentence checks[].hint ?checks[].*
    """,
}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory, clean_environment: dict[str, str]) -> World:
    made = World(tmp_path_factory.mktemp("fields"), clean_environment)
    made.write("fields.yaml", _POLICY)
    made.write("wrong.yaml", _POLICY.replace("leave", "leaf"))
    for report in ("run", "again"):
        done = made.run(f"overlap-run --policy ./fields.yaml --report {report} ./program")
        assert done.returncode == 0, done.stdout
    return made


def paths(value: Any, path: str = "") -> Iterator[str]:
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from paths(inner, f"{path}.{key}" if path else key)
    elif isinstance(value, dict):
        return
    elif isinstance(value, list):
        yield path + "[]"
        for inner in value:
            if isinstance(inner, dict):
                yield from paths(inner, path + "[]")
    else:
        yield path


def covers(listed: str, path: str) -> bool:
    if listed.endswith("*"):
        return path.startswith(listed[:-2]) or listed == "*"
    segments = listed.split(".")
    pattern = r"\.".join(r"[^.]+" if part.isupper() else re.escape(part) for part in segments)
    return re.fullmatch(pattern, path) is not None


@pytest.mark.parametrize("command", COMMANDS)
def test_fields_of(command: str, world: World) -> None:
    done = world.run(COMMANDS[command] + " 2>said")
    printed = set(paths(json.loads(done.stdout)))
    fields = FIELDS[command].split()
    lists = {path for path in printed if path.endswith("[]")}
    unknown = {path for path in printed - lists if not any(covers(field.lstrip("?"), path) for field in fields)}
    gone = {field for field in fields if not field.startswith("?") and not _seen(field, printed)}
    assert (unknown, gone) == (set(), set()), "add a new one; one that is gone needs another version of the format"


def _seen(listed: str, printed: set[str]) -> bool:
    """An empty list says nothing of what would be in it."""
    empty = listed.rpartition("[].")[0] + "[]"
    return any(covers(listed, path) for path in printed) or (
        "[]." in listed and empty in printed and not any(path.startswith(empty + ".") for path in printed)
    )
