"""What the simulated GPU did, kernel by kernel, and how long communication stood ready without room."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
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

    gemms: tuple[Span, ...]
    all_reduces: tuple[Span, ...]
    optimizer: tuple[Span, ...]
    ready_us: tuple[float, ...]  # of each all-reduce: its gradients are there and the one before has ended

    @property
    def waits_us(self) -> tuple[float, ...]:
        return tuple(max(0.0, span.start_us - ready) for span, ready in zip(self.all_reduces, self.ready_us))

    @property
    def end_us(self) -> float:
        return max(span.end_us for span in (*self.gemms, *self.all_reduces, *self.optimizer))

    @property
    def hidden(self) -> float:
        """The part of communication, 0 to 1, that ran while a GEMM ran."""
        total = sum(span.length_us for span in self.all_reduces)
        both = sum(
            max(0.0, min(gemm.end_us, span.end_us) - max(gemm.start_us, span.start_us))
            for span in self.all_reduces
            for gemm in self.gemms
        )
        return both / total if total > 0 else 0.0


def read(path: Path, gemm: str, layers: int, buckets: int) -> Step:
    """The last step in a timeline file of the simulated GPU; layers consist of the kernel called `gemm`."""
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    return arrange([_span(row) for row in rows], gemm, layers, buckets)


def arrange(spans: Sequence[Span], gemm: str, layers: int, buckets: int) -> Step:
    """The last step of several: behind every optimiser but the last."""
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
    return Span(
        span.kernel,
        span.communication,
        span.start_us + by,
        span.end_us + by,
        span.blocks,
        span.threads,
        span.dynamic_shared,
    )


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
