"""The variables that policies ask for: which of them are set here, which are not, and why.

A variable is set for the whole process, before anybody knows on which GPU it will run. So where several policies are
carried, it is set only if each of them that could apply asks for the same value. What the user has set stands, in the
environment and in the files from which NCCL takes what the environment does not say.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from pyshim.launch import driver

ETC = "/etc/nccl.conf"


class Asked(NamedTuple):
    """What one policy asks for."""

    policy: str
    gpus: tuple[str, ...]
    vendors: tuple[str, ...]
    environment: Mapping[str, str]


def decide(asked: Iterable[Asked], base: Mapping[str, str], etc: str = ETC) -> tuple[dict[str, str], list[str]]:
    """Return the variables to be set, and a sentence for each that is not. asked: by the policies that could apply."""
    wanted, left = _agreed([(item.policy, item.environment) for item in asked])
    if not wanted:
        return wanted, left
    wanted, users = _without_users(wanted, base, nccl_files(base, etc))
    return wanted, left + users


def could_apply(
    asked: Iterable[Asked], vendors: frozenset[str] | None, gpu: tuple[str, str] | None
) -> tuple[Asked, ...]:
    """Return those for a GPU here: of the vendors with a driver (None: not known), or of the only GPU.

    Where AMD's driver is alone, a policy for every GPU does not count behind others: `default` has no say in what
    `auto` sets for AMD."""
    from fnmatch import fnmatchcase

    found = []
    for item in asked:
        if gpu is not None and item.gpus and not any(fnmatchcase(word, glob) for word in gpu for glob in item.gpus):
            continue
        if gpu is None and vendors and not vendors & set(item.vendors):
            continue
        found.append(item)
    if gpu is not None:
        return tuple(found[:1])
    special = [item for item in found if item.gpus] if vendors == frozenset({"amd"}) else []
    return tuple(special or found)


def nccl_files(base: Mapping[str, str], etc: str = ETC) -> dict[str, str]:
    """Return, by variable, the file that sets it: versions of NCCL read different ones, so all of them count."""
    homes = [base.get("HOME", ""), _home()]
    files = [base.get("NCCL_CONF_FILE", ""), *(f"{home}/.nccl.conf" for home in homes if home), etc]
    found: dict[str, str] = {}
    for path in files:
        for name in _names(path) if path else ():
            found.setdefault(name, path)
    return found


def _names(path: str) -> list[str]:
    """Return the names in lines NAME=VALUE as NCCL reads them: # begins a comment only at the start of a line."""
    lines = driver.text(path).split("\n")
    return [line.partition("=")[0].strip() for line in lines if "=" in line and not line.startswith("#")]


def _home() -> str:
    """As the system says it, which is whom NCCL asks."""
    import pwd

    try:
        return pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:
        return ""


def _agreed(policies: list[tuple[str, Mapping[str, str]]]) -> tuple[dict[str, str], list[str]]:
    """Return what all policies say, and a sentence for each variable about which they differ."""
    same: dict[str, str] = {}
    differ: list[str] = []
    for name in dict.fromkeys(name for _, values in policies for name in values):
        answers: dict[str | None, list[str]] = {}
        for policy, values in policies:
            answers.setdefault(values.get(name), []).append(policy)
        if len(answers) == 1:
            same[name] = policies[0][1][name]
            continue
        wanted = "; ".join(
            f"{f'{name}={value}' if value is not None else 'not'} in {', '.join(names)}"
            for value, names in sorted(answers.items(), key=lambda item: (item[0] is None, str(item[0])))
        )
        differ.append(f"{name} is not set, because it is not known yet which policy will apply: {wanted}")
    return same, differ


def _without_users(
    wanted: Mapping[str, str], base: Mapping[str, str], files: Mapping[str, str]
) -> tuple[dict[str, str], list[str]]:
    kept, left = {}, []
    for name, value in wanted.items():
        if name in base:
            left.append(f"{name} is left as it is set: {base[name]}")
        elif name in files:
            left.append(f"{name} is left to {files[name]}, which sets it")
        else:
            kept[name] = value
    return kept, left
