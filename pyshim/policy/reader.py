"""Text -> a policy, or everything that is wrong with it and with what it extends, each with its place."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from pyshim.errors import OverlapError
from pyshim.policy import document, places
from pyshim.policy.draft import Draft
from pyshim.policy.finding import Finding, line_of, quote
from pyshim.policy.model import Policy
from pyshim.policy.policy_file import PolicyReader
from pyshim.policy.values import Bad

# Policies that extend each other; more is a mistake, or made to keep us busy.
MAX_CHAIN = 16


@dataclass(frozen=True)
class Reading:
    """What came of one file. policy is None if and only if a finding is an error."""

    file: str
    source: str
    policy: Policy | None
    findings: tuple[Finding, ...] = ()  # of the file itself, then of what it extends, which name their file

    @property
    def ok(self) -> bool:
        return self.policy is not None


@dataclass(frozen=True)
class _Drafted:
    draft: Draft | None
    source: str
    findings: tuple[Finding, ...]


class _Way(NamedTuple):
    """How a file is found."""

    environment: Mapping[str, str]
    chain: tuple[str, ...] = ()  # the policies that lead to it, by the paths of their files


# Where `<(...)` of a shell is: that pipe has a writer.
_INHERITED = ("/dev/fd/", "/dev/stdin", "/proc/self/fd/")


def read_file(path: Path, shown: str = "", environment: Mapping[str, str] | None = None) -> Reading:
    """Read a policy file, and what it extends; unreadable is a finding, too. environment: where names are found."""
    file = shown or str(path)
    return _reading(file, _draft_file(path, file, _Way(environment or {})))


def read_bytes(data: bytes, file: str, environment: Mapping[str, str] | None = None) -> Reading:
    """Read a policy's content, and what it extends beside `file`; mistakes are findings. `file` is shown."""
    return _reading(file, _draft(data, file, Path(file).parent, _Way(environment or {})))


def _reading(file: str, drafted: _Drafted) -> Reading:
    draft = drafted.draft
    if draft is None:
        return Reading(file, drafted.source, None, drafted.findings)
    return Reading(file, drafted.source, draft.policy, drafted.findings)


def _draft_file(path: Path, file: str, way: _Way) -> _Drafted:
    try:
        if path.is_dir():
            hint = "name a file in it; `overlap policy check` takes a folder, too"
            return _failed(Finding("not-a-file", "this is a folder, not a policy file", hint=hint))
        if path.exists() and not path.is_file() and not str(path).startswith(_INHERITED):
            # Reading a named pipe waits for a writer, and a device may never end.
            return _failed(
                Finding("not-a-file", "this is a pipe, a socket or a device", hint="write it into a file first")
            )
        with path.open("rb") as stream:
            data = stream.read(document.MAX_BYTES + 1)
    except FileNotFoundError:
        return _failed(Finding("missing-file", "no such file"))
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        return _failed(Finding("unreadable", f"the file cannot be read: {reason}"))
    return _draft(data, file, path.parent, way._replace(chain=(*way.chain, os.path.realpath(path))))


def _draft(data: bytes, file: str, folder: Path, way: _Way) -> _Drafted:
    source = document.decode(data)
    if isinstance(source, Finding):
        return _failed(source, data[: document.MAX_BYTES].decode(document.encoding(data), "replace"))
    root = document.compose(source)
    if isinstance(root, Finding):
        return _failed(root, source)
    of_others: list[Finding] = []

    def other(path: Path) -> Draft | None:
        drafted = _draft_file(path, str(path), way)
        for finding in drafted.findings:
            # A finding of what the other extends names its own file already.
            named = finding if finding.file else replace(finding, file=str(path), text=line_of(drafted.source, finding))
            if named not in of_others:
                of_others.append(named)
        return drafted.draft

    reader = PolicyReader(lambda name: other(_find(name, folder, way)))
    draft = reader.policy(root)
    if draft is not None:
        # Those of what it extends have the names of their own files already.
        rules = tuple(replace(rule, file=rule.file or file) for rule in draft.policy.rules)
        draft = replace(draft, policy=replace(draft.policy, rules=rules))
    findings = sorted(reader.findings, key=lambda finding: (finding.line, finding.column))
    return _Drafted(draft, source, (*findings, *of_others))


def _find(name: str, folder: Path, way: _Way) -> Path:
    """Return the file that `extends` means. Raises Bad where there is none, or where it leads back."""
    try:
        base = places.find(name, way.environment, folder)
    except OverlapError as error:
        raise Bad("missing-policy", error.sentence, error.hint or "") from error
    real = os.path.realpath(base)
    if real in way.chain:
        names = " -> ".join(os.path.basename(path) for path in (*way.chain[way.chain.index(real) :], real))
        hint = "another policy of the same name is written with its folder: extends: ../NAME.yaml"
        raise Bad("extends-itself", f"{quote(name)} leads back to where it began: {names}", hint)
    if len(way.chain) >= MAX_CHAIN:
        sentence = f"more than {MAX_CHAIN} policies extend each other"
        raise Bad("too-deep", sentence, "write what they say into fewer files")
    if not os.path.exists(base):
        hint = "a path starts from the folder of the policy that says it"
        raise Bad("missing-policy", f"there is no file {quote(str(base))}", hint)
    if not (os.path.isfile(base) or os.path.isdir(base)):  # it would be waited for
        raise Bad("not-a-file", f"{quote(str(base))} is a pipe or a device, not a file", "write it into a file first")
    return base


def _failed(finding: Finding, source: str = "") -> _Drafted:
    return _Drafted(None, source, (finding,))
