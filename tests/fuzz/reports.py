"""Report folders that other users could have written: pages and run.json with any content, and files of any name beside
them, through everything that `overlap report` makes of them.

A folder has three good pages and a run, after CHANGES.
"""

from __future__ import annotations

import json
import os
import re
import struct
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from hypothesis import strategies as st

from pyshim import _native
from pyshim.cli import ui
from pyshim.report import collect
from pyshim.start import folder
from tests.fuzz.saying import ask

RUN = "0123456789abcdef"
HOSTILE = (
    b"\x1b[2J\x1b]0;x\x07", b"\x9b31m", b"a\nb: warning: c", b"\r\rx", b"\x08\x08", b"\xff\xfe\x80", b"\xed\xa0\x80",
    b"\0x", "\u202egnp.exe\u2066".encode(), b"\xe2\x80\xa8x", b"[red]x[/red]", b"[link=file:///x]y[/link]",
    b"%s%n{0}{x!r}", b"`x`", b"</script><img src=x onerror=alert(1)>", b"</style><script>1</script>",
    b"'\"><svg/onload=alert(1)>", b"-->", b"]]>", b"javascript:alert(1)", b"&lt;b&gt;", b"../../etc/x", b"/", b"",
    b"node1", b"x" * 600, b"*gemm*", b"NVIDIA H100 80GB HBM3",
)  # fmt: skip
EDGES = (0, 1, 2, 3, 4, 7, 8, 31, 127, 128, 255, 256, 511, 1 << 15, 1 << 16, (1 << 31) - 1, 1 << 31, (1 << 32) - 1)
LARGE = (1 << 53, (1 << 63) - 1, 1 << 63, (1 << 64) - 1, 10**18)
WAYS = ("text", "json", "check", "full", "screen")
ffi, library = _native.ffi, _native.library()
_SIZE = ffi.sizeof("struct overlap_page")


class Leaf(NamedTuple):
    """A field of the page."""

    at: int
    size: int
    text: bool


def _leaves(kind: Any, at: int) -> Iterator[Leaf]:
    """Of long arrays the first, a few, and the last element."""
    if kind.kind == "struct":
        for _, one in kind.fields:
            yield from _leaves(one.type, at + one.offset)
    elif kind.kind == "array":
        size = ffi.sizeof(kind.item)
        if size == 1:
            yield Leaf(at, kind.length, True)
            return
        for index in sorted({*range(min(5, kind.length)), kind.length - 1}):
            yield from _leaves(kind.item, at + index * size)
    else:
        yield Leaf(at, ffi.sizeof(kind), False)


LEAVES = tuple(_leaves(ffi.typeof("struct overlap_page"), 0))
TEXTS = tuple(leaf for leaf in LEAVES if leaf.text)
NUMBERS = tuple(leaf for leaf in LEAVES if not leaf.text)


def _page(pid: int) -> bytes:
    """As a process leaves it that has launched GEMMs and communication, with a raised stream."""
    page = ffi.new("struct overlap_page *")
    page.magic, page.version, page.size = library.OVERLAP_PAGE_MAGIC, library.OVERLAP_ABI_VERSION, _SIZE
    page.flags, page.pid, page.parent, page.rank, page.world, page.start, page.table = (
        5,
        pid,
        1,
        pid - 100,
        3,
        10**18,
        0xAB,
    )
    for name, value in {"host": "node1", "program": "/usr/bin/python3", "library": "0.1.0"}.items():
        getattr(page, name)[0 : len(value)] = value.encode()
    device = page.devices[0]
    device.state, device.multiprocessors = 2, 132
    device.name[0:21], device.policy[0:4] = b"NVIDIA H100 80GB HBM3", b"h100"
    for index, line in enumerate((5, 9)):
        rule = page.rules[index]
        rule.state, rule.device, rule.line, rule.shape, rule.value = 2, 0, line, 3, 1
    head = library.OVERLAP_REASONS
    for index in range(2):
        row = page.rows[head + index]
        row.state, row.rule, row.device, row.blocks, row.resident_blocks = 2, index, 0, 1056, 2
        row.footprint.threads, row.footprint.registers, row.footprint.dynamic_shared = 128, 168, 65536
        row.kernel[0:7], row.plain[0:4], row.library[0:17] = b"_Z4gemm", b"gemm", b"libcublasLt.so.13"
    for index in range(head + 2):
        page.rows[index].key = (index + 1) << 6 | index % 8
        page.shards[index % 3].launches[index] = 100 + 7 * index
    page.shards[1].counters[library.OVERLAP_COUNTER_COMMUNICATION] = 4096
    stream = page.streams[0]
    stream.state, stream.status, stream.share, stream.priority = 2, library.OVERLAP_STREAM_RAISED, 125, -5
    return bytes(ffi.buffer(page))


PAGES = {f"node1.{pid}.0.page": _page(pid) for pid in (100, 101, 102)}
RUNNING = folder.Run(RUN, 1.0, ("python", "train.py"), ({"name": "h100", "hash": "ab", "file": None},), "0.1.0", 3)

# ---- what is changed: a word, then its arguments ----

_TEXT = st.sampled_from(HOSTILE) | st.binary(max_size=40)
_NUMBER = st.sampled_from((*EDGES, *LARGE)) | st.integers(0, (1 << 64) - 1)
_PAGE = st.sampled_from(sorted(PAGES))
_ENDING = st.sampled_from((b".1.0.page", b"", b".json"))
CHANGES = st.lists(
    st.one_of(
        st.tuples(st.just("text"), _PAGE, st.sampled_from(TEXTS), _TEXT),
        st.tuples(st.just("number"), _PAGE, st.sampled_from(NUMBERS), _NUMBER),
        st.tuples(st.just("bytes"), _PAGE, st.integers(0, _SIZE - 16), st.binary(max_size=16)),
        st.tuples(st.just("cut"), _PAGE, st.integers(0, _SIZE)),
        st.tuples(st.just("run"), st.integers(0, 300), st.integers(0, 12), _TEXT),
        st.tuples(st.just("words"), _TEXT, _TEXT),
        st.tuples(st.sampled_from(("pipe", "folder")), _TEXT, _ENDING),
        st.tuples(st.sampled_from(("link", "file")), _TEXT, _ENDING, _TEXT),
        st.tuples(st.just("page"), _TEXT, _ENDING, st.integers(0, _SIZE)),
    ),
    max_size=30,
)
Change = tuple[Any, ...]


def make(path: Path, changes: Sequence[Change]) -> None:
    """The folder. A file that cannot be made is left out."""
    pages = {name: bytearray(data) for name, data in PAGES.items()}
    run = bytearray(json.dumps(RUNNING._asdict()).encode())
    for kind, *given in changes:
        if kind in ("text", "number", "bytes", "cut"):
            _change_page(kind, pages[given[0]], *given[1:])
        elif kind == "run":
            at, removed, text = given
            at %= len(run) + 1
            run[at : at + removed] = text
        elif kind == "words":
            words = iter([json.dumps(text.decode("utf-8", "replace")).encode() for text in given])
            parts = re.split(rb'("h100"|"python"|"train.py"|3\b)', bytes(run), maxsplit=2)
            run[:] = b"".join(next(words) if index % 2 else part for index, part in enumerate(parts))
        else:
            _file(path, kind, *given)
    for name, data in {**pages, "run.json": run}.items():
        with suppress(OSError):
            (path / name).write_bytes(data)


def _change_page(kind: str, page: bytearray, at: Any, value: Any = b"") -> None:
    if kind == "cut":
        del page[at:]
    elif kind == "bytes":
        page[at : at + len(value)] = value
    else:
        data = value if kind == "text" else struct.pack("<Q", value)
        page[at.at : at.at + at.size] = data[: at.size].ljust(at.size, b"\0")


def _file(folder: Path, kind: str, name: bytes, ending: bytes, content: Any = b"") -> None:
    """Another file: of a hostile name, and perhaps none at all."""
    name = name[:80].replace(b"/", b"_").replace(b"\0", b"_")
    path = os.path.join(os.fsencode(folder), (b"run@" if ending == b".json" else b"") + name + ending)
    with suppress(OSError):
        if kind == "pipe":
            os.mkfifo(path)
        elif kind == "folder":
            os.mkdir(path)
        elif kind == "link":
            os.symlink(content.replace(b"\0", b"") or b"x", path)
        else:
            with open(path, "xb") as file:
                file.write(content if kind == "file" else PAGES["node1.100.0.page"][:content])


# ---- how it is looked at ----


def look(path: Path, way: str, waiting_room: Path) -> int:
    """The exit status. waiting_room: where pages of killed processes are looked for."""
    assert collect.collect.__kwdefaults__ is not None
    before = dict(collect.collect.__kwdefaults__)
    collect.collect.__kwdefaults__["waiting_room"] = str(waiting_room)
    try:
        more = () if way in ("text", "screen") else (f"--{way}",)
        return (_on_a_screen if way == "screen" else ask)("report", str(path), *more).status
    finally:
        collect.collect.__kwdefaults__.update(before)


def _on_a_screen(*report: str) -> Any:
    """Without colours, which are escape sequences of our own."""
    before, ui._is_terminal = ui._is_terminal, lambda *_: True
    os.environ["NO_COLOR"] = "1"
    try:
        return ask(*report)
    finally:
        ui._is_terminal = before
