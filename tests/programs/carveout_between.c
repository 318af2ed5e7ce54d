/* The carve-out of a kernel from inside: what the program does on another thread while we are about to set it. */
#include <stdio.h>
#include <string.h>

#include "../../shim/vendor/cuda/carveout.c"

struct driver_calls driver;
static struct handle kernel = {.value = 16, .kind = HANDLE_FUNCTION};
static int driver_has = BY_DEFAULT;
static void (*meanwhile)(void);
uint32_t streams_needed = STREAMS_KNOWN, contexts_changed;
__thread struct this_thread this_thread;
uint32_t streams_need(void) {
    return STREAMS_KNOWN;
}
uint64_t context_ask(enum vendor vendor) {
    (void)vendor;
    return 0;
}

static void other_thread(void) {
    void (*act)(void) = meanwhile;
    meanwhile = NULL;
    if (act)
        act();
}
const struct overlap_settings *overlap_armed(void) {
    static struct overlap_settings settings;
    return &settings;
}
bool driver_ready(enum vendor vendor) {
    (void)vendor;
    return true;
}
struct handle *handle_find(const void *value) {
    return value ? &kernel : NULL;
}
struct handle *handle_origin(const struct handle *handle) {
    (void)handle;
    return NULL;
}
CUresult handle_get(const struct handle *handle, int attribute, int device, int *value) {
    (void)handle, (void)attribute, (void)device;
    *value = driver_has;
    return CUDA_SUCCESS;
}
CUresult handle_set(const struct handle *handle, int attribute, int device, int value) {
    (void)handle, (void)attribute, (void)device;
    other_thread();
    driver_has = value;
    return CUDA_SUCCESS;
}

struct overlap_cache launch_cache;
struct handle *cuda_function_of(const struct handle *handle) {
    (void)handle;
    return NULL;
}
void handle_each(void (*act)(struct handle *handle)) {
    (void)act;
}
void invalidate_decisions(void) {}
void overlap_cache_forget_all(struct overlap_cache *cache) {
    (void)cache;
}

void handle_invalidate(struct handle *handle) {
    (void)handle;
}

/* As attribute.c: the driver first, then what is known. */
static void program_sets(void) {
    driver_has = 50;
    carveout_is_programs((void *)16, 0, driver_has);
}

static void program_asks_occupancy(void) {
    carveout_withdraw(&kernel);
}

int main(int count, char **words) {
    meanwhile = count > 1 && strcmp(words[1], "sets") == 0 ? program_sets : program_asks_occupancy;
    cuda_prefer_shared(&kernel, 0);
    printf("%d\n", driver_has);
    return 0;
}
