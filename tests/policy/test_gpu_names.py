"""One lookup for the name of a GPU, in whichever command and option it is said."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyshim.errors import OverlapError
from pyshim.policy import gpus
from pyshim.start import driver

WORDS = {
    "h100": "h100",
    "H100": "h100",
    "NVIDIA H100 80GB HBM3": "h100",
    "nvidia h100 80gb hbm3": "h100",
    "H100 80GB HBM3": "h100",
    "sm_80": "a100",
    "GFX90A": "mi250x",
}


@pytest.mark.parametrize("word", WORDS)
def test_a_name(word, library):
    assert gpus.named(word).key == driver.parse(word).key == WORDS[word]


@pytest.mark.parametrize("word", ["nvidia h100 80gb hbm3", "GFX90A"])
def test_every_command_takes_it(word, overlap, overlap_run, library):
    key = WORDS[word]
    name = gpus.named(word).name
    done = overlap_run("--simulate", word, "--dry-run", "true")
    assert (done.returncode, f"simulated {name}" in done.stderr) == (0, True), done.stderr
    shown = overlap("policy", "show", "auto", "--gpu", word)
    assert (shown.returncode, shown.stderr) == (0, "")
    room = overlap("policy", "room", "--gpu", word, "--kernel", "128:64", "--json")
    assert (room.returncode, room.stderr, json.loads(room.stdout)["gpu"]) == (0, "", key)


def test_every_gpu_has_its_names(library):
    for gpu in gpus.known():
        assert gpus.named(gpu.key) == gpus.named(gpu.name) == gpu


@given(st.text(max_size=30))
def test_any_other_word_is_one_sentence_with_a_next_step(word):
    try:
        assert gpus.named(word) in gpus.known()
    except OverlapError as error:
        assert "\n" not in error.sentence and error.hint


@pytest.mark.parametrize(
    ("word", "sentence", "hint"),
    [
        ("h10", "no GPU is called `h10`", "did you mean `h100`? known: a40, "),
        ("NVIDIA H100 PCIe", "no GPU is called `NVIDIA H100 PCIe`", "did you mean `h100`? known: a40, "),
        ("MI250X/MI250", "no GPU is called `MI250X/MI250`", "did you mean `mi250x`? known: a40, "),
        ("sm_90", "`sm_90` is the architecture of h100 and h200", "name one of them: h100"),
        ("", "no GPU is called ``", "known: a40, "),
    ],
)
def test_what_is_no_name(word, sentence, hint, library):
    with pytest.raises(OverlapError) as caught:
        gpus.named(word)
    assert caught.value.sentence == sentence and caught.value.hint.startswith(hint)


def test_every_command_refuses_it(overlap, overlap_run, library):
    commands = (
        (overlap_run("--simulate", "h10", "true"), 125),
        (overlap("doctor", "--simulate", "h10"), 2),
        (overlap("policy", "show", "auto", "--gpu", "h10"), 2),
        (overlap("demo", "--gpu", "h10"), 2),
        (overlap("policy", "room", "--gpu", "h10", "--kernel", "1:1"), 2),
    )
    for done, status in commands:
        assert (done.returncode, done.stdout) == (status, "")
        assert "no GPU is called `h10`" in done.stderr and "help: did you mean `h100`? known: a40, " in done.stderr
