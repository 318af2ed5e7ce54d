/* The carve-out of a kernel from inside: what the program does on another thread while we set ours, or the other way
 * round. Prints what the driver has at the end. */
#include <stdio.h>
#include <string.h>

#include "../../shim/core/core.h"
#include "../../shim/vendor/cuda/cuda.h"
static CUresult set_in_driver(CUfunction function, int attribute, int value);
#define real_function(route, hook, site) ((void *)set_in_driver)
#include "../../shim/vendor/cuda/attribute.c"
#include "../../shim/vendor/cuda/carveout.c"

struct driver_calls driver;
uint32_t streams_needed = STREAMS_KNOWN | STREAMS_SHAPES;
static struct handle kernel = {.value = 16, .kind = HANDLE_FUNCTION};
static int driver_has = BY_DEFAULT;
static void (*before_ours)(void), (*behind_programs)(void);

static void once(void (**act)(void)) {
    void (*now)(void) = *act;
    *act = NULL;
    if (now)
        now();
}
uint32_t streams_need(void) {
    return streams_needed;
}
const struct overlap_settings *overlap_armed(void) {
    static struct overlap_settings settings;
    return &settings;
}
bool driver_ready(enum vendor vendor) {
    return vendor == VENDOR_CUDA;
}
bool lock_take(void) {
    return true;
}
void lock_leave(void) {}
struct handle *handle_find(const void *value) {
    return value ? &kernel : NULL;
}
struct handle *handle_origin(const struct handle *handle) {
    return handle == &kernel ? NULL : &kernel;
}
struct handle *cuda_function_of(const struct handle *handle) {
    return handle == &kernel ? NULL : &kernel;
}
void handle_invalidate(struct handle *handle) {
    handle->reserved++;
}
CUresult handle_get(const struct handle *handle, int attribute, int device, int *value) {
    *value = handle == &kernel && attribute == WHICH && device == 0 ? driver_has : 0;
    return CUDA_SUCCESS;
}
CUresult handle_set(const struct handle *handle, int attribute, int device, int value) {
    once(&before_ours);
    driver_has = handle == &kernel && attribute == WHICH && device == 0 ? value : driver_has;
    return CUDA_SUCCESS;
}
int limit_for_driver(struct handle *handle, int device, int asked) {
    return handle && device == 0 ? asked : 0;
}
void limit_program_sets(struct handle *handle, int device, int set) {
    handle->limit.own = device + set;
}
void limit_answer(struct handle *handle, int device, int *answer) {
    *answer = handle->limit.own + device;
}
static CUresult set_in_driver(CUfunction function, int attribute, int value) {
    driver_has = function && attribute == WHICH ? value : driver_has;
    once(&behind_programs);
    return CUDA_SUCCESS;
}

static void program_sets_it(void) {
    function_set_attribute_body(ROUTE_SYMBOL, HOOK_cuFuncSetAttribute, 0, (void *)16, WHICH, 50);
}
static void program_asks(void) {
    carveout_leave(&kernel);
}
/* From a thread that had read the driver's value before the program set its own. */
static void ours_comes(void) {
    driver_has = BY_DEFAULT;
    carveout_raise(&kernel, 0);
}

int main(int count, char **words) {
    const char *what = count > 1 ? words[1] : "";
    if (strcmp(what, "behind") ==
        0) { /* the driver has the program's value, then gets ours, then the program goes on */
        behind_programs = ours_comes;
        program_sets_it();
    } else {
        before_ours = strcmp(what, "asks") == 0 ? program_asks : program_sets_it;
        carveout_raise(&kernel, 0);
    }
    printf("%d\n", driver_has);
    return 0;
}
