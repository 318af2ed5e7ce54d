"""Cases of tests/interpose/words: words that a program does without the library and with it, and what may differ.

    A sentence that says what is promised.
      words of the program, on one line or several, where $NAME is what a line NAME = ... above says,
      and {a|b} makes two cases; <1> is the choice from the first such group, {1:c|d} is c where that is a;
      (words)x3 are these three times; @NAME is the path of what a line @NAME = source flags < links above builds
      - name: words => answer       a line like this makes a case of its own, in which <=> is the answer
      KEY: what is expected

The program sees the same with the library, and so does the driver but for the sizes of launches. A case called `Each`
has keys for all cases below it that do not say otherwise. The keys:

    program  client (always), waiting, hip (hip_client.c), or @NAME; past: hip_client.c as a library that a program
             opens, which is bound to the runtime past every preload; @plugin-7-dlsym is such a library
    policy   a shipped one; SHAPE; when=...; match=...; more=... of its one rule; or its text, with " / " between lines.
             one: {blocks_per_sm: 1}, always
    alone    in the output of the program alone, or nothing was tested; `alone 2x`, `alone not`
    whole    all of that output, with " / " between lines; nothing: there is none
    differs  fields of a launch that differ, or `nothing`; `driver: any` compares none
    reasons, counts    of the report: all of the reasons, some of the totals (refused is 0 where it is not said)
    reason, among      some of the reasons; reasons of which there may be no other
    processes, devices, owners    how many launches each process had; which devices it used; launches by library
    streams STATUS     priorities in the report of the streams with this status, or `any`
    sizes    of the driver's launches; S1 is the smallest size with one resident block, ... any others, 0x3 three
    grown    0 or 1 of each launch: whether its size is above zero
    raised   0 to 5 of each launch: how far its stream was raised; `only 0`: of all of them
    results, priorities, clusters    likewise. `sizes k`, `raised k` and so on: of kernel k; graphs, graphs/k: in graphs
    same stream        the first and the last launch of this kernel are on streams with one handle
    read back          the priorities that the program is told
    told, told alone   what the driver says when it is asked past the library (@deep)
    env, libraries     NAME=VALUE of the environment, -NAME (of HIP); what is built for LD_LIBRARY_PATH
    rounds             of waiting.c
    way, version, gpu  the program's way to the driver; HIP's version and GPU
    preload  libraries that are preloaded, too: behind the library, or OURS is where it stands; needs: others to build
    stderr   in the only line that is said, or `nothing`, which is meant where no driver is `any`, too
    more     a line of stdout that is there with the library only
    unsanitized        why the case is not for a library that is built with a sanitizer
    where    holds groups that only <1> refers to
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import hip_interposing
from interposing import NCCL, Build, Done, Runner, rule, same, smallest_size
from peers import ROOT, forwarding_driver

from pyshim.report.collect import collect
from pyshim.start import plan

GROUP = re.compile(r"\{(?:(\d):)?([^{}]*\|[^{}]*)\}")
AGAIN = re.compile(r"\(([^()]*)\)x(\d+)")
LISTS = "sizes|grown|raised|results|priorities|clusters"
KEYS = """program|policy|whole|differs|driver|reasons|counts|reason|among|processes|devices|owners|env|libraries|rounds|
way|version|gpu|preload|needs|stderr|more|unsanitized|where|read back|same stream""".replace("\n", "")
OF_SOME = rf"(?:{LISTS})(?: \S+)?|streams \S+|told(?: alone)?|alone(?: \d+x| not)?"
KEY = re.compile(rf"({KEYS}|{OF_SOME}): (.*)")
SHAPES = {"one": "{blocks_per_sm: 1}", "leave": "leave", "make_room": "make_room"}
PLACE = int(hip_interposing.PLACES["hipLaunchKernel"])
SOME = {"NCCL": NCCL, "RCCL": hip_interposing.NCCL, "PLACE": str(PLACE), "SHORTER": str(8 * (PLACE + 1))}
# Of NVIDIA's runtime, from shim/cuda/runtime.def.
ROWS = re.findall(r"^RUNTIME\((\w+),", (ROOT / "shim/cuda/runtime.def").read_text(encoding="utf-8"), re.M)
LAUNCHES = [row for row in ROWS if not row.startswith("cudaStreamCreate")]
SHAPED = [row for row in LAUNCHES if "Cooperative" not in row]
SOME |= {
    "LAUNCHES": "|".join(LAUNCHES),
    "SHAPED": "|".join(SHAPED),
    "COOPERATIVE": "|".join(row for row in LAUNCHES if row not in SHAPED),
    "CREATES": "|".join(row for row in ROWS if row not in LAUNCHES),
    "EVERY": " ".join(f"launch={row},k,10" for row in LAUNCHES),
    "EVERY_NONE": " ".join(f"launch={row},-,10" for row in LAUNCHES),
    "EVERY_SHAPED": " ".join(f"launch={row},k,1100" for row in SHAPED),
    "TURNS": " ".join(f"launch={row},k,10 symbol=k,10 dlsym=k,10" for row in LAUNCHES),
}
# Of the simulated runtime, where there is no library to take its table.
NOT_TAKEN = re.compile(r"^simgpu: rocprofiler-register did not take .*\n", re.M)
# The library asks nothing of a program that has run before, so what that did alone is known.
_ALONE: dict[tuple[Any, ...], Done] = {}


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
        shown = (
            text if len(text) <= 24 and group.count(text) == 1 else str(index + 1)
            for index, text, group in zip(chosen, choices, groups)
        )
        yield made, ", ".join(shown)


def rows_of(text: str) -> Iterator[tuple[str, str]]:
    """Yield the name of each row of a table, and the text with its words; where there is none, the text."""
    rows = [line for line in text.split("\n") if line.startswith("- ")]
    for row in rows or [""]:
        name, _, words = row.removeprefix("- ").partition(": ")
        words, _, answer = words.partition(" => ")
        kept = [words if line == row else line for line in text.split("\n") if line == row or line not in rows]
        yield name, "\n".join(kept).replace("<=>", answer)


def read(path: Path) -> dict[str, str]:
    """Return the text of each case of a file, by its name."""
    names, built, each = dict(SOME), "", ""
    cases: dict[str, str] = {}
    for block in re.split(r"\n(?=[^\s#])", re.sub(r"^#.*\n", "", path.read_text(encoding="utf-8"), flags=re.M).strip()):
        if match := re.match(r"([A-Z_0-9]+) = (.*)", block, re.S):
            names[match[1]] = re.sub(r"\$(\w+)", lambda m: names[m[1]], " ".join(match[2].split()))
            continue
        if block.startswith("@"):
            built += f"{' '.join(block.split())}\n"
            continue
        title, *lines = block.strip().split("\n")
        text = re.sub(r"\$(\w+)", lambda m: names[m[1]], "\n".join(line.strip() for line in lines))
        if title == "Each":
            each = text
            continue
        said = {match[1] for match in map(KEY.fullmatch, text.split("\n")) if match}
        text += "".join(f"\n{line}" for line in each.split("\n") if line and line.split(":")[0] not in said)
        for row, of_row in rows_of(text):
            for one, choice in expanded(of_row):
                shown = ", ".join(filter(None, (row, choice)))
                name = f"{path.stem}: {title}{f' [{shown}]' if shown else ''}"
                assert name not in cases, name
                cases[name] = built + one
    return cases


def policy_of(text: str) -> str:
    if " / " in text:
        return text.replace(" / ", "\n")
    shape, *more = text.split("; ")
    if shape not in SHAPES and not shape.startswith("{"):
        return text
    return rule(SHAPES.get(shape, shape), **dict(part.split("=", 1) for part in more))


def counts_of(text: str) -> dict[str, int]:
    return {name: int(count) for name, count in (part.split() for part in text.split(", "))}


def check_list(found: list[int], text: str, smallest: Callable[[int], int]) -> None:
    words = [word for part in again(text).split() for word in repeated(part)]
    if words[0] == "only":
        assert set(found) == {int(words[1])}, found
        return
    wanted = [smallest(int(word[1:])) if word[0] == "S" else int(word) for word in words if word != "..."]
    got = found
    if "..." in words:
        first = words.index("...")
        got = found[:first] + found[len(found) - (len(wanted) - first) :]
    assert got == wanted, " ".join(f"{value}x{len([*run])}" for value, run in itertools.groupby(found))


def repeated(word: str) -> list[str]:
    what, times, count = word.partition("x")
    return [what] * int(count) if times else [word]


def again(words: str) -> str:
    while found := AGAIN.search(words):
        words = f"{words[: found.start()]}{' '.join([found[1]] * int(found[2]))}{words[found.end() :]}"
    return words


class Case:
    """One case: what it builds, its words and what it says of them."""

    def __init__(self, text: str, build: Build, hip: hip_interposing.Hip, world: hip_interposing.World) -> None:
        recipes, lines = {}, []
        for line in text.split("\n"):
            if re.match(r"@\S+ = ", line):
                name, _, recipe = line[1:].partition(" = ")
                recipes[name] = recipe
            else:
                lines.append(line)
        self.build, self.hip, self.world, self.recipes = build, hip, world, recipes
        self.keys = [(match[1], match[2]) for match in map(KEY.fullmatch, lines) if match]
        self.said = dict(self.keys)
        words = " ".join(line for line in lines if not KEY.fullmatch(line))
        assert not re.search(r": |[<>{}$]", words), f"a key that is none, or a choice from no group: {words}"
        self.words = self.paths(again(words))
        self.program = self.said.get("program", "client")
        self.is_hip = self.program in ("hip", "past") or self.program.startswith("@hip")
        self.smallest = hip_interposing.smallest if self.is_hip else smallest_size

    def path(self, name: str) -> str:
        """What @name stands for."""
        if name == "driver":
            return plan.SIMULATED_DRIVER
        if name == "deep":
            return str(self.build.deep())
        if name == "nccl":
            return str(self.build.nccl())
        if name in ("cudart12", "cudart13"):
            return str(Path(plan.SIMULATED_DRIVER).with_name(f"libcudart.so.{name[-2:]}"))
        if name in ("fat", "code", "hand_written"):
            return str(getattr(self.world, name))
        if name == "places":
            return " ".join(hip_interposing.places())
        if match := re.fullmatch(r"hip(\d)", name):
            return str(hip_interposing.runtime(match[1]))
        if match := re.fullmatch(r"plugin-(\d)-(\w+)", name):
            return str(self.world.plugin(match[1], match[2]))
        if match := re.fullmatch(r"forwarding-([A-Z]+)-?(\w*)", name):
            return str(forwarding_driver(self.build, match[1], match[2]))
        recipe, _, links = self.recipes[name].partition(" < ")
        source, *flags = self.paths(recipe).split()
        flags = [self.versioned(name, flag) for flag in flags]
        make = self.build.library if ".so" in name else self.build
        return str(make(name, source, *flags, link=self.paths(links).split()))

    def versioned(self, name: str, flag: str) -> str:
        """VERSIONED=NODE: the flag that gives this version to all symbols of a library."""
        if not flag.startswith("VERSIONED="):
            return flag
        script = self.build.folder / f"{name.replace('/', '_')}.map"
        script.write_text(f"{flag.partition('=')[2]} {{ global: *; }};\n")
        return f"-Wl,--version-script={script}"

    def paths(self, text: str) -> str:
        return re.sub(r"@([\w.-]+(?:/[\w.-]+)?)", lambda match: self.path(match[1]), text)

    def run(self, bare: Runner, preloaded: Runner) -> tuple[Done, Done]:
        """Without the library and with it."""
        env: dict[str, str | None] = {}
        for word in self.paths(self.said.get("env", "")).split():
            name, is_set, value = word.partition("=")
            env[name.lstrip("-")] = value if is_set else None
        if "libraries" in self.said:
            folders = [str(Path(path).parent) for path in self.paths(self.said["libraries"]).split()]
            env["LD_LIBRARY_PATH"] = ":".join(folders)
        self.paths(self.said.get("needs", ""))
        order = self.paths(self.said.get("preload", "OURS"))
        order = (order if "OURS" in order else f"OURS:{order}").replace("OURS", "{}")
        others = ":".join(other for other in order.split(":") if other != "{}")
        more: dict[str, Any] = {key: self.said[key] for key in ("way", "version", "gpu") if key in self.said}
        words: list[str] = self.words.split()
        policy = policy_of(self.said.get("policy", "one"))
        if self.is_hip:
            if self.program == "past":
                words.insert(0, str(self.world.plugin(more.get("version", "7"))))
                more["program"] = self.world.host()
                env["PLUGIN_DEEPBIND"] = "1"
            elif self.program.startswith("@"):
                more["program"] = self.paths(self.program)
            runs = [lambda: self.hip(words, None, preload=others, env=env, **more)]
            runs += [lambda: self.hip(words, policy, preload=order, env=env, **more)]
        else:
            if self.program == "waiting":
                more["program"] = self.build("waiting", "waiting.c", link=[plan.SIMULATED_DRIVER])
                words.insert(0, self.said["rounds"])
                env["SIMGPU_INVALID"] = "crashes"  # a handle that is gone ends the process
            elif self.program.startswith("@"):
                more["program"] = self.paths(self.program)
            alone = {**env, "LD_PRELOAD": others} if others else env
            runs = [lambda: bare(words, env=alone, **more)]
            runs += [lambda: preloaded(words, policy, env=env, preload=order, **more)]
        key = (self.program, *words, *sorted(map(str, env.items())), others, *(str(value) for value in more.values()))
        if key not in _ALONE:
            _ALONE[key] = runs[0]()
        return _ALONE[key], runs[1]()


def listed(kind: str, done: Done, kernel: str) -> list[int]:
    in_graphs, _, kernel = kernel.rpartition("/") if "/" in kernel else ("", "", kernel)
    launches = done.in_graphs if "graphs" in (in_graphs, kernel) else done.launches
    launches = [launch for launch in launches if kernel in ("", "graphs", launch["kernel"])]
    value: Callable[[dict[str, Any]], Any] = {
        "sizes": lambda launch: launch["dynamic_shared"],
        "grown": lambda launch: launch["dynamic_shared"] > 0,
        "raised": lambda launch: -launch["priority"],
        "results": lambda launch: launch["result"],
        "priorities": lambda launch: launch["priority"],
        "clusters": lambda launch: launch["cluster"],
    }[kind]
    return [int(value(launch)) for launch in launches]


def said_alone(key: str, wanted: str, without: Done) -> None:
    times = re.search(r"(\d+)x|not", key)
    found = without.stdout.count(wanted)
    assert found == int(times[1] or 0) if times else found, f"nothing was tested: {without.stdout}{without.stderr}"


def compare(case: Case, without: Done, done: Done) -> None:
    """Fail where the program has seen anything else, or the driver what it should not."""
    said = case.said
    for run in (without, done):
        run.stderr = NOT_TAKEN.sub("", run.stderr)
    lines = done.stderr.splitlines()
    if said.get("stderr") == "nothing":
        assert lines == []
    elif "stderr" in said:
        (line,) = lines
        assert said["stderr"] in line
        done.stderr = without.stderr
    if "more" in said:
        assert f"{said['more']}\n" in done.stdout
        done.stdout = done.stdout.replace(f"{said['more']}\n", "")
    if said.get("driver") == "any":
        assert (done.status, done.seen) == (without.status, without.seen), done.stderr
    else:
        usual = "priority dynamic_shared" if case.program == "waiting" else "dynamic_shared"
        differs = said.get("differs", usual)
        same(done, without, [] if differs == "nothing" else differs.split())


def whole(case: Case, without: Done, wanted: str) -> None:
    text = "" if wanted == "nothing" else case.paths(wanted).replace(" / ", "\n") + "\n"
    assert without.stdout == text, without.stdout + without.stderr


def owners(done: Done) -> dict[str, int]:
    found: dict[str, int] = {}
    for row in collect(str(done.pages)).pages[0].rows:
        found[row.library] = found.get(row.library, 0) + row.launches
    return found


def streams(done: Done, status: str, wanted: str) -> None:
    of_report = done.report["processes"][0]["streams"]
    priorities = [str(stream["priority"]) for stream in of_report if stream["status"] == status]
    assert priorities if wanted == "any" else priorities == wanted.split()


def same_stream(done: Done, kernel: str) -> None:
    on = [launch["stream"] for launch in done.launches if launch["kernel"] == kernel]
    assert on[0] == on[-1], "nothing was tested"


def read_back(done: Done, wanted: str) -> None:
    read = [line.replace(" ", "/") for line in re.findall(r"^priority (.*)", done.stdout, re.M)]
    assert read == [priority for word in wanted.split() for priority in repeated(word)]


def processes(done: Done) -> str:
    """Launches of each, and nothing of a program that left no page."""
    found = sorted(process["launches"] for process in done.report.get("processes", []))
    return " ".join(map(str, found)) or "none"


def devices(done: Done) -> str:
    (process,) = done.report["processes"]
    return " ".join(str(device["index"]) for device in process["devices"])


def grown(done: Done, kernel: str, wanted: str) -> None:
    found = "".join(map(str, listed("grown", done, kernel)))
    wanted = again(wanted).replace(" ", "")
    if kernel:
        assert sum(listed("grown", done, "")) == done.totals["shaped"]
        assert sum(done.reasons.values()) == done.totals["launches"]
    assert found.endswith(wanted[3:]) if wanted.startswith("...") else found == wanted


def check_key(case: Case, key: str, wanted: str, without: Done, done: Done) -> None:
    kind, _, of = key.partition(" ")
    if kind in ("sizes", "raised", "results", "priorities"):
        check_list(listed(kind, done, of), wanted, case.smallest)
    elif kind == "clusters":
        check_list(listed(kind, without, of), wanted, case.smallest)
    elif kind == "grown":
        grown(done, of, wanted)
    elif kind == "streams":
        streams(done, of, wanted)
    elif key == "same stream":
        same_stream(done, wanted)
    elif key == "read back":
        read_back(done, wanted)
    elif kind == "told":
        assert (without if of else done).told == list(map(int, wanted.split()))


def check_report(said: dict[str, str], done: Done) -> None:
    totals = {"refused": 0, **counts_of(said.get("counts", "refused 0"))}
    found = done.totals if done.report else dict.fromkeys(totals, 0)
    assert {name: found[name] for name in totals} == totals
    if "reasons" in said:
        assert done.reasons == counts_of(said["reasons"])
    if "reason" in said:
        some = counts_of(said["reason"])
        assert {name: done.reasons.get(name, 0) for name in some} == some
    if "among" in said:
        assert set(done.reasons) <= set(said["among"].split()), done.reasons
    for key, of in (("processes", processes), ("devices", devices)):
        if key in said:
            assert of(done) == said[key]
    if "owners" in said:
        assert owners(done) == counts_of(said["owners"])


def check(
    text: str,
    build: Build,
    bare: Runner,
    preloaded: Runner,
    hip: hip_interposing.Hip,
    world: hip_interposing.World,
) -> None:
    """Run a case. What it says wrongly fails as what the library does wrongly would."""
    case = Case(text, build, hip, world)
    without, done = case.run(bare, preloaded)
    for key, wanted in case.keys:
        if key.startswith("alone"):
            said_alone(key, wanted, without)
        elif key == "whole":
            whole(case, without, wanted)
    compare(case, without, done)
    for key, wanted in case.keys:
        check_key(case, key, wanted, without, done)
    check_report(case.said, done)
    if case.program == "waiting":
        assert sum(done.reasons.values()) == done.totals["launches"]
