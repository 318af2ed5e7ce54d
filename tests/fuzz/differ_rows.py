"""Write what differ.c calls, from the tables of hooked entry points: python differ_rows.py VENDOR > rows.h

    TABLE                      shim/VENDOR/driver.def, and what the fuzzer calls besides: differ_VENDOR.def
    differ_VENDOR.h            a maker for every argument: arg_ROW_NAME, else arg_TYPE_NAME, else arg_TYPE; how it
                               is shown, where that is more than a word: show_TYPE

A row with an argument for which there is no maker is an error, so that no hook is added that the fuzzer does not call.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections import Counter
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]


class Uncovered(Exception):
    """Arguments for which there is no maker, one a line."""


def rows(vendor: str, more: Path | None = None) -> dict[str, list[tuple[str, str]]]:
    """name -> the types and names of its arguments."""
    tables = [ROOT / f"shim/{vendor}/driver.def", HERE / f"differ_{vendor}.def", *filter(None, [more])]
    text = f'#include "{ROOT}/shim/gpu/rows.h"\n'
    text += "#define DRIVER(name, body, ...) ROW name (PARAMETERS(__VA_ARGS__)) ;\n"
    text += "".join(f'#define CALL(name, parameters) ROW name parameters ;\n#include "{table}"\n' for table in tables)
    command = [*shlex.split(os.environ.get("CC", "cc")), "-E", "-P", "-x", "c", "-"]
    made = subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout
    found: dict[str, list[tuple[str, str]]] = {}
    for name, parameters in re.findall(r"ROW\s+(\w+)\s+\(([^()]*)\)\s*;", made):
        words = [] if parameters.strip() == "void" else [word.strip() for word in parameters.split(",")]
        found[name] = [(word[: -len(last)].strip(), last) for word in words for last in [re.split(r"[\s*]", word)[-1]]]
    return found


def base(name: str) -> str:
    """The row without what tells its versions apart."""
    return re.sub(r"(_v\d)?(_pts[dz]|_ptds|_spt)?$", "", name)


def mangled(kind: str) -> str:
    return re.sub(r"\W+", "_", kind.replace("*", " p")).strip("_")


def source(vendor: str, more: Path | None = None) -> str:
    headers = [*sorted(HERE.glob(f"differ_{vendor}*.h")), HERE / "differ_arguments.h"]
    text = "".join(header.read_text(encoding="utf-8") for header in headers)
    makers = set(re.findall(r"\b(?:arg|show)_\w+", text))
    made, missing = [], []
    table = rows(vendor, more)
    for row, arguments in table.items():
        lines: list[str] = []
        shown: list[str] = []
        for at, (kind, name) in enumerate(arguments):
            wanted = [
                f"arg_{row}_{name}",
                f"arg_{base(row)}_{name}",
                f"arg_{mangled(kind)}_{name}",
                f"arg_{mangled(kind)}",
            ]
            maker = next((word for word in wanted if word in makers), None)
            if not maker:
                missing.append(f"{row}: {kind} {name}: none of {', '.join(wanted)}")
            lines.append(f"    {kind} a{at} = {maker}();")
            known = f"show_{mangled(kind)}"
            shower = f"{known}(" if known in makers else "show_word("
            cast = "" if known in makers else "(uint64_t)"
            shown.append(f'        {shower}"{name}", {cast}a{at});')
        types = ", ".join(kind for kind, _ in arguments)
        names = ", ".join(f"a{at}" for at in range(len(arguments)))
        call = f"    return ((int (*)({types or 'void'}))driver)({names});"
        made += [
            f"static int row_{row}(void (*driver)(void)) {{",
            *lines,
            "    if (verbose) {",
            *shown,
            "    }",
            call,
            "}",
            f"extern int {row}({types or 'void'}) __attribute__((weak));",
        ]
    if missing:
        raise Uncovered("\n".join(missing))
    made.append("static const struct row rows[] = {")
    made += [f'    {{"{row}", row_{row}, (void (*)(void)){row}}},' for row in table]
    return "\n".join([*made, "};", ""])


def statement(vendor: str, counts: Counter[tuple[str, bool]]) -> str:
    """Which rows were called with success and with failure."""
    names = list(rows(vendor.rstrip("567")))
    never = [name for name in names if not counts[name, True] and not counts[name, False]]
    failed = [name for name in names if not counts[name, True] and counts[name, False]]
    good = [name for name in names if counts[name, True] and not counts[name, False]]
    both = len(names) - len(never) - len(failed) - len(good)
    return "\n".join(
        [
            f"covered: {len(names)} entry points of {vendor}: {both} with success and failure, "
            f"{len(good)} with success alone, {len(failed)} with failure alone, {len(never)} never",
            *([f"success alone: {', '.join(good)}"] if good else []),
            *([f"failure alone: {', '.join(failed)}"] if failed else []),
            *([f"never: {', '.join(never)}"] if never else []),
        ]
    )


if __name__ == "__main__":
    try:
        sys.stdout.write(source(sys.argv[1]))
    except Uncovered as error:
        sys.exit(f"tests/fuzz/differ_{sys.argv[1]}.h makes no argument for:\n{error}")
