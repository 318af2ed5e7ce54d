"""The programs of the suite: one table of shapes, three programs each. Adding a program is adding a line.

A step is a text of words:

    gemm:4.5w        computation, a kernel of kernels.py: 4.5 waves of what the device holds; 1m: one block for each
                     multiprocessor; 200: so many blocks
    +all_reduce_200:24   a collective of 200 us and 24 blocks (over PCIe a third of them) on its own stream, of what was
                     computed so far
    ~all_gather_150:24   likewise, but it needs nothing of this step: a prefetch
    |  |2            computation waits for all collectives so far, or for the second one of the step
    !                the host waits for everything

At the end of every step computation waits for all collectives, and the host for computation.

Shapes of `stencil.c` are patterns of that program and have a sentence instead of words.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyshim.policy.gpus import KnownGpu
from tools.bench.suites import kernels


@dataclass(frozen=True)
class Program:
    shape: str
    parameter: str
    step: str
    captured: bool
    stencil: bool = False

    @property
    def name(self) -> str:
        return f"{self.shape}/{self.parameter}"


@dataclass(frozen=True)
class Shape:
    name: str
    about: str
    steps: dict[str, str]  # by parameter
    captured: bool = False
    stencil: bool = False


SHAPES = (
    Shape(
        "no-communication",
        "computation alone, by kernel",
        {"gemm": "gemm:5w optimizer:3w", "simt": "simt_gemm:4.5w", "elementwise": "elementwise:3w wide_gemm:3w"},
    ),
    Shape(
        "synchronous",
        "computation waits for each collective, by length of the collective; nothing can overlap",
        {
            "short": "gemm:4w +all_reduce_50:24 | " * 2,
            "middle": "gemm:4w +all_reduce_200:24 | " * 2,
            "host": "gemm:4w +all_reduce_100:24 ! " * 2,
        },
    ),
    Shape(
        "overlapped-already",
        "the collective is on its multiprocessors before computation comes, by kernel",
        {
            "gemm": "~all_reduce_400:24 gemm:5w gemm:5w",
            "simt": "~all_reduce_200:24 simt_gemm:4.5w",
            "wide": "~all_reduce_400:16 " + "wide_gemm:2.5w " * 4,
        },
    ),
    Shape(
        "short-kernels",
        "many kernels of a wave or two, a collective now and then, by kernel",
        {
            "gemm": "gemm:0.8w gemm:1.6w gemm:0.6w +all_reduce_50:16 " * 4,
            "elementwise": "elementwise:0.4w norm:0.3w elementwise:1.2w +all_reduce_50:8 " * 3,
            "mixed": "wide_gemm:0.7w norm:0.3w gemm:1.2w elementwise:0.4w +all_reduce_50:16 " * 3,
        },
    ),
    Shape(
        "one-long-kernel",
        "one collective beside one long kernel, by kernel",
        {
            "gemm": "wide_gemm:1w +all_reduce_200:24 gemm:7w",
            "tiled": "wide_gemm:1w +all_reduce_200:24 tiled:5w",
            "wide": "wide_gemm:1w +all_reduce_200:24 wide_gemm:7w",
        },
    ),
    Shape(
        "tail-bound",
        "grids just over full waves: the collective enters in the tail, by length of the tail",
        {
            "tenth": "gemm:3.1w +all_reduce_50:24 " * 3,
            "half": "wide_gemm:2.5w +all_reduce_50:24 " * 3,
            "nine-tenths": "gemm:2.9w +all_reduce_100:24 " * 3,
        },
    ),
    Shape(
        "memory-bound",
        "elementwise kernels, norms and optimisers beside collectives",
        {
            "elementwise": "elementwise:1w +all_reduce_100:24 elementwise:5w",
            "norm": "norm:2w +all_reduce_50:16 norm:4w",
            "optimizer": "optimizer:2w +all_reduce_100:24 optimizer:9w +all_reduce_100:24 optimizer:5w",
        },
    ),
    Shape(
        "communication-bound",
        "communication takes longer than computation, by how much",
        {
            "half-more": "gemm:4.5w +all_reduce_400:24 gemm:4.5w | optimizer:2w",
            "twice": "wide_gemm:2w +all_reduce_200:24 wide_gemm:2w +all_reduce_400:24",
            "eight-times": "gemm:2.2w +all_reduce_400:24 gemm:2.2w +all_reduce_400:24 | optimizer:2w",
        },
    ),
    Shape(
        "persistent",
        "grids of one wave that fill the GPU beside collectives, by grid",
        {
            "one-per-sm": "persistent:1m +all_reduce_100:24 " * 3,
            "two-per-sm": "persistent_pair:2m +all_reduce_100:24 " * 3,
            "fewer-sms": "wide_gemm:1w " + "persistent:0.8m +all_reduce_100:16 " * 3,
        },
    ),
    Shape(
        "not-needed-yet",
        "collectives that computation waits for much later: to get in sooner gains nothing",
        {
            "attention": "persistent_pair:2m wide_gemm:0.6w +all_reduce_200:16 attention:2.9w tiled:1.6w "
            "+send_receive_200:16",
            "prefetch": "simt_gemm:2.7w +all_reduce_400:24 | simt_gemm:2.9w gemm:1.7w ~all_reduce_100:24",
            "persistent": "gemm:1.3w attention:1.9w +all_reduce_100:24 gemm:3.7w persistent:1m gemm:5.3w "
            "~all_reduce_400:32 | optimizer:0.8w",
        },
    ),
    Shape(
        "captured",
        "a step with two collectives as a graph, by kernel",
        {
            "gemm": "gemm:4.3w +all_reduce_100:24 gemm:4.3w +all_reduce_100:24 gemm:4.3w | optimizer:2w",
            "simt": "simt_gemm:2.2w +all_reduce_200:24 simt_gemm:3.3w | optimizer:2w",
            "persistent": "persistent:1m +all_reduce_100:24 persistent:1m +all_reduce_100:24 gemm:2w",
        },
        captured=True,
    ),
    Shape(
        "tensor-parallel",
        "two half batches in turn: the collective of one beside the computation of the other, which is short",
        {
            "quarter": "gemm:4.2w +all_reduce_50:24 gemm:4.2w |1 +all_reduce_50:24 gemm:4.2w |2 +all_reduce_50:24 "
            "gemm:4.2w",
            "half": "gemm:4.2w +all_reduce_100:24 gemm:4.2w |1 +all_reduce_100:24 gemm:4.2w |2 +all_reduce_100:24 "
            "gemm:4.2w",
            "tree": "wide_gemm:4.2w +tree_100:16 wide_gemm:4.2w |1 +tree_100:16 wide_gemm:4.2w |2 +tree_100:16",
        },
    ),
    Shape(
        "data-parallel",
        "backward layers, a bucket after each, the optimiser waits for all of them, by kernel",
        {
            "gemm": "gemm:4.4w +all_reduce_200:24 " * 3 + "| optimizer:3w",
            "wide": "wide_gemm:4.4w +all_reduce_200:24 " * 4 + "| optimizer:3w",
            "attention": "attention:4.4w gemm:3.3w norm:0.5w +all_reduce_200:24 " * 2 + "| optimizer:3w",
        },
    ),
    Shape(
        "sharded",
        "the weights of the next layer are gathered beside this one, gradients scattered, by kernel",
        {
            "gemm": "~all_gather_150:24 gemm:2w |1 ~all_gather_150:24 gemm:5.3w |2 +reduce_scatter_150:24 gemm:4.4w",
            "wide": "~all_gather_150:24 wide_gemm:2w |1 ~all_gather_150:24 wide_gemm:4.3w |2 "
            "+reduce_scatter_150:24 wide_gemm:4.3w",
            "simt": "~all_gather_150:24 simt_gemm:1.3w |1 +reduce_scatter_150:24 simt_gemm:3.3w",
        },
    ),
    Shape(
        "experts",
        "send and receive, 640 threads whatever is set, beside other work, by kernel",
        {
            "gemm": "gemm:2.3w +send_receive_200:16 gemm:5.3w | gemm:2.3w",
            "attention": "attention:2.3w +send_receive_200:16 attention:4.3w | gemm:2.3w",
            "norm": "norm:1w +send_receive_200:32 norm:2w elementwise:1.5w norm:2w | gemm:2.3w",
        },
    ),
    Shape(
        "stencil",
        "boundary planes, their exchange by a collective on the halo stream, the interior beside it, by style",
        {
            "style-0": "the boundary is computed on the halo stream, in front of the collective",
            "style-1": "the boundary is computed on the computing stream; an event hands over",
            "style-2": "the boundary is computed on a third stream; an event hands over",
            "one": "all of it on one stream: nothing can overlap",
            "graph": "style 0, two iterations captured once and replayed",
            "swapped": "style 0, and the two streams swap their roles in each iteration",
        },
        stencil=True,
    ),
    Shape(
        "host-staged",
        "style 0, exchanged through memory of the host, by how the host waits",
        {
            "stream": "the host waits for the halo stream",
            "event": "the host waits for an event of the halo stream",
            "poll": "the host polls an event of the halo stream",
            "poll-stream": "the host polls the halo stream",
            "blocking": "the host calls copies that block it",
            "function": "a host function of the halo stream exchanges; the host waits for nothing",
            "pageable": "asynchronous copies of pageable memory, which block the host",
        },
        stencil=True,
    ),
    Shape(
        "trap",
        "what must not be raised, or gains nothing by it",
        {
            "warm-up": "style 0, after one exchange on the computing stream",
            "reset": "likewise, and the halo stream waits for an event of the computing stream in each iteration",
            "synchronised": "no exchange: the host waits for the only stream in each iteration",
            "equal": "two halves of the points on two streams, both with computation and collectives",
            "loader": "a stream copies the next batch and prepares it beside computation; the host waits for the copy",
            "logger": "a thread polls an event of the computing stream; a collective runs beside computation",
        },
        stencil=True,
    ),
)
PROGRAMS = tuple(
    Program(shape.name, parameter, step, shape.captured, shape.stencil)
    for shape in SHAPES
    for parameter, step in shape.steps.items()
)


def words(program: Program, gpu: KnownGpu) -> list[str]:
    """Return a step as program.c reads it, in blocks of this GPU."""
    return [_word(word, gpu) for word in program.step.split()]


def _word(word: str, gpu: KnownGpu) -> str:
    if word == "!":
        return "s"
    if word.startswith("|"):
        return f"w{word[1:]}"
    name, _, size = word.lstrip("+~").partition(":")
    if word[0] in "+~":
        kernel, kind = kernels.collective(name, gpu), "c" if word[0] == "+" else "p"
        blocks = kernels.channels(int(size), gpu)
    else:
        kernel, kind = kernels.computation(name, gpu), "k"
        blocks = _blocks(size, kernel, gpu)
    return f"{kind}:{kernel.symbol}:{blocks}:{kernel.threads}:{kernel.dynamic_shared}"


def _blocks(size: str, kernel: kernels.Kernel, gpu: KnownGpu) -> int:
    if size.endswith("w"):
        return max(1, round(float(size[:-1]) * kernels.resident(kernel, gpu) * gpu.multiprocessors))
    if size.endswith("m"):
        return max(1, round(float(size[:-1]) * gpu.multiprocessors))
    return int(size)
