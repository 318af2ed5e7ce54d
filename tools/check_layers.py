"""The dependency law of C: who may include whom. Exits 1 and says every line that breaks it.

python tools/check_layers.py [ROOT]

C       vendor -> core, sys    core -> the contract, text.h    sys -> the contract, text.h
        vendor/cuda, vendor/hip -> vendor/common too, which knows of them their tables (.def) only
        and core is pure: it includes nothing of libc that asks an operating system
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

CONTRACT = {"shim/abi.h", "shim/overlap_abi.h", "shim/text.h", "shim/version.h"}
PURE = {"limits.h", "stdbool.h", "stddef.h", "stdint.h", "string.h"}
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(?:"([^"]+)"|<([^>]+)>|(\w+))', re.M)


def may_include(folder: str) -> tuple[str, ...]:
    """Folders, besides its own and the contract, that the files of a folder may include from."""
    return ("shim/core", "shim/sys", "shim/vendor/common") if folder.startswith("shim/vendor/") else ()


def is_table(folder: str, target: str) -> bool:
    """Both vendors' entry points have numbers of one row."""
    return folder == "shim/vendor/common" and re.fullmatch(r"shim/vendor/\w+/(driver|runtime)\.def", target) is not None


def resolve(root: Path, path: Path, name: str) -> str | None:
    """The included file, relative to the root: beside the file that includes it, or below shim/ (-Ishim)."""
    for base in (path.parent, root / "shim"):
        found = (base / name).resolve()
        if found.is_file():
            return found.relative_to(root).as_posix()
    return None


def includes(root: Path, path: Path) -> Iterator[str]:
    where = path.relative_to(root).as_posix()
    folder = where.rsplit("/", 1)[0]
    text = path.read_text(encoding="utf-8")
    for match in INCLUDE.finditer(text):
        at = f"{where}:{text.count(chr(10), 0, match.start() + 1) + 1}"
        own, system, macro = match.groups()
        if macro:
            yield f"{at}: an include that only the preprocessor understands"
        elif system and folder in ("shim", "shim/core") and system not in PURE:
            yield f"{at}: <{system}>: core is pure, and knows no operating system"
        elif own:
            target = resolve(root, path, own)
            if target is None:
                yield f"{at}: {own} is not there"
            elif (
                target not in CONTRACT
                and target.rsplit("/", 1)[0] not in (folder, *may_include(folder))
                and not is_table(folder, target)
            ):
                yield f"{at}: {folder} must not know {target}"


def in_c(root: Path) -> Iterator[str]:
    for path in sorted((root / "shim").rglob("*")):
        if path.suffix in (".c", ".h", ".S", ".def"):
            yield from includes(root, path)


def main() -> int:
    root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent.parent).resolve()
    found = list(in_c(root))
    for line in found:
        print(f"check_layers: {line}", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
