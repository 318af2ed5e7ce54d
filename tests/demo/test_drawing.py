"""Timelines as text: whole outputs, at the narrowest and at a usual width, with and without block characters."""

from __future__ import annotations

import re

import pytest

from pyshim.demo.drawing import Style, clamp, lanes, legend, style_for
from pyshim.demo.scenes import STEP as STEP_SCENE
from pyshim.demo.timeline import Span, arrange

GEMM, REDUCE = "sgemm", "ncclDevKernel_AllReduce"
STEP = arrange(
    [
        Span(GEMM, False, 0, 100, 10, 256, 0),
        Span(GEMM, False, 100, 200, 10, 256, 0),
        Span(REDUCE, True, 150, 250, 10, 544, 0),
        Span(REDUCE, True, 250, 350, 10, 544, 0),
        Span("update", False, 350, 351, 10, 256, 0),
    ],
    GEMM,
    layers=2,
    buckets=2,
)
ASCII = style_for("ascii", color=False)
BLOCKS = style_for("utf-8", color=False)


def test_sixty_columns_in_ascii() -> None:
    assert lanes(STEP, 400, 60, ASCII) == [
        "  compute  1###########2===========                   o",
        "  comm                 ......1############2===========",
    ]


def test_a_hundred_columns_in_block_characters() -> None:
    assert lanes(STEP, 400, 100, BLOCKS) == [
        "  compute  1█████████████████████2▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓                                  o",
        "  comm                           ···········1██████████████████████2▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓",
    ]


@pytest.mark.parametrize("width", [60, 77, 100, 120])
def test_no_line_is_wider_than_asked(width: int) -> None:
    assert all(len(line) <= width for line in lanes(STEP, STEP.end_us, width, BLOCKS))


def test_colour_changes_nothing_but_colour() -> None:
    colored = lanes(STEP, 400, 80, Style(BLOCKS.fills, BLOCKS.waiting, color=True))
    assert any("\x1b[" in line for line in colored)
    assert [re.sub(r"\x1b\[[0-9]*m", "", line) for line in colored] == lanes(STEP, 400, 80, BLOCKS)


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", None, "no-such-encoding"])
def test_an_encoding_without_block_characters_gets_ascii(encoding: str | None) -> None:
    style = style_for(encoding, color=False)
    assert "".join([*lanes(STEP, 400, 80, style), legend(STEP_SCENE.legend, style)]).isascii()


def test_width_is_kept_between_sixty_and_a_hundred_and_twenty() -> None:
    assert [clamp(width) for width in (1, 60, 80, 500)] == [60, 60, 80, 120]
