"""What `overlap report --json` may say, made by hand: numbers that are easy to check, and names that are none."""

from __future__ import annotations

from collections import Counter
from typing import Any

from pyshim.report.summary import COUNTERS

# What a program, a host or a kernel may be called by somebody who means no good.
HOSTILE = (
    "</script><img src=x onerror=\"document.title='hacked'\">",
    "</style><script>document.title='hacked'</script>",
    "'\"><svg/onload=document.title='hacked'>",
    "&lt;b&gt;&amp;",
    "\u202egnp.exe\u2066",
    "\x1b[31mred\x07\x00\n\udc80",
    "]]>-->{{7*7}}${7*7}",
    "javascript:document.title='hacked'",
)
REASONS = {"shaped": 400, "not_overlapping": 410, "communication": 90, "below_keep": 10, "raised": 90}
RULES = (
    {"policy": "h100-paper", "line": 14, "shape": "blocks_per_sm: 50%"},
    {"policy": "h100-paper", "line": 19, "shape": "leave"},
    {"policy": "h100-paper", "line": 22, "shape": "make_room"},
)


NONE: dict[str, Any] = {"launches": 0, "shaped": 0, "in_window": None, "raised": 0, "refused": 0, "reasons": {}}


def data(processes: int = 1, hosts: int = 1, kernels: int = 3, name: str = "", samples: int = 40) -> dict[str, Any]:
    """name: what everything is called that can be called anything. The last process of five or more counts half as much
    again, and its communication is half as fast."""
    every = [_process(rank, rank % hosts, processes, name, samples) for rank in range(processes)]
    reasons: Counter[str] = Counter()
    for process in every:
        reasons.update(process["reasons"])
    return {
        "version": 1,
        "verdict": {
            "done": "raised 180 of 1,000 launches on 1 stream",
            "gain": "not measured",
            "next": f"overlap-run --policy observe {name or 'torchrun train.py'}",
        },
        "processes": every,
        "totals": {**_counters(every), "reasons": dict(reasons), "entry_points": _ways(sum(reasons.values()))},
        "runs": [_run(name)],
        "other_runs": [],
        "steps": [],
        "findings": [f"the version of the library differs: {name or '0.0.9 for rank 3'}"] if processes > 1 else [],
        "remarks": [f"not raised, large: 1 stream made by {name or 'some'}: more than `raise` allows"],
        "kernels": [_kernel(index, processes, name) for index in range(kernels)],
        "rules": [_rule(index, processes) for index in range(len(RULES))],
    }


def _counters(every: list[dict[str, Any]]) -> dict[str, int]:
    return {counter: sum(process[counter] for process in every) for counter in COUNTERS}


def _ways(launches: int) -> dict[str, int]:
    ways = dict.fromkeys(("symbol", "dlsym", "proc_address", "runtime", "graph_node", "dispatch_table"), 0)
    return {**ways, "symbol": launches // 4, "runtime": launches - launches // 4}


def _process(rank: int, host: int, processes: int, name: str, samples: int) -> dict[str, Any]:
    slow = rank == processes - 1 and processes >= 5
    reasons = {reason: (count + rank % 7) * (3 if slow else 2) // 2 for reason, count in REASONS.items()}
    step = 3_000_000 if slow else 2_000_000
    launches = sum(reasons.values())
    counted = {
        **dict.fromkeys(COUNTERS, 0),
        "launches": launches,
        "shaped": reasons["shaped"],
        "communication": reasons["communication"],
        "raised": reasons["communication"] + reasons["raised"],
    }
    counted.update(graph_launches=1, streams_raised=2, judgements=7)
    return {
        **counted,
        "pid": 100 + rank,
        "host": name or f"node{host:03}",
        "rank": rank,
        "world": processes,
        "policy": name or "h100-paper",
        "parent": 1,
        "start": 10**18,
        "table": "000000ab",
        "directory": "/report",
        "opened_gpu": True,
        "kernels": [{"kernel": 0, **NONE}],
        "program": f"/usr/bin/{name or 'python3'}",
        "library": name or "0.1.0",
        "forked": False,
        "ended": rank % 2 == 0,
        "run": "0123456789abcdef",
        "devices": [
            {
                "index": 0,
                "uuid": "GPU-0",
                "name": name or "NVIDIA H100",
                "policy": name or "h100-paper",
                "multiprocessors": 132,
            }
        ],
        "reasons": reasons,
        "entry_points": _ways(launches),
        "streams": [_stream(status, name) for status in ("raised", "large")],
        "cadence": [[16 * sample, 10**15 + 16 * sample * (step + sample % 5 * 100_000)] for sample in range(samples)],
    }


def _stream(status: str, name: str) -> dict[str, Any]:
    raised = status == "raised"
    return {
        "device": 0,
        "status": status,
        "share": 0.031 if raised else 0.715,
        "communicates": raised,
        "priority": -5 if raised else None,
        "threads": 90 if raised else 9_000,
        "creator": name or "libhalo.so",
    }


def _run(name: str) -> dict[str, Any]:
    command = ["torchrun", name] if name else ["torchrun", "train.py"]
    run = {"id": "0123456789abcdef", "started": 1_700_000_000.0, "command": command, "host": name or "node000"}
    return {**run, "simulate": "h100", "environment": {"NCCL_ALGO": name or "Ring"}}


def _kernel(index: int, processes: int, name: str) -> dict[str, Any]:
    launches = processes * max(900 - 100 * index, 1)
    shaped = launches // 3 if index == 0 else 0
    return {
        "kernel": "" if index == 2 else f"_Z4gemm{index}{name}",
        "plain": "" if index == 2 else f"gemm{index}{name}",
        "library": name or "libcublasLt.so.13",
        "launches": launches,
        "shaped": shaped,
        "in_window": None if index == 1 else launches // 2,
        "communication": index == 1,
        "launched_shared_memory": 65536,
        "raised": 0,
        "refused": 0,
        "reasons": {**({"shaped": shaped} if shaped else {}), "not_overlapping": launches - shaped},
        "rule": None if index == 1 else RULES[index % 2],
        "footprint": {
            "threads": 384,
            "registers": 168,
            "static_shared_memory": 0,
            "dynamic_shared_memory": 65536,
        },
        "blocks": 1056,
        "resident_blocks": 2,
        "device_name": name or "NVIDIA H100",
    }


def _rule(index: int, processes: int) -> dict[str, Any]:
    launches, shaped = processes * (900, 500, 0)[index], processes * (300, 0, 0)[index]
    return {
        "rule": RULES[index],
        "launches": launches,
        "shaped": shaped,
        "in_window": launches // 2,
        "refused": 0,
        "kernels": (1, 2, 0)[index],
        "reasons": {"shaped": shaped, "below_keep": launches - shaped} if launches else {},
        "matched": launches > 0,
        "acted": shaped > 0,
        "unrecorded": {},
        "unsure": False,
        "when": "overlapping",
    }


def paces(ranks: int, name: str = "") -> dict[str, Any]:
    """What `overlap report --compare BEFORE AFTER --json` may say of report folders: even ranks are faster, odd ones as
    they were, and of the last nobody can tell."""
    pairs = [_pair(rank, rank == ranks - 1, name) for rank in range(ranks)]
    verdicts = Counter(pair["change"]["verdict"] for pair in pairs)
    return {
        "version": 1,
        "kind": "reports",
        "simulated": True,
        "what": "time between communication launches",
        "clock": "host",
        "method": "batch means",
        "before": [name or "before"],
        "after": [name or "after"],
        "total": {"ranks": ranks, "before_us": 2000.0, "after_us": 1950.0, "change": pairs[0]["change"]},
        "ranks": pairs,
        "verdicts": dict(verdicts),
        "only_before": [name or "node7:7"],
        "only_after": [],
    }


def _pair(rank: int, short: bool, name: str) -> dict[str, Any]:
    percent = -5.0 - rank % 3 if rank % 2 == 0 else 0.5
    reach = None if short else 1.0
    verdict = "too few launches to tell" if short else "faster" if rank % 2 == 0 else "no difference seen"
    return {
        "rank": rank,
        "before_process": name or f"node0:{100 + rank}",
        "after_process": name or f"node0:{200 + rank}",
        "before": _pace(2000.0, reach),
        "after": _pace(2000.0 * (1 + percent / 100), reach),
        "change": {
            "percent": percent,
            "low_percent": None if reach is None else percent - reach,
            "high_percent": None if reach is None else percent + reach,
            "half_percent": reach,
            "same_launches": True,
            "noise_percent": None if short else 0.4,
            "stationary": True,
            "simulated": False,
            "verdict": verdict,
        },
    }


def _pace(mean: float, reach: float | None) -> dict[str, Any]:
    low, high = (None, None) if reach is None else (mean - 20 * reach, mean + 20 * reach)
    return {
        "mean_us": mean,
        "low_us": low,
        "high_us": high,
        "launches": 8000,
        "communication": 8192,
        "computation": 65536,
        "every": 16,
    }
