"""The comment tables of shipped policies at once: what tools/footprints/tables.py makes for the GPU of each.

    python -m tools.generate.policy_tables --check  # exit status 1 and a line for each policy whose table is old
    python -m tools.generate.policy_tables --write

Needs the built library (make setup), whose planner is asked.
"""

from __future__ import annotations

import sys
from pathlib import Path

from pyshim.policy import gpus
from pyshim.policy.reader import read_file
from tools.footprints import tables
from tools.generate import files

ROOT = Path(__file__).resolve().parents[2]


def gpu_of(path: Path) -> str | None:
    """Return the GPU that a policy is for, and is called after; None for a policy without a table."""
    if tables.END not in path.read_text(encoding="utf-8"):
        return None
    policy = read_file(path).policy
    if policy is None:
        raise SystemExit(f"policy_tables.py: {path} has mistakes; overlap policy check {path}")
    return next((gpu.key for gpu in gpus.matching(policy.gpus) if gpu.key == path.stem.split("-")[0]), None)


def main() -> int:
    parser = files.parser(__doc__)
    parser.add_argument("policies", nargs="*", type=Path, default=sorted((ROOT / "policies").glob("*.yaml")))
    options = parser.parse_args()
    keys = {path: key for path in options.policies if (key := gpu_of(path))}
    made = {path: tables.replaced(path.read_text(encoding="utf-8"), key) for path, key in keys.items()}
    return files.finish(made, "tools.generate.policy_tables", options.write)


if __name__ == "__main__":
    sys.exit(main())
