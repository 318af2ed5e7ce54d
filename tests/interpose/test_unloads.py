"""Handles end when the driver says so: a refused call changes nothing, and an address that comes back starts anew."""

from __future__ import annotations

import pytest
from interposing import BLOCKS, NCCL, ONE, Runner, rule, same, smallest_size

BIG = f"launch=k,{BLOCKS},256,0"
# What the program believes of a kernel that we have launched with our size, limit and carve-out.
BELIEVED = f"get=k,8 get=k,9 launch=k,{BLOCKS},256,49153 {BIG} get=k,8 occ=k,256,100000"


@pytest.mark.parametrize("load", ["ptx", "lib", "enum", "enumlib"])
def test_an_unload_that_is_refused_changes_nothing(load: str, bare: Runner, preloaded: Runner) -> None:
    words = f"{load}=k {BIG} {BIG} stream=0 begin=1 unload=0 end=1 {BELIEVED} {BIG}"
    done, without = preloaded(words, ONE), bare(words)
    assert "unload: 900" in without.stdout, "the capture has let it pass: nothing was tested"
    same(done, without, but=["dynamic_shared"])
    assert done.reasons == {"shaped": 3, "invalid_as_asked": 1, "occupancy_asked": 1}


def test_the_module_of_a_library_is_not_unloaded(bare: Runner, preloaded: Runner) -> None:
    words = f"lib=k module=0 get_from=k {BIG} unload=1 {BELIEVED}"
    done, without = preloaded(words, ONE), bare(words)
    assert "unload: 400" in without.stdout
    same(done, without, but=["dynamic_shared"])
    assert done.reasons == {"shaped": 2, "invalid_as_asked": 1}


@pytest.mark.parametrize("again", ["get_from", "enum_from"])
def test_a_function_that_is_got_from_the_module_of_a_function(again: str, bare: Runner, preloaded: Runner) -> None:
    """cuFuncGetModule tells the module of a library, of which we have not heard. The function is the same as before."""
    words = f"lib=k {BIG} function=k {BIG} module_of=k {again}=k {BELIEVED} unload=0"
    done, without = preloaded(words, ONE), bare(words)
    assert "module_of: 0" in without.stdout
    same(done, without, but=["dynamic_shared"])
    assert done.reasons == {"shaped": 3, "invalid_as_asked": 1}


@pytest.mark.parametrize("load", ["ptx", "lib"])
@pytest.mark.parametrize("end", ["destroy", "detach", "release"])
def test_a_context_that_lives_on_keeps_its_kernels(end: str, load: str, bare: Runner, preloaded: Runner) -> None:
    """A primary context is not for cuCtxDestroy to end, nor does it end before its last user has released it."""
    words = f"device=0 {load}=k {BIG} {BIG} endcontext={end} {BELIEVED}"
    done, without = preloaded(words, ONE), bare(words)
    assert f"endcontext: {0 if end == 'release' else 201}" in without.stdout
    same(done, without, but=["dynamic_shared"])
    assert done.reasons == {"shaped": 3, "invalid_as_asked": 1}


def test_a_context_that_was_attached_twice_is_detached_once(bare: Runner, preloaded: Runner) -> None:
    words = f"context=0 attach ptx=k {BIG} endcontext=detach {BELIEVED} endcontext=detach"
    done, without = preloaded(words, ONE), bare(words)
    assert without.stdout.count("endcontext: 0") == 2
    same(done, without, but=["dynamic_shared"])
    assert done.reasons == {"shaped": 2, "invalid_as_asked": 1}


@pytest.mark.parametrize("load", ["ptx=k", "libonly=k module=0 get_from=k"])
@pytest.mark.parametrize("end", ["release", "reset"])
def test_another_context_of_the_device_keeps_its_kernels(end: str, load: str, bare: Runner, preloaded: Runner) -> None:
    words = f"device=0 context=0 {load} {BIG} {BIG} endcontext={end} {BELIEVED}"
    done, without = preloaded(words, ONE), bare(words)
    assert "endcontext: 0" in without.stdout
    same(done, without, but=["dynamic_shared"])
    assert done.reasons == {"shaped": 3, "invalid_as_asked": 1}


@pytest.mark.parametrize("others", ["", "context=0 endcontext=destroy device=0 endcontext=release "])
def test_a_primary_context_ends_with_the_green_one_that_held_it(others: str, bare: Runner, preloaded: Runner) -> None:
    """Then the next kernel may have the same address. others: the program has made a context of its own, too."""
    words = f"{others}green=16 ptx=k set=k,8,60000 {BIG} {BIG} endcontext=release {BIG} get=k,8 greenend=0 get=k,8 "
    words += f"device=0 ptx=k {BIG} {BELIEVED}"
    done, without = preloaded(words, ONE), bare(words)
    assert "get: 400\n" in without.stdout, "the context lives on: nothing was tested"
    same(done, without, but=["dynamic_shared"])
    assert done.totals["refused"] == 0
    assert done.reasons == {"shaped": 5, "invalid_as_asked": 1}


@pytest.mark.parametrize("load", ["ptx", "enum"])
def test_the_module_of_a_library_ends_with_its_context(load: str, bare: Runner, preloaded: Runner) -> None:
    """A module that is loaded then may have its address, and is none of the library's."""
    words = f"device=0 libonly=k module=0 get_from=k endcontext=reset device=0 {load}=k stream=0 "
    words += f"begin=1 {BIG},1 end=1 {BIG} {BELIEVED}"
    done, without = preloaded(words, ONE), bare(words)
    same(done, without, but=["dynamic_shared"])
    assert done.totals["refused"] == 0
    assert done.sizes[:2] == [0, smallest_size(1)]


def test_a_context_that_lives_on_keeps_the_order_of_its_streams(bare: Runner, preloaded: Runner) -> None:
    """What communicates is open, with or without the call."""
    words = (
        f"device=0 ptx=k,{NCCL} stream=0 stream=0 launch={NCCL},16,256,0,1 endcontext=destroy again=0,k {BIG},1 {BIG},2"
    )
    done, without = preloaded(words, rule("{blocks_per_sm: 1}", when="overlapping")), bare(words)
    assert "endcontext: 201" in without.stdout
    same(done, without, but=["dynamic_shared"])
    assert done.sizes == [0, 0, smallest_size(1)]
    assert done.reasons == {"communication": 1, "not_overlapping": 1, "shaped": 1}
