"""Many kernels of real binaries at once: how many have room, gain a window, or never meet communication, by GPU.

Each answer is that of one request (answer.py); a footprint that comes again is asked once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from pyshim import _native
from pyshim.errors import USAGE, OverlapError
from pyshim.explain import beside, binaries, shape
from pyshim.explain.answer import Explainer
from pyshim.explain.beside import Block
from pyshim.explain.binaries import Kernel
from pyshim.explain.parts import plural
from pyshim.explain.request import read
from pyshim.footprints.footprint import Footprint
from pyshim.policy.gpus import KnownGpu
from pyshim.policy.kernels import SETS

NO_SET = "other"
# Why a kernel was not planned: it is communication itself, or nothing says how many threads its blocks have.
COMMUNICATES, NO_THREADS = "communication", "no_threads"
OF_BINARY = ("threads", "registers", "static_smem", "barriers", "sgprs")  # what a request calls a kernel's numbers


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
    pattern: str | None = None  # that the kernels were asked for by
    other_images: list[str] = field(default_factory=list)  # architectures that no GPU known by name runs

    def only(self) -> tuple[dict[str, object], str] | None:
        """Where one kernel on one GPU is left, the request about it, and what is said beside the other blocks of
        communication."""
        first = self.groups[0]
        if len({group.gpu for group in self.groups}) > 1 or len(first.answers) > 1 or not first.answers[0].planned:
            return None
        (answer,), numbers = first.answers, first.beside.numbers
        footprint = answer.kernel.footprint
        request: dict[str, object] = {"gpu": first.gpu.key, "kernel": footprint.kernel, "library": answer.kernel.file}
        request.update(zip(OF_BINARY, _numbers_of(footprint, answer.threads)))
        request.update(zip(beside.NAMES, numbers))
        others = [f"beside {group.beside.name}: {group.answers[0].decision.reason}" for group in self.groups[1:]]
        return request, "; ".join(others)

    def told(self) -> str:
        """How many there are of what."""
        kernels = len({answer.kernel.footprint.kernel for group in self.groups for answer in group.answers})
        return f"{plural(kernels, 'kernel')} on {plural(len({group.gpu for group in self.groups}), 'GPU')}"


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
    found = Survey([str(path) for path in paths], shape.named(values), pattern=question.pattern)
    runnable = {gpu: list(binaries.run_by(gpu, kernels)) for gpu in question.gpus}
    run = {kernel.footprint.architecture for kernels in runnable.values() for kernel in kernels}
    found.other_images = sorted(image for image in seen if not binaries.is_run(image, question.gpus))
    _check_any(question, run, seen)
    if question.pattern is not None:
        matches = binaries.called(question.pattern)
        runnable = {gpu: [k for k in own if matches(k.footprint.kernel)] for gpu, own in runnable.items()}
        if not any(runnable.values()):
            hint = "a glob on the name in the binary or its plain form, quoted; a word like gemm is a set of kernels"
            raise OverlapError(f"no kernel in it is called like {question.pattern}", hint, USAGE)
    communication = None
    if question.comm_file is not None:
        communication, _ = binaries.kernels_of(
            [Path(question.comm_file)], [gpu for gpu, own in runnable.items() if own]
        )
    asked = _Asked(explainer, values)
    for gpu, own in runnable.items():
        for block in _blocks(gpu, question, values, communication, explainer) if own else ():
            group = Group(gpu, block)
            found.groups.append(group)
            for kernel in own:
                asked.about(group, kernel)
    return found


def _blocks(
    gpu: KnownGpu, question: Question, values: Mapping[str, Any], of_file: Sequence[Kernel] | None, explainer: Explainer
) -> list[Block]:
    """The blocks of communication to plan with."""
    if of_file is None:
        return beside.given(gpu, values, explainer) or beside.newest(gpu, values, explainer)
    file, own = str(question.comm_file), [kernel.footprint for kernel in binaries.run_by(gpu, of_file)]
    if question.comm_pattern is not None:
        return [beside.largest(file, own, question.comm_pattern, values)]
    return beside.of_file(file, own, gpu)


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
        numbers = _numbers_of(f, threads)
        # Only a policy's rules look at names.
        key = (group.gpu.key, group.beside.numbers, numbers, kernel if self._policy else None)
        if key not in self._known:
            request = {**self._values, **dict(zip(beside.NAMES, group.beside.numbers)), "gpu": group.gpu.key}
            request.update(zip(OF_BINARY, numbers))
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


def _numbers_of(footprint: Footprint, threads: int) -> tuple[int, ...]:
    f = footprint
    return threads, f.registers, f.static_shared_memory, f.barriers or 0, f.scalars or 0


def _check_any(question: Question, run: set[str], seen: set[str]) -> None:
    if run:
        return
    asked = " or ".join(sorted({gpu.architecture for gpu in question.gpus}))
    what = f"its images are for {', '.join(sorted(seen))}" if seen else "it holds no image at all"
    wanted = f"{question.gpus[0].key} ({asked})" if len(question.gpus) == 1 else "a GPU that is known"
    sentence = f"{question.files[0]}: no kernel in it runs on {wanted}: {what}"
    raise OverlapError(sentence, "`overlap gpus` lists the GPUs that are known, and their architectures", USAGE)
