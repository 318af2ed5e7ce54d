"""Many kernels of real binaries at once: how many have room, gain a window, or never meet communication, by GPU.

Each answer is that of one request (answer.py); a footprint that comes again is asked once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from pyshim import _native
from pyshim.errors import USAGE, OverlapError
from pyshim.explain import binaries, shape
from pyshim.explain.answer import Explainer
from pyshim.explain.binaries import Kernel
from pyshim.explain.request import COMMUNICATION, read
from pyshim.footprints import collectives
from pyshim.footprints.collectives import Collective
from pyshim.footprints.footprint import Footprint
from pyshim.policy.gpus import KnownGpu
from pyshim.policy.kernels import SETS

NO_SET = "other"
# Why a kernel was not planned: it is communication itself, or nothing says how many threads its blocks have.
COMMUNICATES, NO_THREADS = "communication", "no_threads"
_COMM = ("comm_threads", "comm_registers", "comm_static_smem", "comm_dynamic_smem", "comm_barriers", "comm_sgprs")


class Block(NamedTuple):
    """What is planned with: one block of communication, and where that is known from."""

    name: str
    numbers: tuple[int, ...]  # in the order of _COMM


class Decision(NamedTuple):
    control: str
    reason: str
    dynamic: int
    blocks: int  # resident then
    native: int


class Answer(NamedTuple):
    kernel: Kernel
    threads: int
    set: str  # gemm and the like, or `other`
    decision: Decision

    @property
    def planned(self) -> bool:
        return self.decision.reason not in (COMMUNICATES, NO_THREADS)


@dataclass
class Group:
    """The kernels of one GPU, beside one block of communication."""

    gpu: KnownGpu
    beside: Block
    answers: list[Answer] = field(default_factory=list)

    def reasons(self, of_set: str = "") -> Counter[str]:
        """How often each, of all kernels that were planned or of one set of them."""
        return Counter(a.decision.reason for a in self.answers if a.planned and (not of_set or a.set == of_set))

    def sets(self) -> list[tuple[str, int]]:
        """The kinds of kernels that were planned, the commonest first."""
        return Counter(answer.set for answer in self.answers if answer.planned).most_common()

    def left_out(self, reason: str) -> int:
        return sum(1 for answer in self.answers if not answer.planned and answer.decision.reason == reason)


@dataclass
class Survey:
    files: list[str]
    rule: str
    groups: list[Group] = field(default_factory=list)
    other_images: list[str] = field(default_factory=list)  # architectures that no GPU known by name runs


class Question(NamedTuple):
    """What is asked about files. values: of the options that single requests have, too."""

    files: Sequence[str]
    gpus: Sequence[KnownGpu]
    values: Mapping[str, object]
    pattern: str | None = None  # of kernels
    comm_file: str | None = None
    comm_pattern: str | None = None


def survey(question: Question, explainer: Explainer) -> Survey:
    """Raises OverlapError, and Mistake for options that are wrong."""
    values = read(question.values)
    paths = binaries.files_of(question.files)
    kernels, seen = binaries.kernels_of(paths, question.gpus)
    found = Survey([str(path) for path in paths], _rule(values))
    runnable = {gpu: list(binaries.run_by(gpu, kernels)) for gpu in question.gpus}
    run = {kernel.footprint.architecture for kernels in runnable.values() for kernel in kernels}
    found.other_images = sorted(image for image in seen if not binaries.is_run(image, question.gpus))
    _check_any(question, run, seen)
    if question.pattern is not None:
        matches = binaries.pattern_of(SETS.get(question.pattern) or (_glob(question.pattern),))
        runnable = {gpu: [k for k in own if matches(k.footprint.kernel)] for gpu, own in runnable.items()}
        if not any(runnable.values()):
            hint = "a glob on the name in the binary or its plain form, quoted; a word like gemm is a set of kernels"
            raise OverlapError(f"no kernel in it is called like {question.pattern}", hint, USAGE)
    beside = None
    if question.comm_file is not None:
        beside, _ = binaries.kernels_of([Path(question.comm_file)], [gpu for gpu, own in runnable.items() if own])
    asked = _Asked(explainer, values)
    for gpu, own in runnable.items():
        given = _given(gpu, values, explainer) if beside is None else None
        for block in (given or _blocks(gpu, question, values, beside)) if own else ():
            group = Group(gpu, block)
            found.groups.append(group)
            for kernel in own:
                asked.about(group, kernel)
    return found


def _given(gpu: KnownGpu, values: Mapping[str, Any], explainer: Explainer) -> list[Block]:
    """As the options say it, or the policy."""
    if all(name in values for name in COMMUNICATION):
        return [Block("as told", tuple(values[name] for name in _COMM))]
    found = explainer.footprint_of(values["policy"], explainer.gpus[gpu.key]) if "policy" in values else None
    return [Block(f"as {values['policy']} says", found)] if found else []


def _blocks(
    gpu: KnownGpu, question: Question, values: Mapping[str, Any], of_file: Sequence[Kernel] | None
) -> list[Block]:
    """The blocks of communication to plan with: of a file, or of the newest library that is known."""
    if of_file is None:
        return _named(collectives.newest(gpu.architecture))
    own = [kernel.footprint for kernel in binaries.run_by(gpu, of_file)]
    if question.comm_pattern is not None:
        return [_largest(question, own, values)]
    known = collectives.of_kernels(own, gpu.architecture)
    if not known:
        hint = "--comm-kernel PATTERN says which of its kernels communicate"
        sentence = f"{question.comm_file}: no collective of NCCL or RCCL that {gpu.key} runs"
        raise OverlapError(sentence, hint, USAGE)
    return _named(known, Path(str(question.comm_file)).name)


def _named(found: Iterable[Collective], source: str = "") -> list[Block]:
    every = list(found)
    usual = [one for one in every if one.usual] or every
    return [
        Block(
            " ".join(filter(None, (source or one.library, one.variant, one.path and f"by {one.path}"))),
            (one.threads, one.registers, one.static, one.dynamic, one.barriers, one.scalars),
        )
        for one in usual
    ]


def _largest(question: Question, own: Sequence[Footprint], values: Mapping[str, Any]) -> Block:
    """The most of everything that the kernels of that name take, as the library measures communication."""
    pattern = str(question.comm_pattern)
    matches = binaries.pattern_of((_glob(pattern),))
    found = [footprint for footprint in own if matches(footprint.kernel)]
    if not found:
        raise OverlapError(f"{question.comm_file}: no kernel in it is called like {pattern}", None, USAGE)
    threads = values.get("comm_threads") or max(f.required_threads or f.max_threads or 0 for f in found)
    if not threads:
        raise OverlapError(f"{pattern}: the binary has no launch bound", "say --comm-threads T", USAGE)
    numbers = (
        threads,
        max(f.registers for f in found),
        max(f.static_shared_memory for f in found),
        values["comm_dynamic_smem"],
        max(f.barriers or 0 for f in found),
        max(f.scalars or 0 for f in found),
    )
    return Block(pattern, numbers)


class _Asked:
    """Answers about kernels, each different question once."""

    def __init__(self, explainer: Explainer, values: Mapping[str, Any]) -> None:
        self._explainer, self._values = explainer, dict(values)
        self._policy = "policy" in values
        self._known: dict[tuple[object, ...], Decision] = {}
        self._set_of: dict[str, str] = {}
        self._sets = {word: binaries.pattern_of(texts) for word, texts in SETS.items()}

    def about(self, group: Group, kernel: Kernel) -> None:
        f = kernel.footprint
        threads = int(f.required_threads or f.max_threads or self._values.get("threads", 0))
        if _native.library().overlap_is_communication(f.kernel.encode("utf-8", "replace")):
            decision = Decision("leave", COMMUNICATES, self._values["dynamic_smem"], 0, 0)
        elif not threads:
            decision = Decision("leave", NO_THREADS, self._values["dynamic_smem"], 0, 0)
        else:
            decision = self._decision(group, kernel, threads)
        group.answers.append(Answer(kernel, threads, self._set(f.kernel), decision))

    def _decision(self, group: Group, kernel: Kernel, threads: int) -> Decision:
        f = kernel.footprint
        numbers = (threads, f.registers, f.static_shared_memory, f.barriers or 0, f.scalars or 0)
        # Only a policy's rules look at names.
        key = (group.gpu.key, group.beside.numbers, numbers, kernel if self._policy else None)
        if key not in self._known:
            request = {**self._values, **dict(zip(_COMM, group.beside.numbers)), "gpu": group.gpu.key}
            request.update(zip(("threads", "registers", "static_smem", "barriers", "sgprs"), numbers))
            if self._policy:
                request.setdefault("library", kernel.file)
                request["kernel"] = f.kernel
            found: dict[str, Any] = self._explainer.look(request)
            size, blocks = found["dynamic_shared_memory"], found["blocks"]
            self._known[key] = Decision(found["control"], found["reason"], size, blocks, found["native_blocks"])
        return self._known[key]

    def _set(self, name: str) -> str:
        if name not in self._set_of:
            self._set_of[name] = next((word for word, matches in self._sets.items() if matches(name)), NO_SET)
        return self._set_of[name]


def _rule(values: Mapping[str, Any]) -> str:
    if "policy" in values:
        return f"the first of {values['policy']} that matches"
    wanted = values.get("shape") or shape.parse("make_room")
    return f"{wanted.text}, keep_at_least {values.get('keep_at_least', wanted.keep)}%"


def _glob(text: str) -> str:
    from pyshim.policy.values import Bad, kernel_pattern

    try:
        return kernel_pattern(text)
    except Bad as bad:
        raise OverlapError(bad.sentence, bad.hint, USAGE) from None


def _check_any(question: Question, run: set[str], seen: set[str]) -> None:
    if run:
        return
    asked = " or ".join(sorted({gpu.architecture for gpu in question.gpus}))
    what = f"its images are for {', '.join(sorted(seen))}" if seen else "it holds no image at all"
    wanted = f"{question.gpus[0].key} ({asked})" if len(question.gpus) == 1 else "a GPU that is known"
    sentence = f"{question.files[0]}: no kernel in it runs on {wanted}: {what}"
    raise OverlapError(sentence, "`overlap gpus` lists the GPUs that are known, and their architectures", USAGE)
