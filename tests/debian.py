"""Packages of Debian: of any release, unpacked into .tests/downloads, or of this one, installed with SYSTEM=1.

Downloaded by the machine's own apt, from the machine's own sources with the name of the release exchanged, so that
proxies, mirrors and keys are those of the machine. What is missing raises Missing, with the reason to skip a test.
`make test` does neither: a test that needs a package has a row in tests/needs.py.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path

from tests import needs

SOURCES = Path("/etc/apt")
RELEASE = Path("/etc/os-release")
AMD64 = "amd64"


class Missing(Exception):
    """One sentence: why the packages cannot be had here."""


def cache() -> Path:
    return needs.DOWNLOADS / "debian"


def fetch(suite: str, packages: Iterable[str], architecture: str = AMD64) -> Path:
    """The folder that holds all of these packages of one release, unpacked; `name=version` asks for that version."""
    needs.allow(*packages)
    folder = cache() / (suite if architecture == AMD64 else f"{suite}-{architecture}")
    root = folder / "root"
    done = folder / "done"
    done.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # one at a time, of several test runs
        wanted = [name for name in packages if not (done / name).exists()]
        if wanted:
            download = _download(suite, architecture, folder, wanted)
            for package in sorted(download.glob("*.deb")):
                _run(["dpkg-deb", "-x", str(package), str(root)], 300)
            shutil.rmtree(download)
            for name in wanted:
                (done / name).touch()
    return root


def install(packages: Iterable[str], commands: Iterable[str]) -> None:
    """Installs packages of this machine's own release, as root, unless all of the commands are there already."""
    needs.allow(*packages)
    if all(map(_found, commands)):
        return
    if os.environ.get("SYSTEM") != "1" or os.geteuid() != 0:
        words = " ".join(packages)
        raise Missing(f"needs {words}: apt-get install {words}, or as root with SYSTEM=1, which does that")
    if not shutil.which("apt-get"):
        raise Missing("apt-get is needed, which only Debian and its kin have")
    cache().mkdir(parents=True, exist_ok=True)
    with (cache() / "installing").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # one at a time, of several test runs
        if all(map(_found, commands)):
            return
        apt_get = ["apt-get", "-qq", "-o", "DPkg::Lock::Timeout=120"]
        wanted = ["install", "-y", "--no-install-recommends", *packages]
        try:
            _run([*apt_get, *wanted], 600)
        except Missing:  # the lists are old, or not there
            _run([*apt_get, "update"], 180)
            _run([*apt_get, *wanted], 600)
    missing = [command for command in commands if not _found(command)]
    if missing:
        raise Missing(f"{', '.join(packages)} did not bring {', '.join(missing)}")


def _found(command: str) -> bool:
    """Administrators' commands are not in everybody's PATH; a path is a file."""
    if "/" in command:
        return Path(command).is_file()
    return bool(shutil.which(command, path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin"))


def _download(suite: str, architecture: str, folder: Path, packages: list[str]) -> Path:
    for tool in ("apt-get", "dpkg-deb"):
        if not shutil.which(tool):
            raise Missing(f"{tool} is needed, which only Debian and its kin have")
    apt = folder / "apt"
    download = apt / "download"
    shutil.rmtree(download, ignore_errors=True)  # what an interrupted run left
    for name in ("lists/partial", "cache/archives/partial", "download"):
        (apt / name).mkdir(parents=True, exist_ok=True)
    (apt / "sources.list").write_text(exchanged(suite), encoding="utf-8")
    settings = {
        "Dir::Etc::sourcelist": apt / "sources.list",
        "Dir::Etc::sourceparts": "-",
        "Dir::State::lists": apt / "lists",
        "Dir::State::status": "/dev/null",  # what is installed here does not matter
        "Dir::Cache": apt / "cache",
        "APT::Architecture": architecture,
        "APT::Sandbox::User": "root",  # the cache may be where no other user may write
        "Acquire::Languages": "none",
        "Acquire::Retries": "1",
        "Acquire::http::Timeout": "20",
    }
    options = [word for name, value in settings.items() for word in ("-o", f"{name}={value}")]
    apt_get = ["apt-get", *options, "-qq"]
    fresh = not any((apt / "lists").glob("*_Packages*"))
    if fresh:
        _run([*apt_get, "update"], 180)
    try:
        _run([*apt_get, "download", *packages], 900, download)
    except Missing:
        if fresh:
            raise
        _run([*apt_get, "update"], 180)  # the archive has moved on since
        _run([*apt_get, "download", *packages], 900, download)
    return download


def _run(command: list[str], seconds: int, folder: Path | None = None) -> None:
    try:
        environment = {**os.environ, "LC_ALL": "C", "DEBIAN_FRONTEND": "noninteractive"}
        done = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=seconds
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Missing(f"{command[0]}: {error}") from error
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
        raise Missing(f"{command[0]}: {lines[-1]}")


def exchanged(suite: str) -> str:
    """The machine's source of its own release as lines of another one."""
    own = codename()
    for address, options in _sources(own):
        return f"deb {options} {address} {suite} main\n"
    raise Missing(f"no source of {own} main in {SOURCES}")


def codename() -> str:
    """The release of this machine."""
    release = dict(line.split("=", 1) for line in RELEASE.read_text(encoding="utf-8").splitlines() if "=" in line)
    if release.get("ID", "").strip('"') != "debian":
        raise Missing("needs Debian, whose sources name the place to download from")
    return release.get("VERSION_CODENAME", "").strip('"')


def _sources(codename: str) -> Iterator[tuple[str, str]]:
    """(address, options) of the entries of exactly this suite, in both forms in which apt keeps them."""
    for file in sorted((SOURCES / "sources.list.d").glob("*.sources")):
        for entry in re.split(r"\n\s*\n", file.read_text(encoding="utf-8")):
            fields = dict(re.findall(r"^([A-Za-z-]+):[ \t]*(.*)$", entry, re.MULTILINE))
            if codename in fields.get("Suites", "").split() and "main" in fields.get("Components", "").split():
                key = fields.get("Signed-By")
                yield fields["URIs"].split()[0], f"[signed-by={key}]" if key else ""
    for file in [SOURCES / "sources.list", *sorted((SOURCES / "sources.list.d").glob("*.list"))]:
        if not file.exists():
            continue
        pattern = r"^deb\s+(\[[^]]*\])?\s*(\S+)\s+(\S+)\s+(.*)$"
        for options, address, name, components in re.findall(pattern, file.read_text(encoding="utf-8"), re.MULTILINE):
            if name == codename and "main" in components.split():
                yield address, options
