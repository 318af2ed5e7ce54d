"""One request -> what would be done, with which number, and why. All arithmetic is the library's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyshim import _native
from pyshim.errors import USAGE, OverlapError
from pyshim.explain import shape
from pyshim.explain.advice import Advice, Change
from pyshim.explain.policies import Compiled, only_gpu
from pyshim.explain.request import COMMUNICATION, NEEDED, Mistake, need, read
from pyshim.policy import gpus, library, show
from pyshim.policy.finding import quote
from pyshim.policy.model import Policy

CONTROLS = ("leave", "room_already", "entry_already", "make_room", "quick_entry", "priority", "cap")
SHAPES = ("make_room", "quick_entry", "cap")  # of the controls: they change the size
FOOTPRINT = ("threads", "registers", "static_smem", "dynamic_smem", "barriers", "sgprs")
LIMITS = (None, "warps", "slots", "registers", "shared_memory", "barriers")
MANY = 2**48  # blocks of a grid that nothing was said about: many waves, on any device

_NO_INDEX = 2**32 - 1
_NOWHERE = {"when_dispatch": "unknown", "place": None, "match": "every kernel"}


class Explainer:
    """Answers requests, one at a time; what it asks the library with is made once and used again."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        """environment: where policies are looked for (OVERLAP_POLICY_PATH)."""
        self._environment = environment
        self._lib = _native.library()
        new = _native.ffi.new
        self._launch, self._communication = new("struct overlap_launch *"), new("struct overlap_footprint *")
        self._plan, self._decision = new("struct overlap_plan *"), new("struct overlap_decision *")
        self._advice = Advice()
        self._reasons = _names(self._lib.overlap_reason_name)
        self._policies: dict[str, Compiled] = {}
        self._own_rules: dict[tuple[str, int], dict[str, object]] = {}
        self.gpus = {_native.text(gpu.key): gpu for gpu in _native.gpus()}
        self.constants = _native.header()
        self.device: Any = None  # struct overlap_gpu of the last request
        self._behind: tuple[Compiled, int, int] | None = None  # table, policy and rule that decided it
        self._names = b"", b""  # its kernel and calling library

    def answer(self, request: Mapping[str, object]) -> dict[str, object]:
        """The answer as it is printed with --json. Raises Mistake, and OverlapError for a policy that is wrong."""
        return self.look(read(request))

    def look(self, values: dict[str, Any]) -> dict[str, object]:
        """The same for values that were read; a GPU that only the policy says is filled in."""
        gpu, compiled = self._gpu(values), self._compiled(values.get("policy"))
        self._behind = None
        policy_index = (
            self._lib.overlap_policy_for(compiled.data, gpu.name, gpu.architecture) if compiled else _NO_INDEX
        )
        policy = compiled.policy(policy_index) if compiled and policy_index != _NO_INDEX else None
        self._fill(values, gpu, policy)
        if compiled is None:
            is_plain = "blocks" not in values and "kernel" not in values
            if is_plain or self.occupancy("computation")[0] == 0:
                return self._by_plan(values, gpu)
        return self._by_decision(values, gpu, compiled, policy, policy_index)

    def whole(self, values: Mapping[str, Any], found: Mapping[str, Any]) -> dict[str, Any]:
        """The last request's answer with all that one screen says: more of the rule, the rules that it shadows, and
        what would do better."""
        rule = found["rule"]
        if rule is not None:
            compiled = self._behind[0] if self._behind else None
            written = compiled.written(self._behind[2]) if compiled and self._behind else _NOWHERE
            rule = {**rule, **written}
        answer = {**found, "rule": rule, "kernel": values.get("kernel"), "outside": self._outside(found)}
        model = self._model(values["policy"], self.device) if "policy" in values else None
        answer["critical"] = show.critical_value(model.critical) if model else None
        for who in ("computation", "communication"):
            blocks, limit = self.occupancy(who)
            answer[who] = {**dict(zip(FOOTPRINT, self.footprint(who))), "resident_blocks": blocks, "limit": limit}
        changes = [change._asdict() for change in self._changes(answer)]
        return {**answer, "warps": self._warps(found), "changes": changes, "shadowed": self._shadowed()}

    def sized(self, size: int) -> tuple[int, int, str]:
        """Of the last request with another dynamic size: blocks resident, how many of them at most are beside a block
        of communication (-1: it fits nowhere), and the reason that `dynamic_shared_memory=SIZE` gets."""
        footprint = _native.ffi.new("struct overlap_footprint *", self.footprint("computation"))
        footprint.dynamic_shared = size
        blocks = self._lib.overlap_occupancy_of(self.device, footprint).blocks
        beside = self._lib.overlap_blocks_beside(self.device, footprint, self._communication)
        by_bytes, plan = self.constants.OVERLAP_SHAPE_BYTES, _native.ffi.new("struct overlap_plan *")
        self._lib.overlap_plan_of(self.device, self._launch, self._communication, by_bytes, size, 0, plan)
        return blocks, beside, self._reasons[plan.reason]

    def largest(self) -> int:
        """Dynamic bytes that a launch of the last request may ask for."""
        return int(self._launch.maximum_dynamic)

    def _outside(self, found: Mapping[str, Any]) -> str | None:
        """The reason outside overlap windows; None where it is the same."""
        rule = found["rule"]
        shapes = found["control"] in SHAPES and rule is not None and rule["when"] == "overlapping"
        return "not_overlapping" if shapes else None

    def _warps(self, found: Mapping[str, Any]) -> dict[str, int]:
        """Resident on a multiprocessor: as asked, as decided, and at most."""
        gpu = self.device
        each = -(-self._launch.footprint.threads // gpu.warp_size)
        return {
            "as_asked": found["native_blocks"] * each,
            "as_decided": found["blocks"] * each,
            "most": gpu.threads // gpu.warp_size,
        }

    def _shadowed(self) -> list[dict[str, object]]:
        """The rules behind the one that decided that match the launch as well, in their order, and what each would have
        said if it came first."""
        lib, decision = self._lib, _native.ffi.new("struct overlap_decision *")
        found: list[dict[str, object]] = []
        at, (kernel, caller) = self._behind, self._names
        while at is not None:
            compiled, policy, rule = at
            data, at = compiled.behind(policy, rule), None
            if data is None:
                break
            by = caller or _native.ffi.NULL
            table, beside = _native.ffi.from_buffer(data), self._communication
            lib.overlap_decide(table, policy, self.device, kernel, by, self._launch, beside, decision)
            if decision.rule != _NO_INDEX:
                own, size = compiled.policy(policy), decision.dynamic_shared
                found.append(
                    {
                        "rule": {**compiled.said(own, decision.rule), **compiled.written(decision.rule)},
                        "control": CONTROLS[decision.control],
                        "reason": self._reasons[decision.reason],
                        "dynamic_shared_memory": size,
                        "blocks": self.occupancy("computation", size)[0],
                    }
                )
                at = compiled, policy, decision.rule
        return found

    def _changes(self, found: Mapping[str, Any]) -> list[Change]:
        rule = found["rule"]
        acts = rule is not None and rule["shape"] != "leave"
        wanted = shape.parse(rule["shape"] if acts else "make_room")
        asked = (wanted.kind, wanted.value, rule["keep_at_least"] if acts else wanted.keep)
        return self._advice.changes(self.device, self._launch, self._communication, asked, found, acts)

    def sentence(self, reason: object) -> str:
        """What a user reads in a report under this reason."""
        return _native.text(self._lib.overlap_reason_sentence(self._reasons.index(str(reason))))

    def footprint(self, who: str) -> tuple[int, ...]:
        """One block of the last request's `computation` or `communication`: threads, registers, static and dynamic
        bytes, barriers, scalar registers."""
        f = self._launch.footprint if who == "computation" else self._communication
        return f.threads, f.registers, f.static_shared, f.dynamic_shared, f.barriers, f.scalar_registers

    def occupancy(self, who: str, dynamic: int | None = None) -> tuple[int, str | None]:
        """Blocks of it that a multiprocessor holds, and what stops one more. dynamic: with another size."""
        footprint = _native.ffi.new("struct overlap_footprint *", self.footprint(who))
        if dynamic is not None:
            footprint.dynamic_shared = dynamic
        found = self._lib.overlap_occupancy_of(self.device, footprint)
        return found.blocks, LIMITS[found.limit]

    def resident(self, key: str, footprint: tuple[int, ...]) -> int:
        """How many blocks a whole GPU holds: threads, registers, static and dynamic bytes of one."""
        gpu = self.gpus[key]
        block = _native.ffi.new("struct overlap_footprint *", footprint)
        return int(self._lib.overlap_occupancy_of(gpu, block).blocks * gpu.multiprocessors)

    # ---- what is asked ----

    def _gpu(self, values: dict[str, Any]) -> Any:
        key = self.gpu_of(values)
        need(values, NEEDED if "policy" in values else NEEDED + COMMUNICATION)
        for name in ("shape", "keep_at_least"):
            if name in values and "policy" in values:
                raise Mistake(name, "goes without a policy: with one, its rule says it")
        assert key is not None
        self.device = self.gpus[key]
        return self.device

    def gpu_of(self, values: dict[str, Any]) -> str | None:
        """The key of the GPU that is asked about, filled in where only the policy says it; None where nobody does."""
        compiled = self._compiled(values.get("policy"))
        if compiled and "gpu" not in values and (own := only_gpu(compiled.models)):
            values["gpu"] = own
        return self.key_of(values["gpu"]) if "gpu" in values else None

    def footprint_of(self, policy: str, gpu: Any) -> tuple[int, ...] | None:
        """The block of communication that a policy gives for a GPU, as footprint() does; None where it gives none."""
        compiled = self._compiled(policy)
        assert compiled is not None
        index = self._lib.overlap_policy_for(compiled.data, gpu.name, gpu.architecture)
        if index == _NO_INDEX or not compiled.policy(index).footprint_given:
            return None
        f = compiled.policy(index).footprint
        return f.threads, f.registers, f.static_shared, f.dynamic_shared, f.barriers, f.scalar_registers

    def settings_of(self, policy: str, gpu: Any) -> Mapping[str, str]:
        """What a policy sets on all ranks of a GPU."""
        model = self._model(policy, gpu)
        return model.all_ranks_environment if model else {}

    def is_for(self, policy: str, key: str) -> bool:
        return self._model(policy, self.gpus[key]) is not None

    def check_for(self, policy: str, key: str) -> None:
        """Raises OverlapError where a policy is not for a GPU, which is no answer to whether it would help there."""
        if self.is_for(policy, key):
            return
        gpu = self.gpus[key]
        fits = self._model(library.AUTO, gpu)
        hints = [f"`{fits.name}` is: --policy {fits.name}"] if fits else []
        compiled = self._compiled(policy)
        own = only_gpu(compiled.models) if compiled else None
        hints += [f"{quote(policy)} is for {own}: --gpu {own} answers for that GPU"] if own else []
        hint = "; ".join(hints) or None
        name = _native.text(_native.ffi.cast("char *", gpu.name))
        sentence = f"{quote(policy)} is not for {name}: every launch is counted there and left alone"
        raise OverlapError(sentence, hint, USAGE)

    def _model(self, policy: str, gpu: Any) -> Policy | None:
        compiled = self._compiled(policy)
        assert compiled is not None
        index = self._lib.overlap_policy_for(compiled.data, gpu.name, gpu.architecture)
        return compiled.models[index] if index != _NO_INDEX else None

    def key_of(self, name: str) -> str:
        """h100 for H100, as every command takes it. Raises Mistake where no GPU has the name."""
        if name in self.gpus:
            return name
        try:
            return gpus.named(name).key
        except OverlapError as error:
            raise Mistake("gpu", error.sentence, error.hint or "") from error

    def _compiled(self, value: str | None) -> Compiled | None:
        if value is None:
            return None
        if value not in self._policies:
            self._policies[value] = Compiled(value, self._environment)
        return self._policies[value]

    def _fill(self, values: Mapping[str, Any], gpu: Any, policy: Any) -> None:
        """The structs from the values; communication from the policy where only the policy says it."""
        v, launch = values, self._launch
        launch.blocks = v.get("blocks", MANY)
        launch.flags = 0
        launch.maximum_dynamic = max(0, gpu.shared_optin - v["static_smem"])
        launch.footprint = (
            v["threads"],
            v["registers"],
            v["static_smem"],
            v["dynamic_smem"],
            v["barriers"],
            v["sgprs"],
        )
        if policy is not None and policy.footprint_given and not any(name in v for name in COMMUNICATION):
            self._communication[0] = policy.footprint
            return
        need(v, COMMUNICATION)
        self._communication[0] = (
            v["comm_threads"],
            v["comm_registers"],
            v["comm_static_smem"],
            v["comm_dynamic_smem"],
            v["comm_barriers"],
            v["comm_sgprs"],
        )

    # ---- what is answered ----

    def _by_plan(self, values: Mapping[str, Any], gpu: Any) -> dict[str, object]:
        """No policy, many waves: the planner's answer is the decision."""
        wanted = values.get("shape") or shape.parse("make_room")
        keep = values.get("keep_at_least", wanted.keep)
        plan = self._plan
        self._lib.overlap_plan_of(gpu, self._launch, self._communication, wanted.kind, wanted.value, keep, plan)
        facts = (CONTROLS[plan.control], self._reasons[plan.reason], plan.dynamic_shared, plan.blocks)
        return self._made(values, gpu, facts, self._own_rule(wanted, keep), (wanted.kind, wanted.value, keep))

    def _by_decision(
        self, values: Mapping[str, Any], gpu: Any, compiled: Compiled | None, policy: Any, policy_index: int
    ) -> dict[str, object]:
        """What the library itself would decide about this launch under this policy."""
        lib, launch, decision = self._lib, self._launch, self._decision
        kernel, caller = (values.get(name, "").encode("utf-8", "replace") for name in ("kernel", "library"))
        wanted = values.get("shape") or shape.parse("make_room")
        keep = values.get("keep_at_least", wanted.keep)
        if lib.overlap_is_communication(kernel) or (
            compiled and policy is not None and compiled.is_communication(policy, kernel, caller)
        ):
            launch.flags = lib.OVERLAP_LAUNCH_COMMUNICATION
        data = compiled.data if compiled else shape.table_of(wanted.kind, wanted.value, keep)
        index = policy_index if compiled else 0
        by = caller or _native.ffi.NULL
        lib.overlap_decide(data, index, gpu, kernel, by, launch, self._communication, decision)
        rule: dict[str, object] | None = None
        kind = value = 0
        if compiled is None:
            rule, kind, value = self._own_rule(wanted, keep), wanted.kind, wanted.value
        elif decision.rule != _NO_INDEX:
            self._behind, self._names = (compiled, policy_index, decision.rule), (kernel, caller)
            written = compiled.rule(decision.rule)
            kind, value, keep = written.shape, written.value, written.keep_at_least
            rule = compiled.said(policy, decision.rule)
        lib.overlap_plan_of(gpu, launch, self._communication, kind, value, keep, self._plan)
        size = decision.dynamic_shared
        blocks = self._plan.native_blocks
        if size != launch.footprint.dynamic_shared:
            blocks = self.occupancy("computation", size)[0]
        facts = (CONTROLS[decision.control], self._reasons[decision.reason], size, blocks)
        found = self._made(values, gpu, facts, rule, (kind, value, keep))
        if found["reason"] == "one_wave":
            # A larger grid may be refused for another reason, or meet another rule.
            launch.blocks = self._plan.native_blocks * gpu.multiprocessors + 1
            lib.overlap_decide(data, index, gpu, kernel, by, launch, self._communication, decision)
            launch.blocks = values["blocks"]
            if CONTROLS[decision.control] not in SHAPES:
                found["help"] = None
        return found

    def _made(
        self,
        values: Mapping[str, Any],
        gpu: Any,
        facts: tuple[str, str, int, int],
        rule: dict[str, object] | None,
        asked: tuple[int, int, int],
    ) -> dict[str, object]:
        plan = self._plan
        control, reason, size, blocks = facts
        return {
            "gpu": values["gpu"].lower(),
            "native_blocks": plan.native_blocks,
            "limit": LIMITS[plan.native_limit],
            "windows": _windows(plan.windows, plan.window_count),
            "entries": _windows(plan.entries, plan.entry_count),
            "beside_after_drain": plan.beside_after_drain,
            "binding": LIMITS[plan.binding],
            "control": control,
            # A size beyond 32 bits was cut for the library, which then leaves the launch alone.
            "dynamic_shared_memory": values["asked"] if size == values["dynamic_smem"] else size,
            "blocks": blocks,
            "reason": reason,
            "rule": rule,
            "help": self._advice.sentence(gpu, self._launch, self._communication, plan, asked, control, reason),
        }

    def _own_rule(self, wanted: shape.Shape, keep: int) -> dict[str, object]:
        key = (wanted.text, keep)
        if key not in self._own_rules:
            self._own_rules[key] = {
                "policy": None,
                "line": None,
                "shape": wanted.text,
                "keep_at_least": keep,
                "when": "always",
            }
        return self._own_rules[key]


def _windows(windows: Any, count: int) -> list[dict[str, object]]:
    return [
        {"blocks": w.blocks, "minimum": w.minimum, "maximum": w.maximum, "inflates": w.inflates == 1}
        for w in (windows[index] for index in range(count))
    ]


def _names(function: Any) -> list[str]:
    found: list[str] = []
    while (name := function(len(found))) != _native.ffi.NULL:
        found.append(_native.text(name))
    return found
