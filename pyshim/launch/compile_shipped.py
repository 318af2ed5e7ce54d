"""A step of the build: compile every shipped policy, and `auto`, for shipped.py.

python -m pyshim.launch.compile_shipped OUTPUT
"""

from __future__ import annotations

import json
import os
import sys

from pyshim.launch import shipped
from pyshim.launch.policies import AUTO, compile_now
from pyshim.policy import library
from pyshim.stats.file import write_whole


def write(output: str) -> None:
    """Write OUTPUT/shipped.json: by name, the fields of policies.Chosen."""
    kept = {name: compile_now(name, {})._asdict() for name in (AUTO, *library.names({}))}
    text = json.dumps(kept, sort_keys=True)
    write_whole(os.path.join(output, shipped.NAME), text.encode("ascii"), mode=0o666)


if __name__ == "__main__":
    write(sys.argv[1])
