"""Every code block of every page: run where a machine without a GPU can, and spelled right where it cannot.

Each page has a folder of its own, in which its blocks are run in order. blocks.py says how a page marks a block,
elsewhere.py what is not run and why.
"""

from __future__ import annotations

import ast
import importlib.util
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import elsewhere
import pytest
import spelling
from blocks import KINDS, ROOT, Block, Command, blocks, commands, pages, same

from pyshim.cli import main
from pyshim.cli.run import main as run_main
from tests import in_process

# What a page leaves to its reader. It runs the bundled stencil on the simulated GPU.
_PROGRAM = """#!/bin/sh
export LD_LIBRARY_PATH={root}/pyshim/_lib/simgpu SIMGPU=${{SIMGPU:-h100}}
exec {root}/pyshim/_lib/demo/demo-stencil >/dev/null
"""
_READERS = ("program", "stencil", "bin/PROGRAM")
_READERS_POLICY = "policy: 1\nname: my\ncompute:\n  - match: {kernel: gemm}\n    shape: leave\n"
_KEPT = {
    **dict.fromkeys(("run1", "run2", "before", "after"), "overlap-run --quiet --policy observe --report {} ./program"),
    **dict.fromkeys(("trace.json", "before.json", "after.json"), "SIMGPU_TRACE={} ./program"),
}
# The target's own recipe, for pages are not run where `make` would write.
_RECIPES = {"make demo": "overlap demo"}
# A command of these alone needs no interpreter of its own.
_OURS = {"overlap": main, "overlap-run": run_main}
_SHELLS = re.compile(r"[|&;<>$`*?~(){}\n]")
_PARTLY = "policy: 1\nname: part-of-one\n"


class World:
    """The folder of a page, and the environment of its reader."""

    def __init__(self, folder: Path, base: dict[str, str]) -> None:
        self.folder = folder
        (folder / "bin").mkdir()
        (folder / "home").mkdir()
        for name, module in (("overlap", "pyshim"), ("overlap-run", "pyshim.cli.run"), ("python", "")):
            start = f"{shlex.quote(sys.executable)} {'-m ' + module if module else ''}"
            self.write(f"bin/{name}", f'#!/bin/sh\nexec {start} "$@"\n')
        for name in _READERS:
            self.write(name, _PROGRAM.format(root=shlex.quote(str(ROOT))))
        self.write("train.py", "import os\nos.execv('./program', ['./program'])\n")
        self.write("my.yaml", _READERS_POLICY)
        for name in ("pyshim", "tools", "policies", "shim", "docs", "tests", "Makefile"):
            (folder / name).symlink_to(ROOT / name)
        (folder / ".venv").symlink_to(sys.prefix)
        path = os.pathsep.join([str(folder / "bin"), str(Path(sys.executable).parent), base.get("PATH", "")])
        home = {"HOME": str(folder / "home"), "XDG_CACHE_HOME": str(folder / "home" / ".cache")}
        self.environment = {**base, **home, "PATH": path, "TZ": "UTC", "PYTHONUTF8": "1", "OVERLAP_PROGRESS": "off"}

    def provide(self, command: str) -> None:
        """What the reader has kept of runs: reports, and traces of a profiler."""
        for name in set(re.findall(r"[\w.]+", command)) & set(_KEPT):
            if "overlap-run" not in command and not (self.folder / name).exists():
                assert self.run(_KEPT[name].format(name)).returncode == 0

    def write(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        path.chmod(0o755)
        return path

    def run(self, command: str) -> subprocess.CompletedProcess[str]:
        """In a shell of its own, where it needs one; what it exports by itself holds for those behind it."""
        exported = re.fullmatch(r"export (\w+)=([\w./:-]+)", command.partition("  #")[0].strip())
        if exported:
            self.environment[exported[1]] = exported[2]
        streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        words = [] if _SHELLS.search(command) else shlex.split(command, comments=True)
        if words and words[0] in _OURS:
            return in_process.forked(_OURS[words[0]], words[1:], self.environment, cwd=self.folder, **streams)
        return subprocess.run(
            ["sh", "-c", command],
            cwd=self.folder,
            env=self.environment,
            text=True,
            encoding="utf-8",
            timeout=120,
            check=False,
            **streams,
        )


def of(page: str) -> list[Block]:
    return list(blocks(page, (ROOT / page).read_text(encoding="utf-8")))


WITH_BLOCKS = [page for page in pages() if of(page)]


@pytest.mark.parametrize("page", WITH_BLOCKS)
def test_the_blocks_of(page: str, tmp_path: Path, clean_environment: dict[str, str]) -> None:
    world = World(tmp_path, clean_environment)
    wrong: list[str] = []
    for block in of(page):
        if block.kind not in KINDS:
            wrong.append(f"{block.place}: ```{block.kind}: say which of {', '.join(KINDS)} it is")
        elif block.kind in ("console", "sh"):
            wrong += shell(block, world)
        else:
            wrong += {"yaml": policy, "python": python, "text": no_code}[block.kind](block, world)
    wrong += parts(world)
    assert not wrong, "\n\n".join(wrong)


def shell(block: Block, world: World) -> list[str]:
    wrong = []
    left: set[str] = set()  # the words of commands that were not run
    for command in commands(block):
        place = f"{block.file}:{command.line}"
        wrong += [f"{place}: {mistake}" for mistake in spelling.mistakes(command.text)]
        read = re.search(r"overlap report (\S+)", command.text)
        if not_run(block.file, command.text) or (read and read[1] in left):
            left |= set(command.text.split())
        else:
            if block.kind == "sh":
                world.provide(command.text)
            wrong += run(place, command, world)
    return wrong


def not_run(file: str, command: str) -> str | None:
    return None if command.strip() in _RECIPES else elsewhere.reason(file, command)


def run(place: str, command: Command, world: World) -> list[str]:
    done = world.run(_RECIPES.get(command.text.strip(), command.text))
    if command.printed is not None:
        if same(command.printed, done.stdout.splitlines()):
            return []
        said = "\n".join(command.printed)
        return [f"{place}: $ {command.text}\nthe page says:\n{said}\nprinted was:\n{done.stdout}"]
    findings = "overlap doctor" in command.text and done.returncode == 1
    if done.returncode == 0 or findings:
        return []
    return [f"{place}: {command.text}\nended with {done.returncode}:\n{done.stdout}"]


def policy(block: Block, world: World) -> list[str]:
    if block.words[:1] == ("costs",):
        costs = world.write("costs-of-this-block.yaml", block.text + "\n")
        done = world.run(f"SIMGPU_COSTS={costs} overlap-run --quiet --policy observe ./program")
        return [] if done.returncode == 0 else [f"{block.place}: {done.stdout}"]
    if not block.words:
        whole = re.search("^policy:", block.text, re.MULTILINE)
        world.write(f"block-{block.line}.yaml", ("" if whole else _PARTLY) + block.text + "\n")
        return []  # parts() checks all of a page at once
    world.write(block.words[0], block.text + "\n")
    done = world.run(f"overlap policy check ./{block.words[0]}")
    expected = 1 if "mistakes" in block.words else 0
    return [] if done.returncode == expected else [f"{block.place}: overlap policy check:\n{done.stdout}"]


def parts(world: World) -> list[str]:
    """Of the policies that the page gives no name."""
    if not list(world.folder.glob("block-*.yaml")):
        return []
    done = world.run("overlap policy check ./block-*.yaml")
    return [] if done.returncode == 0 else [f"overlap policy check (block-LINE.yaml):\n{done.stdout}"]


def python(block: Block, world: World) -> list[str]:
    try:
        tree = ast.parse(block.text)
    except SyntaxError as error:
        return [f"{block.place}: {error}"]
    names = [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
    names += [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    if any(importlib.util.find_spec(name.partition(".")[0]) is None for name in names):
        return []
    world.write("block.py", block.text + "\n")
    done = world.run("python block.py")
    return [] if done.returncode == 0 else [f"{block.place}: {done.stdout}"]


def no_code(block: Block, world: World) -> list[str]:
    begins = ("$ ", "overlap", "make ", "python ", "policy:", "srun ")
    return [f"{block.place}: ```text holds code: {line}" for line in block.text.splitlines() if line.startswith(begins)]


def test_what_is_not_run_is_on_a_page() -> None:
    """Reasons for commands that nobody shows any more are taken out."""
    shown = [
        (page, command.text)
        for page in WITH_BLOCKS
        for block in of(page)
        if block.kind in ("console", "sh")
        for command in commands(block)
    ]
    unused = [word for word, _ in elsewhere.WORDS if not any(word in text for _, text in shown)]
    begun = [(page, begin) for page, begin, _ in elsewhere.HERE]
    unused += [begin for page, begin in begun if not any(at == page and text.startswith(begin) for at, text in shown)]
    assert not unused
    assert all(len(why.split()) > 2 for why in elsewhere.PROGRAMS.values())


def test_make_demo_is_overlap_demo() -> None:
    recipe = (ROOT / "Makefile").read_text(encoding="utf-8").partition("\ndemo: ")[2].splitlines()[1]
    assert recipe.strip() == "$(BIN)/overlap demo"
