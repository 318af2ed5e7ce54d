"""For make: what is built in a clone belongs to the owner of the clone, and make removes only what it made.

    python3 tools/tree.py may-build VENV        # ends with 1, and says why, if this user cannot build here
    python3 tools/tree.py clean VENV PATH ...   # removes what was built: all of it, or nothing and says why
    python3 tools/tree.py as-owner COMMAND ...  # root runs a build as the owner of the clone

Runs from the root of the clone, before anything is built: standard library only.
"""

from __future__ import annotations

import os
import pwd
import shutil
import sys
from collections.abc import Iterable, Sequence

BUILT = os.path.join("pyshim", "_lib")
MARKS = (".made", ".making")  # make writes one of them into the virtual environment that it makes


class Refused(Exception):
    """What this user may not do, and the next step."""


def name_of(user: int) -> str:
    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:
        return f"user {user}"


def may_replace(path: str) -> bool:
    """Return whether this user may remove a path with all that is in it, or write it anew."""
    if os.path.islink(path):
        return True  # the folder around it decides
    needed = os.R_OK | os.W_OK | os.X_OK if os.path.isdir(path) else os.W_OK
    return os.lstat(path).st_uid == os.geteuid() or os.access(path, needed)


def of_another(paths: Iterable[str]) -> str | None:
    """Return the first path, or the first one below, that this user may not replace."""
    for top in paths:
        if not os.path.lexists(top):
            continue
        if not may_replace(top) or not os.access(os.path.dirname(top) or os.curdir, os.W_OK):
            return top
        for folder, folders, files in os.walk(top):
            for name in (*folders, *files):
                path = os.path.join(folder, name)
                if not may_replace(path):
                    return path
    return None


def owner_of(path: str) -> str:
    return name_of(os.lstat(path).st_uid)


def made_by_make(environment: str) -> bool:
    """Return whether a virtual environment may be removed: make made it, or it is empty."""
    if not os.path.isdir(environment) or os.path.islink(environment):
        return not os.path.lexists(environment)
    names = os.listdir(environment)
    return not names or any(mark in names for mark in MARKS)


def may_build(environment: str) -> None:
    me = name_of(os.geteuid())
    for folder in (os.curdir, os.path.dirname(BUILT)):
        if not os.access(folder, os.W_OK | os.X_OK):
            here = os.path.abspath(folder)
            raise Refused(
                f"make builds in {here}, which belongs to {owner_of(folder)}, and you ({me}) cannot write there",
                "clone into a folder of your own, and run make there",
            )
    found = of_another((environment, BUILT))
    if found:
        raise Refused(
            f"{found} belongs to {owner_of(found)}, and you ({me}) cannot replace it",
            "sudo make clean, then run make again without sudo",
        )
    if not made_by_make(environment):
        raise Refused(f"{environment} was not made by make", "move it away, and run make again")


def clean(environment: str, *paths: str) -> None:
    caches = []
    for folder, folders, _ in os.walk(os.curdir):
        if "__pycache__" in folders:
            caches.append(os.path.relpath(os.path.join(folder, "__pycache__")))
        folders[:] = [name for name in folders if name not in (".git", "__pycache__", environment, *paths)]
    every = [environment, BUILT, *paths, *caches]
    if not made_by_make(environment):
        sys.stderr.write(f"make: {environment} stays: it was not made by make\n")
        every.remove(environment)
    found = of_another(every)
    if found:
        me = name_of(os.geteuid())
        sentence = f"nothing is removed: {found} belongs to {owner_of(found)}, and you ({me}) cannot remove it"
        raise Refused(sentence, "sudo make clean")
    for path in every:
        try:
            if os.path.isdir(path) and not os.path.islink(path):
                shutil.rmtree(path)
            elif os.path.lexists(path):
                os.unlink(path)
        except OSError as error:
            raise Refused(f"{path} cannot be removed: {error}", f"rm -r {path}") from error


def as_owner(command: Sequence[str]) -> None:
    """Become the owner of the clone, and run a command with the owner's HOME."""
    info = os.stat(os.curdir)
    try:
        known = pwd.getpwuid(info.st_uid)
        name, home, group = known.pw_name, known.pw_dir, known.pw_gid
    except KeyError:
        name, home, group = str(info.st_uid), "/nonexistent", info.st_gid
    # Before: as the owner this process may not be able to import a module, if its Python is root's alone.
    program = shutil.which(command[0]) or command[0]
    try:
        os.initgroups(name, group)
        os.setgid(group)
        os.setuid(info.st_uid)
    except OSError as error:
        raise Refused(
            f"make cannot build as {name}, who owns this clone: {error.strerror}",
            f"run make setup as {name} first, or clone as {name_of(os.geteuid())}",
        ) from error
    # Those of make hold flags and a job server of root's make, the others folders that may be closed to the owner.
    for variable in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "TMPDIR", "XDG_RUNTIME_DIR", "XDG_CACHE_HOME"):
        os.environ.pop(variable, None)
    os.environ.update(HOME=home, USER=name, LOGNAME=name)
    # Root's Python may lie in a folder that others cannot read.
    python = shutil.which(os.environ.get("PYTHON", "")) or shutil.which("python3")
    given = [f"PYTHON={python}"] if python else []
    os.execv(program, [*command, *given])


def main(words: Sequence[str]) -> int:
    action, *rest = words
    try:
        if action == "may-build":
            may_build(*rest)
        elif action == "clean":
            clean(*rest)
        elif action == "as-owner":
            as_owner(rest)
        else:
            raise SystemExit(__doc__)
    except Refused as error:
        sentence, hint = error.args
        sys.stderr.write(f"make: {sentence}\nmake: help: {hint}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
