"""Processes that take turns on the same GPUs: started once, asked one by one, so that what drifts hits all alike.

One side starts `Ranks` and asks them; the other, the program that each rank runs, answers by `serve`. A request and an
answer are a line of JSON each, and answers are told from all else on a rank's output by what they begin with.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from queue import Empty, Queue
from threading import Thread
from typing import Any

ANSWER, END, ERROR = "answer ", "end", "error"


def say(answer: Any) -> None:
    """One line, in a rank."""
    print(ANSWER + json.dumps(answer), flush=True)


def serve(ready: Any, turn: Callable[[Any], Any]) -> None:
    """Says what is ready, then answers each request until the last one."""
    say(ready)
    for line in sys.stdin:
        request = json.loads(line)
        if request == END:
            return
        try:
            say(turn(request))
        except RuntimeError as error:  # PyTorch's, of memory too: the next request may be luckier
            say({ERROR: str(error)})


class Ranks:
    """The processes of one arm: one for each GPU, with RANK and the rest of what PyTorch reads in their environment.

    broken: why no more answers are to be had, or ''. last: what each rank said after the end, None for nothing.
    """

    def __init__(self, name: str, command: Sequence[str], variables: Mapping[str, str], world: int, port: int) -> None:
        self.name, self.broken = name, ""
        self.said: list[Queue[str]] = [Queue() for _ in range(world)]
        self.errors: list[list[str]] = [[] for _ in range(world)]
        self.last: list[Any] = [None] * world
        self.processes: list[Any] = []
        self.listeners: list[Thread] = []
        self.readers: list[Thread] = []  # of what ranks say on stderr
        for rank in range(world):
            places = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": world, "MASTER_ADDR": "127.0.0.1"}
            environment = {**os.environ, **variables, **{key: str(value) for key, value in places.items()}}
            environment["MASTER_PORT"] = str(port)
            pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
            process: Any = subprocess.Popen(list(command), env=environment, **pipes)  # type: ignore[call-overload, unused-ignore]
            self.processes.append(process)
            self.listeners.append(Thread(target=self.listen, args=(process, self.said[rank]), daemon=True))
            self.listeners[-1].start()
            self.readers.append(Thread(target=self.errors[rank].extend, args=(process.stderr,), daemon=True))
            self.readers[-1].start()

    def listen(self, process: Any, said: Queue[str]) -> None:
        for line in process.stdout:
            if line.startswith(ANSWER):
                said.put(line[len(ANSWER) :])
        said.put("null")  # it has ended

    def answers(self, patience: float) -> list[Any]:
        """One of each rank; None: it could not, has ended, or did not answer within patience seconds."""
        made: list[Any] = []
        end = time.monotonic() + patience
        for said in self.said:
            try:
                made.append(json.loads(said.get(timeout=max(0.1, end - time.monotonic()))))
            except Empty:
                made.append(None)
        if None in made and not self.broken:
            self.broken = "no answer"
            print(f"{self.name}: no answer", *(errors[-3:] for errors in self.errors), file=sys.stderr, flush=True)
        for place, answer in enumerate(made):
            if isinstance(answer, dict) and ERROR in answer:
                print(f"{self.name}: {answer[ERROR]}", file=sys.stderr, flush=True)
                made[place] = None
        return made

    def tell(self, request: Any) -> None:
        for process in self.processes if not self.broken else ():
            try:
                process.stdin.write(json.dumps(request) + "\n")
                process.stdin.flush()
            except OSError:
                self.broken = "ended"

    def ask(self, request: Any, patience: float = 40) -> list[Any]:
        self.tell(request)
        return [None] * len(self.processes) if self.broken else self.answers(patience)

    def end(self, patience: float = 30) -> list[int]:
        """Exit statuses; -999: had to be killed."""
        for process in self.processes:
            try:
                process.stdin.write(json.dumps(END) + "\n")
                process.stdin.close()
            except OSError:
                pass
        codes = []
        for process in self.processes:
            try:
                codes.append(process.wait(timeout=patience))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                codes.append(-999)
        for rank, (listener, reader) in enumerate(zip(self.listeners, self.readers)):
            listener.join(timeout=5)
            reader.join(timeout=1)
            left = [json.loads(line) for line in self.said[rank].queue]
            self.last[rank] = next((answer for answer in reversed(left) if answer is not None), None)
        return codes
