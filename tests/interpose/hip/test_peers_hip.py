"""What users of other preloads saw on AMD; more in words/hip_*.txt."""

from __future__ import annotations

import pytest
from hip_interposing import BLOCKS, VERSIONS, Hip, World, runtime, smallest
from interposing import ONE, same

from tools.checks import check_exports

LAUNCH = f"launch=k,{BLOCKS},64"


def forwarding_runtime(world: World, version: str) -> str:
    """The folder of a runtime that is a doorway to the simulated one, and finds its functions by dlsym."""
    symbols = check_exports.read(runtime(version).read_bytes()).symbols
    functions = (symbol.name for symbol in symbols if symbol.defined and symbol.name.startswith("hip"))
    names = sorted({name for name in functions if name.isidentifier()})  # versions are symbols, too
    assert len(names) > 50
    table = world.build.folder / f"hip{version}-functions.def"
    table.write_text("".join(f"FUNCTION({name})\n" for name in names))
    inner = world.build.folder / f"{runtime(version).name}.inner"
    if not inner.exists():
        inner.symlink_to(runtime(version))
    flags = [f'-DFUNCTIONS="{table}"', f'-DINNER="{inner}"', "-O0", "-DLATE"]
    made = world.build.library(f"forwarding-hip{version}/{runtime(version).name}", "forwarding_driver.c", *flags)
    return str(made.parent)


@pytest.mark.parametrize("version", VERSIONS)
def test_hip_that_looks_its_own_functions_up_breaks(version: str, world: World, hip: Hip) -> None:
    env = {"LD_LIBRARY_PATH": forwarding_runtime(world, version)}
    words = [*world.words("k"), LAUNCH, "repeat=3", LAUNCH, "sync"]
    bare = hip(words, version=version, way="dlsym", env=env)
    done = hip(words, ONE, version=version, way="dlsym", env=env)
    assert (bare.status, len(bare.launches)) == (0, 4), bare.stdout + bare.stderr
    same(done, bare, but=["dynamic_shared"])
    assert done.totals["launches"] == 4
    assert done.sizes == [smallest(1)] * 4
