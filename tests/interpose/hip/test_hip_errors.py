"""What hipGetLastError says is what it would say without us: on some releases it is of the last call, on others of the
last that failed."""

from __future__ import annotations

import pytest
from hip_interposing import VERSIONS, Hip, World, runtime
from interposing import ONE, rule, same


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("policy", "env"),
    [(ONE, {}), (rule("{blocks_per_sm: 1}", when="overlapping"), {}), (ONE, {"SIMGPU_REFUSE": "k:20000"})],
    ids=["always", "windows", "our size is refused"],
)
def test_the_last_error(version: str, policy: str, env: dict[str, str], world: World, hip: Hip) -> None:
    """Two devices, so that which one is current must be asked."""
    build = (f'-DRUNTIME="{runtime(version).name}"', f"-DVERSION={version}", "-DWAY_LINKED")
    program = world.build(f"hip-errors-{version}", "hip_errors.c", *build, link=[runtime(version)])
    bare = hip([world.code], program=program, version=version, gpu="mi250x,2")
    assert "end: 901, last 901\n" in bare.stdout
    assert bare.stdout.count("too many threads: 1, last 1\n") == 4
    done = hip([world.code], policy, program=program, version=version, gpu="mi250x,2", env=env)
    assert (done.launches[1]["dynamic_shared"] > 0) == (policy == ONE), "the first one that the GPU can run"
    if env:  # the driver gets one more launch
        assert (done.status, done.seen, done.stderr) == (bare.status, bare.seen, bare.stderr)
        assert len(done.launches) == len(bare.launches) + 1
    else:
        same(done, bare, ["dynamic_shared"])
