"""A step of the build: compile every shipped policy, and `auto`, for shipped.py.

python -m pyshim.launch.compile_shipped OUTPUT
"""

from __future__ import annotations

import sys

from pyshim.launch import shipped
from pyshim.launch.policies import AUTO, compile_now
from pyshim.policy import library


def write(output: str) -> None:
    """Write OUTPUT/shipped.json."""
    shipped.write(output, {name: compile_now(name, {})._asdict() for name in (AUTO, *library.names({}))})


if __name__ == "__main__":
    write(sys.argv[1])
