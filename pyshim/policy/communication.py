"""The key `communication`: which launches communicate, what is done to them, what is set for their libraries."""

from __future__ import annotations

from dataclasses import replace

import yaml

from pyshim.policy import gpus, known, values, variables
from pyshim.policy.describe import FOOTPRINTS, PRIORITIES, STREAM_PRIORITIES
from pyshim.policy.draft import MEASURED, Draft, Streams
from pyshim.policy.finding import closest, quote
from pyshim.policy.model import Carveout, Footprint, Priority
from pyshim.policy.nodes import Keys, Nodes
from pyshim.policy.parts import MAX_REGISTERS, MAX_THREADS, PartsReader, items

# More than any GPU has; one that is not known by name is not compared with its own number.
MAX_COMPUTE_UNITS = 1024

FAMILIES = ("all", "nccl", "rccl", "ncclx", "torch", "nvshmem", "deep_ep", "mscclpp", "vllm", "flashinfer", "ucc")

KEYS = Keys.of("communication")
_GONE = "write `critical: auto`, or `critical: {host_waits: false, feeding: false}`, at the top level"
STREAMS = Keys.of("communication.streams", {"carrying_communication": _GONE})
FOOTPRINT = Keys.of("communication.footprint")


class CommunicationReader(PartsReader):
    def communication(self, node: yaml.Node, draft: Draft) -> Draft:
        keys = self.mapping(node, "`communication`", KEYS)
        if keys is None:
            return draft
        both = [self._environment(keys, kind) for kind in (variables.ENVIRONMENT, variables.ALL_RANKS)]
        self._note_twice(both)
        own, all_ranks = ({name: value for name, (_, value) in found.items()} for found in both)
        none: Priority | None = None
        no_carveout: Carveout | None = None
        no_units: int | None = None
        return replace(
            draft,
            kernels=self.optional(keys, "kernels", self._communication_kernels, ()),
            families=self._families(keys["kernels"]) if "kernels" in keys else None,
            libraries=self.libraries(keys, "libraries"),
            priority=self.optional(keys, "priority", self._launch_priority, none),
            streams=self._streams(keys["streams"]) if "streams" in keys else None,
            footprint=self._footprint(keys["footprint"]) if "footprint" in keys else None,
            carveout=self.optional(keys, "carveout", self.carveout, no_carveout),
            reserve_cus=self.optional(keys, "reserve_cus", self._reserve_cus, no_units),
            environment=own,
            all_ranks_environment=all_ranks,
        )

    def _communication_kernels(self, node: yaml.Node) -> tuple[str, ...] | None:
        found = self.values(node, "`kernels`", lambda text: (text, values.kernel_pattern(text)))
        if found is None:
            return None
        for item, (text, _) in zip(items(node), found):
            if text in FAMILIES:
                continue
            near = "" if values.is_wild(text) else closest(text, FAMILIES)
            if near:
                sentence = (
                    f"{quote(text)} is no family of communication kernels, so it is taken as the name of one kernel"
                )
                hint = f"did you mean `{near}`? or, if a kernel is called so: `[{text[0]}]{text[1:]}`"
                self.note(item, "family", sentence, hint, "warning")
            else:
                self.note_bad(item, known.near_miss(text))
        # The library knows its families whatever the policy says, so they need no room in the table.
        patterns = tuple(pattern for text, pattern in found if text not in FAMILIES)
        self.count(node, len(patterns))
        return patterns

    def _families(self, node: yaml.Node) -> tuple[str, ...] | None:
        """Families that alone may be raised: () for every family, None where the list names none."""
        words = [item.value for item in items(node) if isinstance(item, yaml.ScalarNode)]
        named = tuple(word for word in FAMILIES if word in words)
        return () if "all" in named else named or None

    def _streams(self, node: yaml.Node) -> Streams | None:
        keys = self.mapping(node, "`streams`", STREAMS)
        if keys is None:
            return None
        return Streams(
            created_by=self.libraries(keys, "created_by"),
            priority=self.optional(keys, "priority", lambda item: self.priority(item, STREAM_PRIORITIES), Priority()),
        )

    def _footprint(self, node: yaml.Node) -> Footprint | None:
        if not isinstance(node, yaml.MappingNode):
            return MEASURED if self.word(node, "footprint", FOOTPRINTS, "a footprint") else None
        keys = self.mapping(node, "`footprint`", FOOTPRINT)
        if keys is None:
            return None
        before = len(self.findings)
        found = Footprint(
            self._count(keys, "threads", MAX_THREADS),
            self._count(keys, "registers", MAX_REGISTERS),
            self.optional(keys, "static_shared_memory", self.size, 0),
            self.optional(keys, "dynamic_shared_memory", self.size, 0),
        )
        if before == len(self.findings):
            self._note_too_large(node, found)
        return found

    def _note_too_large(self, node: yaml.Node, block: Footprint) -> None:
        """Each number is possible; together a block may still be more than any GPU holds."""
        fitting = gpus.matching(self.gpus) if self.gpus_known else ()
        shared, registers = block.static_shared + block.dynamic_shared, block.threads * block.registers
        for what, has, limit in (
            ("bytes of shared memory", shared, max((gpu.shared_memory_per_block for gpu in fitting), default=shared)),
            ("registers", registers, max((gpu.registers for gpu in fitting), default=registers)),
        ):
            if has > limit:
                sentence = f"a block of {has:,} {what} fits on no GPU of this policy: none gives more than {limit:,}"
                self.note(node, "footprint", sentence, "leave the key out, and it is measured", "warning")

    def _launch_priority(self, node: yaml.Node) -> Priority | None:
        found = self.priority(node, PRIORITIES)
        if found and found.kind in ("highest", "number") and gpus.vendors(self.gpus) == {gpus.AMD}:
            sentence = "HIP knows no priority of a launch, and this policy is for GPUs of AMD only"
            self.note(node, "priority", sentence, "raise streams: `streams: {created_by: [...]}`", "warning")
        return found

    def _reserve_cus(self, node: yaml.Node) -> int | None:
        """Fewer than the largest of the policy's GPUs has: at least one compute unit is left to computation."""
        found = self.value(node, "`reserve_cus`", lambda text: values.number(text, 0, MAX_COMPUTE_UNITS))
        if not found:
            return found
        if gpus.vendors(self.gpus) == {gpus.NVIDIA}:
            sentence = "only GPUs of AMD have streams with a mask of compute units, and this policy is for none of them"
            self.note(node, "reserve-cus", sentence, "leave the key out", "warning")
            return found
        amd = [gpu for gpu in gpus.matching(self.gpus) if gpu.vendor == gpus.AMD]
        most = max(amd, key=lambda gpu: gpu.multiprocessors, default=None)
        if most is None or found < most.multiprocessors:
            small = [gpu for gpu in amd if gpu.multiprocessors <= found]
            if small:
                has = ", ".join(f"{gpu.name} has {gpu.multiprocessors}" for gpu in small)
                sentence = (
                    f"{found:,} compute units are all there are on some of its GPUs, where nothing is reserved: {has}"
                )
                self.note(node, "reserve-cus", sentence, "a policy for each of them", "warning")
            return found
        sentence = f"{found:,} compute units leave none to computation: {most.name} has {most.multiprocessors}"
        self.note(node, "reserve-cus", sentence, f"write at most {most.multiprocessors - 1}")
        return None

    def _count(self, keys: Nodes, key: str, highest: int) -> int:
        return self.optional(
            keys, key, lambda node: self.value(node, f"`{key}`", lambda text: values.number(text, 1, highest)), 1
        )

    # ---- variables ----

    def _environment(self, keys: Nodes, kind: str) -> dict[str, tuple[yaml.Node, str]]:
        """Where each variable stands, and its value."""
        if kind not in keys:
            return {}
        pairs = self.pairs(keys[kind], f"`{kind}`", f"write {kind}: {{NAME: value}}")
        found: dict[str, tuple[yaml.Node, str]] = {}
        for key_node, text, node in pairs.all if pairs else ():
            name = self.attempt(key_node, lambda text=text: variables.name(text, kind))  # type: ignore[misc]
            if name is not None:
                self.note_bad(key_node, known.variable_miss(name))
            value = self._variable(node, text)
            if name is not None and value is not None:
                found[name] = (key_node, value)
        return found

    def _variable(self, node: yaml.Node, name: str) -> str | None:
        if isinstance(node, yaml.ScalarNode) and node.style is None and variables.is_boolean(node.value):
            sentence = f"{quote(node.value)} is neither a text nor a number"
            self.note(node, "type", sentence, f'write 1 or 0, or "{node.value}" in quotes')
            return None
        return self.value(node, f"the variable {quote(name)}", variables.value)

    def _note_twice(self, both: list[dict[str, tuple[yaml.Node, str]]]) -> None:
        first, second = both
        for name, (node, _) in second.items():
            if name in first:
                sentence = f"{quote(name)} stands under `{variables.ENVIRONMENT}` and `{variables.ALL_RANKS}`"
                self.note(node, "duplicate-key", sentence, "keep one of them")
