"""The three sentences that a report begins with, and which of the runs of a folder they are about."""

from __future__ import annotations

import json
import os
import shutil
import time
from dataclasses import replace
from types import SimpleNamespace

import pytest

from pyshim import _native
from pyshim.errors import OverlapError
from pyshim.pages.page import PageRule
from pyshim.report.collect import collect, run_of
from pyshim.report.tables import reasons
from pyshim.report.verdict import Verdict, verdict
from pyshim.start import folder

RAISED, NOT_WAITED, LARGE = 1, 2, 3  # of enum overlap_stream_status: test_streams.py
DEMO = _native.DEMO
IN_TURNS = "which runs it without changes and with them, in turns"


@pytest.fixture
def of(report, write_page, library):
    """Return the verdict about a process with these counters: of(reasons, counters...)."""

    def make(launches: dict[str, int], policy: str = "h100", streams=(), rules=False, **counters: int) -> Verdict:
        """rules: the policy has one."""
        numbers = {getattr(library, f"OVERLAP_COUNTER_{name.upper()}"): count for name, count in counters.items()}
        made = dict(launches)
        write_page(made, devices=(("NVIDIA H100 80GB HBM3", policy),), counters=numbers, streams=streams)
        collected = collect(str(report), waiting_room="/nonexistent")
        if rules:
            rule = PageRule("h100", 4, "make_room", "overlapping", "unknown", "hold")
            collected = replace(collected, pages=tuple(replace(page, rules=(rule,)) for page in collected.pages))
        return verdict(collected)

    return make


def again(report, **fields) -> None:
    """Write the run of the folder with other fields."""
    run = folder.read_run(str(report / "run.json"))
    assert run
    (report / "run.json").unlink()
    folder.write(str(report), run._replace(**fields))


def test_what_was_done_is_counted_and_no_gain_is_claimed(of, report):
    found = of(
        {"shaped": 160, "communication": 160, "no_rule": 40},
        communication=160,
        raised=160,
        streams=[{"status": RAISED}],
    )
    assert found.done == (
        "raised 1 of 1 stream (160 of 360 launches), 160 shaped, 160 of communication: "
        "1 process, policy h100 on NVIDIA H100 80GB HBM3"
    )
    assert found.gain == "not measured: a report counts launches, and times nothing on the GPU"
    assert found.next == f"overlap tune --arm yours=h100 -- python train.py, {IN_TURNS}"


def test_what_default_did_is_to_be_measured(of, report):
    found = of({"raised": 1200, "no_rule": 46800}, raised=1200, streams=[{"status": RAISED}] * 2)
    assert found.done.startswith("raised 2 of 2 streams (1,200 of 48,000 launches), 0 shaped, 0 of comm")
    assert found.next.endswith(f"-- python train.py, {IN_TURNS}")


def test_of_several_ranks_their_launcher_is_to_be_tuned(of, report):
    of({"raised": 12, "no_rule": 8}, raised=12)
    again(report, expected_world_size=2)
    found = of({"raised": 12, "no_rule": 8}, raised=12, streams=[{"status": RAISED}])
    assert f"-- LAUNCHER python train.py, {IN_TURNS}" in found.next
    assert of({"observe_only": 8}, "observe").next.startswith("LAUNCHER overlap-run --policy auto --report ")


def test_streams_that_were_given_back(of):
    found = of({"raised": 1200, "no_rule": 46800}, raised=1200, streams=[{"status": NOT_WAITED}])
    assert found.done.startswith("raised streams for a time (1,200 of 48,000 launches), 0 shaped, ")
    assert found.gain == (
        "not measured: a report counts launches, and times nothing on the GPU; no stream is raised: 1 stream: no wait "
        "between the last two judgements"
    )


def test_streams_of_a_library_that_are_raised_when_they_are_created(of):
    found = of({"communication": 40, "no_rule": 60}, communication=40, raised=40, streams_created_raised=2)
    assert found.done.startswith("raised 2 streams at their creation (40 of 100 launches), 0 shaped, 40 of comm")
    assert found.gain == "not measured: a report counts launches, and times nothing on the GPU"


def test_on_amd_streams_are_raised_when_they_are_created(report, write_page):
    write_page({"no_rule": 1}, devices=(("AMD Instinct MI250X", "mi250x"),))
    found = verdict(collect(str(report), waiting_room="/nonexistent"))
    assert found.gain.startswith("nothing was changed: no stream was raised: HIP takes a priority only when ")


NO_STREAM = "no stream was judged: the policy raises none, or the program waited for streams fewer than 16 times"


@pytest.mark.parametrize(
    ("launches", "policy", "more", "gain", "following"),
    [
        pytest.param(
            {"observe_only": 200, "communication": 160}, "observe", {"communication": 160},
            "nothing was changed, because the policy observe only counts",
            "-default python train.py runs it under the default policy", id="observe",
        ),
        pytest.param(
            {"observe_only": 200}, "", {}, "nothing was changed, because no policy is for NVIDIA H100 80GB HBM3",
            "overlap-run --policy auto --report ", id="no policy",
        ),
        pytest.param(
            {"no_rule": 200, "communication": 160}, "default", {"communication": 160},
            f"nothing was changed: {NO_STREAM}", "overlap explain TRACE", id="nothing waits",
        ),
        pytest.param(
            {"no_rule": 200}, "default", {"judgements": 3},
            "nothing was changed: no stream is raised: all have ended, or none has launched anything",
            "overlap explain TRACE", id="judged",
        ),
        pytest.param(
            {"no_rule": 200}, "default", {"streams": [{"status": LARGE, "share": 700}], "judgements": 3},
            "nothing was changed: no stream is raised: 1 stream: more of the computation than ",
            "overlap explain TRACE", id="large",
        ),
        pytest.param(
            {"no_communication_seen": 200}, "h100", {"rules": True},
            f"nothing was changed: {NO_STREAM}; 200 of 200 computation launches were not shaped: no ",
            "`communication: {kernels: ", id="no communication",
        ),
        pytest.param(
            {"one_wave": 180, "no_rule": 20, "communication": 100}, "h100", {"communication": 100, "rules": True},
            f"nothing was changed: {NO_STREAM}; 180 of 200 computation launches were not shaped: the whole grid ",
            "overlap explain TRACE", id="one wave",
        ),
        pytest.param(
            {"below_keep": 180, "no_rule": 20, "communication": 100}, "h100", {"communication": 100, "rules": True},
            f"nothing was changed: {NO_STREAM}; 180 of 200 computation launches were not shaped: too few blocks ",
            "overlap policy room --gpu h100 --kernel ", id="too few blocks",
        ),
        pytest.param(
            {"no_rule": 200}, "h100", {"rules": True}, f"nothing was changed: {NO_STREAM}; 200 of 200 ",
            "compare the `match` of the rules", id="no rule fits",
        ),
        pytest.param({"not_overlapping": 9}, "h100", {"rules": True}, "nothing", "overlap explain TRACE", id="windows"),
        pytest.param(
            {"capped_without_room": 160, "communication": 100}, "h100",
            {"communication": 100, "raised": 100, "streams": [{"status": RAISED}]},
            "not measured: a report counts launches, and times nothing on the GPU; communication still does not fit "
            "beside 160 of the 160 shaped launches",
            "overlap tune --arm yours=h100 -- python train.py", id="capped without room",
        ),
    ],
)  # fmt: skip
def test_why_nothing_was_changed_and_what_to_do(of, launches, policy, more, gain, following):
    found = of(launches, policy, **more)
    assert found.gain.startswith(gain) and following in found.next, found
    assert found.done.startswith("raised no stream (0 of ") is (not more.get("raised"))


@pytest.mark.parametrize(("file", "policy"), [("h100.yaml", "h100"), ("/project/mine.yaml", "/project/mine.yaml")])
def test_a_bundled_program_is_not_named_for_a_machine_with_the_gpu(of, report, file, policy):
    """demo-stencil runs with --simulate only."""
    policies = ({"name": "h100", "hash": "0", "file": file},)
    again(report, command=("demo-stencil",), policies=policies, simulate="h100")
    found = of({"shaped": 160, "communication": 160}, communication=160, raised=160)
    tune = f"overlap tune --arm yours={policy} -- PROGRAM, {IN_TURNS}"
    assert found.next == f"on a machine with the GPU, with a program of your own: {tune}"


def test_a_bundled_program_behind_a_launcher_or_a_shell_is_not_named_either(of, report):
    for command in (("mpirun", "-np", "2", "demo-stencil"), ("sh", "-c", "exec demo-stencil - plain")):
        again(report, command=command, simulate="h100")
        found = of({"shaped": 160}, raised=160)
        assert f" with a program of your own: overlap tune --arm yours=h100 -- PROGRAM, {IN_TURNS}" in found.next
    again(report, command=("mpirun", "-np", "2", "./my-demo-stencil"), simulate="h100")
    assert "-- mpirun -np 2 ./my-demo-stencil, " in of({"shaped": 160}, raised=160).next


def test_a_policy_that_tune_chose_needs_no_tuning(of, report):
    again(report, policies=({"name": "tuned", "hash": "0", "file": "/project/tune-1/tuned.yaml"},))
    assert of({"raised": 160}, "tuned", raised=160).next == "nothing: overlap tune chose this policy"
    again(report, simulate="h100")
    simulated = "nothing: overlap tune chose this policy; on a machine with the GPU, tune again"
    assert of({"raised": 160}, "tuned", raised=160).next == simulated


def test_of_runs_under_several_policies_none_is_proposed_as_an_arm(report, write_page):
    again(report, policies=({"name": "observe", "hash": "0", "file": None},))
    write_page({"observe_only": 160}, devices=(("NVIDIA H100 80GB HBM3", "observe"),), pid=1)
    write_page({"raised": 160}, devices=(("NVIDIA H100 80GB HBM3", "default"),), pid=2, streams=[{"status": RAISED}])
    found = verdict(collect(str(report), waiting_room="/nonexistent"))
    assert found.next == f"overlap tune -- python train.py, {IN_TURNS}"


def test_the_diagnosis_is_that_of_the_simulated_gpu(of, report):
    again(report, simulate="h100")
    assert of({}).next.startswith("overlap doctor --simulate h100 python train.py shows the routes to a GPU ")


def test_an_obstacle_is_told_as_the_run_noted_it_whatever_this_machine_has(report):
    """The file of the program may have changed since, and PATH be another one."""
    again(report, command=("true",), host="elsewhere", obstacle=("true is statically linked", "link it to glibc"))
    found = verdict(collect(str(report), waiting_room="/nonexistent"))
    assert found == ("nothing: true is statically linked", "not known: no launch was seen", "link it to glibc")


def test_a_program_that_launches_graphs_alone(of):
    found = of({}, graph_launches=7, streams=[{"status": LARGE}])
    assert found.done.startswith("raised no stream (0 of 7 graphs), 0 shaped, 0 of communication; 7 graph launches ")
    assert found.gain.startswith("nothing was changed: no stream is raised: ")
    found = of({}, graph_launches=7, graphs_raised=5, streams=[{"status": RAISED}, {"status": LARGE}])
    assert found.done.startswith(
        "raised 1 of 2 streams (5 of 7 graphs), 0 shaped, 0 of communication; 2 graph launches "
    )
    assert "measured" in found.gain


def test_graphs_on_a_stream_that_has_ended_were_raised(of):
    found = of({"no_rule": 8}, graph_launches=7, graphs_raised=5)
    assert found.done.startswith("raised streams for a time (0 of 8 launches, 5 of 7 graphs), ")
    assert "measured" in found.gain and "nothing was changed" not in found.gain


def test_graphs_that_the_default_would_raise(of):
    found = of({}, "observe", graph_launches=8, graphs_raised=6, streams=[{"status": RAISED}])
    done = "observed; the default would raise 1 of 1 stream (75 % of 8 graphs): other streams wait for it"
    assert found.done == done
    found = of({"observe_only": 4}, "observe", graph_launches=8, graphs_raised=6, streams=[{"status": RAISED}])
    assert found.done == done.replace("75 % of", "50 % of 4 launches and")


@pytest.mark.parametrize("raised", [0, 3])
def test_graphs_beside_plain_launches_are_not_forgotten(of, raised):
    found = of({"no_rule": 8}, graph_launches=40, raised=raised, streams=[{"status": RAISED}] * bool(raised))
    assert "; 40 graph launches were left as made: 1 process, policy h100 on " in found.done
    assert "graph launch was left as made" in of({"no_rule": 8}, graph_launches=1).done
    assert "graph" not in of({"no_rule": 8}).done


@pytest.mark.parametrize(
    ("share", "why"),
    [
        ("0", "the policy h100 raises none"),
        ("50", "the program waited for streams fewer than 16 times"),
        (None, NO_STREAM.partition(": ")[2]),
    ],
)
def test_one_cause_is_named_where_the_run_tells_whether_the_policy_raises(of, report, share, why):
    again(report, policies=({"name": "h100", "hash": "ab", "file": None, "raise_share": share},))
    assert of({"no_rule": 8}).gain == f"nothing was changed: no stream was judged: {why}"


def test_the_sentence_about_waits_agrees_with_their_counter(of, report):
    """Judgements are due at the 16th wait for a stream; the counter also has waits for contexts and default streams."""
    again(report, policies=({"name": "h100", "hash": "ab", "file": None, "raise_share": "50"},))
    few = "the program waited for streams fewer than 16 times"
    assert of({"no_rule": 8}, host_waits=15).gain.endswith(few)
    found = of({"no_rule": 8}, host_waits=2412)
    assert "no stream was judged: fewer than 16 of 2,412 waits were for a stream that launches kernels" in found.gain
    assert few not in found.gain
    assert found.next.startswith("overlap explain TRACE ")


def test_one_cause_is_named_of_a_real_run(overlap, overlap_run, tmp_path):
    """Of the policies of `auto` the one counts that the GPU has."""
    words = ["demo-stencil", "-", "plain", "40"]
    (tmp_path / "off.yaml").write_text(
        "policy: 1\nname: off-here\nstreams: {raise: off}\ncompute: [{match: {kernel: none}, shape: make_room}]\n"
    )
    for policy, style, why in (
        ("auto", "graph", "the program waited for streams fewer than 16 times"),
        ("auto", "one", "the program waited for streams fewer than 16 times"),
        (str(tmp_path / "off.yaml"), "one", "the policy off-here raises none"),
    ):
        options = ["--simulate", "h100", "--policy", policy, "--report", str(tmp_path / style)]
        assert overlap_run(*options, *words, f"stencil/{style}").returncode == 0
        first, second = (
            " ".join(overlap("report", str(tmp_path / style)).stdout.split()).split(" next: ")[0].split(" gain: ")
        )
        assert ("; 40 graph launches were left as made: 1 process" in first) is (style == "graph")
        assert second.startswith(f"nothing was changed: no stream was judged: {why}")


def test_no_driver_is_told_from_a_program_without_a_gpu(report, overlap):
    again(report, host="node7", driver=False)
    done = overlap("report", str(report), "--full")
    assert "done: nothing: there is no GPU driver on node7\n" in done.stdout
    assert "next: run it on a machine with a GPU; overlap doctor on node7 shows what was looked for\n" in done.stdout
    assert "warning: no process is in the report: there is no GPU driver on node7\n" in done.stdout
    for driver in (True, None):
        again(report, host="node7", driver=driver)
        assert "no process of python opened a GPU" in overlap("report", str(report)).stdout


def test_a_driver_on_one_of_the_hosts_is_a_driver(report):
    again(report, host="node7", driver=False)
    inner = folder.read_run(str(report / "run.json"))._replace(driver=True)
    folder.write(str(report), inner, inner="step")
    assert "no process of python opened a GPU" in verdict(collect(str(report))).done


def test_a_gpu_without_a_launch(of, report, write_page):
    found = of({})
    assert found.done.startswith("nothing: a GPU was opened and no launch was seen: ")
    assert found.next == "overlap doctor python train.py shows the routes to a GPU in its files"
    write_page(flags=1)
    assert verdict(collect(str(report))).next == f"read what the program printed; if that says nothing: {found.next}"
    write_page(flags=1, host=os.uname().nodename, pid=os.getpid(), start=time.time_ns())
    assert verdict(collect(str(report))).next == found.next, "one is still running"


def test_shaped_is_one_number_on_the_screen(report, write_page, overlap):
    """The column, the reason and the verdict; the object of --json keeps both reasons."""
    write_page({"shaped": 1, "capped_without_room": 159, "no_rule": 40})
    found = {row[2]: row for row in reasons(collect(str(report)))}
    assert found["shaped"][:2] == ["160", "80.0 %"] and "capped_without_room" not in found
    assert found["shaped"][3].endswith("does not fit beside 159 of them (capped_without_room)")
    answer = json.loads(overlap("report", str(report), "--json").stdout)
    assert answer["totals"]["reasons"]["capped_without_room"] == 159 and answer["totals"]["shaped"] == 160
    assert "(0 of 200 launches), 160 shaped, " in answer["verdict"]["done"]


# ---- Programs that never opened the simulated GPU ----


def test_a_program_that_never_opens_the_simulated_gpu_is_explained(overlap, overlap_run, tmp_path):
    report = tmp_path / "report"
    assert overlap_run("--simulate", "h100", "--report", str(report), "true").returncode == 0
    done = overlap("report", str(report))
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    first, second, third = said.splitlines()[:3]
    none = "no process of true opened a GPU with the library loaded, or its page of the report could not be written"
    assert first == f"done: nothing: {none}"
    assert "PyTorch, do not run on it" in second
    assert third.startswith("next: overlap demo") and "overlap explain TRACE" in third
    answer = json.loads(overlap("report", str(report), "--json").stdout)
    assert (answer["processes"], answer["totals"]["launches"]) == ([], 0)
    assert overlap("report", str(report), "--check").returncode == 1


# ---- Several runs in one folder ----


@pytest.fixture
def twice(overlap_run, tmp_path):
    """Two runs of the demo's program into one folder, of 12 and of 4 launches of communication."""
    report, counts = tmp_path / "report", tmp_path / "counts.yaml"
    counts.write_text("policy: 1\nname: counts\nstreams: {raise: off}\n")
    for steps, policy in ((6, "h100-paper"), (2, counts)):
        words = ["--simulate", "h100", "--policy", str(policy), "--report", str(report)]
        done = overlap_run(*words, str(DEMO / "demo-stencil"), "-", "plain", str(steps), "stencil/style-0")
        assert done.returncode == 0, done.stderr
    return report


def test_the_last_run_is_reported_and_any_other_by_its_folder(overlap, twice):
    def look(report) -> dict:
        return json.loads(overlap("report", str(report), "--json").stdout)

    first, second = sorted(path for path in twice.iterdir() if not path.is_symlink())
    latest, earlier = look(twice), look(first)
    assert latest == look(second) == look(twice / "last")
    assert [answer["runs"][0]["id"] for answer in (earlier, latest)] == [first.name, second.name]
    assert latest["totals"]["communication"] < earlier["totals"]["communication"]
    assert latest["totals"]["shaped"] == 0 < earlier["totals"]["shaped"]
    both = json.loads(overlap("report", str(first), str(second), "--json").stdout)
    assert both["totals"]["launches"] == latest["totals"]["launches"] + earlier["totals"]["launches"]


def test_without_a_link_to_the_last_run_the_newest_is_named(overlap, twice):
    first, second = sorted(path for path in twice.iterdir() if not path.is_symlink())
    (twice / "last").unlink()
    done = overlap("report", str(twice))
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        f"overlap: error: {twice}/last, the link to the latest run, is missing (copies often lose it)\n"
        f"overlap: help: name the run: overlap report {second}\n"
    )
    (twice / "last").symlink_to("gone")
    assert "last is a link to what is gone\n" in overlap("report", str(twice)).stderr
    (twice / "last").unlink()
    (twice / "last").write_text("mine")
    assert "last is no link to a run\n" in overlap("report", str(twice)).stderr
    shutil.rmtree(second)
    assert f"name the run: overlap report {first}\n" in overlap("report", str(twice)).stderr


def test_no_folder_of_a_stranger_is_proposed(twice, monkeypatch, tmp_path):
    """As in /tmp, where others have runs, too, and programs have a run.json of their own."""
    mine, strangers = sorted(path for path in twice.iterdir() if not path.is_symlink())
    (twice / "last").unlink()
    (twice / "tool").mkdir()
    (twice / "tool" / "run.json").write_text('{"version": 7}')
    owner = os.stat

    def stat(path, **more):
        found = owner(path, **more)
        return SimpleNamespace(st_uid=4711, st_mtime=found.st_mtime) if str(path) == str(strangers) else found

    monkeypatch.setattr("pyshim.report.collect.os.stat", stat)
    with pytest.raises(OverlapError) as caught:
        run_of(str(twice))
    assert caught.value.hint == f"name the run: overlap report {mine}"
    shutil.rmtree(mine)
    shutil.rmtree(strangers)
    assert run_of(str(twice)) == str(twice), "a folder with a tool of others is no report folder"


def test_a_copy_that_has_followed_the_link_is_read(overlap, twice, tmp_path):
    """As scp -r makes it: two folders of the same files."""
    shutil.copytree(twice, tmp_path / "copy")
    one, other = (overlap("report", str(path), "--json").stdout for path in (twice, tmp_path / "copy"))
    assert json.loads(one)["processes"] == json.loads(other)["processes"] != []


def test_a_next_step_names_a_folder_beside_that_of_the_report(overlap, twice):
    (twice / "last").unlink()
    second = max(path for path in twice.iterdir() if not path.is_symlink())
    (twice / "last").symlink_to(second.name)
    for path in (twice, second, twice / "last"):
        assert f" --report {twice}-default " in overlap("report", str(path)).stdout


def test_the_command_about_a_kernel_is_filled_in(overlap, report, write_page, library, monkeypatch):
    """It names the GPU and the block of the kernel that was left alone most often, and runs as it is printed."""
    from pyshim.report import verdict as module
    from pyshim.report.kernels import Footprint, Kernel

    def kernel(name: str, launches: int, footprint: Footprint) -> Kernel:
        counts = {"shaped": 0, "in_window": None, "raised": 0, "refused": 0, "reasons": {"below_keep": launches}}
        of_page = {"launched_shared_memory": 0, "blocks": 9, "resident_blocks": 2, "device_name": "NVIDIA H200"}
        return Kernel(name, name, "", launches, rule=None, footprint=footprint, **counts, **of_page)

    found = [kernel("few", 3, Footprint(64, 32, 0, 0)), kernel("gemm", 7, Footprint(384, 168, 1024, 49152))]
    monkeypatch.setattr(module, "kernels", lambda collected: found)
    write_page({"below_keep": 10}, devices=(("NVIDIA H200", "h100"),))
    made = collect(str(report), waiting_room="/nonexistent")
    rule = PageRule("h100", 4, "make_room", "overlapping", "unknown", "hold")
    said = verdict(replace(made, pages=tuple(replace(page, rules=(rule,)) for page in made.pages))).next
    command = "overlap policy room --gpu h200 --kernel 384:168:1024:49152"
    assert said == f"{command} says which sizes make room for gemm, if any"
    assert overlap(*command.split()[1:]).returncode == 0
