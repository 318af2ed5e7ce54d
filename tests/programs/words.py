"""Cases of tests/interpose/words: words that a program does without the library and with it, and what may differ.

    A sentence that says what is promised.
      words of the program, on one line or several, where $NAME is what a line NAME = ... above says,
      and {a|b} makes two cases; <1> is the choice from the first such group, {1:c|d} is c where that is a
      KEY: what is expected

The program sees the same with the library, and so does the driver but for the sizes of launches. The keys:

    policy   a shipped one, or SHAPE; when=...; match=...; more=... of its one rule; one: {blocks_per_sm: 1}, always
    alone    in the output of the program alone, or nothing was tested; `alone 2x`, `alone not`
    differs  fields of a launch that differ, or `nothing`; `driver: any` compares none
    reasons, counts    of the report, all of the reasons and some of the totals (refused is 0 where it is not said)
    sizes    of the driver's launches; S1 is the smallest size with one resident block, ... any others
    clusters of the driver's launches, of the program alone
    grown    0 or 1 of each launch: whether its size is above zero
    results, priorities    of the driver's launches; `read back`: the priorities that the program is told
    told, told alone    what the driver says when it is asked past the library (@deep)
    env, way    NAME=VALUE of the environment; the program's way to the driver
    where    holds groups that only <1> refers to
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from interposing import NCCL, Build, Done, Runner, rule, same, smallest_size

GROUP = re.compile(r"\{(?:(\d):)?([^{}]*\|[^{}]*)\}")
KEYS = "policy|differs|driver|reasons|counts|sizes|clusters|grown|results|priorities|read back|env|way|where"
KEY = re.compile(rf"({KEYS}|told(?: alone)?|alone(?: \d+x| not)?): (.*)")
SHAPES = {"one": "{blocks_per_sm: 1}", "leave": "leave", "make_room": "make_room"}


def expanded(text: str) -> Iterator[tuple[str, str]]:
    """Yield the text for each choice from its groups, and the choices."""
    groups = [match[2].split("|") for match in GROUP.finditer(text) if match[2] and not match[1]]
    for chosen in itertools.product(*(range(len(group)) for group in groups)):
        choices = [group[index] for group, index in zip(groups, chosen)]
        following = iter(choices)

        def choose(match: re.Match[str], chosen: tuple[int, ...] = chosen, following: Iterator[str] = following) -> str:
            return match[2].split("|")[chosen[int(match[1]) - 1]] if match[1] else next(following)

        made = GROUP.sub(choose, text)
        for number, choice in enumerate(choices, 1):
            made = made.replace(f"<{number}>", choice)
        shown = (text if len(text) <= 24 else str(index + 1) for index, text in zip(chosen, choices))
        yield made, ", ".join(shown)


def read(path: Path) -> dict[str, str]:
    """Return the text of each case of a file, by its name."""
    names = {"NCCL": NCCL}
    cases: dict[str, str] = {}
    for block in re.split(r"\n(?=[^\s#])", re.sub(r"^#.*\n", "", path.read_text(encoding="utf-8"), flags=re.M).strip()):
        if match := re.match(r"([A-Z_0-9]+) = (.*)", block, re.S):
            names[match[1]] = re.sub(r"\$(\w+)", lambda m: names[m[1]], " ".join(match[2].split()))
            continue
        title, *lines = block.strip().split("\n")
        text = re.sub(r"\$(\w+)", lambda m: names[m[1]], "\n".join(line.strip() for line in lines))
        for one, choice in expanded(text):
            name = f"{path.stem}: {title}{f' [{choice}]' if choice else ''}"
            assert name not in cases, name
            cases[name] = one
    return cases


def policy_of(text: str) -> str:
    shape, *more = text.split("; ")
    if shape not in SHAPES and not shape.startswith("{"):
        return text
    return rule(SHAPES.get(shape, shape), **dict(part.split("=", 1) for part in more))


def counts_of(text: str) -> dict[str, int]:
    return {name: int(count) for name, count in (part.split() for part in text.split(", "))}


def check_list(found: list[int], text: str) -> None:
    words = text.split()
    wanted = [smallest_size(int(word[1:])) if word[0] == "S" else int(word) for word in words if word != "..."]
    got = found[len(found) - len(wanted) :] if words[0] == "..." else found[: len(wanted)] if "..." in words else found
    assert got == wanted, found


def check(text: str, build: Build, bare: Runner, preloaded: Runner) -> Done:
    """Run a case. What it says wrongly fails as what the library does wrongly would."""
    lines = text.split("\n")
    keys = [(match[1], match[2]) for match in map(KEY.fullmatch, lines) if match]
    said = dict(keys)
    words = " ".join(line for line in lines if not KEY.fullmatch(line))
    assert not re.search(r": |[<>{}$]", words), f"a key that is none, or a choice from no group: {words}"
    words = words.replace("@deep", str(build.deep())) if "@deep" in words else words
    words = words.replace("@nccl", str(build.nccl())) if "@nccl" in words else words
    more: dict[str, Any] = {
        "way": said.get("way", "symbol"),
        "env": dict(x.split("=", 1) for x in said.get("env", "").split()),
    }
    without, done = bare(words, **more), preloaded(words, policy_of(said.get("policy", "one")), **more)
    for key, wanted in keys:
        if key.startswith("alone"):
            times = re.search(r"(\d+)x|not", key)
            found = without.stdout.count(wanted)
            assert found == int(times[1] or 0) if times else found, f"nothing was tested: {without.stdout}"
    if said.get("driver") == "any":
        assert (done.status, done.seen) == (without.status, without.seen)
    else:
        differs = said.get("differs", "dynamic_shared")
        same(done, without, [] if differs == "nothing" else differs.split())
    totals = {"refused": 0, **counts_of(said["counts"])} if "counts" in said else {"refused": 0}
    assert {name: done.totals[name] for name in totals} == totals
    if "reasons" in said:
        assert done.reasons == counts_of(said["reasons"])
    if "sizes" in said:
        check_list(done.sizes, said["sizes"])
    if "clusters" in said:
        check_list([launch["cluster"] for launch in without.launches], said["clusters"])
    if "grown" in said:
        assert "".join("01"[size > 0] for size in done.sizes) == said["grown"]
    if "results" in said:
        assert [launch["result"] for launch in done.launches] == list(map(int, said["results"].split()))
    if "priorities" in said:
        assert done.priorities == list(map(int, said["priorities"].split()))
    if "read back" in said:
        read = re.findall(r"^priority (\S+)", done.stdout, re.M)
        assert read == said["read back"].split()
    for key, run in (("told", done), ("told alone", without)):
        if key in said:
            assert run.told == list(map(int, said[key].split()))
    return done
