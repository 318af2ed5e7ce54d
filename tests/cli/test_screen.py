"""Output fits the width of the screen, and is coloured only on a terminal, or if asked for."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyshim.cli.columns import shortened, tables
from tests.terminal import on_a_terminal

WORDS = st.lists(st.text("abcdef", min_size=1, max_size=12), max_size=6).map(" ".join)  # longer ones may be cut
HEADS = ("name", "count", "meaning", "more")


def lines(*arguments, **keywords):
    return [line for table in tables(*arguments, **keywords) for line in table]


@given(
    rows=st.lists(st.tuples(WORDS, st.integers(0, 10**12).map(str), WORDS, st.integers(0, 9).map(str)), max_size=5),
    limit=st.integers(60, 100),
)
def test_no_line_is_wider_and_no_number_is_lost(rows, limit):
    shown = lines(HEADS, rows, left=(0, 2), limit=limit)
    assert max(map(len, shown)) <= limit
    words = " ".join(shown).split()
    for row in rows:
        assert row[1] in words and row[3] in words
        assert all(word in words for word in row[2].split())  # prose goes on below, whole


def test_columns_that_do_not_fit_come_below_with_the_first_again():
    heads = ("key", *(f"number {index}" for index in range(9)))
    first, *others = tables(heads, [("h100", *["123,456,789"] * 9)], left=(0,), limit=60)
    assert others and all(table[1].startswith("h100") for table in [first, *others])
    assert sum(table[1].count("123,456,789") for table in [first, *others]) == 9


def test_a_name_has_a_line_of_its_own_where_a_row_is_too_long():
    heads, long = ("name", "count", "why"), "k" * 50
    row = (long, "123,456", "left: it is")
    assert lines(heads, [row], left=(0, 2), limit=80, above=True)[1] == f"{long}  123,456  left: it is"
    assert lines(heads, [row], left=(0, 2), limit=60, above=True) == [
        "  count  why", long, "123,456  left: it is"
    ]  # fmt: skip
    assert lines(heads, [("k" * 70, *row[1:])], left=(0, 2), limit=60, above=True)[1] == "k" * 29 + "..." + "k" * 28
    # What does not fit even so is shown as without it.
    wide = (long, "123,456", "word " * 20)
    assert lines(heads, [wide], (0, 2), 60, True) == lines(heads, [wide], (0, 2), 60)


def test_names_are_cut_in_their_middle():
    assert shortened("ncclDevKernel_AllReduce_Sum_f32_RING_LL", 20) == "ncclDevKe..._RING_LL"
    assert len(shortened("x" * 100, 20)) == 20
    assert shortened("short", 20) == "short"


def screen(*arguments, **environment):
    """Return what is printed to a terminal of 60 columns."""
    base = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "NO_COLOR", "TERM")}
    command = [sys.executable, "-m", "pyshim", *arguments]
    return on_a_terminal(command, {**base, "TERM": "xterm", **environment}, 60)


def test_a_terminal_has_heads_in_bold_and_its_own_width(library):
    shown = screen("policy", "list")
    assert "\x1b[1mpolicy" in shown
    assert max(len(line) for line in shown.replace("\x1b[1m", "").replace("\x1b[0m", "").splitlines()) <= 60


def test_a_long_warning_is_broken_and_stands_behind_its_prefix(clean_environment):
    command = [sys.executable, "-c", "from pyshim.cli import ui; ui.tell('warning:' + 30 * ' word')"]
    shown = on_a_terminal(command, {**clean_environment, "COLUMNS": ""}, 60, stdout=subprocess.DEVNULL, stderr=None)
    first, *others = shown.splitlines()
    assert first.startswith("overlap: warning: word") and len(others) == 3 and len(first) <= 60
    assert all(line.startswith(f"{' ' * len('overlap: ')}word") and len(line) <= 60 for line in others), shown
    done = subprocess.run(command, env=clean_environment, stderr=subprocess.PIPE, text=True, check=True)
    assert done.stderr == f"overlap: warning:{30 * ' word'}\n"


@pytest.mark.parametrize("environment", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_without_colours_there_is_no_code_at_all(library, environment):
    assert "\x1b" not in screen("policy", "list", **environment)


@pytest.mark.parametrize(
    ("environment", "coloured"),
    [({}, False), ({"FORCE_COLOR": "1"}, True), ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, False)],
)
def test_colours_in_a_pipe_are_for_the_user_to_say(overlap, library, environment, coloured):
    for words in (("policy", "list"), ("policy", "check", "h100")):
        assert ("\x1b[" in overlap(*words, env=environment).stdout) == coloured


def test_an_empty_no_color_means_nothing(library):
    assert "\x1b[1m" in screen("policy", "list", NO_COLOR="")
