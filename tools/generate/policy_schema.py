"""policies/policy.schema.json, made from the policy reader, and the line in shipped policies by which editors find it.

python -m tools.generate.policy_schema --check    # exit status 1 and a line for each file that is not of today
python -m tools.generate.policy_schema --write
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from pyshim.policy import json_schema

ROOT = Path(__file__).resolve().parents[2]

NAME = "policy.schema.json"
LINE = f"# yaml-language-server: $schema=./{NAME}\n"
FIRST = "\npolicy: 1\n"


def wanted(folder: Path) -> dict[Path, str]:
    """What the files of a folder of policies are to hold."""
    found = {folder / NAME: json_schema.text()}
    for path in sorted(folder.glob("*.yaml")):
        text = path.read_text(encoding="utf-8").replace(LINE, "")
        if FIRST not in text:
            raise SystemExit(f"policy_schema.py: {path} has no line `policy: 1` behind its comment")
        found[path] = text.replace(FIRST, f"\n{LINE}policy: 1\n", 1)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--check", action="store_true")
    what.add_argument("--write", action="store_true")
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT / "policies")
    options = parser.parse_args()
    old = 0
    for path, text in wanted(options.folder).items():
        if path.exists() and path.read_text(encoding="utf-8") == text:
            continue
        if options.write:
            path.write_text(text, encoding="utf-8")
        else:
            old += 1
            print(f"{path}: not of today: python -m tools.generate.policy_schema --write", file=sys.stderr)
    return 1 if old else 0


if __name__ == "__main__":
    sys.exit(main())
