/* What the files of vendor/cuda share. The frontend translates NVIDIA's words into launch facts, asks core, and
 * translates the decision back into one call of the driver. Which file does what:
 *   entry.c   the doors: one thunk per entry point and way in, made from driver.def
 *   real.c    the functions behind the doors, and what dlsym and cuGetProcAddress answer
 *   launch.h  the hot path: one look into the cache, one jump; for x86-64 in assembler (launch_x86_64.S)
 *   launch.c  launches that are not a direct hit: to be rebuilt, not proven yet, or traced
 *   facts.c   launches that the cache does not know: facts, decision, keeping it
 *   device.c  devices: limits, policy, communication's footprint
 *   handle.c  kernels: which call made a handle, its name, its attributes
 *   limit.c   how much dynamic shared memory a kernel may ask for: what the program believes, and what we need
 *   stream.c  streams of communication libraries
 */
#pragma once

#include "../../core/core.h"
#include "../../sys/sys.h"
#include "cuda_abi.h"

#pragma GCC visibility push(hidden)

enum hook {
#define DRIVER(name, body, parameters, ...) HOOK_##name,
#include "driver.def"
#undef DRIVER
    HOOK_COUNT
};

/* ---- real.c ---- */

/* Types of the entry points: real_cuInit and so on. */
#define DRIVER(name, body, parameters, ...) typedef CUresult type_##name parameters;
#include "driver.def"
#undef DRIVER

#define DRIVER_WAYS 3 /* symbol, dlsym, proc_address: the first of enum overlap_way */

/* By hook and way in; NULL until known. A thunk of dlsym or cuGetProcAddress is given out only after its entry is set.
 */
extern void *real_functions[HOOK_COUNT][DRIVER_WAYS + 1];

/* Looks for what an exported wrapper stands in front of, as seen from `site`; NULL: there is no driver. */
void *real_find(enum hook hook, uintptr_t site);

static inline void *real_function(enum overlap_way way, enum hook hook, uintptr_t site) {
    void *real = __atomic_load_n(&real_functions[hook][way], __ATOMIC_ACQUIRE);
    return __builtin_expect(real != NULL, 1) ? real : real_find(hook, site);
}
#define REAL(name) ((type_##name *)real_function(way, hook, site))

/* Our own calls. Valid after driver_ready() said true. */
struct driver_calls {
#define CALL(name, parameters) CUresult(*name) parameters;
#include "api.def"
#undef CALL
};
extern struct driver_calls driver;
bool driver_ready(void);

/* The driver's own function behind a hook, for our calls; NULL before driver_ready(), or where the driver has none. */
extern void *driver_exports[HOOK_COUNT];
static inline void *real_own(enum hook hook) {
    return __atomic_load_n(&driver_exports[hook], __ATOMIC_ACQUIRE);
}

/* What cuGetProcAddress shall hand out instead of `address`. */
void *real_replace(const char *symbol, int version, uint64_t flags, void *address);

/* ---- entry.c ---- */

/* The thunk of an entry point for a way in. */
void *entry_thunk(enum overlap_way way, enum hook hook);

/* ---- device.c ---- */

#define NO_DEVICE (-1)

struct device {
    uint32_t state; /* 2: ready */
    int ordinal;
    uint32_t policy; /* index, OVERLAP_NO_POLICY: none fits */
    struct overlap_gpu gpu;
    /* Communication: the component-wise maximum of what was seen, one word per component; `seen` is stored last. */
    uint32_t seen;
    struct overlap_footprint communication;
};

/* The device of the calling thread's current context, ready for decisions; NULL: none, or not known. */
struct device *device_current(void);
struct device *device_at(int ordinal);
bool device_only_one(void);

/* In a forked child: devices are looked at and recorded anew. */
void device_forked(void);

/* Takes note of a communication kernel; true if the known footprint has grown. */
bool device_learn(struct device *device, const char *kernel, const struct overlap_footprint *footprint);

/* Copies communication's footprint; NULL while none is known. */
const struct overlap_footprint *device_communication(const struct device *device, struct overlap_footprint *copy);

/* The policy of a device, or NULL. */
const struct overlap_policy *device_policy(const struct device *device);

/* The priority that a policy's word means here. False: leave it as it is. */
bool device_priority(uint32_t kind, int32_t value, int *priority);

/* ---- handle.c ---- */

enum handle_kind { HANDLE_FUNCTION = 1, HANDLE_KERNEL = 2 };

struct handle {
    uint64_t value;   /* of the CUfunction or CUkernel; 0: free slot */
    uint64_t owner;   /* module or library */
    uint64_t context; /* of a function... */
    uint64_t kernel;  /* ...and the CUkernel that it came from, or 0 */
    int32_t device;   /* of a function */
    uint32_t kind;    /* enum handle_kind, 0: dead */
    uint32_t refused; /* a changed launch was refused */
    const char *name; /* as given by the program, or by the driver; NULL: not known */
};

/* A handle that a call of the program has made; a function belongs to the current context. kernel: where a function was
 * made from a CUkernel. name: may be NULL. */
void handle_learn(void *value, enum handle_kind kind, void *owner, const char *name, void *kernel);
struct handle *handle_find(const void *value);
void handle_forget_owner(const void *owner);

/* A context is gone: this one, or where it is NULL, the primary one of a device. */
void handle_forget_context(const void *context, int device);

/* The name, asked for once if the program did not give it; NULL: nobody knows. */
const char *handle_name(struct handle *handle);

/* Attributes by the API that fits the handle. device: for kernels. */
CUresult handle_get(const struct handle *handle, int attribute, int device, int *value);
CUresult handle_set(const struct handle *handle, int attribute, int device, int value);

/* Decisions about a kernel, in all its forms, are made anew. */
void handle_doubted(const struct handle *handle);

/* ---- limit.c: what the program may think of the limit of dynamic shared memory. device: for kernels ---- */

/* Makes sure that a launch on the current device may ask for so many bytes; false: the driver will not have it. */
bool limit_raise(struct handle *handle, uint32_t dynamic);

/* The program sets an attribute: what to hand to the driver; and, once the driver has taken it, what the program
 * believes from then on. */
int limit_for_driver(const void *value, int device, int attribute, int asked);
void limit_believe(const void *value, int device, int attribute, int set);

/* The program asks for an attribute and the driver has answered: what the program has set, not what we have raised. */
void limit_answer(const void *value, int device, int attribute, int *answer);

/* If a launch asks for more than the program may, the size that makes the driver refuse it, although we have raised the
 * limit; else 0. */
uint32_t limit_beyond(struct handle *handle, int device, uint32_t dynamic);

/* The handle means another kernel from now on. */
void limit_forget(uint64_t value);

/* ---- launch.c ---- */

extern struct overlap_cache launch_cache;
extern __thread struct overlap_shard *thread_shard __attribute__((tls_model("initial-exec")));

/* A launch by any of the three calls, as the program asked for it. */
struct request {
    enum overlap_way way;
    enum hook hook;
    uintptr_t site;
    uint32_t flags; /* enum overlap_launch_flag, of the call itself */
    CUfunction function;
    void **parameters;
    void **extra;
    CUlaunchConfig config;
};

/* Everything that is not a direct hit in the cache. word: what the first look found, or 0. */
CUresult launch_slow(struct request *request, uint64_t word);

/* Two kinds of them whose word is known, and that nobody traces: communication that gets a priority, and computation
 * that gets another size which the driver has not taken yet. */
CUresult launch_raised(struct request *request, uint64_t word);
CUresult launch_changed(struct request *request, uint64_t word);

static inline CUresult launch_not_direct(struct request *request, uint64_t word) {
    uint64_t kind = word & (OVERLAP_WORD_RAISE | OVERLAP_WORD_CHANGED | OVERLAP_WORD_DIRECT | OVERLAP_WORD_TRACED);
    return kind == OVERLAP_WORD_RAISE     ? launch_raised(request, word)
           : kind == OVERLAP_WORD_CHANGED ? launch_changed(request, word)
                                          : launch_slow(request, word);
}

/* Adds one to a counter of the calling thread. */
void launch_count(enum overlap_counter counter);

static inline uint64_t threads_of(const struct request *request) {
    return (uint64_t)request->config.blockDimX * request->config.blockDimY * request->config.blockDimZ;
}
static inline uint64_t blocks_of(const struct request *request) {
    return (uint64_t)request->config.gridDimX * request->config.gridDimY * request->config.gridDimZ;
}
static inline uint64_t key_of(const struct request *request) {
    return overlap_cache_key(threads_of(request), request->config.sharedMemBytes, request->site);
}

/* Flags of the call, or else the device of a CUkernel, take the top bits of the handle in the cache. */
#define FLAG_SHIFT 61
#define DEVICE_SHIFT OVERLAP_CACHE_HANDLE_BITS

/* The handle under which the cache keeps it, unless its answers are kept by device. */
static inline uint64_t place_of(const struct request *request) {
    return (uint64_t)(uintptr_t)request->function | (uint64_t)request->flags << FLAG_SHIFT;
}

/* ---- facts.c ---- */

/* The decision word of a launch that the cache does not hold under its plain handle. *place: where it is kept, 0:
 * nowhere. */
uint64_t facts_word(const struct request *request, uint64_t *place);

/* The driver has refused a priority: launches get none from now on. */
void facts_priority_refused(void);

/* The basename of the library that holds an address, into name; "" if none does. */
void library_of(uintptr_t site, char *name, size_t size);

/* ---- bodies, one per row of driver.def ---- */
#define DRIVER_BODY static inline __attribute__((always_inline)) CUresult
CUresult stream_create(enum overlap_way way, enum hook hook, uintptr_t site, CUstream *stream, uint32_t flags,
                       int priority, bool with_priority);

#pragma GCC visibility pop
