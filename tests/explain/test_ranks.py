"""Folders of ranks: who is late, how often, and what of the communication is waiting; clocks may differ by anything."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.explain.steps import GPU, Step, trace

HOUR = 3.6e9


def write(folder: Path, late: dict[int, float], shift: float = HOUR, count: int = 5, lack: int = 0) -> Path:
    """Each rank computes 300 us, the late ones longer; then an all-reduce takes 100 us once all are there.

    shift: by how much each rank's clock is ahead of the one before; lack: steps that the last rank has not recorded."""
    folder.mkdir()
    slowest = max(late.values())
    for rank, more in late.items():

        def step(one: Step, more: float = more) -> None:
            one.kernel("gemm", 0, 300 + more)
            one.wait(20, 2)
            one.collective("AllReduce", 302 + more, slowest - more + 100)
            one.wait(7, 4)
            one.kernel("optimizer", 404 + slowest, 100)

        steps = count - (lack if rank == max(late) else 0)
        trace(folder / f"rank{rank}.json", step, count=steps, shift=shift * rank, rank=rank)
    return folder


def test_a_late_rank(explained: Any, tmp_path: Path) -> None:
    found = explained(write(tmp_path / "job", {0: 0.0, 1: 0.0, 2: 300.0, 3: 10.0}))
    assert found["verdict"] == "no: late ranks"
    # Waiting: 300, 300, 0 and 290 of 400, 400, 100 and 390.
    assert found["verdicts"][0]["text"] == "69 % of the all-reduces is waiting for rank 2, which begins them later"
    assert "computes" in found["next"] and "balance the work" in found["next"]
    ranks = found["ranks"]
    assert (ranks["waiting_us"] / ranks["shared_us"], ranks["late"]) == (pytest.approx(890 / 1290), ["2"])
    assert [(row["name"], row["last"]) for row in ranks["rows"]] == [("0", 0), ("1", 0), ("2", 5 - 1), ("3", 0)]
    assert [row["offset_us"] for row in ranks["rows"]] == pytest.approx([0, HOUR, 2 * HOUR, 3 * HOUR])


def test_the_rank_to_look_at_has_most_exposed(explained: Any, tmp_path: Path) -> None:
    """Never just the first."""
    found = explained(write(tmp_path / "job", {0: 300.0, 1: 0.0, 2: 150.0}))
    assert found["processes"][found["worst"]]["rank"] == 1
    (one,) = found["processes"][1]["collectives"]
    assert one["causes"] == {"late ranks": pytest.approx(300), "started only when needed": pytest.approx(100)}


def test_ranks_that_come_together_are_not_late(explained: Any, tmp_path: Path) -> None:
    found = explained(write(tmp_path / "job", {0: 0.0, 1: 4.0, 2: 0.0}))
    assert found["ranks"]["late"] == [] and "no: late ranks" not in [one["kind"] for one in found["verdicts"]]
    assert {row["last"] for row in found["ranks"]["rows"]} == {0}


def test_ranks_with_different_numbers_of_steps_are_not_compared(explained: Any, tmp_path: Path) -> None:
    """Their collectives have no numbers, so which belong together is not known; what is, is."""
    found = explained(write(tmp_path / "job", {0: 0.0, 1: 300.0, 2: 0.0}, lack=2))
    assert [row["name"] for row in found["ranks"]["rows"]] == ["0", "1"] and found["ranks"]["late"] == ["1"]


def test_collectives_that_do_not_belong_together_are_not_compared(explained: Any, tmp_path: Path) -> None:
    """As many, of the same name, at other times: their ends agree on no clock."""
    folder = tmp_path / "job"
    folder.mkdir()
    for rank in (0, 1):

        def step(one: Step, rank: int = rank) -> None:
            # The distances grow and shrink by milliseconds from step to step.
            number = (one.at - 10_000) / 50_000
            at = 20_000 + (15_000 if (number % 2) == rank else -15_000)
            one.kernel("gemm", 0, 300)
            one.collective("AllReduce", at, 400 if rank else 4000)

        trace(folder / f"rank{rank}.json", step, length=50_000.0, count=6, rank=rank)
    assert explained(folder)["ranks"] is None


def test_groups_are_compared_each_by_itself(explained: Any, tmp_path: Path) -> None:
    """Ranks 0 and 1 share one group, 2 and 3 another, in which nobody is late."""
    folder = tmp_path / "job"
    folder.mkdir()
    for rank in range(4):
        more = 300.0 if rank == 1 else 0.0

        def step(one: Step, rank: int = rank, more: float = more) -> None:
            named = {"Collective name": "allreduce", "Process Group Name": f"tp{rank // 2}", "Seq": int(one.at // 1000)}
            length = 400 - more if rank < 2 else 100
            one.kernel("gemm", 0, 300 + more)
            one.collective("AllReduce", 302 + more, length, **named)

        trace(folder / f"rank{rank}.json", step, rank=rank)
    found = explained(folder)
    waits = {row["name"]: round(row["waiting_us"]) for row in found["ranks"]["rows"]}
    assert (waits, found["ranks"]["late"]) == ({"0": 4 * 300, "1": 0, "2": 0, "3": 0}, ["1"])


def test_sends_and_receives_are_of_pairs_and_not_compared(explained: Any, tmp_path: Path) -> None:
    folder = tmp_path / "job"
    folder.mkdir()
    for rank in (0, 1):
        trace(
            folder / f"rank{rank}.json",
            lambda one, rank=rank: one.collective("SendRecv", 0, 100 + 300 * rank),
            rank=rank,
        )
    assert explained(folder)["ranks"] is None


def test_gpus_of_one_process_are_compared(explained: Any, tmp_path: Path) -> None:
    def step(one: Step) -> None:
        for device, more in ((0, 0.0), (1, 300.0)):
            one.kernel("gemm", 0, 300 + more, device=device)
            one.collective("AllReduce", 302 + more, 400 - more, device=device)
            one.kernel("optimizer", 704, 296, device=device)

    found = explained(trace(tmp_path / "t.json", step, devices=[GPU, {**GPU, "id": 1}]))
    assert found["verdict"] == "no: late ranks" and found["verdicts"][0]["text"].endswith(
        "is waiting for GPU 1, which begins them later"
    )


def test_ranks_without_kernels_and_subfolders_are_named(overlap: Any, library: Any, tmp_path: Path) -> None:
    folder = write(tmp_path / "job", {0: 0.0, 1: 300.0})
    for rank in (0, 1):
        (folder / f"TP-{rank}").mkdir()
        shutil.move(folder / f"rank{rank}.json", folder / f"TP-{rank}" / "trace.json")
    text = json.loads((folder / "TP-0" / "trace.json").read_text())
    text["traceEvents"] = [one for one in text["traceEvents"] if one["cat"] != "kernel"]
    (folder / "rank2.json").write_text(json.dumps(text))
    done = overlap("explain", folder)
    assert done.returncode == 0 and "rank2.json: no kernel of a GPU in it" in done.stderr
    assert done.stdout.startswith("no: late ranks: 60 % of the all-reduces is waiting for rank 1")
