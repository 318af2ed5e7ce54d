"""A run under `observe`: what the default would have raised, and what to do with the answer."""

from __future__ import annotations

import json
import re

import pytest

from pyshim._native import STREAM_STATUSES
from pyshim.pages.judged import Judged, judged
from pyshim.pages.page import read_page
from pyshim.report.collect import collect
from pyshim.report.verdict import Verdict, verdict

STATUS = {name: number for number, name in enumerate(STREAM_STATUSES, 1)}
H100 = "NVIDIA H100 80GB HBM3"


@pytest.fixture
def of(report, write_page, library):
    """of(statuses, policy, waits...): the verdict about a process of 19,001 launches with such streams."""

    def make(*statuses: str, policy: str = "observe", raised: int = 0, waits: int = 40, **more) -> Verdict:
        counters = {library.OVERLAP_COUNTER_RAISED: raised, library.OVERLAP_COUNTER_HOST_WAITS: waits}
        counters[library.OVERLAP_COUNTER_JUDGEMENTS] = 4
        streams = [{"status": STATUS[status]} for status in statuses]
        write_page({"observe_only": 19001}, devices=((H100, policy),), counters=counters, streams=streams, **more)
        return verdict(collect(str(report), waiting_room="/nonexistent"))

    return make


def test_what_the_default_would_raise_is_said_and_how_to_measure_it(of):
    found = of("raised", "raised", "large", raised=11781)
    assert found.done == (
        "observed; the default would raise 2 of 3 streams (62 % of 19,001 launches): the host waits for them"
    )
    assert found.gain == f"not known, because nothing was changed: 1 process, policy observe on {H100}"
    assert found.next == "overlap tune -- python train.py, which runs it without changes and with them, in turns"


def test_one_stream_and_other_streams_that_wait(of):
    found = of("raised", "large", raised=10, waits=0)
    assert found.done.endswith(
        "the default would raise 1 of 2 streams (0 % of 19,001 launches): other streams wait for it"
    )


def test_of_several_processes_all_are_counted(of, write_page):
    of("raised", "large", raised=11781, pid=1)
    found = of("raised", "large", raised=11781, pid=2)
    assert "would raise 2 of 4 streams (62 % of 38,002 launches)" in found.done


def test_a_program_whose_own_priorities_decide(of):
    found = of("programs", "programs")
    assert found.done == (
        "observed; the default would raise none of 2 streams (19,001 launches): the priorities that the program gives "
        "its streams decide"
    )
    assert found.gain == "none from the default: 2 streams: the program sets priorities of streams itself"
    assert found.next.startswith("overlap explain TRACE")


def test_where_it_would_raise_nothing_the_conditions_are_said(of):
    found = of("default", "large", "programs")
    assert found.done == "observed; the default would raise none of 3 streams (19,001 launches)"
    assert "1 stream: default stream" in found.gain and "1 stream: more of the computation" in found.gain


def test_streams_that_have_ended(of):
    found = of()
    assert found.done == "observed; the default would raise no stream (19,001 launches)"
    assert found.gain == "none from the default: all streams have ended"


def test_a_process_that_judged_nothing_is_told_as_before(report, write_page):
    write_page({"observe_only": 3}, devices=((H100, "observe"),))
    found = verdict(collect(str(report), waiting_room="/nonexistent"))
    assert found.gain == "nothing was changed, because the policy observe only counts"


def test_under_the_default_the_same_page_says_raised(of):
    found = of("raised", "raised", "large", policy="default", raised=11781)
    assert found.done.startswith("raised 2 of 3 streams (11,781 of 19,001 launches)")


def test_where_only_one_of_two_gpus_is_observed_the_run_is_told_as_one_that_was_changed(report, write_page, library):
    """What was raised on the other one must not be called observed."""
    devices = ((H100, "observe"), (H100, "default"))
    streams = [{"status": STATUS["raised"], "device": 1}, {"status": STATUS["raised"], "device": 0}]
    write_page({"raised": 8}, devices=devices, streams=streams, counters={library.OVERLAP_COUNTER_RAISED: 8})
    found = verdict(collect(str(report), waiting_room="/nonexistent"))
    assert found.done.startswith("raised 1 of 2 streams (8 of 8 launches)")


def test_by_the_policy_of_each_device(write_page):
    streams = [{"status": STATUS["raised"], "device": device} for device in (0, 1)]
    streams.append({"status": STATUS["wide"], "device": 0})
    page = read_page(str(write_page({"no_rule": 1}, devices=((H100, "observe"), (H100, "h100")), streams=streams)))
    assert [judged(page, stream) for stream in page.streams] == [
        Judged("would be raised", ""),
        Judged("raised", ""),
        Judged("not raised", "wide"),
    ]


def test_tables_and_json_say_it_too(of, overlap, report):
    of("raised", "large", raised=11781)
    done = overlap("report", str(report), "--full")
    assert "would be raised" in done.stdout and "  raised to" not in done.stdout
    (process,) = json.loads(overlap("report", str(report), "--json").stdout)["processes"]
    assert [stream["outcome"] for stream in process["streams"]] == ["would be raised", "not raised"]


def test_raised_for_a_time(of):
    """The sentence names the launches that --json and the tables count."""
    found = of("not_waited", "large", raised=11781)
    assert found.done == (
        "observed; the default would raise streams for a time (62 % of 19,001 launches): the host waits for them"
    )


@pytest.fixture(scope="module")
def real(overlap_run, tmp_path_factory):
    """Return report folders of one program under `observe` and under the default, by policy."""
    folders = {policy: str(tmp_path_factory.mktemp(policy) / "r") for policy in ("observe", "default")}
    for policy, folder in folders.items():
        words = ("--simulate", "h100", "--policy", policy, "--report", folder, "demo-stencil")
        assert overlap_run(*words).returncode == 0
    return folders


_BOTH = ("raised", "would_be_raised")


def _table(full: str, title: str) -> list[list[str]]:
    """Return the rows below the heads that begin with a word, cells apart by two blanks."""
    lines = iter(full.splitlines())
    rows = [next(line for line in lines if line.startswith(title))]
    for line in lines:
        if not line:
            break
        rows.append(line)
    return [re.split(r"\s{2,}", row.strip()) for row in rows]


def test_a_real_run_under_observe_counts_nothing_as_raised(overlap, real):
    """A script that reads `raised` must not take an observed job for one that was changed."""
    answer = json.loads(overlap("report", real["observe"], "--json").stdout)
    (process,) = answer["processes"]
    for counts in (answer["totals"], process):
        assert counts["raised"] == 0 and 0 < counts["would_be_raised"] < counts["launches"]
    would = answer["totals"]["would_be_raised"]
    share = round(100 * would / answer["totals"]["launches"])
    assert f"the default would raise 1 of 2 streams ({share} % of " in answer["verdict"]["done"]
    full = overlap("report", real["observe"], "--full", env={"COLUMNS": ""}).stdout
    heads, row = _table(full, "process ")
    assert dict(zip(heads, row))["raised"] == "0"
    assert dict(zip(heads, row))["would be raised"] == str(would)
    assert "were on raised streams" not in full


def test_under_the_default_no_table_has_a_column_for_what_would_be_raised(overlap, real):
    totals = json.loads(overlap("report", real["default"], "--json").stdout)["totals"]
    assert totals["raised"] > 0 and totals["would_be_raised"] == 0
    assert "would be raised" not in overlap("report", real["default"], "--full", env={"COLUMNS": ""}).stdout


def test_of_a_job_of_both_each_counts_for_itself(overlap, real):
    """One rank observes and one does not: what was raised is that of the second alone."""
    one = {policy: json.loads(overlap("report", path, "--json").stdout)["totals"] for policy, path in real.items()}
    answer = json.loads(overlap("report", *real.values(), "--json").stdout)
    assert answer["totals"]["raised"] == one["default"]["raised"]
    assert answer["totals"]["would_be_raised"] == one["observe"]["would_be_raised"]
    launches = answer["totals"]["launches"]
    assert answer["verdict"]["done"].startswith(
        f"raised 1 of 4 streams ({one['default']['raised']} of {launches} launches), 0 shaped, "
    )
    assert (
        "; where the policy only observes, the default would raise 1 more stream "
        f"({one['observe']['would_be_raised']} launches): 2 processes" in answer["verdict"]["done"]
    )
    full = overlap("report", *real.values(), "--full", env={"COLUMNS": ""}).stdout
    heads, *rows = _table(full, "process ")
    sums = dict(zip(heads[-6:], rows[-1][-6:]))
    assert (sums["raised"], sums["would be raised"]) == tuple(str(answer["totals"][name]) for name in _BOTH)


def test_graphs_that_would_be_raised_are_not_told_as_raised(report, write_page, library, overlap):
    counters = {library.OVERLAP_COUNTER_GRAPHS_RAISED: 5, library.OVERLAP_COUNTER_GRAPH_LAUNCHES: 7}
    write_page(devices=((H100, "observe"),), counters=counters, streams=[{"status": STATUS["raised"]}])
    totals = json.loads(overlap("report", str(report), "--json").stdout)["totals"]
    assert (totals["graphs_raised"], totals["graphs_would_be_raised"]) == (0, 5)
