"""Policies as the library reads them: which of their rules is for a launch is the library's answer, not ours."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyshim import _native
from pyshim.policy import library
from pyshim.policy.table import compile_table


class Compiled:
    """The table of a --policy value. Raises OverlapError where a policy is missing or wrong."""

    def __init__(self, value: str, environment: Mapping[str, str]) -> None:
        ffi = _native.ffi
        self.data = compile_table(library.load(value, environment))
        start = ffi.cast("uint8_t *", ffi.from_buffer(self.data))
        head = ffi.cast("struct overlap_table *", start)
        self._policies = ffi.cast("struct overlap_policy *", start + ffi.sizeof(head[0]))
        self._rules = ffi.cast("struct overlap_rule *", self._policies + head.policy_count)
        patterns = ffi.cast("uint32_t *", self._rules + head.rule_count)
        self._patterns = [int(patterns[index]) for index in range(head.pattern_count)]
        self._strings = ffi.cast("char *", patterns + head.pattern_count)

    def policy(self, index: int) -> Any:
        return self._policies[index]

    def rule(self, index: int) -> Any:
        return self._rules[index]

    def text(self, offset: int) -> str:
        return _native.text(self._strings + offset)

    def matches(self, span: Any, name: bytes) -> bool:
        """Whether one of a span's patterns matches the name."""
        match = _native.library().overlap_glob_match
        return any(match(self._strings + self._patterns[span.first + i], name) for i in range(span.count))

    def is_communication(self, policy: Any, kernel: bytes, caller: bytes) -> bool:
        """Whether the policy itself calls this launch communication. policy: one of ours."""
        plain = _native.ffi.new("char[512]")
        _native.library().overlap_plain_name(kernel, plain, len(plain))
        return (
            self.matches(policy.kernels, kernel)
            or self.matches(policy.kernels, _native.ffi.string(plain))
            or bool(caller and self.matches(policy.libraries, caller))
        )
