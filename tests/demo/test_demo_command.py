"""`overlap demo`: what it answers, that it answers the same twice, and what it says to a person."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from typing import Any

import pytest

Call = Callable[..., "subprocess.CompletedProcess[str]"]
Answer = Callable[[str], dict[str, Any]]
RULES = ("hold", "drain", "backfill")
TIMES = ("sequential_ms", "without_ms", "with_ms")
ARMS = ("sequential", "plain", "default")

pytestmark = pytest.mark.usefixtures("built")


@pytest.mark.parametrize("gpu", ["h100", "a100", "a40"])
def test_the_answer_has_every_field(answer: Answer, gpu: str) -> None:
    found = answer(gpu)
    assert found["gpu"].startswith(f"NVIDIA {gpu.upper()}")
    assert (found["simulated"], found["rule"]) == (True, "hold")
    assert tuple(found["rules"]) == RULES
    for times in (found, *found["rules"].values()):
        assert all(times[name] > 0 for name in TIMES)
        assert times["change_percent"] == pytest.approx(
            100 * (times["with_ms"] - times["without_ms"]) / times["without_ms"]
        )
    assert {name: found[name] for name in (*TIMES, "change_percent")} == found["rules"]["hold"]
    assert tuple(found["scenes"]) == ("stencil", "step")
    step = found["scenes"]["step"]
    assert {name: found[name] for name in step} == step
    assert set(found["scenes"]["stencil"]) == set(step)


@pytest.mark.parametrize("rule", RULES)
def test_a_rule_is_shown_as_asked(call: Call, answer: Answer, rule: str) -> None:
    done = call("--rule", rule, "--json")
    found = json.loads(done.stdout)
    assert found["rule"] == rule
    assert found["with_ms"] == answer("h100")["rules"][rule]["with_ms"]


def test_the_gpu_is_said_as_simulate_takes_it(call: Call, answer: Answer) -> None:
    found = json.loads(call("--gpu", "H100:drain", "--json").stdout)
    assert found["rule"] == "drain"
    assert found["with_ms"] == answer("h100")["rules"]["drain"]["with_ms"]


def shown(done: subprocess.CompletedProcess[str]) -> list[str]:
    """Without lines about how far it is."""
    return [line for line in (done.stdout + done.stderr).splitlines() if not line.startswith("overlap: ")]


def test_two_runs_are_equal(call: Call, answer: Answer) -> None:
    assert json.loads(call("--gpu", "h100", "--json").stdout) == answer("h100")


def test_one_stream_knows_no_dispatch_rule(answer: Answer) -> None:
    assert len({times["sequential_ms"] for times in answer("h100")["rules"].values()}) == 1


@pytest.mark.parametrize(("rule", "least"), [("hold", 10), ("drain", 10), ("backfill", 2)])
def test_the_default_policy_gains_on_the_stencil(answer: Answer, rule: str, least: float) -> None:
    stencil = answer("h100")["scenes"]["stencil"]
    assert stencil["rules"][rule]["change_percent"] < -least
    assert stencil["verdicts"][rule].startswith("raising pays")


def test_the_stream_of_the_exchange_is_raised_with_its_boundary_planes(answer: Answer) -> None:
    counters = answer("h100")["scenes"]["stencil"]["counters"]
    assert list(counters) == ["default"], "the others run without the library"
    assert counters["default"]["raised"] > counters["default"]["reasons"]["raised"] >= 8
    assert counters["default"]["shaped"] == 0
    assert sum(counters["default"]["reasons"].values()) == counters["default"]["launches"]


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("gpu", ["h100", "a100", "a40"])
def test_the_default_policy_loses_nowhere(answer: Answer, gpu: str, rule: str) -> None:
    for scene in answer(gpu)["scenes"].values():
        assert scene["rules"][rule]["change_percent"] < 0.5


def test_without_the_library_all_rules_are_the_same(answer: Answer) -> None:
    for scene in answer("h100")["scenes"].values():
        for name in ("sequential_ms", "without_ms"):
            assert len({times[name] for times in scene["rules"].values()}) == 1


def test_how_far_it_is_goes_to_stderr_in_whole_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    from pyshim.cli import demo, ui

    said: list[str] = []
    monkeypatch.setattr(ui, "say", said.append)
    monkeypatch.setattr(demo, "PAUSE", 0.0)
    with demo.progress(3, "NVIDIA Invented") as ran:
        for _ in range(3):
            ran()
    assert said == ["1 of 3 runs on NVIDIA Invented", "2 of 3 runs on NVIDIA Invented"]


@pytest.mark.parametrize("width", [60, 80, 100, 120])
def test_text_fits_the_terminal_and_says_that_it_is_simulated(call: Call, width: int) -> None:
    done = call("--gpu", "h100", COLUMNS=str(width), NO_COLOR="1")
    assert done.returncode == 0
    lines = shown(done)
    assert max(map(len, lines)) <= width
    assert "\x1b" not in done.stdout + done.stderr
    assert "simulated" in lines[0]
    for arm in ARMS:
        assert len([line for line in lines if re.search(rf"^{arm}: .* simulated +\d+\.\d+ ms$", line)]) == 2
    lanes = [sum(line.startswith(f"  {lane} ") for line in lines) for lane in ("compute", "halo", "comm")]
    assert lanes == [6, 3, 3]


def test_a_terminal_without_block_characters_gets_ascii(call: Call) -> None:
    done = call("--gpu", "h100", PYTHONUTF8="0", PYTHONIOENCODING="ascii")
    assert done.returncode == 0
    assert (done.stdout + done.stderr).isascii()


def test_a_gpu_without_kernels_is_said_in_one_sentence(call: Call) -> None:
    done = call("--gpu", "b200")
    assert done.returncode == 1
    assert "compute capability 10.0" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "words",
    [
        ["--gpu", "h10"],
        ["--gpu", "mi250x"],
        ["--gpu", "h100,2"],
        ["--gpu", "h100:drain", "--rule", "hold"],
        ["--rule", "first"],
        ["--real", "--gpu", "h100"],
    ],
)
def test_wrong_words_are_usage(call: Call, words: list[str]) -> None:
    assert call(*words).returncode == 2


def test_an_outer_run_does_not_reach_the_arms(call: Call, answer: Answer) -> None:
    done = call("--gpu", "h100", "--json", OVERLAP_RUN="off", SIMGPU_COSTS="/nowhere", OVERLAP_TABLE="x")
    assert json.loads(done.stdout) == answer("h100")
