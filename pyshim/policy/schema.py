"""The keys of a policy file, version 1: which there are, what they may say, what they become. Parts of it:
communication.py, critical.py and rules.py."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import cast

import yaml

from pyshim.enums import DISPATCHES
from pyshim.policy import gpus, origins, values
from pyshim.policy.communication import CommunicationReader
from pyshim.policy.critical import CriticalReader
from pyshim.policy.draft import Draft, extended
from pyshim.policy.finding import quote
from pyshim.policy.model import Critical, Dispatch, When
from pyshim.policy.nodes import Keys, Nodes, has_error
from pyshim.policy.parts import items
from pyshim.policy.rules import RuleReader
from pyshim.policy.values import Bad

VERSION = 1
KEYS = Keys.of("")
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")  # the page that reports are made from holds 64 bytes
ARCHITECTURE = re.compile(r"sm_[0-9]{2,3}[a-z]?|gfx[0-9a-f]{3,6}")

# What a policy extends: its draft, or None where it has mistakes of its own, which are told elsewhere. Raises Bad.
Extend = Callable[[str], "Draft | None"]


def nothing_to_extend(name: str) -> Draft | None:
    raise Bad("missing-file", f"there is no policy {quote(name)}")


class PolicyReader(CommunicationReader, CriticalReader, RuleReader):
    """Reads one policy; `findings` says what is wrong with it."""

    def __init__(self, file: str, extend: Extend = nothing_to_extend) -> None:
        super().__init__()
        self._file = file
        self._extend = extend

    def policy(self, root: yaml.Node) -> Draft | None:
        """With what it extends. None where anything of either is wrong."""
        if not self._version_ok(root):
            return None
        keys = self.mapping(root, "a policy", KEYS)
        if keys is None:
            return None
        base = self._base(keys)
        # The GPUs come first: what a size may be depends on them.
        none: tuple[str, ...] = ()
        own = self.optional(keys, "gpu", self._gpu_patterns, none)
        self.gpus = own or (base.gpus if base and base.gpus else ())
        # A key that was misspelt may have been this one.
        unread = not keys.clean or ("gpu" in keys and not own) or ("extends" in keys and base is None and not own)
        if unread:
            self.gpus = ()
        self.gpus_known = not unread and all(gpus.matching([pattern]) for pattern in self.gpus)
        when: When | None = None
        dispatch: Dispatch | None = None
        critical: Critical | None = None
        draft = Draft(
            name=self.optional(keys, "name", lambda node: self.value(node, "`name`", _name), ""),
            gpus=own or None,
            when=self.optional(keys, "when", self.when, when),
            dispatch=self.optional(keys, "dispatch", self._dispatch, dispatch),
            critical=self.optional(keys, "critical", self.critical, critical),
            fixed_size=self.optional(keys, "reads_dynamic_size", self._fixed_size, none),
        )
        if "communication" in keys:
            draft = self.communication(keys["communication"], draft)
        self.communicating = (draft.kernels, draft.libraries)
        draft = replace(draft, rules=self.optional(keys, "compute", self.rules, ()))
        if has_error(self.findings) or ("extends" in keys and base is None):
            return None
        self.note_unknown()
        draft = replace(draft, origins=origins.of(root, self._file))
        return draft if base is None else extended(draft, base)

    def _base(self, keys: Nodes) -> Draft | None:
        if "extends" not in keys:
            return None
        return self.value(keys["extends"], "`extends`", self._extend)

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
                    hint = f"this overlap-run reads version {VERSION}: `policy: {VERSION}`"
                    self.note(value, "version", sentence, hint)
                return len(self.findings) == before
        return True

    def _gpu_patterns(self, node: yaml.Node) -> tuple[str, ...] | None:
        found = self.values(node, "`gpu`", values.glob)
        if not found or not gpus.checkable():
            return found
        for item, pattern in zip(items(node), found):
            if gpus.matching([pattern]) or ARCHITECTURE.fullmatch(pattern):
                continue
            sentence = f"no GPU that is known has the name {quote(pattern)}"
            self.note(item, "unknown-gpu", sentence, gpus.hint(pattern), "warning")
        return found

    def _dispatch(self, node: yaml.Node) -> Dispatch | None:
        return cast("Dispatch | None", self.word(node, "dispatch", DISPATCHES, "a way of dispatching"))

    def _fixed_size(self, node: yaml.Node) -> tuple[str, ...] | None:
        found = self.kernels(node, "reads_dynamic_size")
        if found is None:
            return None
        patterns, words = found
        return patterns + words


def _name(text: str) -> str:
    if not NAME.fullmatch(text):
        raise Bad("value", f"{quote(text)} is not a name", "use up to 63 letters, digits and . _ -")
    return text
