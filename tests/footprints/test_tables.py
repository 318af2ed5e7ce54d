"""The committed tables: well-formed, in agreement with each other, and with what the design rests on."""

from __future__ import annotations

import datetime
import json
import re
from pathlib import Path
from typing import Any

import pytest

from pyshim.footprints.families import NCCL
from pyshim.footprints.footprint import Footprint
from pyshim.footprints.read import read
from pyshim.footprints.summary import rows
from tools.footprints.libraries import LIBRARIES
from tools.footprints.renew import Source, table, written

ROOT = Path(__file__).resolve().parent.parent.parent
FOLDER = ROOT / "pyshim" / "footprints" / "libraries"
FILES = sorted(FOLDER.glob("*.json"))
TABLES: dict[str, dict[str, Any]] = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in FILES}
COMPUTE = json.loads((ROOT / "tools" / "footprints" / "compute.json").read_text(encoding="utf-8"))
RESERVED = 1024  # of shared memory, for each block
STATIC = {  # NCCL's ncclDevKernel: up to sm_89, and from sm_90 on
    "2.18.3": (5232, 5232),
    "2.21.5": (6176, 20832),
    "2.27.5": (7104, 21568),
    "2.28.9": (7104, 21568),
    "2.30.7": (14144, 36800),
    "2.32.3": (14144, 36800),
}


def test_there_is_a_table_of_each_library() -> None:
    assert {name.split("-")[0] for name in TABLES} == set(LIBRARIES)


@pytest.mark.parametrize("name", TABLES)
def test_well_formed(name: str) -> None:
    made = TABLES[name]
    head = ["library", "version", "package", "file", "read", "tool", "least_share", "not_in_the_binary", "rows"]
    assert list(made) == head
    assert name == f"{name.split('-')[0]}-{made['version']}"
    assert made["library"] == LIBRARIES[name.split("-")[0]].name
    assert datetime.date.fromisoformat(made["read"])
    assert (FOLDER / f"{name}.json").read_text(encoding="utf-8") == written(made)
    assert not re.search(r"https?:|/home/|/root/|/tmp/", json.dumps(made))
    assert all(fact["source"] and {"family", "what"} <= set(fact) for fact in made["not_in_the_binary"])
    keys = [(row["family"], row["architecture"], row.get("shape"), row["threads"]) for row in made["rows"]]
    assert len(keys) == len(set(keys))
    for row in made["rows"]:
        assert re.fullmatch(r"sm_\d+[af]?|gfx9\w\w", row["architecture"])
        assert row["threads"] is None or 32 <= row["threads"] <= 1024
        assert 1 <= row["usual"]["kernels"] <= row["kernels"]
        for what, most in (
            ("registers", 512 if "gfx" in row["architecture"] else 255),
            ("static_shared_memory", 65536),
        ):
            spread = row[what]
            assert list(spread) == ["least", "median", "most"]
            assert 0 <= spread["least"] <= spread["median"] <= spread["most"] <= most
            assert spread["least"] <= row["usual"][what] <= spread["most"]


def only(value: int) -> dict[str, int]:
    return {"least": value, "median": value, "most": value}


def communication(version: str) -> list[dict[str, Any]]:
    return [row for row in TABLES[f"nccl-{version}"]["rows"] if row["family"] == "ncclDevKernel"]


@pytest.mark.parametrize("version", STATIC)
def test_nccl(version: str) -> None:
    found = communication(version)
    assert {"sm_80", "sm_90"} <= {row["architecture"] for row in found}
    for row in found:
        assert row["registers"] == only(96)
        assert row["static_shared_memory"] == only(STATIC[version][row["architecture"] not in ("sm_80", "sm_89")])
        assert row["usual"]["barriers"] == 16
        assert row["threads"] is None


def test_every_table_of_nccl_is_checked() -> None:
    assert {name for name in TABLES if name.startswith("nccl-")} == {f"nccl-{version}" for version in STATIC}


def test_dynamic_shared_memory_of_nccl_follows_from_its_formula() -> None:
    (fact,) = (
        fact
        for fact in NCCL.not_in_the_binary
        if (fact["family"], fact["what"]) == ("ncclDevKernel", "dynamic_shared_memory")
    )
    unrolls = {8: fact["bytes"], 6: fact["other_architectures"]["sm_120"], 4: fact["other_architectures"]["sm_75"]}
    assert unrolls == {unroll: 640 // 32 * (unroll * 32 + 1) * 16 for unroll in (8, 6, 4)}
    assert all(fact in TABLES[f"nccl-{version}"]["not_in_the_binary"] for version in STATIC)


def test_what_a_block_of_nccl_takes_on_h100() -> None:
    """The sizes that decide whether a capped computation leaves room, in granules of 128 bytes."""
    taken = {
        version: row["static_shared_memory"]["most"] + 82240 + RESERVED + 127 & ~127
        for version in STATIC
        for row in communication(version)
        if row["architecture"] == "sm_90"
    }
    assert [taken[version] for version in ("2.21.5", "2.28.9", "2.30.7", "2.32.3")] == [104192, 104832, 120064, 120064]


def test_rccl() -> None:
    """Of 512 registers for each lane; unroll 4 leaves none on gfx942."""
    found = {
        (row["architecture"], row["shape"]): (row["registers"], row["static_shared_memory"])
        for row in TABLES["rccl-7.2.4"]["rows"]
        if row["family"] == "ncclDevKernel"
    }
    assert found == {
        ("gfx90a", "1"): (only(280), only(19808)),
        ("gfx90a", "2"): (only(280), only(19808)),
        ("gfx90a", "4"): (only(360), only(19808)),
        ("gfx942", "1"): (only(280), only(19808)),
        ("gfx942", "2"): (only(320), only(19808)),
        ("gfx942", "4"): (only(512), only(19808)),
        ("gfx950", "1"): (only(248), only(37664)),
        ("gfx950", "2"): (only(256), only(37664)),
        ("gfx950", "4"): (only(256), only(37664)),
    }


@pytest.mark.parametrize("name", ["rocblas-7.2.4", "hipblaslt-7.2.4"])
def test_big_tiles_of_amd_hold_their_results_in_registers(name: str) -> None:
    """One 32-bit register of each thread for each of its results, beside the operands: that is how registers without
    the AGPRs were noticed."""
    for row in TABLES[name]["rows"]:
        m, n, _ = map(int, row["shape"].split("x"))
        assert row["registers"]["least"] > m * n // row["threads"] or m * n // row["threads"] >= 256, row


def test_warp_specialised_gemms_of_hopper_leave_no_registers() -> None:
    """384 threads of 168: 16,128 of 16,384 in every quarter of a multiprocessor."""
    found = [row for row in TABLES["cublaslt-13.10.0.20"]["rows"] if row["threads"] == 384]
    assert len(found) > 5
    assert all(row["registers"] == only(168) for row in found)


@pytest.mark.parametrize("row", COMPUTE["rows"], ids=lambda row: f"{row['name']} {row['gpus'][0]}")
def test_kernels_to_plan_with(row: dict[str, Any]) -> None:
    numbers = ("threads", "registers", "static_shared_memory", "dynamic_shared_memory")
    assert list(row) == ["name", "set", "gpus", *numbers, "row", "evidence"]
    assert set(row["evidence"].values()) <= set(COMPUTE["evidence"])
    assert {name for name in numbers if row[name] is not None} == set(row["evidence"])
    if row["row"] is None:
        assert set(row["evidence"].values()) == {"assumed"}
        return
    rest = {"shape": None, **{key: value for key, value in row["row"].items() if key != "table"}}
    (found,) = (found for found in TABLES[row["row"]["table"]]["rows"] if {key: found.get(key) for key in rest} == rest)
    assert row["evidence"]["registers"] == row["evidence"]["static_shared_memory"] == "read"
    assert row["registers"] == found["registers"]["median"]
    assert row["static_shared_memory"] == found["static_shared_memory"]["median"]
    assert row["evidence"]["threads"] != "read" or row["threads"] == found["threads"]
    shape = [int(number) for number in re.findall(r"\d+", row["row"].get("shape", ""))]
    if found["family"] == "ampere_s16816gemm":
        m, n, k, stages = shape
        assert row["dynamic_shared_memory"] == stages * (m + n) * k * 2 - 49152
    if found["family"] == "flash attention, forward":
        depth, m, n, warps = shape
        assert row["dynamic_shared_memory"] == (m * depth + 2 * n * depth) * 2
        assert row["threads"] == warps * 32


def test_a_table_of_the_demo() -> None:
    """The whole way from a cubin to a file."""
    source = Source("demo", "1", "demo_sm90.cubin")
    found = list(read(ROOT / "tools" / "demo" / "demo_sm90.cubin"))
    made = table(found + found, NCCL, source, datetime.date(2026, 1, 2))
    assert made["rows"] == [
        {
            "family": "ncclDevKernel",
            "architecture": "sm_90",
            "threads": 640,
            "kernels": 1,
            "registers": only(96),
            "static_shared_memory": only(36800),
            "usual": {
                "registers": 96,
                "static_shared_memory": 36800,
                "barriers": 1,
                "kernels": 1,
                "example": "ncclDevKernel_AllReduce_Sum_f32_RING_LL",
            },
        }
    ]
    assert (made["version"], made["read"]) == ("1", "2026-01-02")
    assert {fact["family"] for fact in made["not_in_the_binary"]} == {"ncclDevKernel"}
    assert json.loads(written(made)) == made


def test_rare_rows_are_left_out() -> None:
    library = LIBRARIES["torch"]
    common = [_elementwise(number) for number in range(99)]
    assert [row["threads"] for row in rows([*common, _elementwise(99, threads=256)], library)] == [128]
    assert [row["threads"] for row in rows([*common[:9], _elementwise(99, threads=256)], library)] == [128, 256]


def test_a_row_of_different_kernels() -> None:
    """The least, the median, the most; the commonest; and apart from them what is empty on this architecture."""
    found = [_elementwise(number, registers) for number, registers in enumerate((60, 20, 4, 24, 20, 32))]
    row, empty = rows(found, LIBRARIES["torch"])
    assert row["registers"] == {"least": 20, "median": 24, "most": 60}
    assert (row["kernels"], row["usual"]["registers"], row["usual"]["kernels"]) == (5, 20, 2)
    assert row["usual"]["example"] == "vectorized_elementwise_kernel1"
    assert (empty["family"], empty["kernels"]) == ("elementwise (empty)", 1)


def _elementwise(number: int, registers: int = 32, threads: int = 128) -> Footprint:
    return Footprint(f"vectorized_elementwise_kernel{number}", "sm_90", registers, 0, threads)
