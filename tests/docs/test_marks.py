"""What a page must not get away with: wrong output, a renamed option, a policy with a mistake, a block of no kind."""

from __future__ import annotations

from pathlib import Path

import pytest
import spelling
from blocks import Block, blocks
from test_blocks import World, parts, policy, shell


@pytest.mark.parametrize(
    "command",
    [
        "overlap-run --polcy h100 python train.py",
        "overlap report run1 --chek",
        'eval "$(overlap env --ranks-all)"',
        "make demmo",
        ".venv/bin/python -m tools.docs.write --wirte",
    ],
)
def test_a_wrong_word_is_a_mistake(command: str) -> None:
    assert len(spelling.mistakes(command)) == 1


@pytest.fixture
def world(tmp_path: Path, clean_environment: dict[str, str]) -> World:
    return World(tmp_path, clean_environment)


def test_output_that_differs_is_found(world: World) -> None:
    (block,) = blocks("page.md", "```console\n$ echo one; echo two >&2\none\nthree\n```\n")
    assert "printed was:\none\ntwo" in shell(block, world)[0]


def test_a_command_that_fails_is_found(world: World) -> None:
    (block,) = blocks("page.md", "text\n\n    overlap env >/dev/null\n    false\n")
    assert [wrong.splitlines()[0] for wrong in shell(block, world)] == ["page.md:4: false"]


def test_a_policy_with_a_mistake_is_found(world: World) -> None:
    part = Block("page.md", 1, "yaml", (), "compute:\n  - match: {kernel: gemm}\n    shap: leave")
    assert not policy(part._replace(words=("x.yaml", "mistakes")), world)
    assert not policy(part, world) and "block-1.yaml" in parts(world)[0]
    assert not policy(part._replace(text=part.text.replace("shap:", "shape:")), world) and not parts(world)
    assert policy(part._replace(words=("x.yaml",)), world)
