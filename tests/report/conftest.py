"""Pages made by hand, as the library would leave them, and by the ranks of a real job."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import job
import pytest

from pyshim import _native
from pyshim.pages.page import names

TESTS = Path(__file__).resolve().parents[1]

RUN = "0123456789abcdef"
Write = Callable[..., Path]


@pytest.fixture
def report(tmp_path: Path) -> Path:
    """Make an empty report folder with its run."""
    from pyshim.start import folder

    path = tmp_path / "report"
    path.mkdir()
    policies = ({"name": "h100", "hash": "ab", "file": None},)
    folder.write(str(path), folder.Run(RUN, 1.0, ("python", "train.py"), policies, "0.1.0"))
    return path


@pytest.fixture
def pages(tmp_path: Path) -> Path:
    """Return an empty folder for the pages of real processes."""
    folder = tmp_path / "pages"
    folder.mkdir()
    return folder


@pytest.fixture
def write_page(report: Path, library: Any) -> Write:
    """launches: {(way, reason): count}; devices: (name, policy); streams: fields of struct overlap_page_stream."""

    def write(
        launches: dict[str, int] | None = None,
        devices: tuple[tuple[str, str], ...] = (("NVIDIA H100 80GB HBM3", "h100"),),
        pid: int = 100,
        rank: int = -1,
        flags: int = 5,
        number: int = 0,
        path: Path | None = None,
        counters: dict[int, int] | None = None,
        streams: Sequence[Mapping[str, Any]] = (),
        **fields: Any,
    ) -> Path:
        page = _native.ffi.new("struct overlap_page *")
        page.magic, page.version = library.OVERLAP_PAGE_MAGIC, library.OVERLAP_ABI_VERSION
        page.size = _native.ffi.sizeof(page[0])
        page.flags, page.pid, page.parent, page.rank = flags, pid, 1, rank
        text = {"host": "node1", "program": "/usr/bin/python3", "library": "0.1.0", "table": 0xAB, **fields}
        for name, value in text.items():
            if isinstance(value, str):
                value = value.encode()
                _native.ffi.memmove(getattr(page, name), value, len(value))
            else:
                setattr(page, name, value)
        for index, (name, policy) in enumerate(devices):
            device = page.devices[index]
            device.state, device.index, device.multiprocessors = 2, index, 132
            device.uuid = bytes(range(16))
            device.name[0 : len(name)] = name.encode()
            device.policy[0 : len(policy)] = policy.encode()
            device.observes = policy == "observe"
        for index, stream in enumerate(streams):
            page.streams[index].state = 2
            for name, value in stream.items():
                if isinstance(value, str):
                    _native.ffi.memmove(getattr(page.streams[index], name), value.encode(), len(value.encode()))
                else:
                    setattr(page.streams[index], name, value)
        reasons = names(library.overlap_reason_name)
        # Spread over two shards, the shared one among them.
        for reason, count in (launches or {}).items():
            for shard, share in ((0, count - count // 3), (library.OVERLAP_SHARDS - 1, count // 3)):
                page.shards[shard].launches[reasons.index(reason)] += share
        for index, count in (counters or {}).items():
            page.shards[1].counters[index] = count
        path = path or report / f"node1.{pid}.{number}.page"
        path.write_bytes(bytes(_native.ffi.buffer(page)))
        return path

    return write


@pytest.fixture(scope="session")
def rank_program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the program of a rank: a real process that launches."""
    return job.build(tmp_path_factory.mktemp("rank"))


@pytest.fixture
def run_job(rank_program: Path, tmp_path: Path) -> Callable[..., Path]:
    """run_job(otherwise, processes=4, per_host=2, **variables of all ranks): the folder with the pages of a job under a
    prolog, that is, without overlap-run. otherwise: rank -> its variables."""
    folder = tmp_path / "job"
    folder.mkdir()

    def run(
        otherwise: Mapping[int, Mapping[str, str]] | None = None,
        processes: int = 4,
        per_host: int = 2,
        report: Path = folder,
        daemon: Sequence[str] = (),
        **more: str,
    ) -> Path:
        report.mkdir(exist_ok=True)
        job.run(rank_program, {**job.surroundings(report, per_host), **more}, processes, per_host, otherwise, daemon)
        return report

    return run
