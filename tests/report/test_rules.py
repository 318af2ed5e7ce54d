"""What overlap report says of rules and kernels: tables, and what --check fails for. Of real processes."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import job
import pytest

from pyshim.report.collect import collect
from pyshim.report.findings import findings, remarks
from pyshim.report.kernels import kernels, rules

NCCL = "ncclDevKernel_AllReduce_Sum_f32_RING_LL"
HEAD = 'policy: 1\nname: mine\ngpu: ["NVIDIA *"]\n'


@pytest.fixture
def ran(run_job, tmp_path):
    """ran(policy without its first lines, **variables): the folder of one process that has launched `gemm` 20 times and
    communication 10 times."""

    def run(policy: str, processes: int = 1, **variables: str) -> Path:
        file = tmp_path / "mine.yaml"
        file.write_text(HEAD + policy)
        table = job.surroundings(tmp_path, 1, str(file))["OVERLAP_TABLE"]
        words = {rank: {"LAUNCHES": "20"} for rank in range(processes)}
        return run_job(otherwise=words, processes=processes, OVERLAP_TABLE=table, **variables)

    return run


def said(folder: Path) -> list[str]:
    return findings(collect(str(folder)))


CAP = 'compute:\n  - {match: {kernel: "gemm"}, shape: {blocks_per_sm: 1}, when: always}\n'


def test_a_rule_that_acts_is_no_finding(ran, overlap):
    folder = ran(CAP)
    assert said(folder) == []
    assert overlap("report", str(folder), "--check").returncode == 0
    (use,) = rules(collect(str(folder)))
    assert (use.launches, use.shaped, use.in_window, use.refused, use.kernels) == (20, 20, None, 0, 1)


def test_a_rule_that_only_costs_is_a_note(ran):
    """By far the most of what it changed leaves communication no room: nothing that --check fails for."""
    collected = collect(str(ran(CAP)))
    assert not any("capped_without_room" in sentence for sentence in remarks(collected))
    (page,) = collected.pages
    for capped, noted in ((20, True), (18, True), (17, False)):
        rows = []
        for row in page.rows:
            if row.kernel == "gemm":
                rows.append(row._replace(launches=capped, reason="capped_without_room"))
                row = row._replace(launches=20 - capped)
            rows.append(row)
        changed = replace(collected, pages=(replace(page, rows=tuple(rows)),))
        about = [sentence for sentence in remarks(changed) if "capped_without_room" in sentence]
        assert findings(changed) == []
        assert len(about) == noted
        if noted:
            assert about[0].startswith(f"rule mine:5 (blocks_per_sm: 1): {capped} of 20 launches that it changed are ")
            assert "the kernel loses blocks, and communication gains no room" in about[0]


@pytest.mark.parametrize("columns", ["100", ""], ids=["terminal", "pipe"])
def test_tables_have_whole_names_where_there_is_room(columns, ran, overlap):
    more = '  - {match: {kernel: "*norm*"}, shape: make_room}\n  - {match: {kernel: "*"}, shape: leave}\n'
    done = overlap("report", str(ran(CAP + more)), "--full", env={"COLUMNS": columns})
    text = done.stdout + done.stderr
    lines = [line.split() for line in text.splitlines()]
    heads = lines.index(["rule", "shape", "launches", "shaped", "in", "window", "refused", "outcome"])
    assert lines[heads + 1] == ["mine:5", "blocks_per_sm:", "1", "20", "20", "-", "0", "acted"]
    assert lines[heads + 2] == ["mine:6", "make_room", "0", "0", "-", "0", "never", "matched"]
    assert lines[heads + 3] == ["mine:7", "leave", "0", "0", "-", "0", "never", "matched"]
    assert lines[heads + 5] == ["kernel", "launches", "shaped", "in", "window", "raised", "refused", "mostly"]
    assert lines[heads + 6] == ["gemm", "20", "20", "-", "0", "0", "shaped"]
    assert lines[heads + 7] == ["ncclDevKernel_AllReduce_Sum_f32_RING_LL", "10", "0", "-", "0", "0", "communication"]


@pytest.mark.parametrize(
    ("policy", "begins"),
    [
        (
            CAP + '  - {match: {kernel: "*norm*"}, shape: make_room, when: always}\n',
            ["rule mine:6 (make_room) never matched"],
        ),
        (
            'compute: [{match: {kernel: "gemm"}, shape: {blocks_per_sm: 1}, keep_at_least: 90%, when: always}]\n',
            ["rule mine:4 (blocks_per_sm: 1) matched 20 launches and never acted, 20 times by below_keep: too few"],
        ),
        (
            'compute: [{match: {kernel: "gemm"}, shape: {blocks_per_sm: 1}}]\ncommunication: {kernels: ["none*"]}\n',
            [],
        ),
    ],
    ids=["never matched", "never acted", "in windows"],
)
def test_what_a_policy_asks_and_does_not_get(policy, begins, ran, overlap):
    folder = ran(policy)
    found = said(folder)
    assert len(found) == len(begins) and all(map(str.startswith, found, begins)), found
    assert overlap("report", str(folder), "--check").returncode == (1 if begins else 0)


def test_launches_on_which_no_rule_is_tried_are_named(ran):
    collected = collect(str(ran(CAP + '  - {match: {kernel: "*norm*"}, shape: make_room}\n')))
    (page,) = collected.pages
    changed = replace(page, reasons={**page.reasons, "unknown_footprint": 1200})
    (sentence,) = findings(replace(collected, pages=(changed,)))
    assert sentence.endswith("; on 1,200 launches no rule was tried (unknown_footprint)")


def test_room_that_is_there_already_is_what_was_asked(ran):
    folder = ran('compute: [{match: {kernel: "gemm"}, shape: {blocks_per_sm: 2}, when: always}]\n')
    (use,) = rules(collect(str(folder)))
    assert (use.reasons, use.acted) == ({"room_already": 20}, True)
    assert said(folder) == []


def test_leave_has_done_its_work_where_it_matched(ran):
    assert said(ran('compute: [{match: {kernel: "*"}, shape: leave}]\n')) == []


def test_a_refused_launch_is_a_finding(ran, overlap):
    folder = ran(CAP, SIMGPU_REFUSE="gemm:1000")
    assert any(sentence.startswith("the driver refused 1 changed launch of gemm; it was ") for sentence in said(folder))
    (gemm,) = [kernel for kernel in kernels(collect(str(folder))) if kernel.plain == "gemm"]
    assert (gemm.launches, gemm.shaped, gemm.refused, gemm.reasons) == (20, 0, 20, {"refused": 20})
    assert overlap("report", str(folder), "--check").returncode == 1


def test_kernels_are_summed_over_processes_and_told_by_process(ran):
    collected = collect(str(ran(CAP, processes=3)))
    every = kernels(collected)
    assert [(kernel.plain, kernel.launches, kernel.raised) for kernel in every] == [("gemm", 60, 0), (NCCL, 30, 0)]
    one = [kernels(replace(collected, pages=(page,))) for page in collected.pages]
    assert [[kernel.launches for kernel in found] for found in one] == [[20, 10]] * 3
    assert [kernel.communication for kernel in every] == [False, True]
    (use,) = rules(collected)
    assert (use.launches, use.kernels, use.rule.line) == (60, 1, 5)


def test_ranks_with_different_gpus(report, write_page, overlap):
    for rank, name in enumerate(["NVIDIA H100 80GB HBM3"] * 3 + ["NVIDIA H100 PCIe"]):
        write_page({"no_rule": 1}, pid=7 + rank, rank=rank, world=4, devices=((name, "h100"),))
    (sentence,) = said(report)
    assert sentence.startswith(
        "the GPU differs: NVIDIA H100 80GB HBM3 for ranks 0-2 on node1; NVIDIA H100 PCIe for rank 3"
    )
    assert overlap("report", str(report), "--check").returncode == 1


def test_one_screen_for_many_processes(overlap, run_job):
    folder = run_job(processes=20, per_host=8)
    done = overlap("report", str(folder), "--full")
    text = done.stdout + done.stderr
    assert text.count("\n") <= 33 and "\nkernel " in text and "\nrule " in text
    answer = json.loads(overlap("report", str(folder), "--json").stdout)
    assert len(answer["processes"]) == 20 and answer["kernels"][0]["launches"] == 80


def test_a_rule_of_a_policy_that_is_extended_names_the_file_that_has_it(overlap, overlap_run, tmp_path):
    """Of both files the one that has the line: a number of lines alone leads into the wrong one."""
    (tmp_path / "base.yaml").write_text(
        "policy: 1\nname: base\ngpu: 'NVIDIA H100*'\n\n\ncompute:\n"
        "  - match: {kernel: '*relax*'}\n    shape: make_room\n"
    )
    (tmp_path / "own.yaml").write_text(
        "policy: 1\nname: stencil\nextends: ./base.yaml\ncompute:\n  - match: {kernel: nix}\n    shape: make_room\n"
    )
    done = overlap_run("--simulate", "h100", "--policy", "./own.yaml", "--report", "out", "demo-stencil", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    screen = overlap("report", "out", "--full", cwd=tmp_path).stdout
    assert any(line.startswith("stencil:5 ") for line in screen.splitlines())
    assert any(line.startswith("base.yaml:7 ") for line in screen.splitlines())
    data = json.loads(overlap("report", "out", "--json", cwd=tmp_path).stdout)
    places = [(use["rule"]["policy"], use["rule"]["file"], use["rule"]["line"]) for use in data["rules"]]
    assert sorted(places, key=str) == [("stencil", "base.yaml", 7), ("stencil", None, 5)]
    (tmp_path / "out" / "last" / "run.json").unlink()
    assert "a policy that stencil extends:7" in overlap("report", "out", "--full", cwd=tmp_path).stdout
