"""Are the commands of a page spelled as our commands take them? So that a renamed option breaks the page's test."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

from elsewhere import simple

from tools.docs.commands import Command, commands

ROOT = Path(__file__).resolve().parents[2]

_COMMON = {"-h", "--help", "--version"}


@cache
def known() -> dict[str, Command]:
    return {command.words: command for command in commands()}


def mistakes(text: str) -> list[str]:
    """What is wrong with our own commands in it; a sentence each."""
    found = []
    for words in simple(text):
        if words[0] == "module":
            continue
        for at, word in enumerate(words):
            name = word.rpartition("/")[2]
            if name == "overlap-run":
                found += _options(known()["overlap-run"], words[at + 1 :], whole=False)
            elif name == "overlap" and (at == 0 or words[at - 1] in ("exec", "time", "sudo")):
                found += _overlap(words[at + 1 :])
            elif name == "make" and at == 0:
                found += [f"make has no target {target}" for target in _targets(words[1:]) - _phony()]
            elif (word.startswith("tools/") and at <= 1) or (word.startswith("tools.") and words[at - 1] == "-m"):
                found += _tool(word, words[at + 1 :])
    return found


def _overlap(words: list[str]) -> list[str]:
    if not words or words[0] in _COMMON or words[0].isupper():
        return []
    for length in (2, 1):
        command = known().get(" ".join(["overlap", *words[:length]]))
        if command:
            return _options(command, words[length:], whole=True)
    if any(name.startswith(f"overlap {words[0]} ") for name in known()):  # overlap policy --help
        return []
    return [f"overlap has no command {words[0]}"]


def _options(command: Command, words: list[str], whole: bool) -> list[str]:
    """whole: all words are ours; else only those up to the program."""
    found = []
    skip = False
    for word in words:
        if skip:
            skip = False
            continue
        if not word.startswith("-") or word == "-":
            if whole:
                continue
            break
        if word == "--":
            break
        name = word.partition("=")[0]
        if name not in command.names | _COMMON:
            found.append(f"{command.words} has no option {name}")
        skip = "=" not in word and name in command.takes_a_value
    return found


def _targets(words: list[str]) -> set[str]:
    return {word for word in words if "=" not in word and not word.startswith("-")}


@cache
def _phony() -> set[str]:
    found = re.findall(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    return set(" ".join(found).split())


def _tool(path: str, words: list[str]) -> list[str]:
    file = ROOT / path.replace(".", "/") if path.startswith("tools.") else ROOT / path
    if not any(found.exists() for found in (file, file.with_suffix(".py"))):
        return [f"there is no {path}"]
    named = {word.partition("=")[0] for word in words if word.startswith("--")} - _COMMON
    if not named or path.endswith(".c"):
        return []
    return [f"{path} has no option {name}" for name in sorted(named) if name not in _help(path)]


@cache
def _help(path: str) -> str:
    command = [sys.executable, *(["-m", path] if path.startswith("tools.") else [path]), "--help"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT, env=dict(os.environ))
    return done.stdout + done.stderr
