"""Python programs whose frameworks ship the vendor's own runtime: they do not run on the simulated GPU."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator, Sequence

from pyshim.start.driver import text

# By package: the profilers whose traces `overlap explain` reads.
_PROFILERS = {"torch": "torch.profiler or nsys", "jax": "jax.profiler or nsys", "tensorflow": "nsys"}
_STARTERS = {"torchrun": "torch", "deepspeed": "torch", "accelerate": "torch"}


def framework(command: Sequence[str]) -> tuple[str, str, str] | None:
    """Return what a command runs, the framework that it needs, and its profilers; None if it needs none.

    What the program imports decides, and not what is installed. An import that may fail (`try`) decides nothing."""
    for name, code in _python(command):
        found = next((package for package in _imported(code) if package in _PROFILERS), None)
        if found:
            return name, found, _PROFILERS[found]
    starter = os.path.basename(command[0]) if command else ""
    package = _STARTERS.get(starter) or next((_module(word) for word in _modules(command)), "")
    return (starter, package, _PROFILERS[package]) if package in _PROFILERS else None


def _python(command: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the name and the code of what a command gives to a Python."""
    for number, word in enumerate(command):
        if word == "-c" and number + 1 < len(command):
            yield "the program", command[number + 1]
            return
        if word.endswith(".py"):
            yield word, text(word)
            return


def _modules(command: Sequence[str]) -> list[str]:
    return [after for word, after in zip(command, command[1:]) if word == "-m"]


def _imported(code: str) -> Iterator[str]:
    """Yield the packages that must be there for the code to run."""
    try:
        left: list[ast.AST] = [ast.parse(code)]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    while left:
        node = left.pop(0)
        if isinstance(node, ast.Try):
            left += [*node.orelse, *node.finalbody]
            continue
        if isinstance(node, ast.Import):
            yield from (_module(alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield _module(node.module or "")
        left += ast.iter_child_nodes(node)


def _module(name: str) -> str:
    return name.partition(".")[0]
