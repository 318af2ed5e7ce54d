"""Bugs planted in shim/sys, shim/preload and the contract. By file: name, old text, new text, tests."""

from __future__ import annotations

ROWS: dict[str, list[tuple[str, ...]]] = {
    "shim/overlap.x86_64.map": [
        (
            "vendor names in a version node",
            "GLIBC_2.34 { }",
            "OVERLAP_1 { global: cu*; };\nGLIBC_2.34 { }",
            "tests/structure/test_exports.py",
        ),
    ],
    "shim/overlap_abi.h": [
        (
            "a field moved",
            "    uint32_t pid;\n    uint32_t parent;\n",
            "    uint32_t parent;\n    uint32_t pid;\n",
            "tests/core/test_abi.py",
        ),
    ],
    "shim/preload/dlsym.c": [
        (
            "RTLD_NEXT gets our answer",
            "        return after_caller(ours);\n    void *real = ours < 0 ? NULL : overlap_dlsym",
            "        ;\n    void *real = ours < 0 ? NULL : overlap_dlsym",
            "tests/interpose/test_dlsym.py",
            "tests/structure/test_chain.py",
        ),
        (
            "a machine without driver looks equipped",
            "        if (!real)\n            return OVERLAP_NO_SYMBOL;",
            "        if (!real)\n            return NULL;",
            "tests/interpose/test_no_driver.py",
        ),
        (
            "a machine without a runtime looks equipped",
            "        if (!real)\n            return OVERLAP_NO_SYMBOL;",
            "        if (!real)\n            return NULL;",
            "tests/interpose/hip/test_hip_loading.py",
        ),
    ],
    "shim/preload/dlsym_x86_64.S": [
        (
            "dlsym calls, not jumps",
            ".Lreal_\\name:\n    jmp *%rax",
            ".Lreal_\\name:\n    sub $8, %rsp\n    call *%rax\n    add $8, %rsp\n    ret",
            "tests/interpose/test_dlsym.py",
        ),
        (
            "dlsym without the old version",
            "    version overlap_dlsym_old, overlap_dlsym_entry, dlsym@GLIBC_2.2.5\n",
            "",
            "tests/structure/test_exports.py",
        ),
        (
            "dlsym without the old version, by use",
            "    version overlap_dlsym_old, overlap_dlsym_entry, dlsym@GLIBC_2.2.5\n",
            "",
            "tests/interpose/test_dlsym.py",
        ),
        (
            "dlsym unversioned",
            "    version overlap_dlsym_new, overlap_dlsym_entry, dlsym@@GLIBC_2.34",
            "    .globl dlsym\n    .set dlsym, overlap_dlsym_entry",
            "tests/structure/test_exports.py",
        ),
        (
            "dlmopen calls, not jumps",
            "    je .Lstart_\\name\n    jmp *%rax\n.Lhidden",
            "    je .Lstart_\\name\n    sub $8, %rsp\n    call *%rax\n    add $8, %rsp\n    ret\n.Lhidden",
            "tests/interpose/test_opening.py",
        ),
    ],
    "shim/preload/operations.S": [
        (
            "a vendor gets another's operations",
            ".long cuda - .Loperations, hip - .Loperations",
            ".long cuda - .Loperations, cuda - .Loperations",
            "tests/interpose/hip/test_hip_table.py",
        ),
    ],
    "shim/sys/bind.c": [
        (
            "no look into local scopes",
            "    return local ? local : search.elsewhere;",
            "    return search.elsewhere;",
            "tests/interpose/test_runtime_bindings.py",
        ),
        (
            "what was kept is used while a library is closed",
            "changes.removed == then && LOAD(generation) == now ? now : 0",
            "now",
            "tests/core/test_bind.py",
        ),
        (
            "what is unmapped is still called",
            "!all_mapped(LOAD(generation))",
            "false",
            "tests/interpose/test_closing.py",
        ),
        ("answers outlive what was unmapped", "changes.removed == then &&", "", "tests/core/test_bind.py"),
        (
            "answers are dropped by any dlclose",
            "after.removed != before.removed && (",
            "(1 || ",
            "tests/core/test_bind.py",
        ),
        ("a caller that was unmapped stays known", "|| !all_mapped(LOAD(generation))", "", "tests/core/test_bind.py"),
        ("an object in the place of another", "after.added != before.added || ", "", "tests/core/test_bind.py"),
        ("two threads fill a caller's slot", "before == FILLING || ", "", "tests/core/test_threads.py"),
        (
            "a late thread takes a newer caller's slot",
            "(int32_t)(before - now) >= 0 ||",
            "before == now ||",
            "tests/core/test_threads.py",
        ),
        ("an answer is read across two writes", "((before + ONE_WRITE) & WRITES)", "0", "tests/core/test_threads.py"),
        (
            "a full table of callers",
            "    __atomic_compare_exchange_n(&generation, &now, now + 1,",
            "    if (0) __atomic_compare_exchange_n(&generation, &now, now + 1,",
            "tests/core/test_bind.py",
        ),
        ("only the first caller is known", "*index = i;\n", "*index = 0;\n", "tests/core/test_threads.py"),
    ],
    "shim/sys/elf.c": [
        (
            "any version will do",
            "return same(tables->strings + name->vda_name, version);",
            "return true;",
            "tests/interpose/test_closing.py",
            "tests/interpose/test_runtime_bindings.py",
        ),
    ],
    "shim/sys/environment.c": [
        (
            "the world of another launcher",
            "i < sizeof launchers / sizeof *launchers && settings->rank < 0; i++)",
            "i < sizeof launchers / sizeof *launchers && !settings->world; i++)",
            "tests/interpose/test_ranks.py",
        ),
        ("a relative folder stays so", "if (!out[0] || out[0] == '/')", "if (true)", "tests/interpose/test_ranks.py"),
    ],
    "shim/sys/folder.c": [
        (
            "the page is not allocated",
            "done = kernel4(SYS_fallocate, file, 0, (long)before, (long)(size - before));",
            "done = kernel3(SYS_ftruncate, file, (long)size, 0);",
            "tests/interpose/test_processes.py",
        ),
        ("a page that is there is taken over", "O_EXCL | O_NOFOLLOW | ", "", "tests/interpose/test_processes.py"),
        (
            "a page whose name is taken is left behind",
            "n < first + MOST_FILES",
            "n < first + 1",
            "tests/interpose/test_processes.py",
        ),
    ],
    "shim/sys/libc.c": [
        (
            "a function of the program is called",
            "void *address = is_libc(map->l_name) ?",
            "void *address = map ?",
            "tests/interpose/test_own_names.py",
        ),
    ],
    "shim/sys/next.c": [
        (
            "a failed pin is told",
            "forget_error(); /* the program's own call has succeeded */",
            ";",
            "tests/interpose/test_errno.py",
        ),
        (
            "a pin changes errno",
            "    }\n    errno = saved;",
            "    }\n    (void)saved;",
            "tests/interpose/test_errno.py",
        ),
    ],
    "shim/sys/object.c": [
        (
            "a forked child takes the loader's lock",
            "if (__builtin_expect(overlap_start.forked, 0) && ",
            "if (0 && ",
            "tests/interpose/test_closing.py",
        ),
    ],
    "shim/sys/opened.c": [
        (
            "what is asked for again is told again",
            "strncmp(known, name, SIZE - 1) == 0",
            "strcmp(known, name) < 0",
            "tests/interpose/test_deepbind.py",
        ),
    ],
    "shim/sys/prebind.c": [
        (
            "no answer before we are bound",
            "return here == &here;",
            "return here != NULL || &here;",
            "tests/interpose/test_unbound.py",
        ),
    ],
    "shim/sys/process.c": [
        (
            "threads without a number are one",
            "id > 0 ? (uint32_t)id : __atomic_add_fetch(&unnumbered, 1, __ATOMIC_RELAXED)",
            "(uint32_t)id",
            "tests/interpose/test_many.py::test_threads_that_have_no_number_lose_no_launch",
        ),
        (
            "what cannot be asked has ended",
            "tid, 0) != -ESRCH;",
            "tid, 0) == 0;",
            "tests/interpose/test_many.py::test_threads_that_have_no_number_lose_no_launch",
        ),
    ],
    "shim/sys/rank.def": [
        (
            "the batch step is a job",
            'RANK("SLURM_PROCID", "SLURM_STEP_NUM_TASKS")',
            'RANK("SLURM_PROCID", "SLURM_NTASKS")',
            "tests/interpose/test_ranks.py",
        ),
    ],
}
