"""What belongs into share/ beside the commands: manual pages, and completions for bash, zsh and fish.

    python -m tools.manual.make FOLDER    # share/man/man1/overlap-run.1 and others, below FOLDER

The build of the wheel and `make site` take them from here. Needs cffi and PyYAML, and no library: a wheel is made where
there is none yet.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from pyshim.policy import library
from tools.manual import completions, man
from tools.manual.parsers import every

ROOT = Path(__file__).resolve().parents[2]


def files() -> dict[str, str]:
    """By path below the prefix of an installation."""
    commands = every()
    keys = re.findall(
        r"^(?:GPU|AMD)\((\w+),", (ROOT / "shim" / "core" / "gpu.def").read_text(encoding="utf-8"), re.MULTILINE
    )
    names = completions.Names(tuple(keys), (library.AUTO, *library.names({})))
    by_name = {name: [one for one in commands if one.words[0] == name] for name in ("overlap-run", "overlap")}
    made = {f"share/man/man1/{name}.1": man.page(name, inner) for name, inner in by_name.items()}
    for name, inner in by_name.items():
        made[f"share/bash-completion/completions/{name}"] = completions.bash(commands, names)
        made[f"share/fish/vendor_completions.d/{name}.fish"] = completions.fish(inner, names)
    made["share/zsh/site-functions/_overlap"] = completions.zsh(commands, names)
    return made


def write(folder: Path) -> list[Path]:
    paths = []
    for name, text in files().items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        paths.append(path)
    return paths


if __name__ == "__main__":
    for each in write(Path(sys.argv[1])):
        print(each)
