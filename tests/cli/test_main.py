from __future__ import annotations

import json
import subprocess
import sys

import pytest

from pyshim.cli import ui
from pyshim.errors import OverlapError


def test_help_and_usage(overlap):
    done = overlap("--help")
    assert (done.returncode, done.stderr) == (0, "")
    for name in ("policy", "report", "gpus", "env"):
        assert f"    {name} " in done.stdout
    assert overlap().returncode == 2


def test_an_unknown_command_is_guessed(overlap):
    done = overlap("reprot")
    assert done.returncode == 2
    assert done.stderr == "overlap: error: no command is called 'reprot'\noverlap: help: did you mean report?\n"


def test_an_unknown_option_is_a_usage_error(overlap):
    done = overlap("gpus", "--jsn")
    assert done.returncode == 2
    assert done.stderr.startswith("overlap: error: unrecognized arguments: --jsn\n")


def test_gpus(overlap, library):
    gpus = json.loads(overlap("gpus", "--json").stdout)["gpus"]
    h100 = next(gpu for gpu in gpus if gpu["key"] == "h100")
    assert (h100["name"], h100["architecture"], h100["shared_memory"]) == ("NVIDIA H100 80GB HBM3", "sm_90", 233472)
    done = overlap("gpus")
    assert done.stderr == ""
    assert len(done.stdout.splitlines()) == len(gpus) + 2  # heads, and what can be simulated
    assert "NVIDIA H100 80GB HBM3" in done.stdout


def test_a_reader_that_has_seen_enough_is_no_error(clean_environment, library):
    command = f"{sys.executable} -m pyshim gpus --json | true; echo ${{PIPESTATUS[0]}}"
    for _ in range(3):
        done = subprocess.run(
            ["bash", "-c", command], env=clean_environment, capture_output=True, text=True, check=True
        )
        assert (done.stdout, done.stderr) == ("141\n", "")


def test_one_place_turns_errors_into_words(capfd):
    def fail(error):
        def body():
            raise error

        return ui.guarded(body), capfd.readouterr().err

    assert fail(OverlapError("No\nway", "try", 7)) == (7, "overlap: error: No?way\noverlap: help: try\n")
    assert fail(KeyboardInterrupt()) == (130, "")
    status, text = fail(ZeroDivisionError("x"))
    assert status == 3
    assert text.endswith(
        "overlap: error: this is a mistake in overlap-run itself; please report it with the lines above\n"
    )


def test_a_name_cannot_move_the_cursor(capfd):
    ui.say("a\x1b[31mb\rc")
    assert capfd.readouterr().err == "overlap: a?[31mb?c\n"


def test_gpus_lists_all_and_says_which_are_simulated(overlap, library):
    answer = json.loads(overlap("gpus", "--json").stdout)["gpus"]
    simulated = {gpu["key"]: gpu["simulated"] for gpu in answer}
    assert len(simulated) == 8
    assert all(simulated.values())
    assert {gpu["key"]: gpu["architecture"] for gpu in answer}["mi250x"] == "gfx90a"
    lines = overlap("gpus").stdout.splitlines()
    assert len(lines) == 10 and lines[-1] == "overlap-run --simulate takes each of them"


@pytest.mark.parametrize(
    ("command", "hint"),
    [
        ("explain --gpu h100 --threads 128 --registers 64 --dynamic_smem 48KiB", "did you mean --dynamic-smem?"),
        ("explain --gpu h100 --threads 128 --registers 64 --keep_at_least=50%", "did you mean --keep-at-least?"),
        ("explain --gpu h100 --thread 128", "did you mean --threads?"),
        ("policy show auto --jsn", "did you mean --json?"),
        ("gpus --zzzz", "overlap gpus --help"),
        ("gpus h100 extra", "overlap gpus --help"),
    ],
)
def test_an_option_that_is_written_otherwise_gets_a_suggestion(overlap, command, hint):
    done = overlap(*command.split())
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.endswith(f"overlap: help: {hint}\n"), done.stderr
