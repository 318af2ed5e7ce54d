"""Code blocks of the pages: what kind each is, the commands in it, what they are said to print.

How a page says what a block is, by the words behind ```:
  console       `$ ` lines are commands, run in order in one folder of the page; what follows each is what it prints,
                with [...] for any text in a line, and for any lines where it stands alone, also as [... in words ...]
  sh            commands, run likewise; what they print is not looked at. Indented blocks are this, or console where a
                line begins with `$ `
  yaml          a policy, or a part of one, which must have no mistakes. A first line `# FILE`: it is written there, for
                the commands that follow; `# FILE, with mistakes`: it must have some. `yaml costs`: costs of kernels for
                the simulated GPU
  python        compiled, and run where what it imports is there
  text          no code
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
KINDS = ("console", "sh", "yaml", "python", "text")
_ELSEWHERE = {"_lib", "node_modules"}


class Block(NamedTuple):
    file: str
    line: int
    kind: str
    words: tuple[str, ...]  # behind the kind
    text: str

    @property
    def place(self) -> str:
        return f"{self.file}:{self.line}"


class Command(NamedTuple):
    line: int
    text: str
    printed: tuple[str, ...] | None  # None: not said


def pages() -> list[str]:
    found = []
    for folder, inside, names in os.walk(ROOT):
        inside[:] = [name for name in inside if not (name.startswith(".") or name in _ELSEWHERE)]  # no documentation
        found += [os.path.relpath(os.path.join(folder, name), ROOT) for name in names if name.endswith(".md")]
    return sorted(found)


def blocks(file: str, text: str) -> Iterator[Block]:
    lines = text.splitlines()
    number = 0
    while number < len(lines):
        fence = re.match(r"^```(.*)$", lines[number])
        if fence:
            end = next(at for at in range(number + 1, len(lines)) if lines[at].startswith("```"))
            kind, *words = fence[1].split() or [""]
            named = re.match(r"^# (\S+\.yaml)(?:, with (mistakes))?$", lines[number + 1])
            if kind == "yaml" and named:
                words = [word for word in named.groups() if word]
            yield Block(file, number + 2, kind, tuple(words), "\n".join(lines[number + 1 : end]))
            number = end + 1
        elif lines[number].startswith("    ") and (number == 0 or not lines[number - 1].strip()):
            end = number
            while end < len(lines) and (lines[end].startswith("    ") or not lines[end].strip()):
                end += 1
            inner = [line[4:] for line in lines[number:end]]
            kind = "console" if any(line.startswith("$ ") for line in inner) else "sh"
            yield Block(file, number + 1, kind, (), "\n".join(inner).rstrip())
            number = end
        else:
            number += 1


def commands(block: Block) -> Iterator[Command]:
    """Of a console or sh block; a line that ends with \\ goes on in the next."""
    lines = block.text.splitlines()
    number = 0
    while number < len(lines):
        first, line = number, lines[number]
        number += 1
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        if block.kind == "console" and not line.startswith("$ "):
            raise ValueError(f"{block.file}:{block.line + first}: a console block begins with `$ `")
        while line.endswith("\\") and number < len(lines):
            line = line[:-1].rstrip() + " " + lines[number].strip()
            number += 1
        printed = []
        while block.kind == "console" and number < len(lines) and not lines[number].startswith("$ "):
            printed.append(lines[number])
            number += 1
        said = tuple(printed) if block.kind == "console" else None
        yield Command(block.line + first, line[2:] if block.kind == "console" else line, said)


def same(said: tuple[str, ...], printed: list[str]) -> bool:
    """Whether a page's lines are what was printed. Blank lines do not count, nor blanks at the ends of lines."""
    pattern = ""
    for line in said:
        if re.fullmatch(r"\[\.\.\.( .* \.\.\.)?\]", line.strip()):
            pattern += r"(?:.*\n)*?"
        elif line.strip():
            pattern += ".*?".join(re.escape(part) for part in line.rstrip().split("[...]")) + r"\n"
    return re.fullmatch(pattern, "".join(line.rstrip() + "\n" for line in printed if line.strip())) is not None
