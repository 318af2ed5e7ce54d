"""The planted bugs: what is changed, and the tests that must notice."""

from __future__ import annotations

from dataclasses import dataclass

from tools.mutants.core import ROWS


@dataclass(frozen=True)
class Mutant:
    name: str
    changes: tuple[tuple[str, str, str], ...]  # file, old text, new text
    tests: tuple[str, ...]  # arguments of pytest


def one(name: str, file: str, old: str, new: str, *tests: str) -> Mutant:
    return Mutant(name, ((file, old, new),), tests)


CORE, SYS, PRELOAD, INTERPOSE = "shim/core", "shim/sys", "shim/preload", "tests/interpose"
CUDA, COMMON = "shim/vendor/cuda", "shim/vendor/common"
TABLE, NAMES, DECIDE = (f"tests/core/test_{name}.py" for name in ("table", "names", "decide"))
THREADS, EXPORTS = "tests/core/test_threads.py", "tests/structure/test_exports.py"
HOT = "shim/vendor/common/hot_x86_64.S"

MUTANTS = [
    # ---- Symbols and the dynamic loader ----
    one(
        "dlsym calls, not jumps",
        f"{PRELOAD}/dlsym_x86_64.S",
        ".Lreal_\\name:\n    jmp *%rax",
        ".Lreal_\\name:\n    sub $8, %rsp\n    call *%rax\n    add $8, %rsp\n    ret",
        f"{INTERPOSE}/test_dlsym.py",
    ),
    one(
        "dlsym without the old version",
        f"{PRELOAD}/dlsym_x86_64.S",
        "    version overlap_dlsym_old, overlap_dlsym_entry, dlsym@GLIBC_2.2.5\n",
        "",
        EXPORTS,
    ),
    one(
        "dlsym without the old version, by use",
        f"{PRELOAD}/dlsym_x86_64.S",
        "    version overlap_dlsym_old, overlap_dlsym_entry, dlsym@GLIBC_2.2.5\n",
        "",
        f"{INTERPOSE}/test_dlsym.py",
    ),
    one(
        "dlsym unversioned",
        f"{PRELOAD}/dlsym_x86_64.S",
        "    version overlap_dlsym_new, overlap_dlsym_entry, dlsym@@GLIBC_2.34",
        "    .globl dlsym\n    .set dlsym, overlap_dlsym_entry",
        EXPORTS,
    ),
    one(
        "vendor names in a version node",
        "shim/overlap.x86_64.map",
        "GLIBC_2.34 { }",
        "OVERLAP_1 { global: cu*; };\nGLIBC_2.34 { }",
        EXPORTS,
    ),
    one(
        "no look into local scopes",
        f"{SYS}/bind.c",
        "    return local ? local : search.elsewhere;",
        "    return search.elsewhere;",
        f"{INTERPOSE}/test_runtime_bindings.py",
    ),
    one(
        "what was kept is used while a library is closed",
        f"{SYS}/bind.c",
        "changes.removed == then && LOAD(generation) == now ? now : 0",
        "now",
        "tests/core/test_bind.py",
    ),
    one(
        "what is unmapped is still called",
        f"{SYS}/bind.c",
        "!all_mapped(LOAD(generation))",
        "false",
        f"{INTERPOSE}/test_closing.py",
    ),
    one(
        "any version will do",
        f"{SYS}/elf.c",
        "return same(tables->strings + name->vda_name, version);",
        "return true;",
        f"{INTERPOSE}/test_closing.py",
        f"{INTERPOSE}/test_runtime_bindings.py",
    ),
    one(
        "a function of the program is called",
        f"{SYS}/libc.c",
        "void *address = is_libc(map->l_name) ?",
        "void *address = map ?",
        f"{INTERPOSE}/test_own_names.py",
    ),
    one(
        "RTLD_NEXT gets our answer",
        f"{PRELOAD}/dlsym.c",
        "        return after_caller(ours);\n    void *real = ours < 0 ? NULL : overlap_dlsym",
        "        ;\n    void *real = ours < 0 ? NULL : overlap_dlsym",
        f"{INTERPOSE}/test_dlsym.py",
        "tests/structure/test_chain.py",
    ),
    one(
        "dlmopen calls, not jumps",
        f"{PRELOAD}/dlsym_x86_64.S",
        "    je .Lstart_\\name\n    jmp *%rax\n.Lhidden",
        "    je .Lstart_\\name\n    sub $8, %rsp\n    call *%rax\n    add $8, %rsp\n    ret\n.Lhidden",
        f"{INTERPOSE}/test_opening.py",
    ),
    one(
        "what is asked for again is told again",
        f"{SYS}/opened.c",
        "strncmp(known, name, SIZE - 1) == 0",
        "strcmp(known, name) < 0",
        f"{INTERPOSE}/test_deepbind.py",
    ),
    one(
        "no answer before we are bound",
        f"{SYS}/prebind.c",
        "return here == &here;",
        "return here != NULL || &here;",
        f"{INTERPOSE}/test_unbound.py",
    ),
    one(
        "a machine without driver looks equipped",
        f"{PRELOAD}/dlsym.c",
        "        if (!real)\n            return OVERLAP_NO_SYMBOL;",
        "        if (!real)\n            return NULL;",
        f"{INTERPOSE}/test_no_driver.py",
    ),
    # ---- Launches ----
    one(
        "the limit is not raised",
        f"{CUDA}/cuda_ops.c",
        "    if (!limit_raise(handle, (uint32_t)(word & OVERLAP_WORD_SIZE_MASK)))",
        "    if (false)",
        f"{INTERPOSE}/test_shaping.py",
    ),
    one(
        "no relaunch after refusal",
        f"{COMMON}/launch_slow.c",
        "    vendor_result result = as_asked(request);\n    if (!is_refusal(request, result) || !tried)",
        "    vendor_result result = VENDOR_OUT_OF_RESOURCES;\n    if (request || !tried)",
        f"{INTERPOSE}/test_refusal.py",
    ),
    one(
        "a refused kernel is tried again",
        f"{COMMON}/launch_slow.c",
        "        handle_mark(handle, HANDLE_REFUSED);\n",
        "        ;\n",
        f"{INTERPOSE}/test_refusal.py",
    ),
    one(
        "proven while capturing",
        f"{COMMON}/launch_slow.c",
        "&& !captures(request))",
        "&& true)",
        f"{INTERPOSE}/test_capture.py",
    ),
    one(
        "attributes changed in place",
        f"{CUDA}/launch.c",
        "CUlaunchAttribute attributes[ATTRIBUTES], *const asked = request->config.attrs;",
        "CUlaunchAttribute own[ATTRIBUTES], *const asked = request->config.attrs, *attributes = asked ? asked : own;",
        f"{INTERPOSE}/test_priority.py",
    ),
    one(
        "decisions outlive an unload",
        f"{CUDA}/module.c",
        "    CUresult result = real(module);\n    handle_ended(&ending, result == CUDA_SUCCESS);\n",
        "    CUresult result = real(module);\n    handle_ended(&ending, false);\n",
        f"{INTERPOSE}/test_handles.py",
    ),
    one(
        "library decisions outlive an unload",
        f"{CUDA}/module.c",
        "    CUresult result = real(library);\n    handle_ended(&ending, result == CUDA_SUCCESS);\n",
        "    CUresult result = real(library);\n    handle_ended(&ending, false);\n",
        f"{INTERPOSE}/test_handles.py",
    ),
    one(
        "sizes outlive their kernel",
        f"{COMMON}/size.c",
        "return known >> SINCE_SHIFT == known_since(root) >> SINCE_SHIFT;",
        "return known & KNOWN;",
        f"{INTERPOSE}/test_handle_races.py",
    ),
    one(
        "a key that is inserted is read as another",
        f"{CORE}/slots.c",
        "*word = owner ? LOAD(slot->word) : 0;",
        "*word = LOAD(slot->word);",
        THREADS,
    ),
    one(
        "a handle from the index is taken for that of the value",
        f"{COMMON}/handle.c",
        " &&\n                   OVERLAP_RELAXED(handle->value) == value\n",
        "\n",
        f"{INTERPOSE}/test_handle_races.py",
    ),
    one(
        "a kernel that was launched before it was learned stays unknown",
        f"{COMMON}/handle.c",
        "            overlap_cache_forget(&launch_cache, (uint64_t)(uintptr_t)value);\n",
        "",
        f"{INTERPOSE}/test_handle_races.py",
    ),
    one(
        "what was learned while its module ended goes with that",
        f"{COMMON}/handle.c",
        "(int32_t)(OVERLAP_RELAXED(handle->born) - born) <= 0",
        "true",
        f"{INTERPOSE}/test_handle_races.py",
    ),
    Mutant(
        "the cache forgets who calls",
        (
            (
                f"{CORE}/core.h",
                "return ((uint64_t)(site >> 12) << 28) + (threads << 18) + asked;",
                "(void)site; return (threads << 18) + asked;",
            ),
            (f"{COMMON}/hot_x86_64.S", "    shl $28, %r11\n    add %r11, %rax\n", ""),
        ),
        (f"{INTERPOSE}/test_priority.py", f"{INTERPOSE}/test_shaping.py"),
    ),
    one(
        "the limit that we set is told",
        f"{CUDA}/limit.c",
        "        app_limit_of(handle, device, answer);\n",
        "        ;\n",
        f"{INTERPOSE}/test_shaping.py",
    ),
    one(
        "the program takes the limit back",
        f"{CUDA}/limit.c",
        "(uint32_t)asked < needed ? (int)needed : asked;",
        "(uint32_t)asked < needed ? asked : asked;",
        f"{INTERPOSE}/test_shaping.py",
    ),
    one(
        "one limit for all devices",
        f"{CUDA}/limit.c",
        "handle_kind(handle) == HANDLE_KERNEL ? device : NO_DEVICE);",
        "NO_DEVICE);",
        f"{INTERPOSE}/test_handles.py",
    ),
    # ---- Processes ----
    one(
        "no fork handler",
        f"{COMMON}/armed.c",
        "__register_atfork(NULL, NULL, in_child,",
        "__register_atfork(NULL, NULL, NULL,",
        f"{INTERPOSE}/test_processes.py",
    ),
    one(
        "no fork handler but of glibc",
        f"{COMMON}/armed.c",
        "at_fork(NULL, NULL, in_child)",
        "at_fork(NULL, NULL, NULL)",
        "tests/libcs/test_launches.py",
    ),
    one(
        "variables count with other rights",
        f"{COMMON}/armed.c",
        "if (__getauxval && __getauxval(AT_SECURE))",
        "if (0)",
        "tests/libcs/test_unseen.py",
    ),
    one(
        "the page is not allocated",
        f"{SYS}/folder.c",
        "done = kernel4(SYS_fallocate, file, 0, (long)before, (long)(size - before));",
        "done = kernel3(SYS_ftruncate, file, (long)size, 0);",
        f"{INTERPOSE}/test_processes.py",
    ),
    one(
        "a page that is there is taken over",
        f"{SYS}/folder.c",
        "O_EXCL | O_NOFOLLOW | ",
        "",
        f"{INTERPOSE}/test_processes.py",
    ),
    one(
        "a page whose name is taken is left behind",
        f"{SYS}/folder.c",
        "n < first + MOST_FILES",
        "n < first + 1",
        f"{INTERPOSE}/test_processes.py",
    ),
    one(
        "the world of another launcher",
        f"{SYS}/environment.c",
        "i < sizeof launchers / sizeof *launchers && settings->rank < 0; i++)",
        "i < sizeof launchers / sizeof *launchers && !settings->world; i++)",
        f"{INTERPOSE}/test_ranks.py",
    ),
    one(
        "the batch step is a job",
        f"{SYS}/rank.def",
        'RANK("SLURM_PROCID", "SLURM_STEP_NUM_TASKS")',
        'RANK("SLURM_PROCID", "SLURM_NTASKS")',
        f"{INTERPOSE}/test_ranks.py",
    ),
    one(
        "a relative folder stays so",
        f"{SYS}/environment.c",
        "if (!out[0] || out[0] == '/')",
        "if (true)",
        f"{INTERPOSE}/test_ranks.py",
    ),
    one(
        "no table in the page",
        f"{COMMON}/page.c",
        "page->table = ((const struct overlap_table *)settings->table)->checksum;",
        "",
        f"{INTERPOSE}/test_ranks.py",
    ),
    # ---- Arithmetic, plans, decisions ----
    *(one(name, f"{CORE}/{file}", old, new, tests) for file, rows in ROWS.items() for name, old, new, tests in rows),
    # ---- The table ----
    one(
        "spans unchecked",
        f"{CORE}/policy_table.c",
        "return span.first <= table->pattern_count && span.count <= table->pattern_count - span.first;",
        "(void)table; (void)span; return true;",
        TABLE,
    ),
    one(
        "spans by a sum that wraps",
        f"{CORE}/policy_table.c",
        "span.first <= table->pattern_count && span.count <= table->pattern_count - span.first",
        "span.first + span.count <= table->pattern_count",
        TABLE,
    ),
    one(
        "string offsets unchecked",
        f"{CORE}/policy_table.c",
        "return offset < table->string_size;",
        "(void)table; (void)offset; return true;",
        TABLE,
    ),
    one(
        "string offset one too far",
        f"{CORE}/policy_table.c",
        "return offset < table->string_size;",
        "return offset <= table->string_size;",
        TABLE,
    ),
    one("rule count unchecked", f"{CORE}/policy_table.c", "policy->first_rule > table->rule_count || ", "0 && ", TABLE),
    one("strings need no end", f"{CORE}/policy_table.c", " || view.strings[table->string_size - 1] != 0", "", TABLE),
    one("sizes in 32 bits", f"{CORE}/policy_table.c", "    uint64_t needed = ", "    uint32_t needed = ", TABLE),
    one("checksum unchecked", f"{CORE}/policy_table.c", "!= table->checksum)", "!= table->checksum && 0)", TABLE),
    one("any shape", f"{CORE}/policy_table.c", "rule->shape > OVERLAP_SHAPE_QUICK_ENTRY || ", "", TABLE),
    # ---- Names ----
    one(
        "a parameter's class is the name",
        f"{CORE}/match.c",
        "            if (!nested)\n                break;\n",
        "",
        NAMES,
    ),
    one("a set's first bracket closes it", f"{CORE}/match.c", "(*p != ']' || p == first)", "*p != ']'", NAMES),
    one(
        "a family too wide", f"{CORE}/family.def", 'FAMILY(deep_ep, "dispatch")', 'FAMILY(deep_ep, "*dispatch*")', NAMES
    ),
    one("a family missing", f"{CORE}/family.def", 'FAMILY(nccl, "*nccl*Kernel*")\n', "", NAMES),
    # ---- Threads ----
    one(
        "answers for any key",
        f"{CORE}/core.h",
        "line->handle == handle && line->key == key && i < 2; i++) {\n            const uint64_t word",
        "line->handle == handle && i < 2; i++) {\n            const uint64_t word",
        THREADS,
    ),
    one("answers for any grid", f"{CORE}/core.h", "blocks <= grid >> 32)", "true)", THREADS),
    one("an empty interval is kept", f"{CORE}/cache.c", " || maximum == 0)", ")", THREADS),
    one(
        "forgetting forgets one answer",
        f"{CORE}/cache.c",
        "    for (int i = 0; i < 2; i++)\n        if (OVERLAP_RELAXED(line->answers[i].word",
        "    for (int i = 0; i < 1; i++)\n        if (OVERLAP_RELAXED(line->answers[i].word",
        THREADS,
    ),
    one(
        "shards of living threads are taken",
        f"{CORE}/stats.c",
        "owner != 0 && !alive(owner)",
        "owner != 0",
        THREADS,
    ),
    one(
        "the shared shard is added to plainly",
        f"{CORE}/stats.c",
        "    if (overlap_shard_is_shared(page, shard))\n        __atomic",
        "    if (page == NULL)\n        __atomic",
        THREADS,
    ),
    # ---- The contract ----
    one(
        "a field moved",
        "shim/overlap_abi.h",
        "    uint32_t pid;\n    uint32_t parent;\n",
        "    uint32_t parent;\n    uint32_t pid;\n",
        "tests/core/test_abi.py",
    ),
    one(
        "a reason too early in the list",
        f"{CORE}/reason.def",
        "REASON(graph_priority_ignored,",
        'REASON(not_yet, 0, "of a later version")\nREASON(graph_priority_ignored,',
        DECIDE,
    ),
]
