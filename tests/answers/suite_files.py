"""Made-up files of the overlap suite, in the format that tools/gpu/overlap writes: nothing here was measured."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

MACHINE = {
    "begun": "2000-01-01T00:00:00+00:00",
    "commit": "0000000",
    "gpus": [{"name": "Made-up GPU", "driver": "1.0", "vbios": "1"}],
    "driver": "1.0",
    "nvcc": "13.0",
    "torch": None,
    "cuda": None,
    "nccl": None,
}
ROUNDS = 30
NOISE = 0.002
# T over T of plain, by arm.
FACTORS = {
    "sequential": 1.05,
    "priority": 0.9,
    "order+priority": 0.89,
    "shape-1": 1.1,
    "shape-1+priority": 0.95,
    "shape-2+priority": 0.92,
    "policy:h200": 0.9,
    "policy:make-room": 0.9,
    "policy:observe": 1.0,
    "copy-engine": 0.8,
}
Factors = Mapping[str, float]


def arm(ms: float, seed: str, rounds: int = ROUNDS, noise: float = NOISE, **parts: float) -> dict[str, Any]:
    draw = random.Random(seed)
    factors = [1 + draw.gauss(0, noise) for _ in range(rounds)]
    return {name: [round(value * one, 6) for one in factors] for name, value in {"ms": ms, **parts}.items()}


def cell(
    computation: str = "tiled", ratio: float = 0.5, pattern: str = "one", factors: Factors = FACTORS, **options: Any
) -> dict[str, Any]:
    """A cell of 1 ms of computation; options: primary, rounds, noise; stretches: {arm: of computation}."""
    name = f"{computation} + link, {pattern}, {ratio:g}"
    stretches = options.pop("stretches", {})
    primary = options.pop("primary", pattern == "one")
    plain = 1 + 0.9 * ratio
    arms = {
        "computation": arm(1.0, f"{name} computation", **options),
        "communication": arm(ratio, f"{name} communication", **options),
    }
    for one, factor in {"plain": 1.0, **factors}.items():
        parts = {"computation_ms": stretches.get(one, 1.1), "communication_ms": ratio * 1.2}
        arms[one] = arm(plain * factor, f"{name} {one}", **options, **parts)
    return {
        "cell": name,
        "computation": computation,
        "communication": "link",
        "pattern": pattern,
        "ratio": ratio,
        "primary": primary,
        "arms": arms,
    }


KERNELS = {
    "tiled": {"symbol": "tiled", "resident_blocks": 4, "role": "computation", "what": "A tiled matrix product."},
    "warped": {"symbol": "warped", "resident_blocks": 1, "role": "computation", "what": "Much shared memory."},
    "persistent": {"symbol": "p", "resident_blocks": 1, "role": "computation", "what": "A persistent product."},
    "copy": {"symbol": "copy", "resident_blocks": 16, "role": "computation", "what": "Copies memory."},
}


def curve() -> dict[str, Any]:
    points = []
    for index, dynamic in enumerate(range(0, 232_448, 4096)):
        resident = max(1, min(4, 232_448 // (dynamic + 1024)))
        alone = 1 + (4 - resident) * 0.1
        points.append(
            {
                "dynamic": dynamic,
                "resident": resident,
                **{
                    f"{part}_ms": arm(ms, f"{part} {index}", 5)["ms"]
                    for part, ms in (("alone", alone), ("together", alone * 1.2))
                },
                "wait_us": [30.0 / resident] * 5,
            }
        )
    planner = {"control": "make_room", "dynamic": 98_304, "reason": "room beside two blocks"}
    return {"kernel": "tiled", "communication": "link", "points": points, "planner": planner}


def suite(
    cells: list[dict[str, Any]], name: str = "overlap-standins", curves: bool = False, rule: str | None = None
) -> dict[str, Any]:
    run: dict[str, Any] = {"rule": rule, "cells": cells, "curves": [curve()] if curves else []}
    if curves:
        run["alone"] = {
            "tiled": [
                {"resident": resident, "dynamic": 0, "carveout": carveout, "ms": [1.5 - 0.1 * resident + more] * 3}
                for resident in (4, 2)
                for carveout, more in (("default", 0), ("max", 0.05))
            ]
        }
        run["quantisation"] = [
            {"blocks": blocks, "sm_target": fewer, "computation_ms": [1 + (not fewer and blocks > 0) * 0.95] * 3}
            for blocks in (0, 24)
            for fewer in (False, True)
        ]
    machine = {**MACHINE, "simulated": True} if rule else dict(MACHINE)
    return {
        "version": 1,
        "set": name,
        "machine": machine,
        "settings": {"rounds": ROUNDS, "warm": 5, "seed": 1},
        "kernels": KERNELS,
        "runs": [run],
    }


def matrix(factors: Factors = FACTORS, **options: Any) -> list[dict[str, Any]]:
    """Eight primary cells and two with pairs."""
    cells = [cell(kernel, ratio, "one", factors, **options) for kernel in KERNELS for ratio in (0.5, 1.0)]
    return cells + [cell(kernel, 0.5, "pairs", factors, **options) for kernel in ("tiled", "copy")]


def simulated(rules: Mapping[str, Factors]) -> dict[str, Any]:
    """The matrix under each rule."""
    whole = suite(matrix(), "overlap-simulated", rule="hold")
    whole["runs"] = [{"rule": rule, "cells": matrix(factors, noise=0.0)} for rule, factors in rules.items()]
    return whole


def write(root: Path, found: dict[str, Any]) -> Path:
    path = root / "tools" / "gpu" / "results" / f"{found['set']}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(found), encoding="utf-8")
    return path
