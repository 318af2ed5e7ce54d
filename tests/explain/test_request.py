"""Requests: every option, every spelling of a number and a shape, and what is said of those that are none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyshim.errors import OverlapError
from pyshim.explain.answer import Explainer, table_of
from pyshim.explain.planner import Rule
from pyshim.explain.request import COMM_FOOTPRINT, COUNTS, FOOTPRINT, SIZES, Mistake, Request, parse, read, written
from pyshim.policy.values import Bad

RequestOf = Callable[..., dict[str, Any]]


def number_of(request: Request, name: str) -> int | None:
    blocks = zip((*FOOTPRINT, *COMM_FOOTPRINT), (*request.computation, *request.communication))
    return {**dict(blocks), "blocks": request.blocks}[name]


@pytest.mark.parametrize("name", [*COUNTS, *SIZES, "blocks"])
def test_numbers(request_of: RequestOf, name: str) -> None:
    for value in ("7", " 7 ", "0"):
        assert number_of(read(request_of(**{name: value})), name) == int(value)
    largest = {"blocks": 2**64 - 1}.get(name, 2**32 - 1)
    assert number_of(read(request_of(**{name: 2**70})), name) == largest
    for value in ("-1", "1.0", "True", "", "x", "0x10", "1_000", "７", "1" * 5000):
        with pytest.raises(Mistake) as caught:
            read(request_of(**{name: value}))
        assert caught.value.name == name and caught.value.sentence


@pytest.mark.parametrize("name", SIZES)
def test_sizes(request_of: RequestOf, name: str) -> None:
    for value, size in (("96KiB", 98304), ("96 KiB", 98304), ("1MiB", 1 << 20), ("5B", 5), ("99999999GiB", 2**32 - 1)):
        assert number_of(read(request_of(**{name: value})), name) == size
    with pytest.raises(Mistake) as caught:
        read(request_of(**{name: "96k"}))
    assert caught.value.hint == "did you mean `96KiB`?"


@pytest.mark.parametrize("name", COUNTS)
def test_only_bytes_have_units(request_of: RequestOf, name: str) -> None:
    with pytest.raises(Mistake, match="not a whole number"):
        read(request_of(**{name: "1KiB"}))


def test_the_size_that_was_asked_for_is_kept(request_of: RequestOf) -> None:
    request = read(request_of(dynamic_smem=2**40))
    assert (request.asked, request.computation.dynamic) == (2**40, 2**32 - 1)


def test_what_is_missing_is_named_at_once(explainer: Explainer, request_of: RequestOf) -> None:
    with pytest.raises(Mistake) as caught:
        explainer.answer({})
    sentence = caught.value.spoken(lambda name: "--" + name.replace("_", "-"))
    assert sentence == "missing required options: --gpu, --threads, --registers, --comm-threads, --comm-registers"
    with pytest.raises(Mistake) as caught:
        explainer.answer(request_of(threads=None, comm_registers=None))
    assert caught.value.spoken(str) == "missing required options: threads, comm_registers"


def test_percentages(request_of: RequestOf) -> None:
    for value, percent in (("0", 0), ("50%", 50), ("100", 100), ("100%", 100)):
        assert read(request_of(keep_at_least=value)).keep_at_least == percent
    for value in ("101", "101%", "-1%", "%", "half", "0.5"):
        with pytest.raises(Mistake):
            read(request_of(keep_at_least=value))


SHAPES = [
    ("leave", "leave"),
    ("make_room", "make_room"),
    ("blocks_per_sm=1", "blocks_per_sm=1"),
    ("blocks_per_sm=50%", "blocks_per_sm=50%"),
    ("blocks_per_sm: 50%", "blocks_per_sm=50%"),
    ("{blocks_per_sm: 50%}", "blocks_per_sm=50%"),
    ("dynamic_shared_memory=96KiB", "dynamic_shared_memory=98304"),
    ("{dynamic_shared_memory: 96 KiB}", "dynamic_shared_memory=98304"),
]


@pytest.mark.parametrize(("text", "same"), SHAPES)
def test_shapes(library: Any, text: str, same: str) -> None:
    shape = parse(text)
    assert written(shape.kind, shape.value) == same
    assert shape.keep == (50 if same == "make_room" else 0)


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("mak_room", "did you mean `make_room`?"),
        ("block_per_sm=1", "did you mean `blocks_per_sm`?"),
        ("blocks_per_sm", "did you mean `blocks_per_sm`?"),
        ("", "write make_room, "),
        ("1", "write make_room, "),
        ("blocks_per_sm=0", ""),
        ("blocks_per_sm=0%", ""),
        ("blocks_per_sm=101%", ""),
        ("blocks_per_sm=1.5", "write decimal"),
        ("dynamic_shared_memory=many", "write 96KiB"),
        ("make_room=1", "did you mean `make_room`?"),
    ],
)
def test_what_is_no_shape(library: Any, text: str, hint: str) -> None:
    with pytest.raises(Bad) as caught:
        parse(text)
    assert caught.value.hint.startswith(hint)


def test_the_table_of_a_shape_is_one_that_the_library_believes(library: Any) -> None:
    for text, _ in SHAPES:
        data = table_of(Rule(parse(text).kind, parse(text).value, 50))
        assert not library.overlap_table_check(data, len(data))


names = st.sampled_from([*COUNTS, *SIZES, "gpu", "policy", "kernel", "library", "blocks", "shape", "keep_at_least"])
words = (
    st.integers().map(str)
    | st.text(st.characters(exclude_characters="\0"), max_size=8)
    | st.sampled_from(["h100", "leave"])
)


@settings(max_examples=300)
@given(changes=st.dictionaries(names, words, max_size=4), base=st.booleans())
def test_any_words_are_answered_or_refused(explainer: Explainer, changes: dict[str, Any], base: bool) -> None:
    good = {"gpu": "h100", "threads": 128, "registers": 64, "comm_threads": 288, "comm_registers": 96}
    try:
        found = explainer.answer({**(good if base else {}), **changes})
    except (Mistake, OverlapError):
        return
    assert found["dynamic_shared_memory"] >= 0 and found["native_blocks"] <= 32
