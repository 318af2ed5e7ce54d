"""What a set of measurements is: commands, one process each, and what they need."""

from __future__ import annotations

from dataclasses import dataclass

CUBIN = "question_kernels.cubin"


@dataclass(frozen=True)
class Step:
    """One process. file: JSON that it leaves in {work}, kept beside what it printed. may_crash: that is an answer."""

    name: str
    command: str
    file: str = ""
    may_crash: bool = False


@dataclass(frozen=True)
class Set:
    name: str
    question: str
    programs: tuple[str, ...]  # files of this folder
    seconds: int  # about so long on an H200, without the build
    steps: tuple[Step, ...]  # or one that writes {out} itself, with the same head
    needs: tuple[str, ...] = ()
    builds: tuple[str, ...] = ()
    gpus: int = 1
    rounds: int | None = None  # what {rounds} is, unless --rounds says otherwise

    @property
    def limit(self) -> int:
        """Seconds after which it is cut. A command that is told its limit takes what it gets."""
        told = any("{limit}" in step.command for step in self.steps)
        return self.seconds if told else 2 * self.seconds + 20

    @property
    def writes_itself(self) -> bool:
        return any("{out}" in step.command for step in self.steps)


def steps(*commands: str) -> tuple[Step, ...]:
    return tuple(Step(command.format_map(_Short()), command) for command in commands)


class _Short(dict[str, str]):
    """A step's name: the command without the places of things."""

    def __missing__(self, key: str) -> str:
        return {"python": "python", "gpu": ".", "bin": "."}.get(key, key.upper())


def asked(program: str, questions: str) -> tuple[Step, ...]:
    """Each question in a process of its own: some of them may end it."""
    return tuple(
        Step(question, f"{{bin}}/{program} {question} {{cubin}}", may_crash=True) for question in questions.split()
    )
