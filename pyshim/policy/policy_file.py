"""One policy file: its version, what it extends, its GPUs, then its keys, which model.py has."""

from __future__ import annotations

import re
from collections.abc import Callable

import yaml

from pyshim.policy import gpus
from pyshim.policy.draft import Draft, extended
from pyshim.policy.finding import quote
from pyshim.policy.key import below, entries, keys_of, made, said
from pyshim.policy.model import KEYS, VERSION, Policy
from pyshim.policy.nodes import Nodes, has_error
from pyshim.policy.rules import RuleReader

# Returns the draft of the policy that `extends` names. None: it has errors, which are reported there. Raises Bad.
Extend = Callable[[str], "Draft | None"]

_TOP = below("", entries(Policy))
(_GPU,) = (key for key in _TOP if key.field == "gpus")
_OTHERS = tuple(key for key in _TOP if key.field not in ("gpus", "rules"))


class PolicyReader(RuleReader):
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
        self._set_gpus(keys, base, made(Policy, fields).gpus)
        fields.update(said(self, keys, _OTHERS))
        rules = self.rules(keys["compute"]) if "compute" in keys else ()
        if has_error(self.findings) or ("extends" in keys and base is None):
            return None
        draft = Draft(made(Policy, {**fields, "rules": rules}), frozenset(fields))
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
