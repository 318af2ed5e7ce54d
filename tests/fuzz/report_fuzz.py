"""Report folders that other users could have written: pages and run.json with any content, and files of any
name beside them, through everything that `overlap report` makes of them.

The bytes are a script: the way it is looked at, then changes of a folder with three good pages and a run.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import struct
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from pyshim import _native
from pyshim.cli import ui
from pyshim.report import collect
from pyshim.start import folder
from tests.fuzz.saying import ask

SLOWEST, LONGEST = 30.0, 1 << 14
RUN = "0123456789abcdef"
HOSTILE = (
    b"\x1b[2J\x1b]0;x\x07", b"\x9b31m", b"a\nb: warning: c", b"\r\rx", b"\x08\x08", b"\xff\xfe\x80", b"\xed\xa0\x80",
    b"\0x", "\u202egnp.exe\u2066".encode(), b"\xe2\x80\xa8x", b"[red]x[/red]", b"[link=file:///x]y[/link]",
    b"%s%n{0}{x!r}", b"`x`", b"</script><img src=x onerror=alert(1)>", b"</style><script>1</script>",
    b"'\"><svg/onload=alert(1)>", b"-->", b"]]>", b"javascript:alert(1)", b"&lt;b&gt;", b"../../etc/x", b"/", b"",
    b"node1", b"x" * 600, b"*gemm*", b"NVIDIA H100 80GB HBM3",
)  # fmt: skip
NUMBERS = (0, 1, 2, 3, 4, 7, 8, 31, 127, 128, 255, 256, 511, 1 << 15, 1 << 16, (1 << 31) - 1, 1 << 31, (1 << 32) - 1)
LARGE = (1 << 53, (1 << 63) - 1, 1 << 63, (1 << 64) - 1, 10**18)
WORDS = tuple(bytes([kind]) for kind in range(8))
WAYS = ("text", "json", "check", "full", "screen")
_ROOT = Path(tempfile.mkdtemp(prefix="overlap-fuzz-"))
_DIR, _ROOM = _ROOT / "report", _ROOT / "room"
_ROOM.mkdir()
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
    page.directory[0 : len(str(_DIR))] = str(_DIR).encode()
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


_PAGES = {f"node1.{pid}.0.page": _page(pid) for pid in (100, 101, 102)}
_RUN = folder.Run(RUN, 1.0, ("python", "train.py"), ({"name": "h100", "hash": "ab", "file": None},), "0.1.0", 3)


class Script:
    """Bytes that are taken one after the other; behind their end all are 0."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def __bool__(self) -> bool:
        return self._at < len(self._data)

    def take(self, count: int) -> bytes:
        found = self._data[self._at : self._at + count]
        self._at += count
        return found.ljust(count, b"\0")

    def below(self, limit: int) -> int:
        return int.from_bytes(self.take(1 if limit <= 256 else 2 if limit <= 65536 else 4), "little") % limit

    def number(self) -> bytes:
        kind = self.below(3)
        if kind == 0:
            return struct.pack("<Q", NUMBERS[self.below(len(NUMBERS))])
        return struct.pack("<Q", LARGE[self.below(len(LARGE))]) if kind == 1 else self.take(8)

    def text(self) -> bytes:
        index = self.below(len(HOSTILE) + 4)
        return HOSTILE[index] if index < len(HOSTILE) else self.take(self.below(40))


def seeds() -> dict[str, bytes]:
    """Every way of looking, at good pages and at ones with a name of each kind."""
    fields = [index for index, leaf in enumerate(LEAVES) if leaf.text]
    made = {way: bytes([index]) for index, way in enumerate(WAYS)}
    for index, way in enumerate(WAYS):
        for start in range(0, len(HOSTILE), 4):
            words = b"".join(
                bytes([0, page]) + field.to_bytes(2, "little") + bytes([start + (field + page) % 4])
                for field in fields
                for page in range(3)
            )
            made[f"{way}-{start}"] = bytes([index]) + words
    numbers = [index for index, leaf in enumerate(LEAVES) if not leaf.text]
    for start in range(0, len(numbers), 20):
        changed = b"".join(b"\0\1" + field.to_bytes(2, "little") + b"\1\3" for field in numbers[start : start + 20])
        made[f"large-{start}"] = bytes([start // 20 % len(WAYS)]) + changed
    return made


def one(data: bytes) -> bool:
    script = Script(data)
    way = WAYS[script.below(len(WAYS))]
    _make(script)
    try:
        return _look(way) == 0
    finally:
        shutil.rmtree(_DIR)


def _make(script: Script) -> None:
    _DIR.mkdir()
    pages = {name: bytearray(data) for name, data in _PAGES.items()}
    run = bytearray(json.dumps(_RUN._asdict()).encode())
    names = list(pages)
    for _ in range(500):
        if not script:
            break
        kind, page = script.below(7), pages[names[script.below(3)]]
        if kind in (0, 1):
            leaf = LEAVES[script.below(len(LEAVES))]
            value = script.text()[: leaf.size].ljust(leaf.size, b"\0") if leaf.text else script.number()[: leaf.size]
            page[leaf.at : leaf.at + leaf.size] = value
        elif kind == 2:
            at, value = script.below(_SIZE - 16), script.take(script.below(16))
            page[at : at + len(value)] = value
        elif kind == 3:
            del page[script.below(_SIZE) :]
        elif kind == 4:
            at, value = script.below(len(run) + 1), script.text()
            run[at : at + script.below(12)] = value
        elif kind == 5:
            _file(script)
        else:
            run[:] = re.sub(rb'"h100"|"python"|"train.py"|3\b', lambda _: _word(script), bytes(run), count=2)
    for name, page in pages.items():
        with suppress(OSError):
            (_DIR / name).write_bytes(page)
    with suppress(OSError):
        (_DIR / "run.json").write_bytes(run)


def _word(script: Script) -> bytes:
    return json.dumps(script.text().decode("utf-8", "replace")).encode()


def _file(script: Script) -> None:
    """Another file: of a hostile name, and perhaps none at all."""
    kind, name = script.below(6), script.text()[:80].replace(b"/", b"_").replace(b"\0", b"_")
    ending = (b".1.0.page", b"", b".json")[script.below(3)]
    path = os.path.join(os.fsencode(_DIR), (b"run@" if ending == b".json" else b"") + name + ending)
    with suppress(OSError):
        if kind == 0:
            os.mkfifo(path)
        elif kind == 1:
            os.symlink(script.text().replace(b"\0", b"") or b"x", path)
        elif kind == 2:
            os.mkdir(path)
        else:
            with open(path, "xb") as file:
                file.write(
                    script.take(script.below(64)) if kind == 3 else _PAGES["node1.100.0.page"][: script.below(_SIZE)]
                )


def _look(way: str) -> int:
    assert collect.collect.__kwdefaults__ is not None
    collect.collect.__kwdefaults__["waiting_room"] = str(_ROOM)
    report = ("report", str(_DIR))
    if way == "screen":
        return _on_a_screen(report)
    asked = {
        "text": report,
        "json": (*report, "--json"),
        "check": (*report, "--check"),
        "full": (*report, "--full"),
    }
    return ask(*asked[way]).status


def _on_a_screen(report: tuple[str, ...]) -> int:
    """Without colours, which are escape sequences of our own."""
    before, ui._is_terminal = ui._is_terminal, lambda *_: True
    os.environ["NO_COLOR"] = "1"
    try:
        return ask(*report).status
    finally:
        ui._is_terminal = before
