"""dlsym is what it was with every C library: who asks for the next definition of a name, of a version, or from a place
of its own, and when no driver is there."""

from __future__ import annotations

import re

import environments
import pytest
from environments import Pair, World
from interposing import BLOCKS, ONE, WAYS, same

from pyshim.start import plan

WORDS = f"ptx=k repeat=3 launch=k,{BLOCKS},256,0"
every_environment = pytest.mark.parametrize("environment", environments.ALL)


@pytest.mark.parametrize("environment", [*environments.LIBC_ALONE, *environments.GLIBC])
def test_each_glibc_is_the_one_it_says_it_is(environment: str, world: World) -> None:
    """Otherwise everything here could run on the machine's own."""
    numbers = tuple(map(int, world.version.split(".")))
    if named := re.match(r"glibc ([0-9.]+)", environment):
        assert world.version == named[1]
    else:
        assert numbers > (2, 41)
    assert (numbers >= (2, 34)) == ("GLIBC_2.34" in world.kind.nodes)


@every_environment
@pytest.mark.parametrize("way", WAYS)
def test_every_way_into_the_driver(way: str, environment: str, world: World, pair: Pair) -> None:
    for target in world.kind.targets:
        done, without = pair(world.client(target, way), WORDS)
        assert len(without.launches) == 3
        same(done, without)
        assert done.totals["launches"] == 3


@pytest.mark.parametrize("environment", environments.GLIBC)
def test_the_library_built_here_is_good_for_other_glibcs(environment: str, world: World, pair: Pair) -> None:
    """As it is built by `make setup`, by the machine's own compiler: not only the one of a release."""
    for target in world.kind.targets:
        done, without = pair(world.client(target, "dlsym"), WORDS, preload=plan.LIBRARY)
        same(done, without)
        assert done.totals["launches"] == 3


@every_environment
def test_lookups_give_what_they_gave(environment: str, world: World, pair: Pair) -> None:
    """RTLD_NEXT twice, RTLD_DEFAULT of a library opened locally, names like ours, the text of dlerror, eight threads,
    and dlsym itself by its version."""
    names = ("cuNobodyHasThis", "nobodyHasThis", "__cudaNothing", "_")
    for target in world.kind.targets:
        base = world.shared(target, "libbase.so", "dlsym_base.c")
        found = [f"-Wl,-rpath,{base.parent}", "-Wl,--no-as-needed", base]
        wrapper = str(world.shared(target, "libwrap.so", "dlsym_wrap.c", link=found))
        words = ["wrap", wrapper, "local", wrapper, "handle", str(base)]
        words += [word for name in names for word in ("error", name)]
        words += ["threads", "strlen", "threads", "cuNobodyHasThis"]
        words += [word for node in world.kind.nodes for word in ("real", node)]
        done, without = pair(world.program(target, "dlsym-cases", "dlsym_cases.c"), words)
        lines = without.stdout.splitlines()
        own_scope = "42 42" if world.version else "-1 -1"  # RTLD_DEFAULT of musl is the program's scope alone
        assert lines[:3] == ["wrap 42 42", "local 42 42", f"default {own_scope} -1"]
        assert lines.count("threads 8") == 2
        assert lines.count("real 1 1") == len(world.kind.nodes)
        same(done, without)


@every_environment
@pytest.mark.parametrize("way", ["DLSYM", "PROC2"])
def test_sixteen_threads_race_in_a_constructor_before_ours(
    way: str, environment: str, world: World, pair: Pair
) -> None:
    for target in world.kind.targets:
        flags = ["-DLIBRARY", f"-DWAY_{way}", "-DCOUNT=16", "-DQUIET"]
        early = world.shared(target, f"libearly-{way}.so", "early.c", *flags)
        link = [f"-Wl,-rpath,{early.parent}", early]
        done, without = pair(world.program(target, f"early-{way}", "early_main.c", link=link))
        assert without.stdout == "launched early: 16\n"
        same(done, without)
        assert done.totals["launches"] == 16


@every_environment
def test_a_missing_driver_looks_missing(environment: str, world: World, pair: Pair) -> None:
    """Without the library cuInit is not there at all; with it, linked weakly, it answers 3 (not initialized)."""
    for target in world.kind.targets:
        done, without = pair(world.program(target, "no-driver", "no_driver.c"), driver=False)
        # Which object the text of dlerror begins with is the loader's business.
        looked_up, seen = (re.sub(r"\S+:", "", run.stdout).splitlines()[:6] for run in (without, done))
        assert looked_up[1].startswith("cuLaunchKernel 0 ")
        assert seen == looked_up
        assert without.stdout.splitlines()[6:] == ["not linked"]
        assert done.stdout.splitlines()[6:] == [" ".join("3" * 8)] * 2
        assert (done.status, done.stderr, done.report["processes"]) == (0, "", [])
        done, without = pair(world.client(target, "dlsym"), "ptx=k", driver=False)
        assert without.stdout.startswith("no driver: ")
        same(done, without)


@every_environment
def test_off_and_broken_settings_change_nothing(environment: str, world: World, pair: Pair) -> None:
    for target in world.kind.targets:
        done, without = pair(world.client(target), WORDS, OVERLAP_RUN="off")
        same(done, without)
        assert done.report["processes"] == []
        done, without = pair(world.client(target), WORDS, OVERLAP_TABLE="broken")
        assert (done.status, done.stdout, done.launches) == (without.status, without.stdout, without.launches)
        assert done.stderr.count("\n") == 1
        assert "the policy in OVERLAP_TABLE is ignored: " in done.stderr


@every_environment
def test_bound_at_start(environment: str, world: World, pair: Pair) -> None:
    for target in world.kind.targets:
        done, without = pair(world.client(target), WORDS, env={"LD_BIND_NOW": "1"})
        same(done, without)
        assert done.totals["launches"] == 3


@pytest.mark.parametrize("environment", [*environments.LIBC_ALONE, *environments.GLIBC, *environments.OTHER_PROCESSORS])
def test_a_program_without_libdl_and_libpthread(environment: str, world: World, pair: Pair) -> None:
    target = world.kind.targets[0]
    stub = world.shared(target, "stub/libcuda.so.1", "stub_driver.c")
    program = world.program(target, "libc-alone", "libc_alone.c", link=[f"-Wl,-rpath,{stub.parent}", stub])
    done, without = pair(program, policy=ONE, driver=False)
    assert without.stdout == "libdl or libpthread: 0, bad: 0\n"
    same(done, without)
    assert (done.totals["launches"], done.totals["shaped"]) == (3, 3)
