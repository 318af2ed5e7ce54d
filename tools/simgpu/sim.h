/* What the parts of the simulated driver know of each other.
 *
 * One mutex guards everything (SIM_CALL takes it and gives it back at the end of the scope). Every object that a
 * program holds is a cell of one registry, so a bad handle is found out and never followed. Device work is a
 * graph of `struct op`: an operation starts when all it waits for has finished; a stream is the habit of making
 * each operation wait for the one before. Virtual time is in microseconds.
 */
#ifndef SIMGPU_SIM_H
#define SIMGPU_SIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cuda_abi.h"
#include "vendor.h"

#define SIM_API __attribute__((visibility("default")))
#define SIM_PRINTF(text, first) __attribute__((format(printf, text, first)))

enum {
    MAX_DEVICES = 16,
    MAX_BLOCKS = 32,
    PARTITIONS = 4,
    FIRST_VERSION_WITH_PRIORITY = 12000,
    FIRST_WITH_CLUSTERS = 9, /* compute capability */
    MAX_BLOCK_THREADS = 1024
};

/* ---- configuration (config.c, costs.c) ---- */

struct gpu {
    const char *key, *name;
    int major, minor, multiprocessors, threads, blocks, registers, shared, shared_optin, memory_gib;
    const char *architecture; /* gfx90a; NULL: NVIDIA's */
    int number;               /* among the devices of the machine, whichever of them are visible */
};

struct cost {
    double block_us, spread, gain, bytes_per_block, sharing;
};

/* GLOB:NUMBER of the environment. */
struct limit {
    char *glob; /* NULL: not given */
    unsigned long number;
};

struct config {
    struct gpu gpus[MAX_DEVICES];
    int devices;
    int driver_version;
    bool crashes; /* SIMGPU_INVALID */
    bool fresh_handles;
    const char *launches, *trace;
    struct limit refuse, no_attributes;
};

extern struct config sim_config;

static inline const struct gpu *sim_gpu(int device) {
    return &sim_config.gpus[device];
}

CUresult sim_config_read(void);
void sim_config_hide(void);                        /* devices that the environment makes invisible (hip/device.c) */
double sim_bandwidth(const struct gpu *gpu);       /* of its memory, in bytes a microsecond (device.c) */
double sim_link(const struct gpu *gpu, bool peer); /* one way, to the host or to another GPU */
CUresult sim_costs_read(const char *path);
struct cost sim_cost_of(const char *kernel);
double sim_event_us(void); /* from a recorded event to the work of another stream that waits for it */
bool sim_glob(const char *pattern, const char *text);
void sim_say(const char *format, ...) SIM_PRINTF(1, 2);

/* ---- memory of the simulator's own (driver.c): without any it ends the process, for it has nothing to fall back on ---- */

void *sim_new(size_t count, size_t size); /* zeros */
void *sim_grow(void *memory, size_t count, size_t size);
char *sim_text(const char *text);

/* Takes an object out of a list of its kind. */
#define SIM_UNLINK(list, object)                                                                                       \
    do {                                                                                                               \
        __typeof__(&(list)) sim_at = &(list);                                                                          \
        while (*sim_at != NULL && *sim_at != (object))                                                                 \
            sim_at = &(*sim_at)->next;                                                                                 \
        if (*sim_at != NULL)                                                                                           \
            *sim_at = (object)->next;                                                                                  \
    } while (0)

/* ---- one lock, one clock (driver.c) ---- */

extern double sim_host_us;

/* The call that holds the lock. */
struct sim_call {
    double start_us;
    unsigned int number;
    bool shown; /* in the trace: it put work into a stream, or waited */
};
extern struct sim_call sim_call;

/* Of the thread: the name of the call that it makes, for the logs. Where the engine is part of HIP's library, hip/entry.c says it. */
extern _Thread_local const char *sim_entry;
#ifdef SIMGPU_HIP
#define SIM_NAMED(name) (void)0
#else
#define SIM_NAMED(name) (void)(sim_entry = (name))
#endif

extern bool sim_queue_died; /* of AMD's: of a launch with more shared memory than there is */

CUresult sim_enter(void);
void sim_leave(const int *guard);
int sim_driver_version(void);
void *sim_proc_find(const char *name, int version, uint64_t flags, int *status); /* NULL: see status */
bool sim_is_initialized(void);
void sim_unlock(void);
void sim_lock(void);

/* Both forms of an entry point that takes a stream: NULL is the legacy stream, or the thread's own in _ptsz. */
#define SIM_BOTH(name, body, declared, ...)                                                                            \
    SIM_API CUresult name declared {                                                                                   \
        SIM_NAMED(#name);                                                                                              \
        return body(__VA_ARGS__, false);                                                                               \
    }                                                                                                                  \
    SIM_API CUresult name##_ptsz declared {                                                                            \
        SIM_NAMED(#name "_ptsz");                                                                                      \
        return body(__VA_ARGS__, true);                                                                                \
    }

/* An entry point that is a call of another function. */
#define SIM_ENTRY(name, body, declared, ...)                                                                           \
    SIM_API CUresult name declared {                                                                                   \
        return body(__VA_ARGS__);                                                                                      \
    }

#define SIM_CALL()                                                                                                     \
    const CUresult sim_state = sim_enter();                                                                            \
    if (sim_state != CUDA_SUCCESS)                                                                                     \
        return sim_state;                                                                                              \
    __attribute__((cleanup(sim_leave), unused)) const int sim_guard = 0

#define SIM_CALL_IN_CONTEXT(variable)                                                                                  \
    SIM_CALL();                                                                                                        \
    struct context *const variable = sim_current_context();                                                            \
    const CUresult sim_usable = sim_context_check(variable);                                                           \
    if (sim_usable != CUDA_SUCCESS)                                                                                    \
    return sim_usable

/* Inside a body of SIM_BOTH: its stream, which `handle` and `per_thread` name. */
#define SIM_CALL_WITH_STREAM(variable)                                                                                 \
    SIM_CALL();                                                                                                        \
    struct stream *variable;                                                                                           \
    const CUresult sim_found = sim_stream_of(handle, per_thread, &variable);                                           \
    if (sim_found != CUDA_SUCCESS)                                                                                     \
    return sim_found

/* ---- handles (driver.c) ---- */

enum kind {
    KIND_FREE,
    KIND_CONTEXT,
    KIND_MODULE,
    KIND_LIBRARY,
    KIND_FUNCTION,
    KIND_KERNEL,
    KIND_STREAM,
    KIND_EVENT,
    KIND_GRAPH,
    KIND_NODE,
    KIND_EXEC,
    KIND_GREEN,
    KIND_RESOURCES,
    KINDS
};

struct sim_cell *sim_handle_new(enum kind kind, void *object);
void *sim_handle_get(const void *handle, enum kind kind);
uint32_t sim_handle_turn(const void *handle, enum kind kind); /* 0: no such handle */
void sim_handle_free(struct sim_cell *handle);
unsigned long long sim_handle_number(const void *handle);

/* ---- images (image.c, fatbin.c, elf.c) ---- */

struct parameter {
    uint32_t offset, size;
};

struct kernel_image {
    char *name;
    int registers, scalars; /* scalars: of AMD's, likewise of a warp; 0: they limit nothing */
    int said_registers;     /* what the runtime answers, where that is another number */
    int static_shared, max_threads, cluster[3];
    bool bound_written; /* the source says __launch_bounds__ */
    bool layout_known;
    bool uniform; /* of AMD's: the grid is made of whole blocks */
    uint32_t parameters, parameter_room;
    struct parameter *parameter;
};

struct image {
    int references;
    int architecture; /* 80, 90; 0 for PTX */
    uint32_t kernels;
    struct kernel_image *kernel;
};

CUresult sim_image_load(const void *data, size_t bytes, bool size_known, const struct gpu *gpu, struct image **out);
CUresult sim_elf_read(const uint8_t *data, size_t bytes, struct image *image);
CUresult sim_read_file(const char *path, uint8_t **data, size_t *bytes);
struct kernel_image *sim_image_add_kernel(struct image *image, const char *name);
void sim_image_release(struct image *image);
uint32_t sim_parameter_bytes(const struct kernel_image *image);

/* ---- contexts (context.c) ---- */

struct stream;

struct context {
    CUcontext handle;
    int device;
    bool primary;
    bool ended;   /* a primary one, until it is retained again */
    int attached; /* by cuCtxAttach */
    int cache_config;
    struct stream *legacy;
    struct green *greens;
    struct stream *streams; /* all of this context, legacy and per thread included */
    struct module *modules;
    struct event *events;
};

/* Another handle for the primary context of a device (green.c). */
struct green {
    CUcontext handle;
    struct context *context;
    struct stream *stream; /* its default stream */
    struct green *next;
};

struct context *sim_context_of(CUcontext handle);
struct context *sim_current_context(void);
CUresult sim_context_check(const struct context *context); /* of one that is none or has ended: the error */
struct green *sim_current_green(void);                     /* NULL: the current context is not one */
struct context *sim_primary_retain(CUdevice device);
void sim_primary_release(CUdevice device);
void sim_green_free(struct green *green);
CUresult sim_device_check(CUdevice device);

/* ---- modules, functions, kernels (module.c, library.c, function.c) ---- */

struct module {
    CUmodule handle;
    struct context *context;
    struct image *image;
    struct library *library;     /* NULL: loaded as a module */
    struct function **functions; /* by index in the image, made on demand */
    struct module *next;
};

/* Attributes that a program has set, by their numbers. */
enum { UNSET = -1000 };

struct settings {
    int of[FUNC_ATTRIBUTES];
};

struct function {
    CUfunction handle;
    struct module *module;
    const struct kernel_image *image;
    struct kernel *kernel; /* NULL: from a module */
    struct settings settings;
};

struct kernel {
    CUkernel handle;
    struct library *library;
    const char *name;
    const struct kernel_image *images[MAX_DEVICES]; /* NULL: no code for that device */
    struct settings settings[MAX_DEVICES];
};

struct library {
    CUlibrary handle;
    struct image *images[MAX_DEVICES]; /* NULL: no code for that device */
    uint32_t count;                    /* of kernels */
    struct module **modules;           /* one for each context in use */
    uint32_t used;
    struct kernel **kernels;
};

struct module *sim_module_new(struct context *context, struct image *image, struct library *library);
void sim_module_free(struct module *module);
struct kernel *sim_library_kernel(const struct library *library, const char *name);
void sim_library_forget_module(struct library *library, const struct module *module);
struct function *sim_module_function(struct module *module, uint32_t index);
CUresult sim_kernel_function(struct kernel *kernel, struct context *context, struct function **out);
CUresult sim_function_of(CUfunction handle, struct context *context, bool kernels_too, struct function **out);
void sim_settings_clear(struct settings *settings);
int sim_setting(const struct function *function, int id);
int sim_kernel_setting(const struct kernel *kernel, int device, int id);
const struct gpu *sim_gpu_of(const struct function *function);
int sim_max_threads(const struct kernel_image *image, const struct gpu *gpu);

/* ---- occupancy (occupancy.c) ---- */

struct footprint {
    int threads, registers, scalars, static_shared;
    size_t dynamic;
    bool prefers; /* a part of the L1 cache as shared memory, in percent */
    int carveout;
};

int sim_resident(const struct function *function, const struct footprint *footprint);
int sim_occupancy(const struct gpu *gpu, const struct footprint *footprint);
int sim_warps(int threads);
int sim_registers_of_warp(int registers);
int sim_scalars_of_warp(int scalars);
size_t sim_shared_of_block(int static_shared, size_t dynamic);
size_t sim_shared_room(const struct gpu *gpu, const struct footprint *footprint);

#include "sim_work.h"

#endif
