"""What a page must not get away with: wrong output, a renamed option, a policy with a mistake, a block of no kind."""

from __future__ import annotations

from pathlib import Path

import elsewhere
import pytest
import spelling
from blocks import Block, blocks, commands, same
from test_blocks import World, no_code, parts, policy, run, shell


@pytest.mark.parametrize(
    ("said", "printed", "expected"),
    [
        (("a", "b"), ["a", "b"], True),
        (("a",), ["a", "b"], False),
        (("a", "[...]"), ["a", "b", "c"], True),
        (("[...]", "c"), ["a", "b", "c"], True),
        (("a", "[...]", "c"), ["a", "c"], True),
        (("a", "[...]", "d"), ["a", "b", "c"], False),
        (("run [...] of 4",), ["run 17 of 4"], True),
        (("run [...] of 4",), ["run 17", " of 4"], False),
        (("a", "[... the rest ...]"), ["a", "b", "c"], True),
        (("a  ", "", "b"), ["", "a", "b", ""], True),
    ],
)
def test_what_a_page_says_is_what_was_printed(said: tuple[str, ...], printed: list[str], expected: bool) -> None:
    assert same(said, list(printed)) is expected


@pytest.mark.parametrize(
    "command",
    [
        "overlap-run --polcy h100 python train.py",
        "srun -N2 overlap-run --reprot x python train.py --policy y",
        "overlap report run1 --chek",
        "overlap polcy check x.yaml",
        'eval "$(overlap env --ranks-all)"',
        "mkdir x && overlap explain --gpus h100",
        "make demmo",
        ".venv/bin/python -m tools.docs.write --wirte",
        "python -m tools.gone",
    ],
)
def test_a_wrong_word_is_a_mistake(command: str) -> None:
    assert len(spelling.mistakes(command)) == 1


@pytest.mark.parametrize(
    "command",
    [
        "overlap-run --policy h100 python train.py --whatever",
        "overlap-run --dry_run --policy=h100 -- ./program --help".replace("_", "-"),
        "overlap-run --help; overlap --help",
        "module load overlap",
        'eval "$(overlap env --policy P)"; exec "$@"',
        "make site PREFIX=/opt/overlap ARGS='--default auto site.yaml'",
    ],
)
def test_a_right_one_is_none(command: str) -> None:
    assert spelling.mistakes(command) == []


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


def test_code_does_not_pass_as_text(world: World) -> None:
    assert no_code(Block("page.md", 1, "text", (), "overlap-run python train.py"), world)


def test_a_program_is_not_run_whatever_starts_it() -> None:
    for command in ("srun true", "A=1 srun true", "overlap-run --policy x srun true", "true && docker run x"):
        assert elsewhere.reason("page.md", command)
    assert elsewhere.reason("page.md", "overlap-run --policy x ./program") is None


def test_lines_that_go_on_are_one_command(world: World) -> None:
    (block,) = blocks("page.md", "```sh\necho a \\\n    b\n```\n")
    (command,) = commands(block)
    assert command.text == "echo a b" and not run("page.md:2", command, world)
