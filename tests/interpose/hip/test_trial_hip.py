"""Trials on HIP: sizes are an arm; what HIP cannot switch is no faster than the reference."""

from __future__ import annotations

from pathlib import Path

from hip_interposing import NCCL, Hip, World, smallest
from trying import NOTHING, WARM_UP, Verdict, verdict

REFERENCE = "critical: off\ncommunication: {priority: inherit}\n"
COSTS = '- {kernel: "k", block_us: 50, gain: 8, spread: 0}\n- {kernel: "nccl*", block_us: 100, spread: 0}\n'


def steps(world: World, count: int) -> list[str]:
    """Computation and communication on a stream each, which wait for each other."""
    step = ["launch=k,400,256,0,1", f"launch={NCCL},4,256,0,2", "record=1", "wait=2", "record=2", "wait=1"]
    return [*world.words("k", NCCL), "stream=0", "stream=0", *step * count]


def tried(world: World, hip: Hip, folder: Path, arm: str, count: int) -> tuple[Verdict, list[int]]:
    """Return the verdict, and the size of each launch of computation; the program sees what it sees without us."""
    (folder / "costs").write_text(COSTS)
    env = {"SIMGPU_COSTS": str(folder / "costs")}
    words = steps(world, count)
    done = hip(words, f"{REFERENCE}trial: {{arms: [{arm}]}}", env=env)
    without = hip(words, env=env)
    assert (done.status, done.stdout, done.stderr) == (without.status, without.stdout, without.stderr)
    (page,) = folder.glob("report*/*.page")
    return verdict(page), [launch["dynamic_shared"] for launch in done.launches if launch["kernel"] == "k"]


def test_a_harmful_size_is_dropped(world: World, hip: Hip, tmp_path: Path) -> None:
    arm = tmp_path / "one.yaml"
    rules = "when: always\ncompute: [{match: {kernel: k}, shape: {blocks_per_sm: 1}}]\n"
    arm.write_text(f'policy: 1\nname: one\ngpu: ["AMD *"]\n{REFERENCE}{rules}')
    found, sizes = tried(world, hip, tmp_path, str(arm), 800)
    assert (found.status, found.kept, found.arms["one"].harmful) == (NOTHING, "test", True)
    assert sizes[:WARM_UP] == [0] * WARM_UP
    assert set(sizes) == {0, smallest(1)}
    assert set(sizes[WARM_UP + found.marks + 7 :]) == {0}


def test_what_hip_cannot_switch_is_equal(world: World, hip: Hip, tmp_path: Path) -> None:
    found, sizes = tried(world, hip, tmp_path, "raised-communication", 2500)
    arm = found.arms["raised-communication"]
    assert (found.status, found.kept, arm.harmful) == (NOTHING, "test", False)
    assert abs(arm.mean) < 0.005 and set(sizes) == {0}
