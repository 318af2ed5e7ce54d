"""A program that uses the driver, in a few lines: tests run snippets of it in a process of their own."""

from __future__ import annotations

import ctypes as C
import os
from collections.abc import Sequence
from typing import Any

P = C.c_void_p


class Attribute(C.Structure):
    _fields_ = [("id", C.c_int), ("pad", C.c_char * 4), ("value", C.c_uint * 16)]


class Config(C.Structure):
    _fields_ = [
        *[(name, C.c_uint) for name in ("gx", "gy", "gz", "bx", "by", "bz", "shared")],
        ("stream", P),
        ("attrs", C.POINTER(Attribute)),
        ("count", C.c_uint),
    ]


class DriverError(Exception):
    def __init__(self, name: str, code: int) -> None:
        super().__init__(f"{name} answered {code}")
        self.code = code


class Driver:
    def __init__(self, path: str | None = None, init: bool = True, context: bool = True) -> None:
        self.lib = C.CDLL(path or os.environ["SIMGPU_LIBRARY"])
        if init:
            self.cuInit(0)
        if init and context:
            self.context = self.new("cuDevicePrimaryCtxRetain", 0)
            self.cuCtxSetCurrent(self.context)

    def __getattr__(self, name: str) -> Any:
        def call(*arguments: Any) -> None:
            code = self.try_(name, *arguments)
            if code:
                raise DriverError(name, code)

        return call

    def try_(self, name: str, *arguments: Any) -> int:
        """The code that an entry point answers; Python integers are passed as 64 bits."""
        passed = [C.c_longlong(a) if isinstance(a, int) else a for a in arguments]
        return int(getattr(self.lib, name)(*passed))

    def new(self, name: str, *arguments: Any) -> P:
        out = P()
        self.__getattr__(name)(C.byref(out), *arguments)
        return out

    def get(self, name: str, *arguments: Any, kind: Any = C.c_int) -> Any:
        out = kind()
        self.__getattr__(name)(C.byref(out), *arguments)
        return out.value

    def ask(self, name: str, handle: P, kind: Any = C.c_int) -> Any:
        """What an entry point writes behind the handle that it is asked about."""
        out = kind()
        self.__getattr__(name)(handle, C.byref(out))
        return out if kind is P else out.value

    def module(self, data: bytes) -> P:
        return self.new("cuModuleLoadData", data)

    def function(self, module: P, name: str) -> P:
        return self.new("cuModuleGetFunction", module, name.encode())

    def kernel(self, data: bytes, name: str) -> P:
        return self.function(self.module(data), name)

    def stream(self, priority: int = 0, flags: int = 1) -> P:
        return self.new("cuStreamCreateWithPriority", flags, priority)

    def event(self) -> P:
        return self.new("cuEventCreate", 0)

    def elapsed_us(self, first: P, last: P) -> float:
        return float(round(self.get("cuEventElapsedTime", first, last, kind=C.c_float) * 1000, 3))

    def launch(
        self,
        function: P,
        blocks: Any = 1,
        threads: Any = 32,
        dynamic: int = 0,
        stream: Any = None,
        values: Sequence[Any] = (),
        entry: str = "cuLaunchKernel",
    ) -> int:
        grid = blocks if isinstance(blocks, tuple) else (blocks, 1, 1)
        block = threads if isinstance(threads, tuple) else (threads, 1, 1)
        pointers = (P * (len(values) + 1))(*[C.addressof(v) for v in values])
        return self.try_(entry, function, *grid, *block, dynamic, stream, pointers, None)

    def launch_ex(
        self,
        function: P,
        blocks: int = 1,
        threads: int = 32,
        dynamic: int = 0,
        stream: Any = None,
        attributes: Sequence[tuple[int, Sequence[int]]] = (),
        entry: str = "cuLaunchKernelEx",
    ) -> int:
        attrs = (Attribute * max(1, len(attributes)))()
        for at, (number, values) in enumerate(attributes):
            attrs[at].id = number
            for i, value in enumerate(values):
                attrs[at].value[i] = value & 0xFFFFFFFF
        config = Config(blocks, 1, 1, threads, 1, 1, dynamic, stream, attrs, len(attributes))
        return self.try_(entry, C.byref(config), function, (P * 1)(), None)

    def nodes_of(self, graph: P) -> list[P]:
        count = C.c_size_t()
        self.cuGraphGetNodes(graph, None, C.byref(count))
        out = (P * (count.value + 1))()
        self.cuGraphGetNodes(graph, out, C.byref(count))
        return [P(out[i]) for i in range(count.value)]

    def instantiate(self, graph: P, flags: int = 0) -> P:
        return self.new("cuGraphInstantiateWithFlags", graph, flags)
