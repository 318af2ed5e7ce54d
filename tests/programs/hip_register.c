/* Hands the tables of functions of AMD's runtimes to whoever wants them, as librocprofiler-register does: to what defines
 * rocprofiler_set_api_table in the global scope, if something there defines rocprofiler_configure, too; where nobody defines the
 * first, it loads the library that does.
 *
 * HIP_TEST_TABLE, words with commas between them, makes something of the table called hip:
 *   size=N         it says that it has N bytes
 *   longer=N       it is a copy with N more members behind, which are no functions
 *   null=N         member N is NULL meanwhile
 *   nowhere=N      member N is code in no object
 *   twice          it is handed out twice
 *   instance=N     it is said to be the N-th of its kind
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

typedef int set_table(const char *name, uint64_t version, uint64_t instance, void **tables, uint64_t count);
#pragma weak rocprofiler_set_api_table
extern set_table rocprofiler_set_api_table;
#pragma weak rocprofiler_configure
extern void *rocprofiler_configure(uint32_t version, const char *runtime, uint32_t priority, void *client);

/* The number behind a word of HIP_TEST_TABLE, or -1. */
static long asked(const char *word) {
    const char *text = getenv("HIP_TEST_TABLE");
    const size_t length = strlen(word);
    for (; text; text = strchr(text, ','), text += text != NULL)
        if (strncmp(text, word, length) == 0)
            return text[length] == '=' ? atol(text + length + 1) : 1;
    return -1;
}

/* A jump to a function, in memory that belongs to no object. */
static void *jump_to(void *function) {
    unsigned char *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
#ifdef __x86_64__
    static const unsigned char jump[] = {0x48, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xe0}; /* mov rax, ...; jmp rax */
    memcpy(code, jump, sizeof jump);
    memcpy(code + 2, &function, sizeof function);
#else
    static const uint32_t jump[] = {0x58000050, 0xd61f0200}; /* ldr x16, 8; br x16 */
    memcpy(code, jump, sizeof jump);
    memcpy(code + 8, &function, sizeof function);
    __builtin___clear_cache((char *)code, (char *)code + 16);
#endif
    return code;
}

static int hand_out(set_table *set, const char *name, uint32_t version, void **table) {
    const uint64_t size = (uint64_t)(uintptr_t)table[0], count = size / sizeof *table;
    const long longer = asked("longer"), null = asked("null"), nowhere = asked("nowhere");
    const long says = asked("size"), instance = asked("instance");
    void **given = table, *kept = null > 0 ? table[null] : NULL;
    if (longer > 0) {
        given = calloc(count + (uint64_t)longer, sizeof *given);
        memcpy(given, table, size);
        given[0] = (void *)(uintptr_t)(size + (uint64_t)longer * sizeof *given);
    }
    if (null > 0)
        given[null] = NULL;
    if (nowhere > 0)
        given[nowhere] = jump_to(table[nowhere]);
    if (says >= 0)
        given[0] = (void *)(uintptr_t)says;
    void *tables[] = {given};
    int result = 0;
    for (int i = 0; i < (asked("twice") > 0 ? 2 : 1); i++)
        result = set(name, version, instance > 0 ? (uint64_t)instance : 0, tables, 1);
    given[0] = (void *)(uintptr_t)size;
    if (longer > 0)
        memcpy(table, given, size);
    if (null > 0) {
        printf("member %ld: %s\n", null, table[null] ? "set" : "NULL");
        table[null] = kept;
    }
    return result;
}

__attribute__((visibility("default"))) int rocprofiler_register_library_api_table(const char *name,
                                                                                  uint32_t (*import)(void),
                                                                                  uint32_t version, void **tables,
                                                                                  uint64_t count, uint64_t *identifier);
int rocprofiler_register_library_api_table(const char *name, uint32_t (*import)(void), uint32_t version, void **tables,
                                           uint64_t count, uint64_t *identifier) {
    set_table *set = rocprofiler_set_api_table;
    *identifier = 1;
    if (import() != version || count != 1)
        return 4;
    void *library = rocprofiler_configure && !set ? dlopen("librocprofiler-sdk.so.1", RTLD_LAZY | RTLD_GLOBAL) : NULL;
    if (library)
        set = (set_table *)dlsym(library, "rocprofiler_set_api_table");
    if (!rocprofiler_configure || !set)
        return 1; /* no tool: nothing is handed out */
    return strcmp(name, "hip") == 0 ? hand_out(set, name, version, tables[0]) : set(name, version, 0, tables, count);
}
