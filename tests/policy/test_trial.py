"""`trial`: what is read, what the table and its fingerprint hold, what earlier runs add. Mistakes: cases/trial_*."""

from __future__ import annotations

import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pyshim import _native
from pyshim.policy import show
from pyshim.policy.arms import arms_of
from pyshim.policy.finding import render
from pyshim.policy.layout import View, remembered, trials
from pyshim.policy.library import load
from pyshim.policy.model import Match, Policy, Priority, Rule, Shape
from pyshim.policy.parts import Arm
from pyshim.policy.reader import Reading, read_bytes, read_file
from pyshim.policy.table import compile_table, fingerprint, undecided
from pyshim.policy.trial import Trial
from tests.policy.test_extends import write

RULES = (Rule(Match(("*gemm*",)), Shape("percent", 50), 0, "always", 7),)
FIRST = Policy("first", priority=Priority("highest"), dispatch="hold")
SECOND = Policy("second", gpus=("NVIDIA A40",), rules=RULES)
TRIED = Policy("tried", priority=Priority("inherit"), trial=Trial((Arm("first", FIRST), Arm("second", SECOND)), 20_000))
PLAIN = Policy("plain", gpus=("NVIDIA H100*",), rules=RULES)


def read(path: Path) -> tuple[Reading, Policy]:
    reading = read_file(path)
    assert reading.policy, render(str(path), reading.source, reading.findings)
    return reading, reading.policy


def arms(policy: Policy) -> list[str]:
    return [arm.file for arm in policy.trial.arms] if policy.trial else []


@pytest.mark.parametrize(
    ("text", "worth"),
    [("0.5%", 5000), ("50%", 500_000), ("0.0001%", 1), ("2.25%", 22_500), ("50.0%", 500_000), ("", 5000)],
)
def test_what_a_gain_must_be_worth(text: str, worth: int) -> None:
    said = f", worth: {text}" if text else ""
    reading = read_bytes(f"policy: 1\nname: a\ntrial: {{arms: critical-streams{said}}}\n".encode(), "a.yaml")
    assert reading.policy and reading.policy.trial and reading.policy.trial.worth == worth
    shown = show.as_text(reading.policy, reading.origins)
    again = read_bytes(shown.encode(), "again.yaml").policy
    assert again and fingerprint(again) == fingerprint(reading.policy)


def test_arms_are_found_as_extends_finds_a_policy(tmp_path: Path) -> None:
    write(tmp_path, "raised-communication", "critical: auto\n")  # beside the file, so not the shipped one
    write(tmp_path / "folder", "other", "communication: {priority: highest}\n")
    path = write(tmp_path, "mine", "trial: {arms: [raised-communication, folder/other.yaml, critical-streams]}\n")
    path.write_text(path.read_text() + "critical: {share: 5%}\n")
    reading, policy = read(path)
    assert arms(policy) == [
        f"{tmp_path}/raised-communication.yaml",
        f"{tmp_path}/folder/other.yaml",
        "critical-streams",
    ]
    shown = show.as_text(policy, reading.origins)
    assert "trial:\n  arms:\n" in shown and "# mine.yaml:3" in shown
    again = read_bytes(shown.encode(), str(tmp_path / "folder" / "shown.yaml"))
    assert again.policy and fingerprint(again.policy) == fingerprint(policy)


def test_a_trial_is_inherited_or_replaced_whole(tmp_path: Path) -> None:
    write(tmp_path, "base", "trial: {arms: [critical-streams], worth: 3%}\n")
    _, same = read(write(tmp_path, "same", "extends: base\n"))
    _, other = read(write(tmp_path, "other", "extends: base\ntrial: {arms: raised-communication}\n"))
    assert same.trial and (arms(same), same.trial.worth) == (["critical-streams"], 30_000)
    assert other.trial and (arms(other), other.trial.worth) == (["raised-communication"], 5000)


def test_arms_take_what_they_cannot_differ_in_from_the_policy(tmp_path: Path) -> None:
    shared = "communication: {kernels: [all, mine], libraries: [liba.so], environment: {A: 1}, reserve_cus: 8}\n"
    base = write(tmp_path, "base", "gpu: gfx90a\ntrial: {arms: [critical-streams, raised-communication]}\n" + shared)
    streams = "communication: {streams: {created_by: [libb.so], priority: highest}}\n"
    for path in (base, write(tmp_path, "child", "extends: base\n" + streams)):
        _, policy = read(path)
        for arm in arms_of(policy):
            assert (arm.kernels, arm.libraries, arm.reserve_cus) == (("mine",), ("liba.so",), 8)
            assert arm.stream_creators == policy.stream_creators


def test_an_arm_may_say_what_the_policy_says(tmp_path: Path) -> None:
    common = write(tmp_path, "common", "communication: {kernels: [all, mine], environment: {A: 1}}\n").stem
    write(tmp_path, "arm", f"extends: {common}\ncritical: auto\n")
    _, policy = read(write(tmp_path, "mine", f"extends: {common}\ntrial: {{arms: arm}}\n"))
    assert len(arms_of(policy)) == 1


def test_arms_that_do_the_same_on_different_gpus_are_two(tmp_path: Path) -> None:
    for name in ("a40", "a100"):
        write(tmp_path, f"my-{name}", f'gpu: "NVIDIA {name.upper()}*"\ncritical: auto\n')
    _, policy = read(write(tmp_path, "mine", "trial: {arms: [my-a40, my-a100]}\n"))
    assert len(arms(policy)) == 2


def test_the_trial_of_an_arm_is_not_followed(tmp_path: Path) -> None:
    write(tmp_path, "arm", "trial: {arms: [nowhere]}\n")
    reading = read_file(write(tmp_path, "mine", "trial: {arms: [arm]}\n"))
    assert [(finding.line, finding.sentence) for finding in reading.findings] == [
        (3, "the arm `arm` has a trial itself")
    ]


def test_arms_are_policies_behind_all_others(library: Any) -> None:
    data = compile_table([PLAIN, TRIED])
    view = View(data)
    found = [view.policies[i] for i in range(4)]
    assert [view.text(policy.name) for policy in found] == ["plain", "tried", "first", "second"]
    assert [policy.is_arm for policy in found] == [0, 0, 1, 1]
    assert [policy.trial for policy in found] == [0, 1, 0, 0]
    trial = view.trials[0]
    assert (trial.arms.first, trial.arms.count, trial.worth) == (2, 2, 20_000)
    assert [(policy.first_rule, policy.rule_count) for policy in found] == [(0, 1), (1, 0), (1, 0), (1, 1)]
    assert [view.text(policy.hash) for policy in found[2:]] == [fingerprint(arm) for arm in arms_of(TRIED)]
    assert _native.text(library.overlap_table_check(data, len(data))) == ""
    assert library.overlap_policy_for(data, b"NVIDIA A40", b"sm_86") == 1
    only = compile_table([replace(TRIED, gpus=("NVIDIA H100*",))])
    assert library.overlap_policy_for(only, b"NVIDIA A40", b"sm_86") == 2**32 - 1


def test_each_policy_has_its_own_arms(library: Any) -> None:
    data = compile_table([replace(TRIED, gpus=("NVIDIA A40",)), PLAIN, replace(TRIED, name="more", gpus=("sm_80",))])
    view = View(data)
    assert [policy.trial for policy in view.policies[0:3]] == [1, 0, 2]
    assert [(trial.arms.first, trial.arms.count) for trial in view.trials[0:2]] == [(3, 2), (5, 2)]
    assert _native.text(library.overlap_table_check(data, len(data))) == ""


def test_the_fingerprint_covers_the_trial() -> None:
    first, second = TRIED.trial.arms if TRIED.trial else ()
    others = [
        replace(TRIED, trial=None),
        replace(TRIED, trial=Trial((first,), 20_000)),
        replace(TRIED, trial=Trial((second, first), 20_000)),
        replace(TRIED, trial=Trial((first, second), 20_001)),
        replace(TRIED, trial=Trial((first, Arm("", replace(SECOND, dispatch="drain"))), 20_000)),
        replace(TRIED, libraries=("liba.so",)),
    ]
    assert len({fingerprint(policy) for policy in [TRIED, *others]}) == len(others) + 1
    elsewhere = replace(TRIED, trial=Trial((first._replace(file="/tmp/first.yaml"), second), 20_000))
    assert fingerprint(elsewhere) == fingerprint(TRIED)


def test_the_dispatch_rule_of_an_arm_is_decided_like_that_of_a_policy() -> None:
    table = compile_table([TRIED])
    assert [item.policy for item in undecided([TRIED], table)] == [0, 2]
    assert undecided([TRIED], table)[1].gpus == ("NVIDIA A40",)


def test_what_earlier_runs_found_out(library: Any) -> None:
    table = compile_table([PLAIN, TRIED])
    data = remembered(table, 1, 2, 4, [(8, -0.25, 0.5), (3, 0.125, 1.0)])
    view = View(data)
    trial = view.trials[0]
    assert (trial.first_arm, trial.first_level, trial.worth, trial.arms.count) == (2, 4, 20_000, 2)
    known = [(each.count, each.sum, each.squares) for each in trial.known]
    assert known == [(8, -0.25, 0.5), (3, 0.125, 1.0), *[(0, 0, 0)] * 3]
    assert _native.text(library.overlap_table_check(data, len(data))) == ""
    assert int.from_bytes(data[12:16], "little") == zlib.crc32(data[32:]) != zlib.crc32(table[32:])
    for index, policy in enumerate((PLAIN, TRIED)):
        assert view.text(view.policies[index].hash) == fingerprint(policy)
    assert remembered(data, 1, 0, 0, [(0, 0, 0)] * 2) == table
    with pytest.raises(ValueError, match="1 arms for a trial of 2"):
        remembered(table, 1, 0, 0, [(0, 0, 0)])
    with pytest.raises(ValueError, match="1 arms for a trial of 0"):
        remembered(table, 0, 0, 0, [(0, 0, 0)])


def test_the_second_trial_of_a_table(library: Any) -> None:
    table = compile_table([replace(TRIED, gpus=("NVIDIA A40",)), PLAIN, replace(TRIED, name="more", gpus=("sm_80",))])
    assert trials(table) == [(0, ("first", "second")), (2, ("first", "second"))]
    data = remembered(table, 2, 1, 3, [(1, 0.5, 0.25), (0, 0, 0)])
    assert [(one.first_arm, one.first_level, one.known[0].count) for one in View(data).trials[0:2]] == [
        (0, 0, 0),
        (1, 3, 1),
    ]
    assert _native.text(library.overlap_table_check(data, len(data))) == ""


def test_what_is_remembered_is_where_the_header_has_it() -> None:
    from pyshim.policy import layout

    ffi = _native.ffi
    _native.header()
    policy, trial = "struct overlap_policy", "struct overlap_table_trial"
    assert (ffi.sizeof(policy), ffi.offsetof(policy, "trial")) == (layout._POLICY, layout._NUMBERED)
    assert (ffi.sizeof(trial), ffi.offsetof(trial, "known")) == (layout._TRIAL_SIZE, layout._TRIAL.size)
    fields = ("arms", "worth", "first_arm", "first_level")
    assert [ffi.offsetof(trial, field) for field in fields] == [0, 8, 12, 14]
    assert ffi.sizeof("struct overlap_samples") == layout._SAMPLES.size


def test_the_shipped_trial_keeps_both_where_neither_alone_is_as_good(
    overlap: Any, overlap_run: Any, tmp_path: Path
) -> None:
    """The boundary is computed on a third stream: raised with its collective, that gains twice as much."""
    report, env = str(tmp_path / "report"), {"XDG_CACHE_HOME": str(tmp_path)}
    asked = ("--simulate", "h200", "--policy", "trial", "--report", report)
    stencil = ("demo-stencil", "-", "plain", "600", "stencil/style-2", "256")
    done = overlap_run(*asked, "--", *stencil, env=env)
    assert done.returncode == 0 and "; trial: streams-and-communication kept; next: " in done.stderr
    said = overlap("report", report, env=env).stdout.splitlines()[0]
    assert said.startswith("trial: streams-and-communication: -1") and ", kept after" in said
    assert "critical-streams: -7" in said and "raised-communication: 0.0 %" in said


def test_the_shipped_trial_compares_with_a_run_in_which_nothing_is_changed(overlap: Any, overlap_run: Any) -> None:
    (policy,) = load("trial", {})
    (nothing,) = load("observe", {})
    assert replace(policy, name="observe", trial=None) == nothing
    raising = ["critical-streams", "raised-communication", "streams-and-communication"]
    assert arms(policy) == [*raising, "fewer-blocks", "fewer-workgroups"]
    for command in (overlap_run, "--policy", "trial", "--dry-run", "true"), (overlap, "doctor", "--policy", "trial"):
        run, *words = command
        done = run(*words)
        assert "Traceback" not in done.stderr and done.stdout + done.stderr
    asked = ("--threads", "256", "--registers", "64", "--comm-threads", "288", "--comm-registers", "96")
    done = overlap("explain", "--policy", "trial", "--gpu", "a100", "--kernel", "mine", *asked)
    assert done.returncode == 0 and "observe_only" in done.stdout
