"""Planted bugs of the loader's side: callers and what they are bound to, forks, threads, kernels that end."""

from __future__ import annotations

from tools.mutants.table import Mutant, one

BIND, OBJECT, NEXT, PROCESS = (f"shim/sys/{name}.c" for name in ("bind", "object", "next", "process"))
RESOLVE, HANDLE, STATE, SIZE = (f"shim/vendor/common/{name}.c" for name in ("resolve", "handle", "state", "size"))
SLOTS = "shim/core/slots.c"
CORNERS, STRESS = "tests/core/test_bind.py", "tests/core/test_threads.py"
CLOSING, ERRNO, RACES, MANY = (
    f"tests/interpose/test_{name}.py" for name in ("closing", "errno", "handle_races", "many")
)


LOADER_MUTANTS: list[Mutant] = [
    one("answers outlive what was unmapped", BIND, "changes.removed == then &&", "", CORNERS),
    one("answers are dropped by any dlclose", BIND, "after.removed != before.removed && (", "(1 || ", CORNERS),
    one("a caller that was unmapped stays known", BIND, "|| !all_mapped(LOAD(generation))", "", CORNERS),
    one("an object in the place of another", BIND, "after.added != before.added || ", "", CORNERS),
    one("two threads fill a caller's slot", BIND, "before == FILLING || ", "", STRESS),
    one(
        "a late thread takes a newer caller's slot", BIND, "(int32_t)(before - now) >= 0 ||", "before == now ||", STRESS
    ),
    one("an answer is read across two writes", BIND, "((before + ONE_WRITE) & WRITES)", "0", STRESS),
    one(
        "a full table of callers",
        BIND,
        "    __atomic_compare_exchange_n(&generation, &now, now + 1,",
        "    if (0) __atomic_compare_exchange_n(&generation, &now, now + 1,",
        CORNERS,
    ),
    one("only the first caller is known", BIND, "*index = i;\n", "*index = 0;\n", STRESS),
    one(
        "a wrapper of one library serves all",
        RESOLVE,
        "if (!OVERLAP_RELAXED(by_caller[hook]))",
        "",
        CLOSING,
    ),
    one(
        "a forked child takes the loader's lock",
        OBJECT,
        "if (__builtin_expect(overlap_start.forked, 0) && ",
        "if (0 && ",
        CLOSING,
    ),
    one(
        "threads without a number are one",
        PROCESS,
        "id > 0 ? (uint32_t)id : __atomic_add_fetch(&unnumbered, 1, __ATOMIC_RELAXED)",
        "(uint32_t)id",
        MANY + "::test_threads_that_have_no_number_lose_no_launch",
    ),
    one(
        "what cannot be asked has ended",
        PROCESS,
        "tid, 0) != -ESRCH;",
        "tid, 0) == 0;",
        MANY + "::test_threads_that_have_no_number_lose_no_launch",
    ),
    one("a failed pin is told", NEXT, "forget_error(); /* the program's own call has succeeded */", ";", ERRNO),
    one("a pin changes errno", NEXT, "    }\n    errno = saved;", "    }\n    (void)saved;", ERRNO),
    one(
        "the page changes errno",
        "shim/vendor/common/page.c",
        "        errno = saved;\n        __atomic_store_n(&state, MADE",
        "        (void)saved;\n        __atomic_store_n(&state, MADE",
        ERRNO,
    ),
    one("ended handles are not given out again", HANDLE, "0);\n        give_back(handle);\n", "0);\n", RACES),
    one(
        "a free handle is given out twice",
        HANDLE,
        "1) << 32 | OVERLAP_RELAXED(handle->next_free)",
        "1) << 32 | (uint32_t)head",
        RACES,
    ),
    one(
        "of two threads that learn an address neither keeps its handle",
        HANDLE,
        "        if (!claim(fresh, OVERLAP_RELAXED(births)))",
        "        if (claim(fresh, OVERLAP_RELAXED(births)))",
        RACES,
    ),
    one("sizes of ended kernels stay", SIZE, "    return !found;", "    return found && 0;", RACES),
    one(
        "sizes of kernels that live are taken",
        SIZE,
        "    return !found;",
        "    return found || 1;",
        RACES,
    ),
    one("a slot that is being reused is read", SLOTS, "|| (uint16_t)(before ^ *word) ?", "?", STRESS),
    one("a slot is read while its key is written", SLOTS, "payload_of(before) == CLAIMED || ", "", STRESS),
    one("a key gets two slots", SLOTS, "alone &= slot == own ||", "alone |= slot == own ||", STRESS),
    one(
        "a full cache stays full",
        STATE,
        "        overlap_cache_use(&launch_cache, made);\n        overlap_empty",
        "        overlap_empty",
        MANY + "::test_modules_that_come_and_go",
    ),
    one(
        "raised limits of ended kernels stay",
        "shim/vendor/cuda/limit.c",
        "        state_put(STATE_LIMITS, key_for(born, device), 0);\n",
        "        ;\n",
        MANY + "::test_modules_that_come_and_go",
    ),
    one(
        "a refused unload ends HIP's kernels",
        "shim/vendor/hip/module.c",
        "handle_ended(&ending->owned, result == VENDOR_SUCCESS);",
        "handle_ended(&ending->owned, true);",
        "tests/interpose/hip/test_hip_modules.py",
    ),
]
