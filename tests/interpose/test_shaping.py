"""The driver gets the size that the rule asks for; the program never learns of it."""

from __future__ import annotations

import pytest
from interposing import BLOCKS, Runner, rule, same, smallest_size

LAUNCH = f"launch=k,{BLOCKS},256"


@pytest.mark.parametrize(
    ("shape", "asked", "size"),
    [
        ("{blocks_per_sm: 1}", 0, smallest_size(1)),
        ("{blocks_per_sm: 2}", 1000, smallest_size(2)),
        ("{blocks_per_sm: 50%}", 0, smallest_size(4)),  # of eight
        ("{dynamic_shared_memory: 96KiB}", 0, 98304),
        ("{dynamic_shared_memory: 40KiB}", 49152, 49152),  # never less than asked
        ("{dynamic_shared_memory: 40KiB}", 100, 40960),
    ],
)
def test_size_is_the_larger_of_asked_and_target(
    shape: str, asked: int, size: int, bare: Runner, preloaded: Runner
) -> None:
    words = f"ptx=k repeat=5 {LAUNCH},{asked} repeat=5 ex=k,{BLOCKS},256,{asked}"
    done = preloaded(words, rule(shape))
    same(done, bare(words), but=["dynamic_shared"])
    assert done.sizes == [size] * 10
    assert done.totals["shaped"] == (10 if size != asked else 0)
    assert done.totals["refused"] == 0


def test_a_policy_for_another_gpu_says_so_once(bare: Runner, preloaded: Runner) -> None:
    words = f"ptx=k repeat=4 {LAUNCH},0 ex=k,1,32,0"
    done, without = preloaded(words, "a40-paper"), bare(words)
    assert done.stderr.count("\n") == 1
    assert "no policy is for NVIDIA H100" in done.stderr
    assert (done.stdout, done.launches) == (without.stdout, without.launches)
    assert done.reasons == {"observe_only": 5}
