"""Run the C compiler, or copy what it made of the same input before: `compile_once.py CACHE COMPILER... -- ARGUMENTS`.

Tests compile some 500 programs with $CC, which tests/conftest.py points here. The key of a result is a hash of the
compiler, the arguments, and the content of every file that is named there or included. A command that is not understood
completely is passed on to the compiler. Python's start is most of the cost of a hit, hence few imports.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import sys

# Whose result is more than one file, or depends on files that are not named.
UNKNOWN = re.compile(r"@|-E$|-S$|-M|-save|-v$|-print|--|-fprofile|-L|-l(?!(dl|m|pthread|rt|c)$)|-x?assembler-with")
SETTINGS = ("CPATH", "C_INCLUDE_PATH", "LIBRARY_PATH", "COMPILER_PATH", "GCC_EXEC_PREFIX", "SOURCE_DATE_EPOCH")


def content(path: str) -> str:
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


def named(arguments: list[str]) -> list[str]:
    """Return the files that are named in the arguments, also in the middle of one (-Wl,--version-script=FILE)."""
    parts = (part for word in arguments for part in (word, *re.split("[=,]", word)))
    return sorted({part for part in parts if os.path.isfile(part)})


def request(compiler: list[str], arguments: list[str], text: bytes) -> str:
    """Return the key of a command, which does not know yet what is included."""
    files = {path: content(path) for path in named(arguments)}
    programs = [(word, os.stat(word).st_size, os.stat(word).st_mtime_ns) for word in compiler if os.path.isfile(word)]
    # A source that a test writes has another path in each run: its content counts.
    words = [files.get(word, word) for word in arguments]
    settings = [os.environ.get(name) for name in SETTINGS]
    whole = (compiler, programs, words, sorted(files.values()), settings, text)
    return hashlib.sha256(repr(whole).encode()).hexdigest()


def result(key: str, included: str) -> str:
    """Return the key of what is made; empty if a file that was included is not there."""
    try:
        return hashlib.sha256((key + "".join(map(content, included.split("\n")))).encode()).hexdigest()
    except OSError:
        return ""


def read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return file.read()
    except OSError:
        return ""


def write(target: str, data: bytes, mode: int = 0o666) -> None:
    """Write under a temporary name first: another process may read the target."""
    temporary = f"{target}.{os.getpid()}"
    with open(os.open(temporary, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, mode), "wb") as out:
        out.write(data)
    os.replace(temporary, target)


def copy(source: str, target: str) -> None:
    with open(source, "rb") as file:
        write(target, file.read(), os.stat(source).st_mode & 0o777)


def compile_(cache: str, key: str, compiler: list[str], arguments: list[str], output: str, text: bytes) -> int:
    """Compile, and keep the result if nothing was printed and it names no library in a folder of this run."""
    import subprocess

    at = arguments.index("-o")
    without = arguments[:at] + arguments[at + 2 :]
    listed = subprocess.run([*compiler, "-M", *without], input=text, capture_output=True, check=False)
    done = subprocess.run([*compiler, *arguments], input=text, capture_output=True, check=False)
    sys.stdout.buffer.write(done.stdout)
    sys.stderr.buffer.write(done.stderr)
    if done.returncode or listed.returncode or done.stdout + done.stderr or not os.path.isfile(output):
        return done.returncode
    with open(output, "rb") as file:
        made = file.read()
    given = named(without)
    if any(os.fsencode(path) in made for path in given if ".so" in path):
        return 0  # a library without a name of its own: the program looks for it by its path
    words = listed.stdout.decode("utf-8", "surrogateescape").replace("\\\n", " ").split()
    included = sorted({os.path.abspath(word) for word in words if word not in given and os.path.isfile(word)})
    listing = "\n".join(included) or os.devnull
    copy(output, os.path.join(cache, result(key, listing)))
    write(os.path.join(cache, f"{key}.files"), os.fsencode(listing))
    return 0


def main(words: list[str]) -> int:
    split = words.index("--")
    cache, compiler, arguments = words[0], words[1:split], words[split + 1 :]
    if "-o" not in arguments[:-1] or any(map(UNKNOWN.match, arguments)):
        os.execvp(compiler[0], [*compiler, *arguments])
    at = arguments.index("-o") + 1
    output, arguments[at] = arguments[at], "OUTPUT"
    text = sys.stdin.buffer.read() if "-" in arguments else b""
    key = request(compiler, arguments, text)
    arguments[at] = output
    known = os.path.join(cache, f"{key}.files")
    for last in (False, True):
        included = read(known)
        made = os.path.join(cache, result(key, included) or "none") if included else ""
        if made and os.path.isfile(made):
            os.utime(made)
            os.utime(known)
            copy(made, output)
            return 0
        if not last:  # another process may compile the same now
            lock = open(os.path.join(cache, "lock." + key[:2]), "w")  # noqa: SIM115 (until this process ends)
            fcntl.flock(lock, fcntl.LOCK_EX)
    return compile_(cache, key, compiler, arguments, output, text)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
