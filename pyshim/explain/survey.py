"""Many kernels of real binaries at once: how many have room, gain a window, or never meet communication, by GPU.

Each answer is that of one request (answer.py); a footprint that comes again is asked once.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pyshim.errors import USAGE, OverlapError
from pyshim.explain import kernels, planner
from pyshim.explain.answer import Explainer
from pyshim.explain.kernels import Block, Kernel, readable
from pyshim.explain.planner import RESIZES, Decision
from pyshim.explain.policies import rule_text
from pyshim.explain.request import Request, read
from pyshim.explain.screen import Part, Prose, Table, apart, cut, plural
from pyshim.policy.gpus import KnownGpu
from pyshim.policy.kernels import SETS

NO_SET = "other"
# Why a kernel was not planned: it is communication itself, or nothing says how many threads its blocks have.
COMMUNICATES, NO_THREADS = "communication", "no_threads"


@dataclass(frozen=True)
class Answer:
    """One kernel, in blocks of so many threads. set: gemm and the like, or `other`."""

    kernel: Kernel
    threads: int
    set: str
    decision: Decision

    @property
    def planned(self) -> bool:
        """Whether the planner was asked about it."""
        return self.decision.reason not in (COMMUNICATES, NO_THREADS)

    def as_json(self) -> dict[str, object]:
        """Return it as --json lists it."""
        footprint = self.kernel.footprint
        return {
            "kernel": footprint.kernel,
            "file": self.kernel.file,
            "architecture": footprint.architecture,
            "set": self.set,
            "threads": self.threads or None,
            "registers": footprint.registers,
            "static_shared_memory": footprint.static_shared_memory,
            "barriers": footprint.barriers,
            "scalar_registers": footprint.scalars,
            **self.decision.as_json(),
        }


@dataclass(frozen=True)
class Group:
    """The kernels of one GPU, beside one block of communication."""

    gpu: KnownGpu
    beside: Block
    answers: Sequence[Answer]

    def reasons(self, of_set: str = "") -> Counter[str]:
        """Count the reasons of all kernels that were planned, or of one set of them."""
        return Counter(a.decision.reason for a in self.answers if a.planned and (not of_set or a.set == of_set))

    def sets(self) -> list[tuple[str, int]]:
        """Return the kinds of kernels that were planned, the commonest first."""
        return Counter(answer.set for answer in self.answers if answer.planned).most_common()

    def left_out(self, reason: str) -> int:
        """Return the number of kernels that were not planned for this reason."""
        return sum(1 for answer in self.answers if not answer.planned and answer.decision.reason == reason)


@dataclass(frozen=True)
class Survey:
    """All answers. other_images: architectures that no GPU known by name runs."""

    files: list[str]
    request: Request  # what all requests have in common
    groups: list[Group]
    pattern: str | None  # that kernels were selected by
    other_images: list[str]

    def only(self) -> tuple[Request, str] | None:
        """Return the request about the only kernel on the only GPU, and the reasons beside other communication."""
        first = self.groups[0]
        if len({group.gpu for group in self.groups}) > 1 or len(first.answers) > 1 or not first.answers[0].planned:
            return None
        kernel, told = first.answers[0].kernel, self.request.computation
        block = kernel.block(told.threads, told.dynamic)
        request = self.request.of(first.gpu.key, kernel.footprint.kernel, kernel.file, block).beside(first.beside.takes)
        others = [f"beside {group.beside.name}: {group.answers[0].decision.reason}" for group in self.groups[1:]]
        return request, "; ".join(others)

    def told(self) -> str:
        """Return how many kernels there are, on how many GPUs."""
        kernels = len({answer.kernel.footprint.kernel for group in self.groups for answer in group.answers})
        return f"{plural(kernels, 'kernel')} on {plural(len({group.gpu for group in self.groups}), 'GPU')}"


@dataclass(frozen=True)
class Question:
    """What is asked about files. values: of the options that single requests have, too."""

    files: Sequence[str]
    gpus: Sequence[KnownGpu]
    values: Mapping[str, object]
    pattern: str | None = None  # of kernels
    comm_file: str | None = None
    comm_pattern: str | None = None


def survey(question: Question, explainer: Explainer) -> Survey:
    """Return the answers about all kernels of files. Raise OverlapError, and Mistake for options that are wrong."""
    request = read(question.values)
    paths = kernels.files_of(question.files)
    every, seen = kernels.kernels_of(paths, question.gpus)
    runnable = {gpu: list(kernels.run_by(gpu, every)) for gpu in question.gpus}
    if not any(runnable.values()):
        asked = " or ".join(sorted({gpu.architecture for gpu in question.gpus}))
        what = f"its images are for {', '.join(sorted(seen))}" if seen else "it holds no image at all"
        wanted = f"{question.gpus[0].key} ({asked})" if len(question.gpus) == 1 else "a GPU that is known"
        sentence = f"{question.files[0]}: no kernel in it runs on {wanted}: {what}"
        raise OverlapError(sentence, "`overlap policy list` has the GPUs that are known, with architectures", USAGE)
    if question.pattern is not None:
        matches = kernels.matcher(question.pattern)
        runnable = {gpu: [k for k in own if matches(k.footprint.kernel)] for gpu, own in runnable.items()}
        if not any(runnable.values()):
            hint = "a glob on the name in the binary or its plain form, quoted; a word like gemm is a set of kernels"
            raise OverlapError(f"no kernel in it is called like {question.pattern}", hint, USAGE)
    of_file = None
    if question.comm_file is not None:
        of_file, _ = kernels.kernels_of([Path(question.comm_file)], [gpu for gpu, own in runnable.items() if own])
    sets = {word: kernels.any_of(texts) for word, texts in SETS.items()}
    look = functools.cache(lambda request: explainer.look(request).decision)  # footprints come again and again
    set_of = functools.cache(lambda name: next((word for word, matches in sets.items() if matches(name)), NO_SET))

    def answer(gpu: KnownGpu, block: Block, kernel: Kernel) -> Answer:
        own, told = kernel.footprint.kernel, request.computation
        takes, communicates = kernel.block(told.threads, told.dynamic), planner.is_communication(own)
        if communicates or not takes.threads:
            decision = Decision("leave", COMMUNICATES if communicates else NO_THREADS, told.dynamic)
            return Answer(kernel, takes.threads, set_of(own), decision)
        name, library = request.kernel, request.library
        if request.policy is not None:  # only a policy's rules look at names
            name, library = own, kernel.file if library is None else library
        asked = request.of(gpu.key, name, library, takes).beside(block.takes)
        return Answer(kernel, takes.threads, set_of(own), look(asked))

    groups = [
        Group(gpu, block, [answer(gpu, block, kernel) for kernel in own])
        for gpu, own in runnable.items()
        for block in (_blocks(gpu, question, request, of_file, explainer) if own else ())
    ]
    others = sorted(image for image in seen if not kernels.is_run(image, question.gpus))
    return Survey([str(path) for path in paths], request, groups, question.pattern, others)


def _blocks(
    gpu: KnownGpu, question: Question, request: Request, of_file: Sequence[Kernel] | None, explainer: Explainer
) -> list[Block]:
    """Return the blocks of communication to plan with."""
    if of_file is None:
        given = kernels.given_block(request)
        return [given] if given else kernels.newest_blocks(gpu)
    file, own = str(question.comm_file), list(kernels.run_by(gpu, of_file))
    if question.comm_pattern is not None:
        return [kernels.largest_block(file, own, question.comm_pattern, request)]
    return kernels.blocks_of_file(file, own, gpu)


# What reasons are counted as, each in the first column that names it; the last one takes the rest.
COLUMNS: tuple[tuple[str, tuple[str, ...], str], ...] = (
    ("as is", ("room_already",), "communication fits beside it"),
    ("window", ("shaped",), "with more dynamic shared memory, as the rule asks, communication fits"),
    ("too few", ("below_keep",), "a size makes room, but fewer blocks than keep_at_least would stay resident"),
    ("later", ("priority",), "no size makes room; communication fits after some of the kernel's blocks have ended"),
    ("registers", ("no_room_registers",), "never beside communication, because of registers"),
    ("memory", ("no_room_shared_memory",), "never beside communication, because of shared memory"),
    ("capped", ("capped_without_room",), "capped as the rule asks, and communication still does not fit"),
    ("rest", (), "warps, block slots, what cannot be launched, what the policy's rule leaves (--json lists them)"),
)
_BLOCK = ("threads", "registers", "static_shared_memory", "dynamic_shared_memory", "barriers", "scalar_registers")
_COMMUNICATION_HEADS = ("", "communication, one block", "threads", "registers", "static", "dynamic")
_SET_HEADS = ("GPU", "beside", "of these", "kernels", "as is", "window", "too few", "later", "rest")
_MOST_KERNELS, _MOST_WITHOUT_PATTERN = 24, 12  # rows
_MOST_SETS = 3
_FIRST = 4  # columns that stand alone there, too


def screen(survey: Survey) -> Iterator[Part]:
    """Return one screen: tables of counts, then the kernels themselves."""
    heads, rows = counts(survey)
    files = survey.files[0] if len(survey.files) == 1 else f"{len(survey.files):,} files"
    rule, blocks = rule_text(survey.request), letters(survey).items()
    takes = [(letter, block.name, *(f"{number:,}" for number in block.takes[:4])) for block, letter in blocks]
    return apart(
        [Prose(f"kernels of {files}; rule: {rule}; launches of many waves, in an overlap window")],
        [Table(_COMMUNICATION_HEADS, takes, (0, 1))],
        [Table(heads, rows, (0, 1))] if rows else [],
        [Table(_SET_HEADS, sets(survey), (0, 1, 2))] if sets(survey) else [],
        _kernels(survey),
        _notes(survey),
    )


def letters(survey: Survey) -> dict[Block, str]:
    """Return a short name for each block of communication."""
    blocks = dict.fromkeys(group.beside for group in survey.groups)
    return {block: chr(ord("A") + index) for index, block in enumerate(blocks)}


def counts(survey: Survey) -> tuple[Sequence[str], list[Sequence[str]]]:
    """Return heads and rows of reasons by group; columns without a kernel are left out."""
    names = letters(survey)
    if not _all_reasons(survey):
        return (), []
    total = _numbers(_all_reasons(survey))
    shown = [index for index, (name, _, _) in enumerate(COLUMNS) if total[index] or name == "window"]
    rows: list[Sequence[str]] = []
    for group in survey.groups:
        reasons = group.reasons()
        numbers = [sum(reasons.values()), *(_numbers(reasons)[index] for index in shown)]
        rows.append((group.gpu.key, names[group.beside], *(f"{number:,}" for number in numbers)))
    return ("GPU", "beside", "kernels", *(COLUMNS[index][0] for index in shown)), rows


def sets(survey: Survey) -> list[Sequence[str]]:
    """Return rows of the commonest kinds of kernels if there are several."""
    names = letters(survey)
    rows: list[Sequence[str]] = []
    for group in (group for group in survey.groups if len(group.sets()) > 1):
        for word, number in group.sets()[:_MOST_SETS]:
            numbers = _numbers(group.reasons(word))
            said = (number, *numbers[:_FIRST], sum(numbers[_FIRST:]))
            rows.append((group.gpu.key, names[group.beside], word, *(f"{count:,}" for count in said)))
    return rows


def _notes(survey: Survey) -> Iterator[Part]:
    """Yield the meaning of the columns that are not empty, then the kernels and images that were left out."""
    for (name, _, meaning), number in zip(COLUMNS, _numbers(_all_reasons(survey))):
        if number:
            yield Prose(meaning, name)
    groups = {group.gpu.key: group for group in survey.groups}.values()
    for reason, said in (
        (COMMUNICATES, "that are communication, and never shaped"),
        (NO_THREADS, "without a launch bound, which --threads T counts, too"),
    ):
        left = [f"{group.left_out(reason):,} on {group.gpu.key}" for group in groups if group.left_out(reason)]
        if left:
            yield Prose(f"kernels {said}: {', '.join(left)}")
    if survey.other_images:
        yield Prose(f"no selected GPU runs the images for {', '.join(survey.other_images)}")


def _kernels(survey: Survey) -> Iterator[Part]:
    """Yield what kernels take, equal ones once, and for one GPU what is decided about each."""
    one_gpu = len({group.gpu for group in survey.groups}) == 1
    names = letters(survey)
    rows: Counter[tuple[str, ...]] = Counter()
    seen: set[str] = set()
    for group in survey.groups:
        images = {answer.kernel.footprint.architecture for answer in group.answers}
        # Without decisions, one group for each architecture of images is enough: footprints are the same.
        shown_already, seen = not one_gpu and images <= seen, seen | images
        for answer in () if shown_already else group.answers:
            f, threads = answer.kernel.footprint, f"{answer.threads:,}" if answer.threads else "?"
            about = [readable(f.kernel), threads, f"{f.registers:,}", f"{f.static_shared_memory:,}"]
            if one_gpu:
                about += [*([names[group.beside]] if len(names) > 1 else []), decision(answer)]
            rows[tuple(about if one_gpu else [f.architecture, *about])] += 1
    shown, more = cut(
        [(f"{number:,}", *row) for row, number in rows.most_common()],
        _MOST_KERNELS if survey.pattern else _MOST_WITHOUT_PATTERN,
    )
    footprint = ("kernel", "threads", "regs", "static")
    if not one_gpu:
        yield Table(("", "for", *footprint), shown, (1, 2))
    elif len(names) > 1:
        yield Table(("", *footprint, "beside", "decision"), shown, (1, 5, 6))
    else:
        yield Table(("", *footprint, "decision"), shown, (1, 5))
    if more:
        yield Prose(f"... and {more:,} more such rows: --kernel PATTERN and --gpu G leave fewer, --json lists all")


def as_json(survey: Survey) -> dict[str, object]:
    """Return everything, as --json prints it."""
    names = letters(survey)
    return {
        "files": survey.files,
        "rule": rule_text(survey.request),
        "communication": {names[b]: {"name": b.name, **dict(zip(_BLOCK, b.takes))} for b in names},
        "groups": [
            {
                "gpu": group.gpu.key,
                "architecture": group.gpu.architecture,
                "beside": names[group.beside],
                "kernels": sum(group.reasons().values()),
                "reasons": dict(group.reasons()),
                "sets": {word: dict(group.reasons(word)) for word, _ in group.sets()},
                "communication_kernels": group.left_out(COMMUNICATES),
                "without_threads": group.left_out(NO_THREADS),
                "answers": [answer.as_json() for answer in group.answers],
            }
            for group in survey.groups
        ],
        "other_images": survey.other_images,
    }


def _all_reasons(survey: Survey) -> Counter[str]:
    return sum((group.reasons() for group in survey.groups), Counter())


def _numbers(reasons: Counter[str]) -> list[int]:
    named = [sum(reasons[reason] for reason in own) for _, own, _ in COLUMNS[:-1]]
    return [*named, sum(reasons.values()) - sum(named)]


def decision(answer: Answer) -> str:
    """Return what is decided about one kernel."""
    found = answer.decision
    if found.control in RESIZES:
        return f"{found.control}: {found.dynamic:,} bytes, {found.blocks} of {found.native} stay"
    said = {COMMUNICATES: "communication: never shaped", NO_THREADS: "no launch bound: --threads T"}
    return said.get(found.reason, found.reason)
