/* What the files of vendor/cuda share. The frontend translates NVIDIA's words into launch facts, asks core, and
 * translates the decision back into one call of the driver. Which file does what:
 *   entry.c   the doors: one thunk per entry point and way in, made from driver.def
 *   real.c    the functions behind the doors, and what dlsym and cuGetProcAddress answer
 *   launch.h  the hot path: one look into the cache, one jump; for x86-64 in assembler (launch_x86_64.S)
 *   launch.c  launches that are not a direct hit: to be rebuilt, not proven yet, or traced
 *   legacy.c  launches that are only counted
 *   traced.c  launches that --trace writes down
 *   facts.c   launches that the cache does not know: facts, decision, keeping it
 *   graph.c   nodes of graphs that the program builds itself
 *   instantiate.c  graphs become executable: priorities of nodes, and sizes that are taken back
 *   priority.c  which priority communication gets, and when it no longer does
 *   device.c  devices: limits, policy, communication's footprint
 *   module.c  calls that make and end kernels
 *   handle.c  kernels: which call made a handle, its name, its attributes
 *   attribute.c  attributes that the program sets and asks for, where we have changed some
 *   limit.c   how much dynamic shared memory a kernel may ask for: what the program believes, and what we need
 *   carveout.c  the shared-memory carve-out that kernels prefer
 *   query.c   what the program asks about occupancy
 *   size.c    which size the program asked for, where a node shows another
 *   stream.c  streams of communication libraries
 *   windows.h overlap windows: windows.c, order.c, copy.c, exec.c, follow.c
 *   runtime.c the names of NVIDIA's runtime (runtime.def), which say where a launch comes from
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

/* Bodies, one per row, or several rows' one. */
#define PARAMETERS_OF(...) __VA_ARGS__
#define DRIVER(name, body, parameters, ...)                                                                            \
    CUresult body(enum overlap_way way, enum hook hook, uintptr_t site, PARAMETERS_OF parameters);
#define DRIVER_VOID(name, body) CUresult body(enum overlap_way way, enum hook hook, uintptr_t site);
#define DRIVER_LAUNCH(name, body, parameters, ...)
#include "driver.def"
#undef DRIVER

/* Is the default stream of this call the thread's own? By the name of the entry point. */
extern const bool hook_per_thread[HOOK_COUNT];
static inline bool hook_is_per_thread(enum hook hook) {
    return hook_per_thread[hook];
}

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

/* In a body: the driver's function, or out. */
#define REAL_OR_RETURN(name)                                                                                           \
    type_##name *real = REAL(name);                                                                                    \
    if (!real)                                                                                                         \
    return CUDA_ERROR_NOT_INITIALIZED

/* May we look, and ask the driver? */
static inline bool armed_and_ready(void);

/* Our own calls. Valid after driver_ready() said true. */
struct driver_calls {
#define CALL(name, parameters) CUresult(*name) parameters;
#include "api.def"
#undef CALL
};
extern struct driver_calls driver;
bool driver_ready(void);
static inline bool armed_and_ready(void) {
    return overlap_armed() && driver_ready();
}

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

/* ---- priority.c ---- */

/* The priority that communication launches get now, by the policy of the device. False: none, and *reason says why. */
bool priority_for(const struct overlap_policy *policy, int *priority, uint32_t *reason);

/* What ends `auto` for good: communication runs at a priority of the program's own; a grid that fills the GPU in one wave
 * runs beside communication; computation is in no hurry for it. */
void priority_program_sets(void);
void priority_one_wave_beside(void);
void priority_unhurried(void);

/* Has it ended because computation is in no hurry for communication? */
bool priority_is_unhurried(void);
bool priority_is_auto(const struct overlap_policy *policy);

/* The driver has refused a priority: launches get none from now on. */
void priority_refused(void);

/* ---- handle.c ---- */

enum handle_kind {
    HANDLE_FUNCTION = 1,
    HANDLE_KERNEL = 2,
    HANDLE_MODULE = 3,  /* of a library; owner: the library */
    HANDLE_CONTEXT = 4, /* of a green context; owner: that */
    HANDLE_CLAIMED = 5  /* a thread fills the slot */
};

enum handle_mark {
    HANDLE_REFUSED = 1,         /* a changed launch was refused */
    HANDLE_OCCUPANCY_ASKED = 2, /* the program asked how many of its blocks fit */
    HANDLE_RAISED = 8,          /* communication that we launch at another priority */
    HANDLE_SIZES_NOTED = 4,     /* size.c knows some of it */
    HANDLE_COMMUNICATES = 16    /* launches of it are communication */
};

struct handle {
    uint64_t value;           /* of the CUfunction or CUkernel; 0: free slot */
    uint64_t owner;           /* module or library */
    uint64_t context;         /* of a function... */
    uint64_t kernel;          /* ...and the CUkernel that it came from, or 0 */
    int32_t device;           /* of a function */
    uint32_t kind;            /* enum handle_kind, 0: dead */
    uint32_t marks;           /* enum handle_mark */
    uint64_t cluster;         /* of the launches that were checked in clusters: cluster_of() + 1, 0: none yet */
    uint32_t carveout_ours;   /* devices, by bit, where we have set the carve-out; a function has bit 0 only */
    uint32_t carveout_closed; /* ...where we do not, any more */
    uint32_t carveout_small;  /* ...where the program's is not the largest */
    int32_t carveout_asked;   /* what the program has set last */
    const char *name;         /* as given by the program, or by the driver; NULL: not known */
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

/* Marks a kernel, in all its forms, for good; decisions about it are made anew. */
void handle_mark(struct handle *handle, enum handle_mark mark);
bool handle_is_marked(const struct handle *handle, enum handle_mark mark);

/* The CUkernel that a function was made from, or NULL. */
struct handle *handle_origin(const struct handle *handle);

/* Our own questions must not end a stream capture of the program: what relax() returns is for restore(). */
int capture_relax(void);
void capture_restore(int mode);

/* ---- carveout.c ---- */

/* Asks for the largest shared-memory carve-out, once, unless the program has set one. */
void carveout_prefer(struct handle *handle, int device);
/* Has the program set one that is not the largest? Then no other configuration can be counted on. */
bool carveout_is_small(const struct handle *handle, int device);
/* Takes ours back for good. */
void carveout_withdraw(struct handle *handle);
/* The program has set one; the program asks for it and the driver has answered. */
void carveout_is_programs(const void *value, int device, int set);
void carveout_answer(const void *value, int device, int *answer);

/* ---- size.c ---- */

/* A launch that asks for so many bytes is made with so many, equal ones included. */
void size_note(struct handle *handle, uint32_t asked, uint32_t launched);
/* What was asked for where the driver shows so many. False: that, as far as we know, or not one size only. */
bool size_asked(const struct handle *handle, uint32_t launched, uint32_t *asked);
/* Is it a size that we launch the kernel with, and nobody has asked for? A program that reads it off a node asks for it. */
bool size_is_ours(const struct handle *handle, uint32_t bytes);
/* The handle means another kernel from now on. */
void size_forget(const struct handle *handle);

/* ---- limit.c: what the program may think of the limit of dynamic shared memory. device: for kernels ---- */

/* Makes sure that a launch on the current device may ask for so many bytes; false: the driver will not have it. */
bool limit_raise(struct handle *handle, uint32_t dynamic);

/* The program sets an attribute: what to hand to the driver; and, once the driver has taken it, what the program
 * believes from then on. */
int limit_for_driver(const void *value, int device, int attribute, int asked);
void limit_believe(const void *value, int device, int attribute, int set);

/* The program asks for an attribute and the driver has answered: what the program has set, not what we have raised. */
void limit_answer(const void *value, int device, int attribute, int *answer);

/* The program's own limit where we have raised it, else UINT32_MAX. */
uint32_t limit_own(const void *value, int device);

/* If a launch asks for more than the program may, the size that makes the driver refuse it, although we have raised the
 * limit; else 0. */
uint32_t limit_beyond(struct handle *handle, int device, uint32_t dynamic);

/* The handle means another kernel from now on. */
void limit_forget(uint64_t value);

/* ---- launch.c ---- */

extern struct overlap_cache launch_cache;

/* Of the calling thread. launch_x86_64.S knows the places. */
struct this_thread {
    struct overlap_shard *shard; /* NULL: none of its own yet */
    uintptr_t outer;             /* return address of the call of NVIDIA's runtime that it is in, or 0 */
    /* The last answer about overlap windows: holds for this stream as long as *window_version is the same. */
    uint64_t version; /* 0: none */
    CUstream stream;
    uint32_t per_thread; /* what the default stream was */
    uint32_t where;      /* enum overlap_where */
    uint32_t left;       /* launches that may still take it */
    uint32_t reason;     /* outside: why */
    uint64_t
        *outside[2]; /* where launches outside are counted: those that would be shaped, grids of one wave; or NULL */
    uint64_t newest, serial;
    struct overlap_stream *of;
};
extern const uint64_t *window_version;
extern __thread struct this_thread this_thread __attribute__((tls_model("initial-exec")));

/* Who calls, and which way in counts: the outermost of our wrappers says so. */
static inline uintptr_t outer_site(uintptr_t site) {
    return this_thread.outer ? this_thread.outer : site;
}
static inline enum overlap_way outer_way(enum overlap_way way) {
    return this_thread.outer ? OVERLAP_WAY_runtime : way;
}

/* A launch, as the program asked for it. */
struct request {
    enum overlap_way way;     /* to the function behind the hook */
    enum overlap_way counted; /* under which it is counted */
    enum hook hook;
    uintptr_t site; /* of the outermost call */
    uint32_t flags; /* enum overlap_launch_flag, of the call itself */
    CUfunction function;
    void **parameters;
    void **extra;
    CUlaunchConfig config;
};

/* The decision word of a launch from wherever it is kept, made if need be; 0: nobody decides here. *place: where it is
 * kept, 0: nowhere. */
uint64_t launch_word(const struct request *request, uint64_t *place);

/* Makes ready what the launch of a changed size needs: the kernel's limit. False: the driver will not have it. */
bool launch_prepare(const struct request *request, uint64_t *word, uint64_t place);

/* The driver has refused what we changed, or its limit could not be raised: this kernel is left alone from now on. */
void launch_leave_alone(const struct request *request, uint64_t place, bool launched);

/* Refused because of what we changed, as far as an error code can tell. */
bool launch_is_refusal(CUresult result);

/* Counts a launch; moves some that were counted to another reason. */
void launch_count_reason(enum overlap_way way, uint32_t reason);
void launch_move_reason(enum overlap_way way, uint32_t from, uint32_t to, uint64_t count);

/* Every launch of this thread shall come to launch_slow(), or no longer. */
void launch_followed(bool on);

/* --trace: writes the launch down. raised: at the word's priority; found: where it is. */
struct overlap_found;
void launch_trace(const struct request *request, uint32_t reason, uint32_t launched, bool raised, uint64_t word,
                  const struct overlap_found *found);

/* Everything that is not a direct hit in the cache. word: what the first look found, or 0. */
CUresult launch_slow(struct request *request, uint64_t word);

/* Two kinds of them whose word is known, and that nobody traces: communication that gets a priority, and computation
 * that gets another size which the driver has not taken yet. */
CUresult launch_raised(struct request *request, uint64_t word);
CUresult launch_changed(struct request *request, uint64_t word);

/* What makes the word of a computation launch depend on overlap windows (windows.h). */
#define WINDOW_BITS (OVERLAP_WORD_WINDOWED | OVERLAP_WORD_WATCHED | OVERLAP_WORD_ORDERS)

static inline CUresult launch_not_direct(struct request *request, uint64_t word) {
    uint64_t kind = word & (OVERLAP_WORD_RAISE | OVERLAP_WORD_CHANGED | OVERLAP_WORD_DIRECT | OVERLAP_WORD_TRACED |
                            OVERLAP_WORD_CARRIES | WINDOW_BITS);
    return kind == OVERLAP_WORD_RAISE     ? launch_raised(request, word)
           : kind == OVERLAP_WORD_CHANGED ? launch_changed(request, word)
                                          : launch_slow(request, word);
}

/* Adds one to a counter of the calling thread; takes some away that any thread has added. */
void launch_count(enum overlap_counter counter);
void launch_take_back(enum overlap_counter counter, uint64_t count);

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

/* Decisions that are being made meanwhile are not kept; whoever withdraws answers says so first. */
void facts_changed(void);

/* The dimensions of the clusters of a launch, required and preferred ones; 0: by no attribute. */
uint64_t cluster_of(const CUlaunchConfig *config);

/* The basename of the library that holds an address, into name; "" if none does. */
void library_of(uintptr_t site, char *name, size_t size);

/* ---- graph.c ---- */

/* The handle that a kernel node launches. second: of the second form, which has kern. */
const void *graph_kernel_of(const CUDA_KERNEL_NODE_PARAMS *params, bool second);

/* Gives a kernel node the program's own size back; true if it had ours. */
bool graph_set_back(CUgraphNode node);

/* Does a kernel node launch communication? */
bool graph_is_communication(CUgraphNode node);

/* ---- instantiate.c ---- */

/* 1: communication was raised in this process, so a graph may hold a raised node. */
extern uint32_t graph_may_be_raised;

/* All flags that a function finds for the nodes of a graph and of those inside it. */
uint32_t graph_flags(CUgraph graph, uint32_t (*of)(CUgraphNode node, int type));

/* ---- stream.c ---- */

/* 1: somebody may have given the legacy default stream a priority, which else is 0. */
extern uint32_t stream_legacy_changed;

/* A number for every stream, never 0. Of the default stream of a thread: another one for each. */
uint64_t stream_key(CUstream stream, bool per_thread);

/* Have we given the stream its priority? */
bool stream_is_raised(CUstream stream, bool per_thread);

/* Raises a stream on which communication was launched, once, where the policy asks for it. */
void stream_carries(CUstream stream, bool per_thread);

/* ---- runtime.c ---- */

/* Which row of runtime.def has this name, -1: none; and is there a runtime behind it? */
int runtime_named(const char *name);
bool runtime_is_behind(int hook);

#define DRIVER_BODY static inline __attribute__((always_inline)) CUresult

#pragma GCC visibility pop
