/* What the two frontends share: everything that is the same on both vendors' GPUs. A frontend translates its vendor's words
 * into launch facts; here core is asked, and the decision kept; the frontend makes one call of it.
 *   abi.h      what the vendors' interfaces have in common
 *   hook.h     entry points of both (their .def tables), which row is whose
 *   operation.def  what each vendor's frontend does for this half
 *   page.h     is anything to be done in this process (armed.c), and its page: page.c, unopened.c
 *   real.h     the functions behind the doors: real.c, name.c, foreign.c
 *   hot.h      the hot path: one look into the cache, one jump
 *   launch.c   launches that are not a direct hit: not proven yet, or traced
 *   traced.c   launches that --trace writes down
 *   facts.c    launches that the cache does not know: facts, decision, keeping it
 *   device.c   devices: limits, policy, communication's footprint
 *   handle.c   kernels: what a handle is, its name
 *   state.h    the large tables, mapped when a driver is first met: state.c
 *   size.c     which size the program asked for, where a node shows another
 *   priority.c  which priority communication gets, and when it no longer does
 *   stream.c   streams of communication libraries
 *   windows.h  overlap windows: windows.c, sleep.c, order.c, capture.c, copy.c, exec.c, follow.c; streams that somebody waits for: critical.c
 *   node.h     kernel nodes of graphs that the program builds itself: node.c
 */
#pragma once

#include "../../core/core.h"
#include "../../core/window.h"
#include "../../sys/sys.h"
#include "abi.h"
#include "hook.h"
#include "real.h"

#pragma GCC visibility push(hidden)

struct request;
struct handle;
struct device;

enum stream_raising {
    STREAM_RAISED,
    STREAM_PROGRAMS, /* it has one that the program has given it */
    STREAM_FIXED,    /* nobody can, or the driver has refused */
    STREAM_LATER     /* it captures: not now */
};

/* The operations of the vendors, called as OPERATION_OF(vendor, name)(arguments). A row has a column for each vendor: the distance
 * from the table to the function, because the loader would have to relocate addresses at the start of every process.
 * preload/operations.S emits the table into a section of its own, and the linker defines the symbol where that section starts. So the
 * table is valid before any code runs, whichever call comes first, and this folder needs no symbol of a vendor. */
struct vendor_operations {
#define OPERATION(name, result, parameters, cuda, hip) int32_t name[VENDORS];
#include "operation.def"
#undef OPERATION
};
extern const struct vendor_operations __start_vendor_operations;
#define OPERATION(name, result, parameters, cuda, hip) typedef result operation_##name parameters;
#include "operation.def"
#undef OPERATION
#define OPERATION_OF(vendor, name)                                                                                     \
    ((operation_##name *)((uintptr_t)&__start_vendor_operations +                                                      \
                          (uintptr_t)(intptr_t)__start_vendor_operations.name[vendor]))

/* ---- device.c ---- */

#define NO_DEVICE (-1)

struct device {
    uint32_t state; /* 2: ready */
    enum vendor vendor;
    int ordinal;
    uint32_t place;  /* in the statistics page; OVERLAP_DEVICES: none was left */
    uint32_t policy; /* index, OVERLAP_NO_POLICY: none fits */
    bool unreadable; /* the driver does not tell its limits: no policy, although one may fit */
    struct overlap_gpu gpu;
    /* Communication: the component-wise maximum of what was seen, one word per component; `seen` is stored last. */
    uint32_t seen;
    struct overlap_footprint communication;
};

/* The device that the calling thread uses now, ready for decisions; NULL: none, or not known. */
struct device *device_current(enum vendor vendor);
struct device *device_at(enum vendor vendor, int ordinal);
bool device_only_one(enum vendor vendor);

/* In a forked child: devices are looked at and recorded anew. */
void device_forked(void);

/* Takes note of a communication kernel; true if the known footprint has grown. */
bool device_learn(struct device *device, const char *kernel, const struct overlap_footprint *footprint);

/* Copies communication's footprint; NULL while none is known. */
const struct overlap_footprint *device_communication(const struct device *device, struct overlap_footprint *copy);

/* The policy of a device, or NULL. */
const struct overlap_policy *device_policy(const struct device *device);

/* The priority that a policy's word means on the current device. False: leave it as it is. */
bool device_priority(enum vendor vendor, uint32_t kind, int32_t value, int *priority);

/* ---- priority.c ---- */

/* The priority that communication launches get now, by the policy of the device. False: none, and *reason says why. */
bool priority_for(enum vendor vendor, const struct overlap_policy *policy, int *priority, uint32_t *reason);

/* What ends `auto` for good: communication runs at a priority of the program's own; a grid that fills the GPU in one wave
 * runs beside communication; computation is in no hurry for it; its grids are wide. */
void priority_program_sets(void);
void priority_one_wave_beside(void);
void priority_unhurried(void);
void priority_wide(void);

/* A communication launch was not raised: counted where `auto` has ended for one of the last two. */
void priority_left(void);
bool priority_is_auto(enum vendor vendor, const struct overlap_policy *policy);

/* May `auto` still end because of what runs beside communication? */
bool priority_may_end(void);

/* The driver has refused a priority: launches get none from now on. */
void priority_refused(void);

/* ---- handle.c ---- */

enum handle_kind {
    HANDLE_FUNCTION = 1,     /* CUfunction: of one context */
    HANDLE_KERNEL = 2,       /* CUkernel: of every device */
    HANDLE_MODULE = 3,       /* of a library; owner: the library */
    HANDLE_CONTEXT = 4,      /* of a green context; owner: that */
    HANDLE_CLAIMED = 5,      /* a thread fills or frees it */
    HANDLE_HIP_FUNCTION = 6, /* hipFunction_t: of one device */
    HANDLE_HIP_SYMBOL = 7    /* a function of the program that stands for a kernel: of every device */
};

enum handle_mark {
    HANDLE_REFUSED = 1,         /* a changed launch was refused */
    HANDLE_OCCUPANCY_ASKED = 2, /* the program asked how many of its blocks fit */
    HANDLE_RAISED = 8,          /* communication that we launch at another priority */
    HANDLE_ENDING = 4,          /* a call that may end it is on its way; of this handle alone */
    HANDLE_COMMUNICATES = 16,   /* launches of it are communication */
    HANDLE_COOPERATES = 32,     /* it was launched as a cooperative one */
    HANDLE_PROGRAMS_OWN = 64    /* launched by a call that takes no size of ours: left alone */
};

struct handle {
    uint64_t value;           /* as the program has it */
    uint64_t owner;           /* module or library */
    uint64_t context;         /* of a function... */
    uint64_t kernel;          /* ...and the kernel that it came from, or 0 */
    int32_t device;           /* of a function */
    uint32_t kind;            /* enum handle_kind, 0: free */
    uint32_t marks;           /* enum handle_mark */
    uint32_t registers;       /* AMD: of the code object, where it says more than the runtime; 0: nothing */
    uint64_t cluster;         /* of the launches that were checked in clusters: cluster_of() + 1, 0: none yet */
    uint32_t carveout_ours;   /* devices, by bit, where we have set the carve-out; a function has bit 0 only */
    uint32_t carveout_closed; /* ...where we do not, any more */
    uint32_t carveout_small;  /* ...where the program's is not the largest */
    int32_t carveout_asked;   /* what the program has set last */
    uint32_t older_bytes;     /* dynamic bytes of its launches by cuLaunch and its like */
    uint32_t born;            /* handle_born() */
    uint32_t next_free;       /* of a free handle (handle.c) */
    const char *name;         /* as given by the program, or by the driver; NULL: not known */
};

/* A handle that a call of the program has made; a function belongs to what is current. kernel: where a function was made
 * from one that serves every device. name: may be NULL. */
void handle_learn(void *value, enum handle_kind kind, void *owner, const char *name, void *kernel);
struct handle *handle_find(const void *value);

/* A function that was got where no context was current belongs to the one in which it is launched first. */
void handle_settle(struct handle *handle);

/* Around a call that may end handles: of a module, a library or a green context; of a context; of the primary context of a
 * device; of a kind of which no owner is known (but for those made from a kernel that is still there).
 *
 * The driver may give addresses out again before the call returns, and it may refuse the call. So from the first of the two
 * on nothing is served from the cache, and launches are left alone; and the second says whether the driver has done it. What
 * was learned meanwhile stays. */
struct handle_scope {
    enum handle_scope_of { HANDLES_OF_OWNER, HANDLES_OF_CONTEXT, HANDLES_OF_DEVICE, HANDLES_UNOWNED } of;
    uint64_t value; /* address, ordinal or enum handle_kind */
    uint32_t born;
};
struct handle_scope handle_ends(enum handle_scope_of of, uint64_t value);
void handle_ended(const struct handle_scope *scope, bool gone);
static inline bool handle_is_ending(const struct handle *handle) {
    return __atomic_load_n(&handle->marks, __ATOMIC_SEQ_CST) & HANDLE_ENDING;
}

/* Does something with every handle. */
void handle_each(void (*act)(struct handle *handle));

/* The name, asked for once if the program did not give it; NULL: nobody knows. */
const char *handle_name(struct handle *handle);

static inline bool handle_is(const struct handle *handle, enum handle_kind kind) {
    return __atomic_load_n(&handle->kind, __ATOMIC_RELAXED) == (uint32_t)kind;
}
static inline enum vendor handle_vendor(const struct handle *handle) {
    return __atomic_load_n(&handle->kind, __ATOMIC_RELAXED) >= HANDLE_HIP_FUNCTION ? VENDOR_HIP : VENDOR_CUDA;
}
/* The number of its learning: a kernel at an address that is used again has another one. */
static inline uint32_t handle_born(const struct handle *handle) {
    return __atomic_load_n(&handle->born, __ATOMIC_RELAXED);
}
/* Does it serve every device? */
static inline bool handle_is_everywhere(const struct handle *handle) {
    return handle_is(handle, HANDLE_KERNEL) || handle_is(handle, HANDLE_HIP_SYMBOL);
}

/* Does something with every form of a kernel: the handle, the kernel that it came from, and all others of that. */
void handle_each_form(struct handle *handle, void (*act)(struct handle *form));

/* Decisions about a kernel, in all its forms, are made anew. */
void handle_doubted(struct handle *handle);

/* Another thread may be giving its place to another kernel. */
static inline uint32_t handle_kind(const struct handle *handle) {
    return __atomic_load_n(&handle->kind, __ATOMIC_RELAXED);
}

/* Marks a kernel, in all its forms, for good; decisions about it are made anew. */
void handle_mark(struct handle *handle, enum handle_mark mark);
bool handle_is_marked(const struct handle *handle, enum handle_mark mark);

/* The kernel that a function was made from, or NULL. */
struct handle *handle_origin(const struct handle *handle);

/* ---- size.c ---- */

/* A launch that asks for so many bytes is made with so many, equal ones included. */
void size_note(const struct handle *handle, uint32_t asked, uint32_t launched);
/* What was asked for where the driver shows so many. False: that, as far as we know, or not one size only. */
bool size_asked(const struct handle *handle, uint32_t launched, uint32_t *asked);
/* Is it a size that we launch the kernel with, and nobody has asked for? A program that reads it off a node asks for it. */
bool size_is_ours(const struct handle *handle, uint32_t bytes);
/* ---- launch.c ---- */

extern struct overlap_cache launch_cache;

/* Of the calling thread. launch_x86_64.S knows the places. */
struct this_thread {
    struct overlap_shard *shard; /* NULL: none of its own yet */
    uintptr_t outer;             /* return address of the call of NVIDIA's runtime that it is in, or 0 */
    /* The last answer about overlap windows: holds for this stream as long as *window_version is the same. */
    uint64_t version; /* 0: none */
    vendor_stream stream;
    uint32_t whose; /* enum default_stream */
    enum overlap_where where;
    int64_t left;     /* launches that may still take it; below 0 where a signal handler has taken the last one */
    uint32_t step;    /* outside: why, as overlap_row_step() says it */
    uint32_t unknown; /* outside, because the stream waits for something that is not known */
    uint64_t
        *outside[2]; /* where launches outside are counted: those that would be shaped, grids of one wave; or NULL */
    uint64_t newest, serial;
    struct overlap_stream *of;
    uintptr_t from;     /* AMD: who made the call that the runtime passes on to us, or 0 */
    uint32_t inside;    /* AMD: launches that are being made by us, and may come by again */
    uint64_t found;     /* AMD: the word that the hot path has found and left to the slow one, or 0 */
    uintptr_t deciding; /* where on its stack it makes a first decision, or 0 */
    uint64_t asked;     /* how often it has asked about windows */
    struct overlap_shard
        *own; /* `shard`, also while that is hidden from the hot path, which then asks about every launch */
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
    void *function;
    void **parameters;
    void **extra;
    vendor_launch config;
    const void *more; /* AMD: what else the call says (struct hip_more); NULL: nothing */
};

/* The decision word of a launch from wherever it is kept, made if need be; 0: nobody decides here. *place: where it is
 * kept, 0: nowhere. */
uint64_t launch_word(const struct request *request, uint64_t *place);

/* Makes ready what the launch of a changed size needs. False: the driver will not have it. */
bool launch_prepare(const struct request *request, uint64_t *word, uint64_t place);

/* The driver has refused what we changed, or its limit could not be raised: this kernel is left alone from now on. */
void launch_leave_alone(const struct request *request, uint64_t place, bool launched);

/* In a forked child, where pointers into the parent's page must not be used. used: as overlap_page_used() said of the parent. */
void launch_forked(bool used);

/* Counts a launch of which nothing but the reason is known. */
void launch_count_row(enum overlap_way way, uint32_t row);
static inline void launch_count_reason(enum overlap_way way, uint32_t reason) {
    launch_count_row(way, reason);
}

/* Every launch of this thread shall come to launch_slow(), or no longer. */
void launch_followed(bool on);

/* Everything that is not a direct hit in the cache. word: what the first look found, or 0. */
vendor_result launch_slow(struct request *request, uint64_t word);

/* Computation that is launched as asked, and may be on a raised stream, when nobody traces. */
vendor_result launch_streamed(struct request *request, uint64_t word);

/* Computation that is changed in overlap windows only, by a size that the driver has taken, where no stream is raised. */
vendor_result launch_windowed(struct request *request, uint64_t word);
static inline bool launch_is_windowed(uint64_t word) {
    return (word & (OVERLAP_WORD_WINDOWED | OVERLAP_WORD_PROVEN | OVERLAP_WORD_TRACED | OVERLAP_WORD_STREAMED)) ==
           (OVERLAP_WORD_WINDOWED | OVERLAP_WORD_PROVEN);
}

/* Computation that gets another size which the driver has not taken yet, whose word is known, and that nobody traces. */
vendor_result launch_changed(struct request *request, uint64_t word);

/* The row that counts a launch of this word: that of its kernel, for the reason that it had in the end. */
uint32_t launch_other_row(uint64_t word, uint32_t reason);
static inline uint32_t launch_row(uint64_t word, uint32_t reason, bool raised) {
    const uint32_t row = overlap_word_row(word);
    if (__builtin_expect(reason != overlap_word_reason(word), 0))
        return launch_other_row(word, reason);
    return row + (raised && row >= OVERLAP_REASONS); /* a bare one has nothing beside it */
}

/* It is time that a communication launch leaves its own. */
void launch_sample(struct overlap_shard *shard);
/* The process uses a GPU. Everything that takes a system call once for the process, or once for this thread, is done here:
 * the program may enter a sandbox before it launches. */
void launch_opened(void);
/* Of the calling thread, as the system knows it; a system call the first time. */
uint32_t thread_id(void);

/* A communication launch was made: counted. The shard of the thread is looked up once, and not for each counter. */
void launch_communicated_first(const struct request *request, uint32_t row, bool raised);
static inline void launch_communicated(const struct request *request, uint64_t word, uint32_t reason, bool raised) {
    const uint32_t row = launch_row(word, reason, raised);
    struct overlap_shard *const shard = this_thread.own;
    if (__builtin_expect(shard == NULL, 0)) {
        launch_communicated_first(request, row, raised);
        return;
    }
    overlap_add_own(&shard->counters[OVERLAP_COUNTER_COMMUNICATION], 1);
    if (raised)
        overlap_add_own(&shard->counters[OVERLAP_COUNTER_RAISED], 1);
    overlap_add_own(&shard->ways[request->counted], 1);
    overlap_add_own(&shard->launches[row], 1);
    if (__builtin_expect(overlap_sample_is_due(shard), 0))
        launch_sample(shard);
}

/* What makes the word of a computation launch depend on overlap windows (windows.h). */
#define WINDOW_BITS (OVERLAP_WORD_WINDOWED | OVERLAP_WORD_WATCHED | OVERLAP_WORD_ORDERS)

/* Adds one to a counter of the calling thread; adds many; takes some away that any thread has added. */
void launch_count(enum overlap_counter counter);
void launch_count_many(enum overlap_counter counter, uint64_t count);
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

/* Flags of the call (four: overlap_abi.h), and the device of a kernel of every device, take the top bits of the handle in the
 * cache. */
#define FLAG_SHIFT 60
_Static_assert((uint64_t)OVERLAP_LAUNCH_SMALL_CARVEOUT << FLAG_SHIFT == UINT64_C(1) << 63 &&
                   OVERLAP_DEVICES <= 1 << (FLAG_SHIFT - OVERLAP_CACHE_HANDLE_BITS),
               "bits of a handle in the cache");
#define DEVICE_SHIFT OVERLAP_CACHE_HANDLE_BITS

/* The handle under which the cache keeps it, unless its answers are kept by device. */
static inline uint64_t place_of(const struct request *request) {
    return (uint64_t)(uintptr_t)request->function | (uint64_t)request->flags << FLAG_SHIFT;
}

/* ---- facts.c ---- */

/* The decision word of a launch that the cache does not hold under its plain handle. *place: where it is kept, 0:
 * nowhere. */
uint64_t facts_word(const struct request *request, uint64_t *place);
extern bool facts_forked;

/* Decisions that are being made meanwhile are not kept; whoever withdraws answers says so first. */
void facts_changed(void);

/* The basename of the library that holds an address, into name; "" if none does. */
void library_of(uintptr_t site, char *name, size_t size);

/* ---- stream.c ---- */

/* A number for every stream, never 0. Of the default stream of a thread: another one for each. */
uint64_t stream_key(vendor_stream stream, enum default_stream whose);

/* The priority for a stream that this caller creates; false: leave it. */
bool stream_wanted(enum vendor vendor, uintptr_t site, int *priority);

/* We have given a new stream its priority. Have we? It is the program's own from now on. */
void stream_note_raised(vendor_stream stream);

/* 1: the program has, or had, a stream of another priority than 0. The caller at site gives one this priority. */
extern uint32_t stream_some_prioritised;
void stream_prioritised(uintptr_t site, int priority);
bool stream_is_raised(vendor_stream stream, enum default_stream whose);
void stream_is_programs(vendor_stream stream, enum default_stream whose);

/* A stream was made, if the call has succeeded. Returns its result. */
vendor_result stream_created(enum vendor vendor, uintptr_t site, const vendor_stream *stream, vendor_result result);

#define DRIVER_BODY static inline __attribute__((always_inline)) vendor_result

#pragma GCC visibility pop
