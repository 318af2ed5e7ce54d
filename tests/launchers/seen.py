"""What ranks say of themselves, and how it is read."""

from __future__ import annotations

import json
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path

OVERLAP_RUN = str(Path(sys.executable).parent / "overlap-run")
# A line a rank: its variables, long ones by their hash, and whether the library is in it. Launchers mix long lines.
SHOW = """import hashlib, json, os
from pyshim.start import folder
mapped = "liboverlap.so" in open("/proc/self/maps").read()
names = ("LD_", "OVERLAP_", "NCCL_", "MINE", "THEIRS", "MY_OWN", "SLURMD_NODENAME")
shown = {name: value for name, value in os.environ.items() if name.startswith(names)}
short = {n: v if len(v) < 200 else hashlib.md5(v.encode()).hexdigest() for n, v in shown.items()}
line = json.dumps([folder.rank(os.environ), folder.world_size(os.environ), mapped, short])
os.write(1, line.encode() + b"\\n")
"""


@dataclass
class Rank:
    rank: int | None
    world: int | None
    mapped: bool
    environment: dict[str, str]


@dataclass
class Ranks:
    """What a launcher and its ranks left behind; ranks in order."""

    status: int
    stdout: str
    stderr: str

    @property
    def ranks(self) -> list[Rank]:
        lines = [line for line in self.stdout.splitlines() if line.startswith("[") and line.endswith("}]")]
        return sorted((Rank(*json.loads(line)) for line in lines), key=lambda rank: rank.rank or 0)

    @property
    def mapped(self) -> list[bool]:
        return [rank.mapped for rank in self.ranks]

    def values(self, name: str) -> list[str | None]:
        return [rank.environment.get(name) for rank in self.ranks]

    @property
    def advice(self) -> list[str]:
        """The words that the line that we said tells to write in front of the program."""
        (line,) = [line for line in self.stderr.splitlines() if "without this environment" in line]
        said = line.partition("environment: write ")[2]
        assert said.endswith(" in front of the program that it starts"), line
        return shlex.split(said)[:-8]
