"""What to do next, for each verdict: the framework's own option where there is one. No number is promised."""

from __future__ import annotations

from collections.abc import Sequence

from pyshim.diagnosis import exposed, setting, verdict
from pyshim.diagnosis.inversions import MINOR
from pyshim.diagnosis.look import TraceAnswer
from pyshim.diagnosis.result import CLOCKS, LEGACY, NEXT_TO_NOTHING, TOGETHER, ProcessResult, together
from pyshim.diagnosis.words import COPY, a_step, kernel_name, milliseconds, percent, streams
from pyshim.profiles.record import Trace

_CUDA = (
    "cudaDeviceGetStreamPriorityRange(&least, &greatest);  // greatest is the smaller number; flags as before",
    "cudaStreamCreateWithPriority(&stream, flags, greatest);",
)
_HIP = tuple(line.replace("cuda", "hip") for line in _CUDA)
_TORCH = "stream = torch.cuda.Stream(priority=-1)  # the smaller number is the greater priority"
_TORCH_WORK = "with torch.cuda.stream(stream): ...  # the work that waits"
_TORCH_NCCL = "TORCH_NCCL_HIGH_PRIORITY=1 torchrun ... train.py  # for the streams of NCCL"
_SHORT_KERNEL_US = 20.0  # the median; tracing a launch takes some microseconds
_MANY_COPIES = 0.1  # of the time of those beside no kernel
_ONE_GAP = 1.5  # gaps a step
_SHORT_US = 100.0  # gaps of this mean length are those of single launches
# How the program of a trace is started, and how behind overlap-run.
_PROGRAM = "PROGRAM", "overlap-run PROGRAM"
_PROFILERS = {"pytorch": "torch.profiler", "jax": "JAX"}
_PYTHON = "python train.py", "overlap-run python train.py"
_TORCHRUN = "torchrun ... train.py", "overlap-run torchrun ... train.py"
_MPIRUN = "mpirun ... ./program", "mpirun ... overlap-run ./program"


def next_step(answer: TraceAnswer) -> str:
    """Return a sentence about the verdict that leads."""
    one, kind = answer.worst, answer.verdicts[0].kind
    if kind == verdict.YES:
        return _raise(answer)
    if kind == verdict.HOST_LATE:
        return _host(one) + _traced(answer)
    if kind == verdict.LATE_RANKS:
        return _late(answer)
    if kind in (verdict.AT_ONCE, verdict.TOO_LONG, verdict.SAME_STREAM):
        return _communication(answer, kind)
    if kind == verdict.COPIES:
        return _copies(one)
    if kind == verdict.NOT_KNOWN:
        return _unread(answer.trace.trace) if one.unread else _record(answer)
    if kind == verdict.ONE_WAVE:
        return f"launch what waits before the kernel that fills the GPU, or leave it room: {_room(answer)}"
    if kind == verdict.ONE_STREAM:
        return _one_stream(one)
    return "make the kernels faster: overlap explain TRACE --full lists those that take longest"


def _is_torch(one: ProcessResult) -> bool:
    return setting.TORCH in one.setting


def _is_amd(one: ProcessResult) -> bool:
    return setting.AMD in one.setting


def _started(answer: TraceAnswer) -> tuple[str, str]:
    """Return how the program of the trace is started, without overlap-run and with it."""
    one = answer.worst
    many = answer.peers > 1 or one.rank is not None
    if _is_torch(one):
        return _TORCHRUN if many or one.communication_us else _PYTHON
    if setting.STEPPED in one.setting and (many or one.communication_us):
        return _TORCHRUN
    return _MPIRUN if many or setting.MPI in one.setting else _PROGRAM


def _tune(answer: TraceAnswer) -> str:
    """Return the end of a sentence that offers to try NCCL's settings, where NCCL is in the trace."""
    if setting.NCCL not in answer.worst.setting:
        return ""
    return f"; overlap tune --set nccl -- {_started(answer)[0]} tries NCCL's settings"


def _room(answer: TraceAnswer) -> str:
    """Return the command that says what fits beside the kernel that fills the GPU, with what the trace says of it."""
    from pyshim.policy.room_command import room_command  # most answers do not need it

    one, traced = answer.worst, answer.trace.trace.gpus
    gpu = next((traced[device].name for device in one.devices if device in traced), "")
    computing = [kernel for kernel in one.kernels if not kernel.communication]
    found = next((kernel for kernel in computing if kernel.kernel == one.one_wave_kernel), None)
    if found is None or not found.threads or not found.registers:
        return f"{room_command(gpu)} says what fits"
    command = room_command(gpu, found.threads, found.registers, dynamic=found.shared_memory or 0)
    return f"{command} says what fits beside {kernel_name(found.kernel, 40)}"


# ---- yes ----


def _raise(answer: TraceAnswer) -> str:
    """Return how the streams get their priority."""
    one = answer.worst
    defaults = [raised.stream for raised in one.raising if raised.default]
    if defaults:
        return f"{defaults[0]} is a default stream, which nothing raises: put this work on another one"
    perhaps = [raised for raised in one.raising if raised.may_be_default]
    if perhaps:
        which = f"if {perhaps[0].stream} is the default stream of GPU {perhaps[0].device}"
        return f"{which}, put this work on another one: nothing raises a default stream. Else overlap-run does it"
    if _is_amd(one):
        return "overlap-run cannot, because HIP takes a priority only when a stream is created: write it"
    if one.has_priorities:
        return "overlap-run does not if the program itself set the priorities in the trace: write it"
    if not any(raised.share for raised in one.raising) and {found.kernel for found in one.inversions} == {COPY}:
        return "overlap-run raises only streams that launch kernels, too: write it"
    torch = ""
    if setting.STEPPED in one.setting and not _is_torch(one):
        torch = ", in PyTorch as torch.cuda.Stream(priority=-1)"
    return f"{_started(answer)[1]} does it by default ({_carry(one)}), or write it{torch}"


def _carry(one: ProcessResult) -> str:
    """Return how much of the computation the streams carry that the default raises, and how much it raises at most."""
    share = max(together(one.raising).values())
    several = len(one.raising) > 1
    who = "these streams carry" if several else "this stream carries"
    if not share:
        return f"{who} no computation"
    most = percent(TOGETHER if several else MINOR)
    part = percent(share) if share >= 0.0005 else "less than 0.1 %"
    return f"{who} {part} of the computation{' together' if several else ''}; the limit is {most}"


def code(answer: TraceAnswer) -> Sequence[str]:
    """Return the lines that an author would write: those that give priorities, or that record what is missing."""
    kinds = [found.kind for found in answer.verdicts]
    if verdict.YES in kinds:
        return _priorities(answer.worst)
    trace = answer.trace.trace
    is_left_open = kinds[0] == verdict.NOT_KNOWN and not answer.worst.unread
    records = is_left_open and not answer.simulated and not trace.torn
    if not records or answer.worst.untold == (CLOCKS,):
        return ()
    if not answer.worst.waits or not answer.worst.told:
        return trace.records_code
    return trace.records_events_code if answer.worst.events_untold else ()


def _priorities(one: ProcessResult) -> Sequence[str]:
    if _is_torch(one):
        lines: tuple[str, ...] = _TORCH, _TORCH_NCCL if one.communication_us else _TORCH_WORK
        lower = "front = torch.cuda.Stream(priority=0)  #"
    else:
        lines = _HIP if _is_amd(one) else _CUDA
        lower = lines[1].replace("&stream", "&front").replace("greatest", "least") + "  //"
    # The stream in front may have the greatest priority itself, or a greater one than PyTorch's -1.
    front = dict.fromkeys(stream for found in one.inversions for stream in found.behind_streams if stream != LEGACY)
    return (*lines, f"{lower} for {streams(front)}, in front") if one.has_priorities and front else lines


# ---- the host ----


def _host(one: ProcessResult) -> str:
    idle = one.idle
    if one.kinds and one.idle.host_us < NEXT_TO_NOTHING * one.span_us:
        return "launch computation that can run beside the communication, before the host waits or does other work"
    if one.one_gap_us and not idle.longest_in:
        what = "data loading, logging, a checkpoint" if _is_torch(one) else "work of the host, I/O, messages"
        return f"one gap makes up most of the idle time ({milliseconds(one.one_gap_us)}): look for {what} there"
    if idle.after_wait_us > idle.host_us / 2:
        how = ".item(), .cpu(), print of a tensor" if _is_torch(one) else "synchronizations and blocking copies"
        return f"the host waits for the GPU and only then launches more: take {how} out of the step, or launch ahead"
    if idle.host_us / max(idle.gaps, 1.0) <= _SHORT_US:
        how = 'torch.compile(mode="reduce-overhead") or torch.cuda.graphs' if _is_torch(one) else "a CUDA graph"
        how = how.replace("CUDA", "HIP") if _is_amd(one) else how
        return f"its many short gaps are launches: {how} launches them at once; larger batches need fewer"
    if idle.longest_us < idle.host_us / 4:
        length = milliseconds(idle.host_us / idle.gaps)
        return f"the host works between launches, {idle.gaps:,.0f} times for {length} {a_step(one)}: profile it there"
    if idle.longest_in:
        worker = "; more workers and prefetch_factor load ahead" if "DataLoader" in idle.longest_in else ""
        return f"look at {idle.longest_in[:40]}, in which the GPU is idle for the longest time{worker}"
    what = "data loading, logging, checkpoints" if _is_torch(one) else "work of the host, I/O, messages"
    if idle.gaps < _ONE_GAP:
        return f"one gap {a_step(one)} makes up the idle time: take {what} out of the step, or put it on another thread"
    return f"few long gaps make up the idle time: take {what} out of the step, or put it on another thread"


def _traced(answer: TraceAnswer) -> str:
    """Tracing a launch takes microseconds of the host: among short kernels it makes a host late that is not."""
    one = answer.worst
    if one.streams < 2 or one.kernel_us > _SHORT_KERNEL_US:
        return ""
    untraced = f"overlap tune -- {_started(answer)[0]} compares untraced runs"
    return f". Tracing makes the host late where kernels are this short: {untraced}"


# ---- communication ----


def _late(answer: TraceAnswer) -> str:
    """Return why the late ranks are late, by what they do otherwise than the others."""
    late = {row.member[0] for row in answer.ranks.late()} if answer.ranks else set()
    own = [answer.processes[number] for number in sorted(late)]
    others = [one for number, one in enumerate(answer.processes) if number not in late]
    if not others or not own:
        return "find out why its other GPU is late: its work, or the host that launches it"
    computed, usual = (_mean([one.shares.computation_us + one.shares.hidden_us for one in of]) for of in (own, others))
    idle, usually_idle = (_mean([one.idle.host_us for one in of]) for of in (own, others))
    least = NEXT_TO_NOTHING * answer.worst.span_us
    whose, verb = ("that rank", "computes") if len(own) == 1 else ("those ranks", "compute")
    if computed - usual > max(least, idle - usually_idle):
        more = percent(computed / (usual or 1.0) - 1)
        return (
            f"balance the work: {whose} {verb} {more} longer than the others (batches, sequence lengths, experts, "
            "layers of a stage)"
        )
    if idle - usually_idle > least:
        return (
            f"look at the host of {whose}: it launches later than those of the others (data loading, CPU affinity, one "
            "slow node)"
        )
    return f"compare {whose} with the others: clocks and power (nvidia-smi -q), the links, other programs on that node"


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _communication(answer: TraceAnswer, kind: str) -> str:
    """Return the options that let a collective start earlier or take less time."""
    one, tune = answer.worst, _tune(answer)
    cause = {
        verdict.AT_ONCE: exposed.AT_ONCE,
        verdict.TOO_LONG: exposed.TOO_LONG,
        verdict.SAME_STREAM: exposed.SAME_STREAM,
    }[kind]
    name = max(one.kinds, key=lambda of: of.causes.get(cause, 0.0)).name
    if not _is_torch(one):
        return _start_early(kind) + tune
    if kind == verdict.SAME_STREAM:
        return f"issue it with async_op=True, compute something else, and wait() where the result is needed{tune}"
    if kind == verdict.TOO_LONG:
        fewer = {
            "all-reduce": "accumulate gradients over several batches, or reduce them in bf16",
            "all-gather": "gather in bf16, shard over fewer ranks, or larger batches",
            "reduce-scatter": "reduce in bf16, accumulate gradients, or shard over fewer ranks",
            "all-to-all": "keep experts within a node, or send fp8",
        }.get(name, "send less, or compute more at a time")
        return f"{fewer}{tune}"
    return f"{_torch_options(one, name)}{tune}"


def _torch_options(one: ProcessResult, name: str) -> str:
    """Return how to start a collective earlier: by the options of the frameworks in the trace."""
    if name == "all-reduce" and setting.DDP in one.setting:
        return "DDP: a smaller bucket_cap_mb starts all-reduces earlier, static_graph=True frees their order"
    if name in ("all-gather", "reduce-scatter"):
        if setting.FSDP2 in one.setting:
            return "FSDP2: set_modules_to_forward_prefetch and set_modules_to_backward_prefetch start it earlier"
        if setting.FSDP1 in one.setting:
            return "FSDP: forward_prefetch=True and BackwardPrefetch.BACKWARD_PRE start it earlier"
    if name == "all-to-all":
        return "split the batch, and compute one half beside the other half's all-to-all"
    if name == "send and receive":
        return "begin it before computation that does not need it, and wait() where the result is needed"
    return "issue it with async_op=True as early as its input is there, and wait() where the result is needed"


def _start_early(kind: str) -> str:
    if kind == verdict.TOO_LONG:
        return "send less, or give each GPU more to compute between exchanges"
    where = "on a stream of its own, " if kind == verdict.SAME_STREAM else ""
    return f"start the exchange {where}before the interior, and wait for it only where its data is needed"


# ---- the rest ----


def _copies(one: ProcessResult) -> str:
    """By what many, or most, of them are that run beside no kernel."""
    copies, whole = one.copies, one.shares.copies_us
    less = "copy less, as by bfloat16" if _is_torch(one) else "copy less"
    if not one.kernels:
        pin = ", or pin the host's memory, which is faster" if copies.pageable_us else ""
        return f"no kernel ran beside which they could: {less}{pin}"
    if copies.pageable_us > _MANY_COPIES * whole:
        return f"{percent(copies.pageable_us / whole)} of that is of memory that is not pinned: {_pinned(one)}"
    if copies.device_us > whole / 2:
        return "they are of GPUs alone: fuse them into kernels, or run them beside some, on a stream of their own"
    if copies.pinned_us < whole / 2:
        return _pinned(one)
    if copies.apart_us < copies.pinned_us / 2:
        return "the memory is pinned, but the streams run kernels, too: on a stream of its own a copy runs beside them"
    return (
        "memory is pinned, and the streams are their own: begin copies earlier, or in chunks, each computed while the "
        f"next is copied; else {less}"
    )


def _pinned(one: ProcessResult) -> str:
    if _is_torch(one):
        return "pin_memory=True and .to(device, non_blocking=True) on a stream of its own let copies run beside kernels"
    return (
        "copy from pinned memory (cudaMallocHost) by cudaMemcpyAsync on a stream of its own, beside kernels; or in "
        "chunks, each computed while the next is copied"
    ).replace("cuda", "hip" if _is_amd(one) else "cuda")


def _one_stream(one: ProcessResult) -> str:
    if one.idle.start_us > NEXT_TO_NOTHING * one.span_us:
        how = (
            'torch.compile fuses kernels, mode="reduce-overhead" closes gaps'
            if _is_torch(one)
            else "a graph closes gaps"
        )
        return f"its kernels take {one.kernel_us:.0f} us (median): {how}"
    if one.streams > 1 or one.communication_us:
        return "priorities cannot help; make the kernels faster: --full lists those that take longest"
    return (
        "independent work could go on two streams; else make the kernels faster: --full lists those that take longest"
    )


def _unread(trace: Trace) -> str:
    """Return what to do about a file in which much has no usable time."""
    where = f"; the first such event is in {trace.first_left_out}" if trace.first_left_out else ""
    return f"record the trace again, or copy it again if a copy was changed{where}"


def _record(answer: TraceAnswer) -> str:
    trace, one = answer.trace.trace, answer.worst
    if answer.simulated:
        return "a simulated trace holds what the program called; nothing more can be recorded"
    if trace.torn:
        return "copy the trace again: this file is torn, and what the work waits for may be behind its end"
    if one.untold == (CLOCKS,):
        return "record again with a newer driver and profiler, which convert the times of the GPU to those of the host"
    how = _missing_waits(trace, one) if one.told else trace.records_calls
    if not how:
        profiler = _PROFILERS.get(trace.kind, trace.kind)
        measures = f"overlap tune -- {_started(answer)[0]} measures what raising saves"
        return f"this is all that a trace of {profiler} can say: {measures}"
    return f"record again: {how}"


def _missing_waits(trace: Trace, one: ProcessResult) -> str:
    """Return how to record what the trace does not have of waits, "" where it has all."""
    if not one.waits:
        return trace.records_waits
    return trace.records_events if one.events_untold else ""
