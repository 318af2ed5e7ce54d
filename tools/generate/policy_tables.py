"""The comment tables of all shipped policies at once: what tools/footprints/tables.py makes for the GPU of each.

    python -m tools.generate.policy_tables --check  # exit status 1 and a line for each policy whose table is old
    python -m tools.generate.policy_tables --write

Needs the built library (make setup), whose planner is asked.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from pyshim.policy import gpus
from pyshim.policy.reader import read_file
from tools.footprints import tables

ROOT = Path(__file__).resolve().parents[2]


def gpu_of(path: Path) -> str | None:
    """The GPU that a policy is for; None for one that is for several or all."""
    policy = read_file(path).policy
    if policy is None:
        raise SystemExit(f"policy_tables.py: {path} has mistakes; overlap policy check {path}")
    found = [gpu.key for gpu in gpus.matching(policy.gpus)]
    return found[0] if policy.gpus and len(found) == 1 else None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--check", action="store_true")
    what.add_argument("--write", action="store_true")
    parser.add_argument("policies", nargs="*", type=Path, default=sorted((ROOT / "policies").glob("*.yaml")))
    options = parser.parse_args()
    old = 0
    for path in options.policies:
        key = gpu_of(path)
        before = path.read_text(encoding="utf-8")
        after = tables.replaced(before, key) if key else before
        if options.write and after != before:
            path.write_text(after, encoding="utf-8")
        elif after != before:
            old += 1
            print(f"{path}: its table is not of today: python -m tools.generate.policy_tables --write", file=sys.stderr)
    return 1 if old else 0


if __name__ == "__main__":
    sys.exit(main())
