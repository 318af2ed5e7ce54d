/* A driver whose cuGetProcAddress answers functions that it does not export, one for each that it does export.
 *
 * Then an address says nothing to whoever stands in between; only the request does. FUNCTIONS is a file of lines
 * FUNCTION(symbol); which of them a request means is as in the simulated driver (tools/simgpu/api.c). INNER_VERSION in the
 * environment: it is of another version than 13.0.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))
#define API_DEF "../../../tools/simgpu/api.def"

enum { NOT_FOUND = 500, NOT_SUPPORTED = 801, VERSION = 13000, PER_THREAD = 2 };

int inner_cuDriverGetVersion(int *version);
int inner_cuGetProcAddress(const char *symbol, void **function, int version, uint64_t flags);
int inner_cuGetProcAddress_v2(const char *symbol, void **function, int version, uint64_t flags, int *status);

#define FUNCTION(symbol)                                                                                               \
    __attribute__((noinline)) int inner_##symbol(void);                                                                \
    int inner_##symbol(void) {                                                                                         \
        return NOT_SUPPORTED;                                                                                          \
    }                                                                                                                  \
    EXPORT int symbol(void);                                                                                           \
    int symbol(void) {                                                                                                 \
        return NOT_SUPPORTED;                                                                                          \
    }
#ifdef FUNCTIONS
#include FUNCTIONS
#endif

static const struct {
    const char *name;
    int version, per_thread;
    void *function;
} rows[] = {
#ifdef FUNCTIONS
#define ENTRY(symbol, base, version, per_thread) {#base, version, per_thread, (void *)inner_##symbol},
#include API_DEF
#endif
    {"", 0, 0, NULL},
};

int inner_cuDriverGetVersion(int *version) {
    const char *older = getenv("INNER_VERSION");
    *version = older ? atoi(older) : VERSION;
    return 0;
}

EXPORT int cuDriverGetVersion(int *version);
int cuDriverGetVersion(int *version) {
    return inner_cuDriverGetVersion(version);
}

static int find(const char *name, void **function, int version, uint64_t flags) {
    size_t best = sizeof rows / sizeof *rows;
    int own;
    inner_cuDriverGetVersion(&own);
    version = own < version ? own : version;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].function && strcmp(rows[i].name, name) == 0 && rows[i].version <= version &&
            (!rows[i].per_thread || (flags & PER_THREAD)) &&
            (best == sizeof rows / sizeof *rows || rows[i].per_thread > rows[best].per_thread ||
             (rows[i].per_thread == rows[best].per_thread && rows[i].version > rows[best].version)))
            best = i;
    *function = best < sizeof rows / sizeof *rows ? rows[best].function : NULL;
    return *function ? 0 : NOT_FOUND;
}

int inner_cuGetProcAddress(const char *symbol, void **function, int version, uint64_t flags) {
    return find(symbol, function, version, flags);
}

int inner_cuGetProcAddress_v2(const char *symbol, void **function, int version, uint64_t flags, int *status) {
    int result = find(symbol, function, version, flags);
    if (status)
        *status = result ? 1 : 0;
    return result;
}

EXPORT int cuGetProcAddress(const char *symbol, void **function, int version, uint64_t flags);
int cuGetProcAddress(const char *symbol, void **function, int version, uint64_t flags) {
    return find(symbol, function, version, flags);
}

EXPORT int cuGetProcAddress_v2(const char *symbol, void **function, int version, uint64_t flags, int *status);
int cuGetProcAddress_v2(const char *symbol, void **function, int version, uint64_t flags, int *status) {
    return inner_cuGetProcAddress_v2(symbol, function, version, flags, status);
}
