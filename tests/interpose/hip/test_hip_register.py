"""AMD's librocprofiler-register, of Debian, hands the table of a simulated runtime to the library, and to profilers."""

from __future__ import annotations

import platform
from pathlib import Path

import debian
import pytest
from hip_interposing import BLOCKS, Hip, World, places, runtime, smallest
from interposing import ONE, Build, Done

REGISTER = {"SIMGPU_HIP_TABLE": "register"}
LIBRARIES = "usr/lib/x86_64-linux-gnu"
# It was built for a newer C library than this machine may have.
NEEDED = ["libc6", "libfmt11", "libgcc-s1", "libgflags2.2", "libgoogle-glog0v6t64", "liblzma5", "libstdc++6"]


@pytest.fixture(scope="session")
def real() -> tuple[Path, Path]:
    """Where it is; and what it needs."""
    if platform.machine() != "x86_64":
        pytest.skip("the packages are for x86-64")
    try:
        register = debian.fetch("experimental", ["librocprofiler-register-0"]) / LIBRARIES
        return register, debian.fetch("sid", [*NEEDED, "libunwind8", "zlib1g"]) / LIBRARIES
    except debian.Missing as missing:
        pytest.skip(f"needs packages of Debian experimental and sid: {missing}")


FLAGS = ("-DWAY_LINKED", "-DVERSION=7", '-DRUNTIME="libamdhip64.so.7"', "-Wl,--disable-new-dtags")


def loader(real: tuple[Path, Path]) -> tuple[str, ...]:
    return f"-Wl,--dynamic-linker={real[1]}/ld-linux-x86-64.so.2", f"-Wl,-rpath,{real[1]}"


@pytest.fixture
def program(real: tuple[Path, Path], tmp_path: Path) -> Path:
    """Its RPATH names the folder that it is built in; the one of other tests holds a register of theirs."""
    return Build(tmp_path)("hip-client-real", "hip_client.c", *FLAGS, *loader(real), link=[runtime("7")])


@pytest.fixture
def words(world: World) -> list[str]:
    return [*world.words("k"), *world.hosts("k"), "repeat=3", f"launch=k,{BLOCKS},64"]


@pytest.fixture
def env(world: World, real: tuple[Path, Path]) -> dict[str, str]:
    folders = [runtime("7").parent, *real, world.build.folder]
    return {**REGISTER, "LD_LIBRARY_PATH": ":".join(map(str, folders))}


def shaped_once(done: Done, bare: Done) -> None:
    """The program saw the same; each of three launches was made once, with our size, and counted once."""
    assert (done.status, done.stdout) == (bare.status, bare.stdout), done.stderr
    assert (bare.status, bare.sizes, done.sizes) == (0, [0] * 3, [smallest(1)] * 3)
    assert (done.totals["launches"], done.totals["shaped"], done.totals["refused"]) == (3, 3, 0)


@pytest.mark.plain("sanitizers refuse RTLD_DEEPBIND", sanitized=True)
def test_it_hands_us_the_table(
    real: tuple[Path, Path], words: list[str], env: dict[str, str], hip: Hip, tmp_path: Path
) -> None:
    """A library that is bound past us is seen by the table."""
    build = Build(tmp_path)
    host = build("plugin-host-real", "plugin_host.c", "-Wl,--disable-new-dtags", *loader(real))
    plugin = build.library("hip-plugin-real.so", "hip_client.c", "-Dmain=plugin_main", *FLAGS, link=[runtime("7")])
    past = {"words": [plugin, *words], "program": host, "env": {**env, "PLUGIN_DEEPBIND": "1"}}
    shaped_once(hip(policy=ONE, **past), hip(**past))


def test_profilers_see_every_launch(
    world: World, program: Path, words: list[str], env: dict[str, str], hip: Hip
) -> None:
    profiler = world.build.library("libhip_profiler.so", "hip_profiler.c", *places())
    bare = hip(words, program=program, env=env, preload=str(profiler))
    assert "profiler: 1 tables, 3 launches\n" in bare.stdout
    for preload in (f"{{}}:{profiler}", f"{profiler}:{{}}"):
        done = hip(words, ONE, program=program, env=env, preload=preload)
        shaped_once(done, bare)


def test_its_own_switch_is_left_to_the_user(program: Path, words: list[str], env: dict[str, str], hip: Hip) -> None:
    done = hip(words, ONE, program=program, env={**env, "ROCPROFILER_REGISTER_ENABLED": "0"})
    assert done.totals["launches"] == 3
    assert done.sizes == [smallest(1)] * 3
