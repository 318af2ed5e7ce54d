"""policies/policy.schema.json, made from the policy reader, and the line in shipped policies by which editors find it.

python -m tools.generate.policy_schema --check    # exit status 1 and a line for each file that is not of today
python -m tools.generate.policy_schema --write
"""

from __future__ import annotations

import sys
from pathlib import Path

from pyshim.policy.model import schema_text
from tools.generate import files

ROOT = Path(__file__).resolve().parents[2]

NAME = "policy.schema.json"
LINE = f"# yaml-language-server: $schema=./{NAME}\n"
FIRST = "\npolicy: 1\n"


def wanted(folder: Path) -> dict[Path, str]:
    """What the files of a folder of policies are to hold."""
    found = {folder / NAME: schema_text()}
    for path in sorted(folder.glob("*.yaml")):
        text = path.read_text(encoding="utf-8").replace(LINE, "")
        if FIRST not in text:
            raise SystemExit(f"policy_schema.py: {path} has no line `policy: 1` behind its comment")
        found[path] = text.replace(FIRST, f"\n{LINE}policy: 1\n", 1)
    return found


def main() -> int:
    parser = files.parser(__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT / "policies")
    options = parser.parse_args()
    return files.finish(wanted(options.folder), "tools.generate.policy_schema", options.write)


if __name__ == "__main__":
    sys.exit(main())
