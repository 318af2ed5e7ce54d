"""One mistake in a correct policy, in every place and of every kind: one finding on its line, and none that follows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml

from pyshim.policy.document import compose
from pyshim.policy.finding import Finding, render
from pyshim.policy.model import KEYS
from pyshim.policy.reader import Reading, read_bytes

FILE = Path(__file__).parent / "rich.yaml"
RICH = FILE.read_text(encoding="utf-8")
FREE = ("environment",)

# What no value of any kind may be.
NEVER = ("[[a]]", "{a: b}", "~", '""', "!!set x", '"\\x07"')
WORDS = ("when",)
NUMBERS = ("x", "0x10", "-9999999999", "1_000", "99999999999", "1.5")
# By the last part of the path: what cannot be written there although it is a single value.
WRONG = {
    "policy": ("2", "one", "1.0"),
    "name": ("my policy", "-x", "x" * 64, "ä"),
    "extends": ("bass", "h100-papr", "nowhere/at-all.yaml", "none"),
    "gpu": ("h100", "NVIDA H100*", '"[A40"', "sm90"),
    "fixed_size": ('"a[b"', '"a::<b>"'),
    "kernels": ('"*[*"', '"a::b<c>"'),
    "libraries": ("/usr/lib/libmycomm.so", '"lib[x"'),
    "created_by": ("/usr/lib/libnccl.so.2", '"lib[x"'),
    "library": ("lib/libcublasLt.so", '"lib[x"'),
    "threads": (*NUMBERS, "0"),
    "dynamic_shared_memory": ("21kb", "1.5KiB", "-1", "1GiB", "96KB"),
    "blocks_per_sm": ("0", "-1", "two", "0%", "101%", "50 %", "64"),
    "share": ("0%", "200%", "25", "half", "12.5%"),
    "keep_at_least": ("25", "0%", "101%", "quarter", "12.5%"),
    "waves": ('"=>4"', '"4-8"', '">=2.555"', '"<0"', "some", '"> "'),
    "resident_blocks": ('"=>4"', '"= 4"', "many", '"4..8"', '"<1"', "0", "-4", '">=64"', "1.5", '"!=3"'),
    "kernel": ('"[x"', '"a::b c"'),
    "shape": ("leav", "make_rom", "quick_entry", "half", "50%"),
    "NCCL_DEBUG": ("yes", "é", "true"),
    "TORCH_NCCL_HIGH_PRIORITY": ("on", "[1]"),
}


class Planted(NamedTuple):
    what: str
    text: str
    line: int  # where it stands, from 1


def replaced(node: yaml.Node, by: str, what: str) -> Planted:
    start, end = node.start_mark.index, node.end_mark.index
    whole = RICH[start:end]
    tail = whole[len(whole.rstrip()) :]  # of a block, which ends where the next one begins
    return Planted(f"{what}: {by}", RICH[:start] + by + tail + RICH[end:], node.start_mark.line + 1)


def misspelt(word: str) -> Iterator[str]:
    """A letter left out, twice there, or in its neighbour's place; at every fifth place, as there are many words."""
    for index in range(1 + len(word) % 2, len(word), 5):
        if len(word) > 3:
            yield word[:index] + word[index + 1 :]
        yield word[:index] + word[index] + word[index:]
        swapped = word[: index - 1] + word[index] + word[index - 1] + word[index + 1 :]
        if swapped != word:
            yield swapped


def keys(node: yaml.Node, path: str = "") -> Iterator[tuple[str, yaml.Node, yaml.Node]]:
    """Path, key and value, each where it is written."""
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            inner = f"{path}.{key.value}" if path else key.value
            yield inner, key, value
            if key.value != "<<":
                yield from keys(value, inner)
    elif isinstance(node, yaml.SequenceNode):
        for item in node.value:
            yield from keys(item, f"{path}[]")


def planted() -> Iterator[Planted]:
    root = compose(RICH)
    assert isinstance(root, yaml.Node)
    known = {key.path for key in KEYS}
    for path, key, value in keys(root):
        parent, _, name = path.rpartition(".")
        if key.value != "<<" and parent not in FREE:
            others = {item.rpartition(".")[2] for item in known if item.rpartition(".")[0] == parent}
            wrong = {*misspelt(name), name.capitalize(), "xyzzy", name + "_"} - others - {name}
            yield from (replaced(key, word, path) for word in sorted(wrong))
            yield replaced(key, "[a]", path)
            yield replaced(key, "!!set x", path)
        if parent in FREE:
            yield from (replaced(key, word, path) for word in ("1X", '"A B"', "LD_PRELOAD", "PATH", "OVERLAP_RUN"))
        if key.value == "<<":
            yield replaced(key, "<<x", path)
            continue  # its value is where the anchor is
        if (isinstance(value, yaml.ScalarNode) or path in known) and path not in FREE:
            yield from (replaced(value, wrong, path) for wrong in NEVER if (name, wrong) != ("shape", "{a: b}"))
        for item in value.value if isinstance(value, yaml.SequenceNode) else [value]:
            if isinstance(item, yaml.ScalarNode):
                yield from (replaced(item, wrong, path) for wrong in WRONG.get(name, ()))
                if name in WORDS and not re.fullmatch(r"-?\d+", item.value):
                    yield from (replaced(item, wrong, path) for wrong in sorted({*misspelt(item.value)}))
        if isinstance(value, yaml.MappingNode) and name != "shape":
            yield replaced(value, "3", path)
        if isinstance(value, yaml.SequenceNode) and path != "compute":
            yield replaced(value, "[]", path)
    yield from lost()


def lost() -> Iterator[Planted]:
    """Lines left out, twice there, or indented wrongly."""
    lines = RICH.splitlines(keepends=True)
    for index, line in enumerate(lines):
        if re.match(r" *[a-z_]+: \S", line):
            again = "".join([*lines[: index + 1], line, *lines[index + 1 :]])
            yield Planted(f"twice: {line.strip()}", again, index + 2)
        yield Planted(f"tab: {line.strip()}", "".join([*lines[:index], "\t" + line, *lines[index + 1 :]]), index + 1)
    for name in ("policy: 1", "name: rich"):
        yield Planted(f"without {name}", RICH.replace(f"\n{name}", ""), 2)
    for text in ("    shape: make_room\n", "match: {kernel: [attention, norm]}\n    "):
        rule = RICH.rindex("\n  - ", 0, RICH.index(text) + 1)
        yield Planted(f"without {text.strip()}", RICH.replace(text, ""), RICH[:rule].count("\n") + 2)
    share = RICH.index("{share: 10%}")
    yield Planted("without a share", RICH.replace("{share: 10%}", "{}"), RICH[:share].count("\n") + 1)


MISTAKES = list(planted())


def read(text: str) -> Reading:
    return read_bytes(text.encode(), str(FILE))


def test_the_policy_has_every_key_and_no_mistake() -> None:
    root = compose(RICH)
    assert isinstance(root, yaml.Node)
    written = {path for path, _, _ in keys(root)}
    assert {key.path for key in KEYS} <= written
    assert read(RICH).findings == ()


def test_the_mistakes_are_many() -> None:
    assert len(MISTAKES) > 900
    assert len({mistake.text for mistake in MISTAKES}) > 900


# In portions, so that a run shows more than the first failure.
@pytest.mark.parametrize("portion", range(8))
def test_one_mistake_is_one_finding_on_its_line(portion: int, library: object) -> None:
    failures = []
    for mistake in MISTAKES[portion::8]:
        reading = read(mistake.text)
        if not is_told_once(reading.findings, mistake):
            shown = render("rich.yaml", reading.source, reading.findings) or "nothing\n"
            failures.append(f"--- {mistake.what} (line {mistake.line})\n{shown}")
    assert not failures, f"{len(failures)} of {len(MISTAKES[portion::8])}:\n" + "\n".join(failures[:12])


def is_told_once(findings: tuple[Finding, ...], mistake: Planted) -> bool:
    if len(findings) != 1:
        return False
    (found,) = findings
    # YAML itself notices some mistakes where the line ends.
    return found.line == mistake.line and bool(found.hint) and found.length >= 1
