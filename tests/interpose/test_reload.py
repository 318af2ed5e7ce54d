"""Libraries that bring a driver and take it away, that define its names themselves, and that look for them."""

from __future__ import annotations

import pytest
from interposing import BLOCKS, ONE, Build, Runner, same

from pyshim.start import plan

CODE = f"ptx=k repeat=3 launch=k,{BLOCKS},256,0 ex=k,{BLOCKS},256,0 unload=0"


@pytest.mark.parametrize("switch", [{}, {"OVERLAP_RUN": "off"}], ids=["on", "off"])
@pytest.mark.parametrize("way", ["LINKED", "DLSYM", "PROC2"])
def test_a_plugin_may_be_closed_and_opened_again(
    way: str, switch: dict[str, str], build: Build, bare: Runner, preloaded: Runner
) -> None:
    link = [plan.SIMULATED_DRIVER] if way == "LINKED" else []
    plugin = build.library(f"libreload-{way}.so", "client.c", f"-DWAY_{way}", "-Dmain=plugin_main", link=link)
    program = build("reload-host", "reload_host.c")
    words = [str(plugin), *CODE.split()]
    without, done = bare(words, program=program), preloaded(words, ONE, program=program, env=switch)
    assert without.stdout.count("closed: 0") == 3
    same(done, without, but=["dynamic_shared"])
    if not switch:
        assert done.reasons == {"shaped": 12}


def test_a_library_that_defines_the_name_itself_reaches_its_own(build: Build, bare: Runner, preloaded: Runner) -> None:
    """RTLD_LOCAL, and the driver is not there before it is called: nobody else has that name."""
    plugin = build.library("libownstub.so", "scope_plugin.c", "-DOWN_STUB")
    program = build("host", "plugin_host.c")
    without, done = bare([str(plugin)], program=program), preloaded([str(plugin)], program=program)
    assert without.stdout == "cuInit 0\n" * 3
    same(done, without)
    off = preloaded([str(plugin)], program=program, env={"OVERLAP_RUN": "off"})
    same(off, without)


def test_a_plugin_finds_its_drivers_names_and_no_error_is_left(build: Build, bare: Runner, preloaded: Runner) -> None:
    plugin = build.library("libscope.so", "scope_plugin.c", link=[plan.SIMULATED_DRIVER])
    program = build("host", "plugin_host.c")
    without, done = bare([str(plugin)], program=program), preloaded([str(plugin)], program=program)
    assert without.stdout.splitlines() == [
        "cuLaunchKernel 1 no error",
        "cuInit 1 no error",
        "cuMemAlloc_v2 1 no error",
        "cuNobodyHasThis 0 error",
        "versioned 0 error",
        "versioned 0 error",
        *["cuInit 0"] * 3,
    ]
    same(done, without)


@pytest.mark.plain("sanitizers refuse RTLD_DEEPBIND", sanitized=True)
def test_devices_are_reported_where_somebody_else_initialised_the_driver(
    build: Build, bare: Runner, preloaded: Runner
) -> None:
    unseen = build.library("libunseen.so", "unseen_init.c", link=[plan.SIMULATED_DRIVER])
    program = build("unseen", "unseen_main.c")
    without, done = bare([str(unseen)], program=program), preloaded([str(unseen)], ONE, program=program)
    assert without.stdout == "bad: 0\n"
    same(done, without, but=["dynamic_shared"])
    assert done.reasons == {"shaped": 3}
    (process,) = done.report["processes"]
    assert [device["index"] for device in process["devices"]] == [0]
