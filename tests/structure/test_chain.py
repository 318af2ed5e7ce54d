"""A launch passes the library once, however many other tools stand in the row: RTLD_NEXT never leads back to us."""

from __future__ import annotations

from pathlib import Path

import pytest
from interposing import BLOCKS, ONE, Build, Runner

PROGRAMS = Path(__file__).resolve().parent.parent / "programs"

WORDS = "ptx=k" + f" launch=k,{BLOCKS},256,0" * 3


@pytest.mark.parametrize("order", ["{{}}:{other}", "{other}:{{}}"])
def test_another_wrapper_that_asks_for_the_next(order: str, build: Build, bare: Runner, preloaded: Runner) -> None:
    source = Path(__file__).resolve().parent / "chain.c"
    other = build.library("libchain.so", str(source), "-D_GNU_SOURCE")
    without = bare(WORDS, env={"LD_PRELOAD": str(other)})
    done = preloaded(WORDS, ONE, preload=order.format(other=other))
    assert done.stdout == without.stdout
    assert len(done.launches) == len(without.launches) == 3
    assert done.totals["launches"] == 3
    assert len(set(done.sizes)) == 1 and done.sizes[0] > without.sizes[0]
