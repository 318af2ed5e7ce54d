"""Planted bugs of counting by kernel, and of the times of communication launches."""

from __future__ import annotations

from tools.mutants.table import Mutant, one

ROWS, STATS = "shim/core/rows.c", "shim/core/stats.c"
COMMON = "shim/vendor/common"
CORE, USE, WINDOWS = "tests/core/test_rows.py", "tests/interpose/test_rows.py", "tests/interpose/test_windows.py"

ROW_MUTANTS: list[Mutant] = [
    one(
        "raised is counted as not raised",
        f"{COMMON}/launch_slow.h",
        "row + (raised && row >= OVERLAP_REASONS)",
        "row",
        USE,
    ),
    one(
        "raised where it is not",
        f"{COMMON}/launch_slow.h",
        "row + (raised && row >= OVERLAP_REASONS)",
        "row + (!raised && row >= OVERLAP_REASONS)",
        USE,
    ),
    one(
        "outside is counted as inside",
        f"{COMMON}/hot_x86_64.S",
        "    mov %fs:48(%r11), %eax\n    incq 64(%r10, %rax, 8)\n",
        "    incq 64(%r10)\n",
        USE,
    ),
    one(
        "the row of another reason outside",
        f"{COMMON}/windows.c",
        "thread->step = overlap_row_step(window_reason(found.position));",
        "thread->step = 1;",
        WINDOWS,
    ),
    one(
        "outside is counted as inside, by the slow way",
        f"{COMMON}/launch_slow.c",
        "        return row + step;\n",
        "        return row;\n",
        USE,
    ),
    one(
        "rows beside a bare one",
        f"{COMMON}/facts.c",
        "flags & OVERLAP_WORD_WINDOWED ? OVERLAP_ROW_WINDOWED",
        "flags & OVERLAP_WORD_WINDOWED ? OVERLAP_ROW_SINGLE",
        USE,
    ),
    one(
        "one row for communication that is raised",
        f"{COMMON}/facts.c",
        "flags & OVERLAP_WORD_RAISE  ? OVERLAP_ROW_RAISED",
        "flags & OVERLAP_WORD_RAISE  ? OVERLAP_ROW_SINGLE",
        USE,
    ),
    one(
        "another reason has no kernel",
        f"{COMMON}/launch_slow.c",
        "overlap_row_of_reason(overlap_current_page, row, reason)",
        "reason",
        USE,
    ),
    one(
        "a row of the bare reason",
        f"{COMMON}/facts.c",
        "const uint32_t row = made ? row_of",
        "const uint32_t row = made && 0 ? row_of",
        USE,
    ),
    one(
        "rules are not recorded", f"{COMMON}/device.c", "        record_rules(device, settings);\n", "        ;\n", USE
    ),
    one(
        "claimed without a look at what is there",
        ROWS,
        "        if (there == key)\n            return row;\n",
        "",
        CORE,
    ),
    one(
        "claimed without a compare",
        ROWS,
        "        if (there == 0 &&\n"
        "            __atomic_compare_exchange_n("
        "&page->rows[row].key, &there, key, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {",
        "        if (there == 0) {\n            __atomic_store_n(&page->rows[row].key, key, __ATOMIC_RELAXED);",
        CORE,
    ),
    one("groups overlap", ROWS, "        row += rows_of(there);\n", "        row++;\n", CORE),
    one(
        "nothing is kept for any rule",
        ROWS,
        "reason, kind), OF_RULES, &claimed);",
        "reason, kind), FULL, &claimed);",
        CORE,
    ),
    one("nothing is kept for rules", ROWS, "OF_COMMUNICATION = OF_RULES - 46,", "OF_COMMUNICATION = OF_RULES,", CORE),
    one(
        "nothing is kept for communication",
        ROWS,
        "OF_RULES - 46,\n    OF_COMPUTATION = OF_COMMUNICATION - 24,",
        "OF_RULES - 46,\n    OF_COMPUTATION = OF_COMMUNICATION,",
        CORE,
    ),
    one(
        "what finds no room has no rule",
        ROWS,
        "        return of_rule(page, facts->rule, reason, kind);",
        "        return reason;",
        USE,
    ),
    one(
        "a refused launch was launched as decided",
        ROWS,
        "        __atomic_store_n(&record->launched, from->footprint.dynamic_shared, __ATOMIC_RELAXED);",
        "        ;",
        CORE,
    ),
    one(
        "a new thread begins with a time",
        STATS,
        "    if (due == 0) {",
        "    if (due == 1 && 0) {",
        CORE,
    ),
    one(
        "more were launched before than there were",
        STATS,
        "    before = before < *outside ? before : *outside;\n",
        "",
        "tests/report/test_page.py",
    ),
    one(
        "a count below zero",
        STATS,
        "if ((int64_t)totals->counters[i] < 0)",
        "if (0)",
        "tests/report/test_page.py",
    ),
    one(
        "a fork writes all counters",
        "shim/vendor/common/page.c",
        "if (page->shards[i].owner || i == OVERLAP_SHARDS_FIRST - 1)",
        "if (i < OVERLAP_SHARDS)",
        "tests/interpose/test_fork_exit.py",
    ),
    one("long names are cut", ROWS, "    text.size = size - END - HASH;\n", "    text.size = size;\n", CORE),
    one(
        "sizes share a row",
        ROWS,
        "    hash = overlap_fnv(hash, &facts->footprint, sizeof facts->footprint);",
        "    ",
        CORE,
    ),
    one(
        "libraries share a row",
        ROWS,
        "hash_text(hash_text(OVERLAP_FNV, kernel), library)",
        "hash_text(OVERLAP_FNV, kernel)",
        CORE,
    ),
    one(
        "a damaged page is read beyond its end",
        ROWS,
        "return key && reason < OVERLAP_REASONS ? reason",
        "return key ? reason",
        CORE,
    ),
    one(
        "times never become rarer",
        STATS,
        "    return rounds < MOST_SPARSE ? rounds : MOST_SPARSE;",
        "    return rounds * 0;",
        CORE,
    ),
    one(
        "times become ever rarer",
        STATS,
        "    return rounds < MOST_SPARSE ? rounds : MOST_SPARSE;",
        "    return rounds;",
        CORE,
    ),
    one(
        "the distance of the time before",
        STATS,
        "sparse(number + 1)), __ATOMIC_RELAXED);",
        "sparse(number)), __ATOMIC_RELAXED);",
        CORE,
    ),
    one(
        "threads of a shard each leave a time",
        STATS,
        "    if (!overlap_sample_is_due(shard) ||\n        ",
        "    if (",
        CORE,
    ),
    one(
        "no time by the slow way",
        f"{COMMON}/launch_slow.c",
        "    count_launch(request->counted, row);\n"
        "    if (overlap_sample_is_due(shard))\n        launch_sample(shard);\n",
        "    count_launch(request->counted, row);\n    (void)shard;\n",
        USE,
    ),
    one(
        "no time by the quick way",
        f"{COMMON}/launch_slow.h",
        "    if (__builtin_expect(overlap_sample_is_due(shard), 0))\n        launch_sample(shard);\n",
        "",
        USE,
    ),
    one(
        "a priority beyond its bits",
        "shim/core/core.h",
        "(uint64_t)(uint8_t)priority << OVERLAP_WORD_PRIORITY_SHIFT",
        "(uint64_t)(int64_t)priority << OVERLAP_WORD_PRIORITY_SHIFT",
        USE,
    ),
    one(
        "a time that is being written",
        "pyshim/stats/rows.py",
        " and launches ^ nanoseconds == check",
        "",
        "tests/report/test_page.py",
    ),
]
