"""overlap report --json is what report.schema.json says, of real processes and of pages made by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

SCHEMA = Path(__file__).resolve().parents[2] / "pyshim" / "report" / "report.schema.json"


def strict(schema: Any) -> Any:
    """Nothing may be there that it does not name, but in what another file describes."""
    if isinstance(schema, list):
        return [strict(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    made = {name: strict(value) for name, value in schema.items()}
    closed = "properties" in schema and "run.json" not in schema.get("description", "")
    return {**made, "additionalProperties": False} if closed else made


@pytest.fixture(scope="module")
def validator() -> jsonschema.Draft202012Validator:
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(strict(schema))


def wrong(validator: jsonschema.Draft202012Validator, answer: Any) -> list[str]:
    return [f"{error.json_path}: {error.message}" for error in validator.iter_errors(answer)]


def test_of_a_real_job(validator, overlap, run_job):
    folder = run_job(processes=2, otherwise={0: {"LAUNCHES": "40"}, 1: {"LAUNCHES": "6"}})
    answer = json.loads(overlap("report", str(folder), "--json").stdout)
    assert wrong(validator, answer) == []
    assert answer["version"] == 1
    kernels = {kernel["plain"]: kernel for kernel in answer["kernels"]}
    assert {name: kernel["launches"] for name, kernel in kernels.items()} == {
        "gemm": 46,
        "ncclDevKernel_AllReduce_Sum_f32_RING_LL": 23,
    }
    gemm = kernels["gemm"]
    assert gemm["rule"] == answer["rules"][0]["rule"]
    assert (gemm["rule"]["policy"], gemm["rule"]["shape"]) == ("h100-paper", "blocks_per_sm: 50%")
    assert gemm["footprint"] == {
        "threads": 1024, "registers": 32, "static_shared_memory": 0, "dynamic_shared_memory": 0,
    }  # fmt: skip
    assert (gemm["shaped"], gemm["in_window"], gemm["raised"], gemm["communication"]) == (46, None, 0, False)
    assert (gemm["library"], gemm["blocks"], gemm["resident_blocks"]) == ("rank", 600, 2)
    assert gemm["device_name"] == "NVIDIA H100 80GB HBM3"
    # Each process says how many of them were its own.
    own = [{part["kernel"]: part["launches"] for part in process["kernels"]} for process in answer["processes"]]
    places = [answer["kernels"].index(kernel) for kernel in (gemm, *(k for k in answer["kernels"] if k is not gemm))]
    assert own == [{places[0]: 40, places[1]: 20}, {places[0]: 6, places[1]: 3}]
    (use,) = answer["rules"]
    assert (use["launches"], use["shaped"], use["kernels"], use["matched"], use["acted"]) == (46, 46, 1, True, True)


def test_of_pages_made_by_hand(validator, overlap, report, write_page):
    write_page({"no_rule": 1, "communication": 4}, pid=7, rank=1, world=4)
    write_page({}, pid=8, devices=(), flags=2)
    (report / "node1.9.0.page").write_bytes(b"garbage that is long enough")
    assert wrong(validator, json.loads(overlap("report", str(report), "--json").stdout)) == []


@pytest.mark.parametrize("path", ["version", "kernels", "processes.0.streams", "rules"])
def test_it_does_not_accept_anything(path, validator, overlap, run_job):
    answer = json.loads(overlap("report", str(run_job(processes=1)), "--json").stdout)
    assert wrong(validator, answer) == []
    *way, last = path.split(".")
    place = answer
    for name in way:
        place = place[int(name)] if name.isdigit() else place[name]
    place[last] = "something else"
    assert wrong(validator, answer)
