from __future__ import annotations

import os
import struct
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyshim import _native
from pyshim.pages.page import names, read_page
from pyshim.pages.untrusted import Unreadable


def test_counts_beyond_any_process_are_damage(write_page, library):
    path = write_page({"shaped": 10})
    page = _native.ffi.from_buffer("struct overlap_page *", data := bytearray(path.read_bytes()))
    page.shards[0].launches[0] = 1 << 63
    path.write_bytes(data)
    with pytest.raises(Unreadable, match="do not add up"):
        read_page(str(path))


def test_counts_of_all_shards_are_summed_by_reason(write_page, library):
    launches = {
        "shaped": 15,
        "communication": 3,
        "one_wave": 1,
    }
    counters = {
        library.OVERLAP_COUNTER_COMMUNICATION: 3,
        library.OVERLAP_COUNTER_RAISED: 2,
        library.OVERLAP_COUNTER_REFUSED: 1,
        library.OVERLAP_COUNTER_GRAPH_LAUNCHES: 7,
        library.OVERLAP_COUNTER_STREAMS_CREATED_RAISED: 11,
        library.OVERLAP_COUNTER_JUDGEMENTS: 13,
    }
    page = read_page(str(write_page(launches, rank=2, world=4, counters=counters, flags=5)))
    assert (page.launches, page.shaped, page.communication) == (19, 15, 3)
    assert (page.raised, page.refused, page.graph_launches) == (2, 1, 7)
    assert (page.streams_created_raised, page.judgements) == (11, 13)
    assert page.reasons == {"shaped": 15, "communication": 3, "one_wave": 1}
    assert (page.pid, page.host, page.rank, page.world, page.program) == (100, "node1", 2, 4, "/usr/bin/python3")
    assert (page.opened_gpu, page.forked, page.ended) == (True, False, True)
    (device,) = page.devices
    assert (device.index, device.name, device.policy) == (0, "NVIDIA H100 80GB HBM3", "h100")
    assert device.uuid == "GPU-00010203-0405-0607-0809-0a0b0c0d0e0f"


def test_what_is_unknown_is_none(write_page):
    page = read_page(str(write_page(devices=(("Mystery", ""),))))
    assert (page.rank, page.world, page.devices[0].policy) == (None, None, None)


def test_shaped_counts_what_was_capped_as_well(write_page):
    assert read_page(str(write_page({"capped_without_room": 4}))).shaped == 4


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        pytest.param(lambda data: b"", "too short for a page", id="empty"),
        pytest.param(lambda data: data[:15], "too short for a page", id="a few bytes"),
        pytest.param(lambda data: data[:-1], "truncated", id="cut"),
        pytest.param(lambda data: data[:100], "truncated", id="cut early"),
        pytest.param(lambda data: bytes(len(data)), "before it began to count", id="only allocated"),
        pytest.param(lambda data: b"ELF!" + data[4:], "not a page of ours", id="another file"),
        pytest.param(lambda data: data[:4] + struct.pack("<I", 99) + data[8:], "layout 99", id="another version"),
        pytest.param(lambda data: data[:8] + struct.pack("<I", 99) + data[12:], "truncated", id="another size"),
    ],
)
def test_what_is_no_whole_page_is_said(write_page, change, sentence):
    path = write_page()
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(Unreadable, match=sentence):
        read_page(str(path))


HEAD = {
    "magic": (0, 4),
    "version": (4, 4),
    "size": (8, 4),
    "flags": (12, 4),
    "pid": (16, 4),
    "parent": (20, 4),
    "rank": (24, 4),
    "world": (28, 4),
    "start": (32, 8),
    "reserved_run": (40, 32),
    "host": (72, 64),
}


@pytest.mark.parametrize("field", HEAD)
def test_the_head_of_a_page_keeps_its_place_in_every_version(library, field):
    """The head tells which version and process wrote a page of another layout."""
    kind = dict(_native.ffi.typeof("struct overlap_page").fields)[field]
    assert (kind.offset, _native.ffi.sizeof(kind.type)) == HEAD[field]


def test_links_pipes_folders_and_what_is_missing(write_page, tmp_path: Path):
    (tmp_path / "link.page").symlink_to(write_page())
    os.mkfifo(tmp_path / "pipe.page")
    (tmp_path / "folder.page").mkdir()
    for name in ("link.page", "pipe.page", "folder.page", "missing.page"):
        with pytest.raises(Unreadable):
            read_page(str(tmp_path / name))


def test_a_longer_file_is_read_no_further_than_a_page(write_page):
    path = write_page({"no_rule": 1})
    with path.open("ab") as file:
        file.truncate(1 << 30)
    assert read_page(str(path)).launches == 1


@settings(max_examples=60)
@given(st.data())
def test_damage_is_unreadable_or_a_page_whose_sums_agree(write_page, data):
    path = write_page({"shaped": 10})
    whole = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 6))):
        at = data.draw(st.integers(0, len(whole) - 9))
        whole[at : at + 8] = data.draw(st.binary(min_size=8, max_size=8))
    path.write_bytes(whole[: data.draw(st.sampled_from([len(whole), len(whole) - 1, 5]))])
    try:
        page = read_page(str(path))
    except Unreadable:
        return
    assert sum(page.reasons.values()) == page.launches


def test_a_row_whose_record_is_not_written_yet(write_page, library):
    """Only the key, which has the reason, is used."""
    path = write_page({"no_rule": 1})
    page = _native.ffi.from_buffer("struct overlap_page *", data := bytearray(path.read_bytes()))
    reason = names(library.overlap_reason_name).index("shaped")
    row = page.rows[library.OVERLAP_REASONS]
    row.key, row.state, row.rule, row.kernel = 1 << 6 | reason, 1, 0, b"half"
    page.shards[0].launches[library.OVERLAP_REASONS] = 4
    path.write_bytes(data)
    read = read_page(str(path))
    assert read.reasons == {"shaped": 4, "no_rule": 1} and read.launches == 5
    assert sorted((row.kernel, row.reason, row.rule, row.launches) for row in read.rows) == [
        ("", "no_rule", None, 1),
        ("", "shaped", None, 4),
    ]
