"""A program that uses HIP, in a few lines: tests run snippets of it in a process of their own."""

from __future__ import annotations

import ctypes as C
import os
from typing import Any

P = C.c_void_p


class HipError(Exception):
    def __init__(self, name: str, code: int) -> None:
        super().__init__(f"{name} answered {code}")
        self.code = code


class Hip:
    """hip.hipMalloc(...) raises HipError; hip.code("hipMalloc", ...) is the number."""

    def __init__(self) -> None:
        self.library = C.CDLL(os.environ["SIMGPU_LIBRARY"])
        self.kept: list[Any] = []

    def code(self, name: str, *arguments: Any) -> int:
        return int(getattr(self.library, name)(*arguments))

    def has(self, name: str) -> bool:
        return hasattr(self.library, name)

    def __getattr__(self, name: str) -> Any:
        def call(*arguments: Any) -> None:
            code = self.code(name, *arguments)
            if code:
                raise HipError(name, code)

        return call

    def new(self, name: str, *arguments: Any) -> P:
        made = P()
        getattr(self, name)(C.byref(made), *arguments)
        return made

    def number(self, name: str, *arguments: Any) -> int:
        value = C.c_int()
        getattr(self, name)(C.byref(value), *arguments)
        return value.value

    def module(self, image: bytes) -> P:
        self.kept.append(image)
        return self.new("hipModuleLoadData", image)

    def function(self, image: bytes, name: str) -> P:
        return self.new("hipModuleGetFunction", self.module(image), name.encode())

    def arguments(self, *values: int) -> Any:
        """Pointers to 64-bit values."""
        data = (C.c_uint64 * max(1, len(values)))(*values)
        made = (P * max(1, len(values)))(*[C.addressof(data) + 8 * index for index in range(len(values))])
        self.kept += [data, made]
        return made

    def launch(self, function: P, blocks: int, threads: int, shared: int = 0, stream: Any = None) -> int:
        return self.code(
            "hipModuleLaunchKernel", function, blocks, 1, 1, threads, 1, 1, shared, stream, self.arguments(), None
        )
