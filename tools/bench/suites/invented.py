"""Random programs, to find harm in cases that no shape of the suite covers. A seed always makes the same ones."""

from __future__ import annotations

import random

from tools.bench.suites.programs import Program

# Waves at most: light kernels have many blocks, and blocks are what a simulation costs.
_COMPUTATION = {
    **dict.fromkeys(("gemm", "wide_gemm", "attention", "optimizer"), 6.0),
    **dict.fromkeys(("simt_gemm", "tiled", "norm", "elementwise"), 3.0),
}
_PERSISTENT = ("persistent:1m", "persistent_pair:2m")
_COLLECTIVES = (
    *("all_reduce_50", "all_reduce_100", "all_reduce_200", "all_reduce_400"),
    *("tree_100", "all_gather_150", "send_receive_200"),
)


def invented(count: int, seed: int) -> tuple[Program, ...]:
    source = random.Random(seed)
    return tuple(
        Program("invented", f"{seed}-{number}", _step(source), captured=source.random() < 0.1)
        for number in range(1, count + 1)
    )


def _step(source: random.Random) -> str:
    words: list[str] = []
    for _ in range(source.randint(2, 5)):
        words += [_computation(source) for _ in range(source.randint(1, 2))]
        if source.random() < 0.75:
            kind = source.choice("+++~")
            words.append(f"{kind}{source.choice(_COLLECTIVES)}:{source.choice((8, 16, 24, 32))}")
            if source.random() < 0.25:
                words.append("|")
    return " ".join(words)


def _computation(source: random.Random) -> str:
    if source.random() < 0.25:
        return source.choice(_PERSISTENT)
    kernel = source.choice(tuple(_COMPUTATION))
    return f"{kernel}:{source.uniform(0.3, _COMPUTATION[kernel]):.1f}w"
