"""The three sentences that a report begins with, and which of the runs of a folder they are about."""

from __future__ import annotations

import json

import pytest

from pyshim import _native
from pyshim.launch import folder
from pyshim.report.collect import collect
from pyshim.report.runs import chosen, groups
from pyshim.report.text import reasons
from pyshim.report.verdict import Verdict, verdict

RUN, OTHER = "0123456789abcdef", "fedcba9876543210"
HOST, COMMUNICATION = 2, 1
RAISED, MAJOR = 1, 2
COUNTERS = ("COMMUNICATION", "RAISED", "SAME_STREAM", "WAITED_FOR", "UNHURRIED", "WIDE", "GRAPH_LAUNCHES")
DEMO = _native.DEMO


@pytest.fixture
def of(report, write_page, library):
    """Return the verdict about a process with these counters: of(reasons, counters...)."""

    def make(launches: dict[str, int], policy: str = "h100", streams=(), **counters: int) -> Verdict:
        numbers = {getattr(library, f"OVERLAP_COUNTER_{name.upper()}"): count for name, count in counters.items()}
        made = {("symbol", reason): count for reason, count in launches.items()}
        write_page(made, devices=(("NVIDIA H100 80GB HBM3", policy),), counters=numbers, streams=streams)
        return verdict(collect(str(report), waiting_room="/nonexistent"))

    return make


def again(report, **fields) -> None:
    """Write the run of the folder with other fields."""
    (run,) = folder.runs(str(report))
    (report / f"run-{RUN}.json").unlink()
    folder.write(str(report), run._replace(**fields))


def test_what_was_done_is_counted_and_no_gain_is_claimed(of, report):
    found = of({"shaped": 160, "communication": 160, "no_rule": 40}, communication=160, raised=160)
    assert found.done == (
        "160 of 160 communication launches raised; 160 of 360 launches shaped (given more dynamic shared memory): "
        "1 process, policy h100 on NVIDIA H100 80GB HBM3"
    )
    assert found.gain == "not measured: a report counts launches, and times nothing on the GPU"
    assert found.next == (
        f"overlap-run --policy observe --report {report}-observe python train.py && "
        f"overlap report --compare {report}-observe {report}"
    )


def test_critical_streams_come_first(of):
    streams = [{"why": HOST, "status": RAISED, "launches": 1200}, {"why": COMMUNICATION, "status": RAISED}]
    found = of({"critical": 1200, "no_rule": 46800}, streams=streams)
    assert found.done.startswith(
        "raised 1,200 of 48,000 launches on 2 critical streams, and the communication on them (not counted); none "
        "shaped: 1 process, "
    )
    assert found.gain.startswith("not measured")


@pytest.mark.parametrize(
    ("launches", "policy", "counters", "gain", "following"),
    [
        pytest.param(
            {"observe_only": 200, "communication": 160}, "observe", {"communication": 160},
            "nothing was gained: the policy observe only counts",
            "-default python train.py runs it under the default policy",
            id="observe",
        ),
        pytest.param(
            {"observe_only": 200}, "observe", {},
            "nothing was gained: the policy observe only counts, and no communication kernel was seen",
            "-default python train.py runs it under the default policy: with MPI through host memory, ",
            id="observe alone",
        ),
        pytest.param(
            {"observe_only": 200, "communication": 40}, "observe", {"communication": 40, "waited_for": 40},
            "not known: the policy observe only counts. The host or later work waits at once for 40 of 40 ",
            "-default python train.py runs it under the default policy",
            id="observe a stencil",
        ),
        pytest.param(
            {"observe_only": 200, "communication": 40}, "observe", {"communication": 40, "same_stream": 40},
            "nothing was gained: the policy observe only counts, and nothing could be gained: of 40 communication ",
            "async_op=True",
            id="observe, same stream",
        ),
        pytest.param(
            {"observe_only": 200}, "", {},
            "nothing was gained: no policy is for NVIDIA H100 80GB HBM3",
            "overlap gpus",
            id="no policy",
        ),
        pytest.param(
            {"no_communication_seen": 200}, "h100", {},
            "nothing could be gained: no communication kernel was seen",
            "`communication: {kernels: ",
            id="no communication",
        ),
        pytest.param(
            {"shaped": 200}, "h100", {},
            "nothing could be gained: no communication kernel was seen, so the 200 launches shaped can only have cost ",
            "`communication: {kernels: ",
            id="shaped for nothing",
        ),
        pytest.param(
            {"no_rule": 200, "communication": 100}, "h100", {"communication": 100, "same_stream": 98, "waited_for": 2},
            "nothing could be gained: of 100 communication launches, 98 are on the stream of the computation itself "
            "(same stream) and 2 are waited for at once, so they overlap nothing",
            "async_op=True",
            id="same stream",
        ),
        pytest.param(
            {"one_wave": 180, "no_rule": 20, "communication": 100}, "h100", {"communication": 100},
            "nothing could be gained: 180 of 200 computation launches are kernels of one wave: ",
            "launch the collective before the kernel",
            id="one wave",
        ),
        pytest.param(
            {"dispatch_unknown": 180, "no_rule": 20, "communication": 100}, "h100", {"communication": 100},
            "nothing was gained: 180 of 200 computation launches were left alone: the rule applies to one way",
            "overlap probe",
            id="dispatch unknown",
        ),
        pytest.param(
            {"below_keep": 180, "communication": 100}, "h100", {"communication": 100, "wide": 100},
            "nothing was gained: `priority: auto` left 100 of 100 communication launches as they were, because",
            "extends: h100, communication: {priority: highest}}`; overlap report --compare",
            id="wide",
        ),
        pytest.param(
            {"capped_without_room": 160, "communication": 100}, "h100", {"communication": 100, "raised": 100},
            "not measured: a report counts launches, and times nothing on the GPU; communication still does not fit "
            "beside 160 of the 160 shaped launches",
            "overlap report --compare",
            id="capped without room",
        ),
        pytest.param(
            {"no_rule": 200, "communication": 160}, "h100", {"communication": 160, "raised": 4, "unhurried": 156},
            "not measured: a report counts launches, and times nothing on the GPU; `priority: auto` left 156 of 160 ",
            "extends: h100, communication: {priority: highest}}`; overlap report --compare",
            id="no hurry",
        ),
    ],
)  # fmt: skip
def test_why_nothing_was_gained_and_what_to_do(of, launches, policy, counters, gain, following):
    found = of(launches, policy, **counters)
    assert found.gain.startswith(gain) and following in found.next, found
    assert found.done.startswith("nothing: none of ") is not bool(
        {"shaped", "capped_without_room"} & launches.keys() or counters.get("raised")
    )


def test_what_auto_left_may_cost_and_goes_into_the_own_file(of, report):
    """The line to change is in the user's file, where there is one, and says why `auto` has not done it."""
    again(report, policies=({"name": "mine", "hash": "0", "file": "/project/mine.yaml"},))
    found = of({"no_rule": 200, "communication": 160}, "mine", communication=160, raised=4, unhurried=156)
    assert found.gain.endswith("waits for communication; raising them may cost more time than it saves")
    assert found.next == (
        "to raise them anyway: `communication: {priority: highest}` in /project/mine.yaml; "
        "overlap report --compare on a real GPU shows whether that pays off"
    )


def test_communication_that_is_waited_for_can_still_gain_by_passing_what_is_before_it(of):
    """A raised stencil: the host waits for every exchange at once, and the exchange passes work launched before it."""
    streams = [{"why": HOST | COMMUNICATION, "status": RAISED, "launches": 60}]
    found = of({"critical": 60, "no_rule": 200, "communication": 40}, communication=40, waited_for=40, streams=streams)
    assert found.gain.endswith(
        "; 40 of 40 communication launches are waited for at once, so for them a gain can come only from starting "
        "them, and the work in front of them, earlier"
    )


def test_raised_by_its_stream_is_not_said_to_be_raised_never(of):
    """AMD: no launch has a priority of its own, and communication is raised by its stream."""
    streams = [{"why": HOST | COMMUNICATION, "status": RAISED, "launches": 60}]
    found = of({"critical": 60, "communication": 40}, communication=40, streams=streams)
    assert found.done.startswith(
        "raised 60 of 100 launches on 1 critical stream, and the communication on it (not counted); none shaped: "
    )


@pytest.mark.parametrize(
    ("raised", "communication", "why", "said"),
    [
        (
            40,
            40,
            [COMMUNICATION],
            "raised 114 of 160 launches: 40 of 40 of communication and 74 others on their stream; ",
        ),
        (40, 40, [COMMUNICATION] * 2, "40 of 40 of communication and 74 others on their streams; "),
        (40, 40, [HOST, COMMUNICATION], "40 of 40 of communication and 74 others on 2 critical streams; "),
        (0, 40, [HOST], "raised 74 of 160 launches: 0 of 40 of communication and 74 others on 1 critical stream; "),
        (0, 0, [HOST], "raised 74 of 160 launches on 1 critical stream; none shaped: "),
        (
            9,
            40,
            [COMMUNICATION],
            "raised 83 of 160 launches: 9 of 40 of communication and 74 others on their stream; further communication "
            "on it is raised with it (not counted); none shaped: ",
        ),
    ],
)
def test_raised_launches_are_one_number_and_its_parts(of, raised, communication, why, said):
    """74 of computation beside 40 of communication read as 74 that include the 40."""
    streams = [{"why": kind, "status": RAISED} for kind in why]
    launches = {"critical": 74, "communication": communication, "no_rule": 86 - communication}
    found = of(launches, communication=communication, raised=raised, streams=streams)
    assert said in found.done


@pytest.mark.parametrize(("file", "policy"), [("h100.yaml", "h100"), ("/project/mine.yaml", "/project/mine.yaml")])
def test_a_bundled_program_is_not_named_for_a_machine_with_the_gpu(of, report, file, policy):
    """demo-stencil runs with --simulate only."""
    policies = ({"name": "h100", "hash": "0", "file": file},)
    again(report, command=("demo-stencil",), policies=policies, simulate="h100:hold,1")
    found = of({"shaped": 160, "communication": 160}, communication=160, raised=160)
    assert found.next == (
        f"on a machine with the GPU, with a program of your own: overlap-run --policy {policy} --report DIR PROGRAM"
    )


def test_a_critical_stream_that_was_left_is_why(of):
    streams = [{"why": HOST, "status": MAJOR, "share": 700}]
    found = of({"no_rule": 200, "communication": 100}, communication=100, streams=streams)
    assert found.gain == "nothing was gained: 1 critical stream was not raised: most of the computation runs on it"


def test_graphs_whose_kernels_were_not_seen(of):
    found = of({}, graph_launches=7)
    assert found.done.startswith("nothing: 7 launches of whole graphs and no launch of a kernel were seen: 1 process, ")


def test_a_gpu_without_a_launch(of):
    found = of({})
    assert found.done.startswith("nothing: a GPU was opened and no launch was seen: ")
    assert found.next == "overlap doctor python train.py shows why the library sees no launch"


def test_shaped_is_one_number_on_the_screen(report, write_page, overlap):
    """The column, the reason and the verdict; the object of --json keeps both reasons."""
    write_page({("symbol", "shaped"): 1, ("symbol", "capped_without_room"): 159, ("symbol", "no_rule"): 40})
    found = {row[2]: row for row in reasons(collect(str(report)))}
    assert found["shaped"][:2] == ["160", "80.0 %"] and "capped_without_room" not in found
    assert found["shaped"][3].endswith("does not fit beside 159 of them (capped_without_room)")
    answer = json.loads(overlap("report", str(report), "--json").stdout)
    assert answer["totals"]["reasons"]["capped_without_room"] == 159 and answer["totals"]["shaped"] == 160
    assert "160 of 200 launches shaped" in answer["verdict"]["done"]


def test_no_word_needs_the_source(report, write_page, overlap):
    ways = ("symbol", "dlsym", "proc_address", "runtime", "graph_node", "dispatch_table")
    write_page({(way, "no_rule"): 1 for way in ways})
    done = overlap("report", str(report), "--full")
    said = done.stdout + done.stderr
    assert "reached through" in said and "way in" not in said
    assert said.count("the driver library, which") == 2 and "the runtime library (libcudart" in said


# ---- Programs that never opened the simulated GPU ----


@pytest.mark.hazard("files", "the report of a program that never opened the GPU fails, and says nothing of why")
def test_a_program_that_never_opens_the_simulated_gpu_is_explained(overlap, overlap_run, tmp_path):
    report = tmp_path / "report"
    assert overlap_run("--simulate", "h100", "--report", str(report), "true").returncode == 0
    done = overlap("report", str(report))
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    first, second, third = said.splitlines()[:3]
    assert first == "done: nothing: no process of true opened a GPU with the library loaded"
    assert "PyTorch, do not run on it" in second
    assert third.startswith("next: overlap demo") and "overlap explain --from" in third
    answer = json.loads(overlap("report", str(report), "--json").stdout)
    assert (answer["processes"], answer["totals"]["launches"]) == ([], 0)
    assert overlap("report", str(report), "--check").returncode == 1
    page = tmp_path / "page.html"
    assert overlap("report", str(report), "--html", str(page)).returncode == 0
    assert "no process of true opened a GPU" in page.read_text(encoding="utf-8")


# ---- Several runs in one folder ----


@pytest.fixture
def twice(overlap_run, tmp_path):
    """Two runs of the demo's program into one folder, of 12 and of 6 launches of communication."""
    report, said = tmp_path / "report", []
    for steps, policy in ((3, "h100-paper"), (1, "observe")):
        words = ["--simulate", "h100", "--policy", policy, "--report", str(report), "--trace"]
        done = overlap_run(*words, str(DEMO / "demo-step"), "--arm=concurrent", f"--steps={steps}", "--warmup=1",
                           env={"SIMGPU_COSTS": str(DEMO / "costs.yaml")})  # fmt: skip
        assert done.returncode == 0, done.stderr
        said.append(done.stderr)
    return report, said


@pytest.mark.hazard("files", "launches of an earlier run of the folder are added to those of the latest")
def test_a_second_run_in_the_folder_is_kept_apart(overlap, twice):
    report, said = twice
    assert [text.count("holds an earlier run") for text in said] == [0, 1], "overlap-run says it"
    first, second = folder.runs(str(report))
    assert f"`overlap report` shows this one, {second.id}; --run ID shows others" in said[1]

    def look(*words: str) -> dict:
        return json.loads(overlap("report", str(report), *words, "--json").stdout)

    latest, earlier, both = look(), look("--run", first.id[:6]), look("--all")
    assert [process["run"] for process in latest["processes"]] == [second.id]
    assert [process["run"] for process in earlier["processes"]] == [first.id]
    assert latest["totals"]["communication"] < earlier["totals"]["communication"]
    assert (latest["other_runs"], earlier["other_runs"], both["other_runs"]) == ([first.id], [second.id], [])
    assert both["totals"]["launches"] == latest["totals"]["launches"] + earlier["totals"]["launches"]
    assert latest["totals"]["shaped"] == 0 < earlier["totals"]["shaped"]
    assert any("holds another run that is not shown" in note and first.id in note for note in latest["remarks"])
    assert any("2 runs are added up" in note for note in both["remarks"])
    assert "2 processes of 2 runs, " in both["verdict"]["done"]
    done = overlap("report", str(report), "--run", "f" * 16)
    assert done.returncode == 2 and f"there are {first.id}" in done.stderr
    assert overlap("report", str(report), "--run", first.id, "--all").returncode == 2


def test_traces_and_explain_keep_runs_apart(overlap, twice):
    report, _ = twice
    first, _ = folder.runs(str(report))
    lines = {
        words: overlap("report", str(report), "--launches", "--json", *words).stdout.count("\n")
        for words in ((), ("--run", first.id), ("--all",))
    }
    assert lines[()] < lines["--run", first.id]
    assert lines["--all",] == lines[()] + lines["--run", first.id]
    done = overlap("explain", "--report", str(report), "--json")
    assert done.stdout == overlap("explain", "--run", str(report), "--json").stdout, "its earlier name"
    answer = json.loads(done.stdout)
    assert sum(kernel["launches"] for kernel in answer["kernels"]) < lines[()]
    assert any("holds another run that is not shown" in note for note in answer["notes"])


def test_runs_that_are_one_start_are_one_group(report, write_page):
    """An overlap-run inside of another, steps of one Slurm job under a prolog; a start without a page is one, too."""
    folder.write(str(report), folder.Run(OTHER, 2.0, ("y",), outer=RUN))
    for pid, run in ((7, RUN), (8, OTHER)):
        write_page({("symbol", "no_rule"): 1}, pid=pid, run=run, start=10**9)
    for pid, step in ((9, 0), (10, 1)):
        write_page({("symbol", "no_rule"): 1}, pid=pid, run=f"{7:08x}{step:08x}", start=5 * 10**9)
    folder.write(str(report), folder.Run("a" * 16, 9.0, ("never", "came")))
    collected = collect(str(report), waiting_room="/nonexistent")
    assert [(group.started, sorted(group.ids)) for group in groups(collected)] == [
        (1.0, [RUN, OTHER]),
        (5.0, [f"{7:08x}{0:08x}", f"{7:08x}{1:08x}"]),
        (9.0, ["a" * 16]),
    ]
    assert chosen(collected).pages == (), "the latest start came to no GPU, which is its report"
    assert [page.pid for page in chosen(collected, OTHER).pages] == [7, 8]


def test_an_environment_that_was_only_printed_hides_no_run(report, write_page):
    write_page({("symbol", "no_rule"): 1})
    folder.write(str(report), folder.Run(OTHER, 9.0, None))
    assert [page.run for page in chosen(collect(str(report), waiting_room="/nonexistent")).pages] == [RUN]


def test_a_rank_that_used_no_gpu_hides_no_run(report, write_page):
    """Ranks without a name in common have a run each."""
    write_page({("symbol", "no_rule"): 1}, rank=0, world=2)
    folder.write(str(report), folder.Run(OTHER, 9.0, ("python", "train.py"), expected_world_size=2))
    assert [page.run for page in chosen(collect(str(report), waiting_room="/nonexistent")).pages] == [RUN]


def test_each_folder_has_a_latest_run(report, write_page, tmp_path):
    """Of hosts without a run in common, each with a folder of its own."""
    (tmp_path / "other").mkdir()
    folder.write(str(tmp_path / "other"), folder.Run(OTHER, 9.0, ("x",)))
    write_page({("symbol", "no_rule"): 1}, pid=7)
    write_page({("symbol", "no_rule"): 1}, pid=8, run=OTHER, path=tmp_path / "other" / "node2.8.0.page")
    collected = chosen(collect(str(report), str(tmp_path / "other"), waiting_room="/nonexistent"))
    assert [page.pid for page in collected.pages] == [7, 8] and collected.left == ()


def test_constants_are_those_of_the_library(library):
    assert (library.OVERLAP_STREAM_RAISED, library.OVERLAP_STREAM_MAJOR) == (RAISED, MAJOR)
    assert (library.OVERLAP_CRITICAL_HOST_WAITS, library.OVERLAP_CRITICAL_COMMUNICATION) == (HOST, COMMUNICATION)
    assert _native.library() is library
