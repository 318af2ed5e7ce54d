"""Text -> a policy, or everything that is wrong with it and with what it extends, each with its place."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from pyshim.errors import OverlapError
from pyshim.policy import document, gpus
from pyshim.policy.document import Nodes, has_error
from pyshim.policy.files import SUFFIX, find
from pyshim.policy.finding import Finding, closest, line_of, quote
from pyshim.policy.kinds import PartsReader, below, entries, keys_of, mapping, said
from pyshim.policy.model import KEYS, MAX_RULES, VERSION, Policy, Rule
from pyshim.policy.values import KEEP, Bad
from pyshim.unreadable import permission


@dataclass(frozen=True)
class Draft:
    """A policy while it is read. said: the fields in the file, but for its rules."""

    policy: Policy
    said: frozenset[str]


def extended(own: Draft, base: Draft) -> Draft:
    """Put a policy over the one that it extends: its rules come first, its values win, variables and lists add up."""
    fields: dict[str, Any] = dict(vars(own.policy))
    for key in entries(Policy):
        if key.field in base.said:
            value = getattr(base.policy, key.field)
            mine = getattr(own.policy, key.field)
            fields[key.field] = key.kind.extended(mine, value) if key.field in own.said else value
    fields["rules"] = own.policy.rules + tuple(replace(rule, depth=rule.depth + 1) for rule in base.policy.rules)
    return Draft(Policy(**fields), own.said | base.said)


# Returns the draft of the policy that `extends` names. None: it has errors, which are reported there. Raises Bad.
Extend = Callable[[str], "Draft | None"]

_TOP = below("", entries(Policy))
(_GPU,) = (key for key in _TOP if key.field == "gpus")
_OTHERS = tuple(key for key in _TOP if key.field not in ("gpus", "rules"))


class PolicyReader(PartsReader):
    """Reads one policy; `findings` says what is wrong with it."""

    def __init__(self, extend: Extend) -> None:
        super().__init__()
        self._extend = extend
        for key in sorted(KEYS, key=lambda key: key.path.count(".")):
            if key.parent:
                self.paths.setdefault(key.name, key.path)

    def policy(self, root: yaml.Node) -> Draft | None:
        """Read the policy with what it extends. None where anything of either is wrong."""
        if not self._version_ok(root):
            return None
        keys = self.mapping(root, "a policy", keys_of(Policy, ""))
        if keys is None:
            return None
        base = self._base(keys)
        # The GPUs come first: what a size may be depends on them.
        fields = said(self, keys, [_GPU])
        self._set_gpus(keys, base, Policy(**fields).gpus)
        fields.update(said(self, keys, _OTHERS))
        rules = self._rules(keys["compute"]) if "compute" in keys else ()
        if has_error(self.findings) or ("extends" in keys and base is None):
            return None
        draft = Draft(Policy(**{**fields, "rules": rules}), frozenset(fields))
        return draft if base is None else extended(draft, base)

    def _set_gpus(self, keys: Nodes, base: Draft | None, own: tuple[str, ...]) -> None:
        self.gpus = own or (base.policy.gpus if base else ())
        # A key that was misspelt may have been this one.
        unread = not keys.clean or ("gpu" in keys and not own) or ("extends" in keys and base is None and not own)
        if unread:
            self.gpus = ()
        self.gpus_known = not unread and all(gpus.matching([pattern]) for pattern in self.gpus)

    def _base(self, keys: Nodes) -> Draft | None:
        if "extends" not in keys:
            return None
        return self.value(keys["extends"], "`extends`", self._extend)

    def _rules(self, node: yaml.Node) -> tuple[Rule, ...] | None:
        items = self.items(node, "`compute`", "write each rule as `- match: ...`, or [] for none")
        if items is None:
            return None
        if len(items) > MAX_RULES:
            sentence = f"the policy has more than {MAX_RULES} rules"
            self.note(items[MAX_RULES], "too-large", sentence, "a rule may list several kernels")
            return None
        good = []
        for item in items:
            before = len(self.findings)
            read = self._rule(item)
            if read is not None and not has_error(self.findings[before:]):
                good.append(read)
        return tuple(good)

    def _rule(self, node: yaml.Node) -> Rule | None:
        found = mapping(self, node, "a rule", Rule, "compute[]")
        if found is None:
            return None
        nodes, said = found
        rule = replace(Rule(**said), line=node.start_mark.line + 1)
        if "keep_at_least" not in nodes and rule.shape.kind == "make_room":
            rule = replace(rule, keep_at_least=KEEP)
        return rule

    def _version_ok(self, root: yaml.Node) -> bool:
        """Another version has other keys, so nothing else is said about such a file."""
        if not isinstance(root, yaml.MappingNode):
            return True  # told by the caller
        for key, value in root.value:  # what it merges has no version: a mapping inside the file is no policy
            if isinstance(key, yaml.ScalarNode) and key.value == "policy":
                before = len(self.findings)
                text = self.scalar(value, "`policy`")
                if text is not None and text != str(VERSION):
                    known = re.fullmatch(r"[0-9]{1,9}", text)
                    sentence = (
                        f"policy version {quote(text)} is not known"
                        if known
                        else f"{quote(text)} is not a policy version"
                    )
                    hint = (
                        f"this overlap-run reads version {VERSION}: `policy: {VERSION}`. Nothing else in this file was "
                        "checked: another version may have other keys"
                    )
                    self.note(value, "version", sentence, hint)
                return len(self.findings) == before
        return True


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


class _LookupPath(NamedTuple):
    """How a file is found."""

    environment: Mapping[str, str]
    chain: tuple[str, ...] = ()  # the policies that lead to it, by the paths of their files


# Where `<(...)` of a shell is: that pipe has a writer.
_INHERITED = ("/dev/fd/", "/dev/stdin", "/proc/self/fd/")


def read_file(path: Path, shown: str = "", environment: Mapping[str, str] | None = None) -> Reading:
    """Read a policy file, and what it extends; unreadable is a finding, too. environment: where names are found."""
    file = shown or str(path)
    return _reading(file, _draft_file(path, file, _LookupPath(environment or {})))


def read_bytes(data: bytes, file: str, environment: Mapping[str, str] | None = None) -> Reading:
    """Read a policy's content, and what it extends beside `file`; mistakes are findings. `file` is shown."""
    return _reading(file, _draft(data, file, Path(file).parent, _LookupPath(environment or {})))


def _reading(file: str, drafted: _Drafted) -> Reading:
    draft = drafted.draft
    if draft is None:
        return Reading(file, drafted.source, None, drafted.findings)
    return Reading(file, drafted.source, draft.policy, drafted.findings)


def _draft_file(path: Path, file: str, way: _LookupPath) -> _Drafted:
    try:
        if path.is_dir():
            return _failed(Finding("not-a-file", "this is a folder, not a policy file", hint="name a file in it"))
        if path.exists() and not path.is_file() and not str(path).startswith(_INHERITED):
            # Reading a named pipe waits for a writer, and a device may never end.
            return _failed(
                Finding("not-a-file", "this is a pipe, a socket or a device", hint="write it into a file first")
            )
        with path.open("rb") as stream:
            data = stream.read(document.MAX_BYTES + 1)
    except FileNotFoundError:
        return _failed(Finding("missing-file", "no such file", hint=_instead(path)))
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        hint = permission(str(path), error) or "name another file; overlap policy list names those that ship"
        return _failed(Finding("unreadable", f"the file cannot be read: {reason}", hint=hint))
    return _draft(data, file, path.parent, way._replace(chain=(*way.chain, os.path.realpath(path))))


def _instead(path: Path) -> str:
    """Return what to name for a policy file that is not there: one beside it that is alike, or where names are."""
    here = path.parent
    names = [name for name in os.listdir(here) if name.endswith(SUFFIX)] if os.access(here, os.R_OK) else []
    # Without the suffix: it is alike in all of them.
    stems = {name[: -len(SUFFIX)]: name for name in names}
    close = closest(path.stem, stems)
    return f"did you mean {here / stems[close]}?" if close else "overlap policy list names those that ship"


def _draft(data: bytes, file: str, folder: Path, way: _LookupPath) -> _Drafted:
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
            if not (finding.line or finding.file):  # of the whole file: its place is where it is named
                raise Bad(finding.code, f"{quote(str(path))}: {finding.sentence}", finding.hint)
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


def _find(name: str, folder: Path, way: _LookupPath) -> Path:
    """Return the file that `extends` means. Raises Bad where there is none, or where it leads back."""
    try:
        base = find(name, way.environment, folder)
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
    return base


def _failed(finding: Finding, source: str = "") -> _Drafted:
    return _Drafted(None, source, (finding,))
