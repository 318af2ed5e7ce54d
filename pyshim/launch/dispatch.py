"""What `overlap probe` found out: kept in the user's cache folder, and put into policies that say `dispatch: unknown`.

    ~/.cache/overlap-run/dispatch/DRIVER/GPU.json    (or below $XDG_CACHE_HOME)

One file for each GPU and driver, by their names: nobody's answer is lost where two probes end at once. An answer holds
for the driver that it was found with, until GPUs of one name contradict each other: then there is none. A file that is
damaged, a link or another user's counts for nothing, and nothing that is wrong with it keeps a program from running.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from pyshim.launch import cache, driver
from pyshim.launch.environment import quote, unquote
from pyshim.launch.folder import PROBED

if TYPE_CHECKING:
    from pyshim.launch.policies import Chosen
    from pyshim.policy.model import Dispatch, Policy

_CONTRADICTORY = "contradictory"  # in place of a rule
_LARGEST = 1 << 16  # bytes of an answer
_MOST = 64  # answers of one driver
_PART = " MIG "  # in the name that the driver gives a part of a GPU
_ARCHITECTURES = tuple(f"sm_{number}" for number in range(30, 200))  # that a GPU may be of


class Found(NamedTuple):
    """One answer."""

    gpu: str  # as the driver calls it
    architecture: str  # sm_90
    driver: str  # as driver.identity() says it
    rule: str  # one of KNOWN_DISPATCHES
    date: str  # 2026-11-21
    model: str = ""  # as the kernel module calls it, where it says so: of a part of a GPU that of the whole

    @property
    def origin(self) -> str:
        return f"overlap probe, {self.date}: {self.gpu}, driver {self.driver}"


class Contradiction(OSError):
    """Two GPUs of one name do different things under one driver."""


def folder(environment: Mapping[str, str]) -> str | None:
    """Return the folder of all answers; None: the user has no cache folder."""
    return cache.folder(environment, "dispatch")


def path(environment: Mapping[str, str], found: Found) -> str | None:
    directory = folder(environment)
    return directory and os.path.join(directory, _name(found.driver), f"{_name(found.gpu)}.json")


def answers(environment: Mapping[str, str], root: str = "/") -> tuple[Found, ...]:
    """Return the answers under the driver that is here."""
    directory = folder(environment)
    if directory is None or not os.path.isdir(directory):
        return ()
    identity = driver.identity(environment, root)
    return tuple(_answers(directory, identity)) if identity else ()


def of_other_drivers(environment: Mapping[str, str], root: str = "/") -> tuple[Found, ...]:
    directory, identity = folder(environment), driver.identity(environment, root)
    if directory is None:
        return ()
    others = [unquote(name) for name in driver.names(directory)]
    return tuple(found for other in others if other != identity for found in _answers(directory, other))


def _answers(directory: str, identity: str) -> Iterable[Found]:
    from pyshim.enums import KNOWN_DISPATCHES

    below = os.path.join(directory, _name(identity))
    for name in [name for name in driver.names(below) if name.endswith(".json")][:_MOST]:
        found = _read(os.path.join(below, name))
        # What a file says counts, and it must say what its name says.
        if found and found.driver == identity and f"{_name(found.gpu)}.json" == name and found.rule in KNOWN_DISPATCHES:
            yield found


def _read(file: str) -> Found | None:
    import json

    from pyshim.stats.file import Unreadable, me, read

    try:
        data: Any = json.loads(read(file, _LARGEST, me()))
        texts = [data.get(name, "") for name in Found._fields]
    except (Unreadable, ValueError, AttributeError, RecursionError):
        return None
    # Not printable is, too, what no file can be called: halves of characters.
    good = all(isinstance(text, str) and text.isprintable() for text in texts) and data.get("version") == 1
    return Found(*texts) if good else None


def _name(text: str) -> str:
    """As a file's, which unquote() turns back."""
    return quote(text).replace("/", "%2F")


def keep(found: Found, more: Mapping[str, object], environment: Mapping[str, str]) -> str:
    """Keep an answer atomically, and return the file's path.

    more: what else to say in it. Raises OSError where it cannot be kept, and where what is kept for the same driver
    says another rule: from then on neither is an answer, until forget()."""
    import json

    from pyshim.stats.file import write_whole

    file = path(environment, found)
    if file is None:
        raise OSError(0, "neither XDG_CACHE_HOME nor HOME names a folder")
    below = os.path.dirname(file)
    cache.make(os.path.dirname(below), below)
    before = _read(file)
    differs = (
        before is not None and (before.gpu, before.driver) == (found.gpu, found.driver) and before.rule != found.rule
    )
    if differs:
        found = found._replace(rule=_CONTRADICTORY)
    text = json.dumps({"version": 1, **found._asdict(), **more}, indent=1)
    write_whole(file, f"{text}\n".encode("ascii"))
    if differs:
        raise Contradiction(0, "GPUs of this name answered otherwise before, under the same driver")
    return file


def forget(environment: Mapping[str, str]) -> int:
    """Remove every answer, of every driver, and return how many there were. Raises OSError."""
    from pyshim.stats.file import SCRATCH

    directory, gone = folder(environment), 0
    for name in driver.names(directory) if directory else []:
        below = os.path.join(str(directory), name)
        if os.path.islink(below):
            continue
        for file in driver.names(below):
            if file.endswith(".json") or SCRATCH.fullmatch(file):
                os.unlink(os.path.join(below, file))
                gone += file.endswith(".json")
        with suppress(OSError):  # somebody else's file is in it
            os.rmdir(below)
    return gone


class Known:
    """The answers that hold here, and whether they are all that it takes."""

    def __init__(self, environment: Mapping[str, str], root: str = "/") -> None:
        self._answers = answers(environment, root)
        names = {found.gpu for found in self._answers}
        # A part of a GPU (MIG) does not speak for the whole.
        self._asked = names | {found.model for found in self._answers if found.model and _PART not in found.gpu}
        models = driver.models(environment, root) if self._answers else {}
        self._all_known = models is not None
        self._not_asked = [name for name in (models or {}).values() if name not in self._asked]

    def of(self, gpus: Iterable[str]) -> Found | None:
        """Return what is known of all GPUs of a policy's `gpu`, if it is the same; None: nothing, or not of all."""
        from fnmatch import fnmatchcase

        globs = tuple(gpus) or ("*",)

        def means(*words: str) -> bool:
            return any(fnmatchcase(word, glob) for word in words for glob in globs)

        found = [answer for answer in self._answers if means(answer.gpu, answer.architecture)]
        if self._all_known:
            # The kernel module does not say of which architecture a GPU is.
            unsure = any(means(name) for name in self._not_asked) or (bool(self._not_asked) and means(*_ARCHITECTURES))
        else:  # sure is what is no more than an answered name, or begins with it
            unsure = not all(glob.rstrip("*") in self._asked for glob in globs)
        return found[0] if len({answer.rule for answer in found}) == 1 and not unsure else None


def decided(chosen: Chosen, environment: Mapping[str, str], root: str = "/") -> tuple[Chosen, list[tuple[str, Found]]]:
    """Return the policies with the rules that are known here, and which of them got one."""
    known = Known(environment, root) if chosen.undecided else None
    said = [(item, found) for item in chosen.undecided for found in [known and known.of(item.gpus)] if found]
    if not said:
        return chosen, []
    from pyshim.policy import layout

    described = list(chosen.described)
    for item, found in said:
        described[item.policy] = {**described[item.policy], "hash": item.answers[found.rule][1], PROBED: found.origin}
    table = layout.decided(layout.decode(chosen.table), [(item, found.rule) for item, found in said])
    done = chosen._replace(table=layout.encode(table), described=tuple(described), undecided=())
    return done, [(str(described[item.policy]["name"]), found) for item, found in said]


def filled_in(policies: Iterable[Policy], environment: Mapping[str, str]) -> list[tuple[Policy, Found | None]]:
    """Fill in policies that are not compiled yet; None: nothing is known, or the policy says it."""
    from dataclasses import replace

    known, done = Known(environment), []
    for policy in policies:
        found = known.of(policy.gpus) if policy.dispatch == "unknown" else None
        done.append((replace(policy, dispatch=cast("Dispatch", found.rule)) if found else policy, found))
    return done
