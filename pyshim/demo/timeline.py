"""What the simulated GPU did, kernel by kernel, and how long communication stood ready without room."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path


@dataclass(frozen=True)
class Span:
    kernel: str
    communication: bool
    start_us: float
    end_us: float
    blocks: int
    threads: int
    dynamic_shared: int

    @property
    def length_us(self) -> float:
        return self.end_us - self.start_us


@dataclass(frozen=True)
class Step:
    """One step, beginning at 0, each kind in the order of execution."""

    computation: tuple[Span, ...]  # of layers or of the interior
    waited_for: tuple[Span, ...]  # all-reduces; or boundaries and exchanges
    optimizer: tuple[Span, ...]
    ready_us: tuple[float, ...]  # of each that is waited for: what it needs is there, and the one before has ended
    marks: str = "123456789"  # of those that are waited for, in turn

    @property
    def waits_us(self) -> tuple[float, ...]:
        return tuple(max(0.0, span.start_us - ready) for span, ready in zip(self.waited_for, self.ready_us))

    @property
    def end_us(self) -> float:
        return max(span.end_us for span in (*self.computation, *self.waited_for, *self.optimizer))

    @property
    def hidden(self) -> float:
        """The part of what is waited for, 0 to 1, that ran beside computation."""
        total = sum(span.length_us for span in self.waited_for)
        both = sum(
            max(0.0, min(beside.end_us, span.end_us) - max(beside.start_us, span.start_us))
            for span in self.waited_for
            for beside in self.computation
        )
        return both / total if total > 0 else 0.0


def read(path: Path, gemm: str, layers: int, buckets: int) -> Step:
    """Return the last step in a timeline file of the simulated GPU; layers consist of the kernel called `gemm`."""
    return arrange(_spans(path), gemm, layers, buckets)


def read_stencil(path: Path, one_stream: bool, iterations: int = 2) -> Step:
    """Return the last iterations of a stencil: the boundary kernels, an exchange and the interior of each.

    one_stream: everything runs in order, so nothing is ready before it starts."""
    spans = sorted(_spans(path), key=lambda span: (span.start_us, span.end_us))
    exchanges = [span for span in spans if span.communication][-iterations - 1 :]
    boundaries = [span for span in spans if span.kernel == "stencil_boundary"]
    interiors = [span for span in spans if span.kernel == "stencil_interior"][-iterations - 1 :]
    each = len(boundaries) // sum(span.communication for span in spans)
    begin = max(exchanges[0].end_us, interiors[0].end_us)
    waited_for, ready = [], []
    for index in range(1, iterations + 1):
        planes = boundaries[len(boundaries) - (iterations + 1 - index) * each :][:each]
        boundary = replace(planes[0], end_us=planes[-1].end_us)
        waited_for += [boundary, exchanges[index]]
        before = max(exchanges[index - 1].end_us, interiors[index - 1].end_us)
        ready += [
            boundary.start_us if one_stream else before,
            exchanges[index].start_us if one_stream else boundary.end_us,
        ]
    return Step(
        tuple(_shift(span, -begin) for span in interiors[1:]),
        tuple(_shift(span, -begin) for span in waited_for),
        (),
        tuple(one - begin for one in ready),
        "bx",
    )


def _spans(path: Path) -> list[Span]:
    lines = path.read_text(encoding="utf-8").splitlines()
    return [_span(json.loads(line)) for line in lines if line.strip()]


def arrange(spans: Sequence[Span], gemm: str, layers: int, buckets: int) -> Step:
    """Return the last step of several, which begins when the last optimiser but one has ended."""
    updates = sorted(span.end_us for span in spans if not span.communication and span.kernel != gemm)
    if len(updates) > 1:
        spans = [span for span in spans if span.start_us >= updates[-2]]
    begin = min(span.start_us for span in spans)
    ordered = sorted((_shift(span, -begin) for span in spans), key=lambda span: (span.start_us, span.end_us))
    gemms = tuple(span for span in ordered if span.kernel == gemm)
    all_reduces = tuple(span for span in ordered if span.communication)
    optimizer = tuple(span for span in ordered if not span.communication and span.kernel != gemm)
    ready: list[float] = []
    for bucket in range(len(all_reduces)):
        last_layer = (bucket + 1) * layers // buckets
        gradients = gemms[last_layer * len(gemms) // layers - 1].end_us
        ready.append(max(gradients, all_reduces[bucket - 1].end_us if bucket else 0.0))
    return Step(gemms, all_reduces, optimizer, tuple(ready))


def _shift(span: Span, by: float) -> Span:
    return replace(span, start_us=span.start_us + by, end_us=span.end_us + by)


def _span(row: dict[str, object]) -> Span:
    return Span(
        kernel=str(row["kernel"]),
        communication=bool(row["communication"]),
        start_us=float(str(row["start_us"])),
        end_us=float(str(row["end_us"])),
        blocks=int(str(row["blocks"])),
        threads=int(str(row["threads"])),
        dynamic_shared=int(str(row["dynamic_shared"])),
    )
