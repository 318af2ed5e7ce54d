"""What must be true of a wheel before anybody gets it. Exits 1 and says every finding.

    python -m tools.release.gates WHEEL ...

Reads the archive as bytes and runs nothing of it, so a wheel for another processor is looked at like any other. The
rules for object files are the table RULES: one row by the pattern of a name, and no object file without a row.
"""

from __future__ import annotations

import base64
import csv
import fnmatch
import hashlib
import io
import os
import re
import subprocess
import sys
import sysconfig
import tempfile
import zipfile
from collections.abc import Iterator
from email.parser import Parser
from pathlib import Path
from typing import NamedTuple

from tools.checks import check_exports
from tools.checks import shim_build as build

ROOT = Path(__file__).resolve().parents[2]


shim_build = build.load()

LIB = "pyshim/_lib/"
# What every glibc 2.17 brings; the loader has __tls_get_addr.
LIBC = {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}
SCRIPTS = {f".data/scripts/{name}" for name in (".overlap-run.py", "overlap", "overlap-run")}  # tools/release
TABLES = "tables"  # exports are those of the vendors' tables, as tools/checks/check_exports.py knows them


class Rule(NamedTuple):
    """Of an object file. A regular expression says which names it may export, all of it."""

    pattern: str
    exports: str
    needed: frozenset[str] = frozenset(LIBC)
    soname: bool = True  # it is the file's own name: else a program that wants that library would load another one


RULES = (
    Rule(LIB + "liboverlap.so", TABLES, frozenset({"libc.so.6"})),
    Rule(LIB + "demo/demo-st*", "(?!)", soname=False),
    *(Rule("*" + name, "(?!)", frozenset({"libc.so.6"}), soname=False) for name in SCRIPTS),
    Rule(LIB + "simgpu/libcuda.so.1", r"cu[A-Z]\w+"),
    Rule(LIB + "simgpu/libcudart.so.1[23]", r"cuda[A-Z]\w+|__cuda\w+|libcudart\.so\.1[23]"),
    Rule(LIB + "simgpu/hip7/libamdhip64.so.7", r"_*(hip|amd)\w+|hip_\d\.\d|_Z24hip\w+|__gnu_(f2h|h2f)_ieee"),
)
FOREIGN = re.compile(r"(^|/)(\.|__pycache__/|tests?/)|\.(pyc|o|a)$")  # what a build or a checkout leaves behind
TAG = re.compile(r"py3-none-manylinux2014_(?P<machine>\w+)\.manylinux_2_17_(?P=machine)")


class Wheel:
    """The files of a wheel, and what its name says."""

    def __init__(self, path: Path) -> None:
        self.name = path.name
        with zipfile.ZipFile(path) as archive:
            self.infos = [info for info in archive.infolist() if not info.is_dir()]
            self.files = {info.filename: archive.read(info) for info in self.infos}
        self.tag = path.stem.split("-", 2)[2]
        found = TAG.fullmatch(self.tag)
        self.machine = found["machine"] if found else ""

    def about(self, name: str) -> str:
        """A file of its .dist-info; empty where there is none."""
        found = [data for file, data in self.files.items() if file.endswith(f".dist-info/{name}")]
        return found[0].decode("utf-8") if found else ""


def rule_of(name: str) -> Rule | None:
    return next((rule for rule in RULES if fnmatch.fnmatchcase(name, rule.pattern)), None)


def check_object(name: str, data: bytes, machine: str) -> Iterator[str]:
    rule = rule_of(name)
    if rule is None:
        yield "an object file that no rule of tools/release/gates.py knows"
        return
    try:
        elf = check_exports.read(data)
    except ValueError as error:
        yield f"cannot be read: {error}"
        return
    if elf.machine != machine:
        yield f"is for {elf.machine}, not for {machine}"
    if rule.soname and elf.soname != name.rsplit("/", 1)[1]:
        yield f"calls itself {elf.soname or 'nothing'}"
    foreign = sorted(set(elf.needed) - rule.needed)
    if foreign:
        yield f"needs {', '.join(foreign)}, which is not of libc or not everywhere"
    if not elf.stripped:
        yield "is not stripped"
    if rule.exports == TABLES:
        yield from check_exports.check_library(elf)
        return
    yield from check_exports.check_loading(elf)
    strange = sorted({s.name for s in elf.symbols if s.defined and not re.fullmatch(rule.exports, s.name)})
    if strange:
        yield f"exports {', '.join(strange[:5])}: visible to every other object, and nobody promised it"


def check_objects(wheel: Wheel) -> Iterator[str]:
    for name, data in wheel.files.items():
        if data[:4] == b"\x7fELF":
            yield from (f"{name}: {line}" for line in check_object(name, data, wheel.machine))
    built = set(shim_build.FILES.values()) - {shim_build.FILES["launcher"]}  # that is in SCRIPTS
    for file in built:
        if LIB + file not in wheel.files:
            yield f"{LIB}{file}: is not there"


def check_carried(wheel: Wheel) -> Iterator[str]:
    """What goes with the object files is that of these sources."""
    carried = {LIB + Path(name).name: ROOT / "shim" / name for name in ("core/reason.def", "sys/rank.def")}
    carried.update({f"pyshim/policies/{path.name}": path for path in (ROOT / "policies").glob("*.yaml")})
    for name, source in carried.items():
        if wheel.files.get(name) != source.read_bytes():
            yield f"{name}: is not {source.relative_to(ROOT)} of these sources"
    costs = {"shipped.json": "start would compile its policy", "abi.py": "command would parse the header"}
    for made, cost in costs.items():
        if LIB + made not in wheel.files:
            yield f"{LIB}{made}: is not there: every {cost} anew"


def places() -> list[bytes]:
    """Folders of this machine, which nobody else has."""
    folders = {str(ROOT), str(Path.cwd()), str(Path.home()), sys.prefix, sys.base_prefix, tempfile.gettempdir()}
    folders |= {sysconfig.get_path("purelib"), os.environ.get("ZIG_GLOBAL_CACHE_DIR", "")}
    # As a folder with something in it: /tmp alone is also the reader's own.
    return sorted(f"{folder}/overlap-".encode() if folder == "/tmp" else f"{folder}/".encode() for folder in folders
                  if folder not in ("", "/", "/usr"))  # fmt: skip


def check_files(wheel: Wheel) -> Iterator[str]:
    here = places()
    tops = {"pyshim", *(name.split("/")[0] for name in wheel.files if ".dist-info/" in name)}
    for info in wheel.infos:
        name, mode = info.filename, info.external_attr >> 16
        beside = any(name == wheel.name.rsplit("-", 3)[0] + ending for ending in SCRIPTS)
        if not beside and (FOREIGN.search(name) or name.split("/")[0] not in tops):
            yield f"{name}: belongs in no wheel"
        if mode & 0o7777 not in (0o644, 0o755):
            yield f"{name}: mode {mode & 0o7777:o}, neither 644 nor 755"
        found = [place.decode() for place in here if place in wheel.files[name]]
        if found:
            yield f"{name}: names {found[0]} of the machine that built it"
    for ending in SCRIPTS:
        if not any(name.endswith(ending) for name in wheel.files):
            yield f"{ending.rsplit('/', 1)[1]}: this command is not there"
    demo = LIB + shim_build.FILES["demo-stencil"]
    if not any(info.filename == demo and info.external_attr >> 16 & 0o100 for info in wheel.infos):
        yield f"{demo}: cannot be executed"
    if len({info.date_time for info in wheel.infos}) > 1:
        yield "files have different times"


def check_record(wheel: Wheel) -> Iterator[str]:
    """RECORD names every file with its hash: an installer trusts it."""
    rows = {row[0]: row[1:] for row in csv.reader(io.StringIO(wheel.about("RECORD"))) if row}
    for name, data in wheel.files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        if name.endswith(".dist-info/RECORD"):
            continue
        if rows.get(name) != [f"sha256={digest}", str(len(data))]:
            yield f"{name}: RECORD says something else, or nothing"


def check_metadata(wheel: Wheel) -> Iterator[str]:
    if not wheel.machine:
        yield f"{wheel.tag}: the tag is not that of manylinux2014"
    about = Parser().parsestr(wheel.about("WHEEL"))
    expected = [f"py3-none-{platform}" for platform in wheel.tag[len("py3-none-") :].split(".")]
    if sorted(about.get_all("Tag", [])) != sorted(expected):
        yield f"WHEEL has other tags than the name: {', '.join(about.get_all('Tag', []))}"
    if about["Root-Is-Purelib"] != "false":
        yield "WHEEL says that there are no object files inside"
    metadata = Parser().parsestr(wheel.about("METADATA"))
    if wheel.name.split("-")[:2] != [str(metadata["Name"]).replace("-", "_"), metadata["Version"]]:
        yield f"METADATA is of {metadata['Name']} {metadata['Version']}"
    for file in metadata.get_all("License-File", []) or ["LICENSE"]:
        if wheel.about(f"licenses/{file}") != (ROOT / "LICENSE").read_text(encoding="utf-8"):
            yield f"licenses/{file}: is not the LICENSE of these sources"
    yield from check_page(wheel.about("METADATA"))


def check_page(text: str) -> Iterator[str]:
    """What an index checks before it takes a wheel: the fields, and that the README becomes a page."""
    from packaging.metadata import Metadata
    from readme_renderer import markdown

    try:
        Metadata.from_email(text, validate=True)
    except Exception as error:  # a group of them on newer Pythons, an attribute of one on older ones
        yield f"METADATA: {'; '.join(str(each) for each in getattr(error, 'exceptions', [error]))}"
    metadata = Parser().parsestr(text)
    page = markdown.render(str(metadata.get_payload()))
    if metadata["Description-Content-Type"] != "text/markdown" or not page or "<h1" not in page:
        yield "METADATA: the README does not become a page"


def audited(path: Path) -> tuple[str, list[str]]:
    """What auditwheel says, and what is wrong with that: it must want nothing to be copied into the wheel."""
    command = [sys.executable, "-m", "auditwheel", "show", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    said = " ".join(done.stdout.split())
    machine = Wheel(path).machine
    wrong = [] if f'platform tag: "manylinux_2_17_{machine}"' in said else ["auditwheel: another platform tag"]
    if "external shared libraries are required" in said:
        wrong.append("auditwheel would copy libraries into the wheel")
    return said, [*wrong, *([done.stderr.strip()] if done.returncode else [])]


CHECKS = (check_metadata, check_files, check_record, check_carried, check_objects)


def check(path: Path) -> list[str]:
    """Every finding of our own gates."""
    try:
        wheel = Wheel(path)
    except (OSError, ValueError, IndexError, zipfile.BadZipFile) as error:
        return [f"cannot be read: {error}"]
    return [line for gate in CHECKS for line in gate(wheel)]


def main() -> int:
    failed = 0
    for path in map(Path, sys.argv[1:]):
        said, wrong = audited(path)
        print(f"gates: {path.name}: auditwheel: {said}", file=sys.stderr)
        for line in [*check(path), *wrong]:
            failed += 1
            print(f"gates: {path.name}: {line}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
