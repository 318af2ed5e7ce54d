from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile

import pytest
import yaml

from pyshim import __version__
from pyshim.cli import ui
from pyshim.errors import OverlapError


def test_an_unknown_command_is_guessed(overlap):
    done = overlap("reprot")
    assert done.returncode == 2
    assert done.stderr == "overlap: error: no command is called 'reprot'\noverlap: help: did you mean report?\n"


def test_policies_and_gpus_are_listed(overlap, library, tmp_path):
    (tmp_path / "mine.yaml").write_text("policy: 1\nname: mine\n")
    (tmp_path / "bad.yaml").write_text("policy: 1\nnaem: x\n")
    env = {"OVERLAP_POLICY_PATH": str(tmp_path)}
    found = json.loads(overlap("policy", "list", "--json", env=env).stdout)
    h100 = next(gpu for gpu in found["gpus"] if gpu["key"] == "h100")
    assert (h100["name"], h100["architecture"], h100["shared_memory"]) == ("NVIDIA H100 80GB HBM3", "sm_90", 233472)
    policies = {policy["name"]: policy["gpu"] for policy in found["policies"]}
    assert (policies["h100"], policies["observe"], policies["mine"]) == (["NVIDIA H100*"], [], [])
    done = overlap("policy", "list", env=env)
    assert (
        done.stderr == f"overlap: warning: {tmp_path}/bad.yaml has mistakes: overlap policy check {tmp_path}/bad.yaml\n"
    )
    assert len(done.stdout.splitlines()) == len(policies) + len(found["gpus"]) + 3
    assert "NVIDIA H100 80GB HBM3" in done.stdout and re.search("^mine +every GPU$", done.stdout, re.M)


def test_a_reader_that_has_seen_enough_is_no_error(clean_environment, library):
    command = f"{sys.executable} -m pyshim policy list --json | true; echo ${{PIPESTATUS[0]}}"
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
    behind = RuntimeError("Error calling __set_name__")
    behind.__cause__ = KeyboardInterrupt()
    assert fail(behind) == (130, "")


def test_a_mistake_of_ours_is_two_lines_and_a_log(capfd, monkeypatch, tmp_path):
    """The place and the versions are in a file, and not in the output of the user's job."""

    def fail():
        raise ZeroDivisionError("x\ny")

    with monkeypatch.context() as only:
        only.setattr(tempfile, "tempdir", str(tmp_path))
        assert ui.guarded(fail) == 3
    (log,) = tmp_path.iterdir()
    assert capfd.readouterr().err == (
        "overlap: error: a mistake in overlap-run itself: ZeroDivisionError: x?y\n"
        f"overlap: help: please report it with {log}, which has versions and the place\n"
    )
    text = log.read_text()
    assert f"overlap-run {__version__}, " in text and f"PyYAML {yaml.__version__}" in text
    assert f"{__file__}" in text and 'raise ZeroDivisionError("x\\ny")' in text
    with monkeypatch.context() as only:
        only.setattr(tempfile, "tempdir", str(tmp_path / "gone"))
        assert ui.guarded(fail) == 3
    said = capfd.readouterr().err
    assert "Traceback" in said and said.endswith("overlap: help: please report it with the lines above\n")


def test_a_name_cannot_move_the_cursor(capfd):
    ui.say("a\x1b[31mb\rc")
    assert capfd.readouterr().err == "overlap: a?[31mb?c\n"


@pytest.mark.parametrize(
    ("command", "hint"),
    [
        ("policy room --gpu h100 --kernel 128:64 --com 288:96", "did you mean --comm?"),
        ("policy room --gpu h100 --kernel 128:64 --Json=yes", "did you mean --json?"),
        ("demo --simulate h100", "did you mean --gpu?"),
        ("report out --jsn", "did you mean --json?"),
        ("policy list --zzzz", "overlap policy list --help"),
        ("policy list h100", "overlap policy list --help"),
    ],
)
def test_an_option_that_is_written_otherwise_gets_a_suggestion(overlap, command, hint):
    done = overlap(*command.split())
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.endswith(f"overlap: help: {hint}\n"), done.stderr
