"""A driver that only a plugin knows: opened RTLD_LOCAL, its libcuda is in nobody's global scope."""

from __future__ import annotations

from interposing import BLOCKS, Build, Runner, same

CODE = f"ptx=k repeat=3 launch=k,{BLOCKS},256,0 ex=k,{BLOCKS},256,0 coop=k,10,256,0"


def test_a_local_plugin_that_is_linked_to_the_driver_works_and_is_seen(
    build: Build, bare: Runner, preloaded: Runner, simulated: dict[str, str]
) -> None:
    driver = f"{simulated['LD_LIBRARY_PATH'].split(':')[0]}/libcuda.so.1"
    plugin = build.library("libplugin.so", "client.c", "-DWAY_LINKED", "-Dmain=plugin_main", link=[driver])
    program = build("host", "plugin_host.c")
    words = [str(plugin), *CODE.split()]
    without, done = bare(words, program=program), preloaded(words, program=program)
    assert without.stdout.count(": 0\n") == 5  # repeat, and four that launch or load
    same(done, without)
    assert done.totals["launches"] == 5


def test_two_local_plugins_share_one_driver(
    build: Build, bare: Runner, preloaded: Runner, simulated: dict[str, str]
) -> None:
    driver = f"{simulated['LD_LIBRARY_PATH'].split(':')[0]}/libcuda.so.1"
    first = build.library("libplugin.so", "client.c", "-DWAY_LINKED", "-Dmain=plugin_main", link=[driver])
    second = build.library("libplugin2.so", "client.c", "-DWAY_DLSYM", "-Dmain=plugin_main")
    program = build("host", "plugin_host.c")
    words = [f"{first},{second}", *CODE.split()]
    done = preloaded(words, program=program)
    same(done, bare(words, program=program))
    assert done.totals["launches"] == 5 + 5
