/* The second half of sim.h: work of the device, streams, graphs, launches and memory. Included by sim.h only. */
#ifndef SIMGPU_SIM_WORK_H
#define SIMGPU_SIM_WORK_H

/* ---- device work (ops.c, work.c, scheduler.c) ---- */

enum op_kind { OP_NOTHING, OP_KERNEL, OP_DELAY };

/* What an OP_DELAY occupies: a copy engine of its device, or the thread that runs host functions. One operation at a
 * time, in the order in which they become eligible, whatever the priorities of their streams. */
enum unit { UNIT_NONE, UNIT_TO_DEVICE, UNIT_FROM_DEVICE, UNIT_PEER, UNIT_HOST, UNITS };

/* What makes blocks share a multiprocessor: same kernel, same threads, on GPUs of one kind. */
struct work_class {
    const char *gpu; /* its key */
    char *name;
    int threads, registers, scalars, static_shared, full;
    double block_us, spread, sharing;
    double bytes_per_us;         /* of memory that a block moves at speed 1 */
    double rate[MAX_BLOCKS + 1]; /* speed of a block among n of its class */
    uint64_t seed;
    uint64_t launches;
    struct work_class *next;
};

struct op {
    enum op_kind kind;
    int device;
    int references; /* streams' tails, events, the engine itself */
    int waits;      /* operations not finished yet, plus one for the arrival */
    bool done;
    uint64_t sequence;
    double queued_us, start_us, done_us, delay_us;
    enum unit unit;
    double eligible_us;
    struct op **after; /* operations that wait for this one */
    uint32_t after_count, after_room;
    struct stream *stream;    /* whose queue it counts in, or NULL */
    struct launch *launch;    /* kernels only */
    const char *transfer;     /* what a copy or fill is called; else NULL */
    int queue;                /* the number of its stream, for the trace */
    unsigned int correlation; /* the number of the call that made it */
    uint64_t node;            /* of a graph, or 0 */
    struct op *next;          /* in a queue of the scheduler */
};

struct launch {
    struct work_class *work;
    unsigned long long blocks; /* as the program asked */
    unsigned int grid[3];
    uint64_t simulated, placed, finished;
    double scale; /* real blocks that one simulated block stands for */
    int threads, warps, registers_of_warp, scalars_of_warp;
    size_t dynamic, shared;
    size_t room; /* shared memory of a multiprocessor for blocks of this kernel */
    int priority, resident_peak;
    uint64_t seed;
};

/* From the end of the work before a host function to the start of the work behind it. Assumption: reports range from 6 us
 * (kokkos #8020, on AMD) to 100 us (velox #6096). */
static const double HOST_FUNCTION_US = 10;

struct op *sim_op_new(enum op_kind kind, int device);
void sim_op_wait_for(struct op *op, struct op *earlier);
void sim_op_submit(struct op *op);
void sim_op_hold(struct op *op);
void sim_op_release(struct op *op);
void sim_op_finish(struct op *op, double now);
struct work_class *sim_work_class(const struct gpu *gpu, const struct kernel_image *image, int threads);
double sim_block_work(const struct launch *launch, uint64_t block);

void sim_engine_run_to(double time);
bool sim_engine_wait_for_something(void);
CUresult sim_engine_run_until_done(const struct op *op); /* LAUNCH_TIMEOUT: never */

double sim_scheduler_next(int device);
void sim_scheduler_step(int device, double now);
void sim_scheduler_add(struct op *op, double now);
void sim_scheduler_dispatch(int device, double now);

/* ---- streams and events (stream.c, streams_api.c, event.c) ---- */

struct capture;
struct transfer;

struct stream {
    CUstream handle;
    int number; /* in the trace */
    struct context *context;
    CUcontext green; /* or NULL */
    bool of_green;   /* the default stream of one */
    unsigned int flags;
    int priority;
    bool legacy;
    uint64_t thread; /* of a per-thread default stream */
    struct op *tail;
    uint32_t pending; /* operations not finished */
    bool gone;        /* destroyed, but operations are left */
    struct capture *capture;
    struct node **heads; /* what the next captured operation waits for */
    uint32_t head_count;
    struct stream *next;
};

struct event {
    CUevent handle;
    struct context *context;
    unsigned int flags;
    struct op *record;
    unsigned long long capture_id; /* recorded into a capture; 0: not */
    struct node **heads;
    uint32_t head_count;
    struct event *next;
};

CUresult sim_stream_of(CUstream handle, bool per_thread, struct stream **out);
struct stream *sim_stream_here(struct context *context, unsigned int flags, int priority);
struct stream *sim_stream_new(struct context *context, unsigned int flags, int priority);
void sim_stream_free(struct stream *stream);
void sim_stream_op_finished(struct stream *stream);
CUresult sim_event_new(struct context *context, unsigned int flags, CUevent *out);
void sim_event_free(struct event *event);
struct op *sim_stream_op(struct stream *stream, enum op_kind kind);
void sim_stream_submit(struct stream *stream, struct op *op);
CUresult sim_stream_drain(struct stream *stream);
bool sim_stream_idle(const struct stream *stream);
CUresult sim_context_drain(struct context *context);
void sim_context_free_work(struct context *context);
unsigned long long sim_stream_number(const struct stream *stream);
int sim_clamp_priority(int priority);
uint64_t sim_thread_id(void);

/* ---- capture and graphs (capture.c, graph.c, exec.c) ---- */

struct launch_request {
    CUfunction handle; /* as the program gave it */
    uint32_t turn;     /* of a node: of that handle, which may be another kernel's once its module is gone */
    struct function *function;
    unsigned int grid[3], block[3], dynamic;
    struct { /* what attributes say; nodes copy it */
        unsigned int cluster_size[3];
        bool has_cluster, cooperative, has_priority, has_carveout;
        int cluster;  /* its blocks, of the launch or of the function; 0: none */
        int carveout; /* in percent, stronger than the function's; -1: no preference */
        int priority;
    } set;
    bool overshoots;     /* of AMD's: taken by the runtime, but it ends its queue (hip/check.c) */
    uint8_t *parameters; /* owned: all of them at their offsets */
    uint32_t parameter_bytes;
};

struct node {
    CUgraphNode handle;
    struct graph *graph;
    int type;
    uint32_t index; /* in its graph */
    uint64_t id;
    struct node **before;
    uint32_t before_count;
    struct launch_request launch; /* kernels */
    CUcontext context;            /* in which a CUkernel is looked up; it may be a green one */
    struct transfer *transfer;    /* copies and fills */
    CUhostFn function;            /* host functions */
    void *argument;
    CUevent event;       /* records and waits */
    struct graph *child; /* owned */
};

struct graph {
    CUgraph handle;
    struct node **nodes;
    uint32_t count, room;
    bool owned;     /* by a child graph node */
    bool capturing; /* a stream still adds to it */
};

struct capture {
    unsigned long long id;
    int mode;
    int status;
    uint64_t thread;
    struct stream *origin;
    struct graph *graph;
    bool given;     /* the program's own graph, which stays its own */
    uint32_t first; /* of its nodes that the capture made */
    struct capture *next;
};

CUresult sim_capture_forbids(void);                         /* calls that no capture allows */
CUresult sim_capture_stream_forbids(struct stream *stream); /* waiting for a stream that captures */
bool sim_capture_is_implicit(const struct stream *stream);  /* whether the next would fail: only asks */
CUresult sim_capture_check_legacy(const struct stream *stream);
CUresult sim_capture_check(struct stream *stream, bool *capturing);
void sim_capture_invalidate(struct capture *capture);
struct node *sim_capture_node(struct stream *stream, int type);
CUresult sim_capture_record(struct stream *stream, struct event *event);
CUresult sim_capture_wait(struct stream *stream, struct event *event);
void sim_capture_stream_gone(struct stream *stream);
bool sim_capture_holds(const struct event *event);

struct graph *sim_graph_new(void);
struct graph *sim_graph_copy(const struct graph *graph);
void sim_graph_free(struct graph *graph);
struct node *sim_node_new(struct graph *graph, int type, struct node *const *before, uint32_t count);
void sim_node_set_launch(struct node *node, const struct launch_request *request);
CUresult sim_node_resolve(struct node *node, struct context *context);
void sim_nodes_set(struct node ***nodes, uint32_t *count, struct node *const *from, uint32_t from_count);

struct exec {
    CUgraphExec handle;
    struct graph *graph; /* its own copy */
    unsigned long long flags;
    struct op *latest; /* the end of its latest launch, which the next one waits for; or NULL */
};

/* ---- launches (launch.c, logs.c, trace.c) ---- */

struct footprint sim_footprint(const struct function *function, int threads, size_t dynamic);
struct footprint sim_launch_footprint(const struct launch_request *request);
CUresult sim_launch_check(struct launch_request *request);
CUresult sim_launch_parameters(struct launch_request *request, void **pointers, void **extra);
CUresult sim_launch_attributes(struct launch_request *request, const CUlaunchAttribute *attributes, unsigned int count);
bool sim_is_refused(const struct launch_request *request); /* SIMGPU_REFUSE */
enum op_kind sim_launch_kind(const struct launch_request *request);
void sim_launch_fill(struct op *op, const struct launch_request *request, int priority);

/* A call that launches, and what becomes of it. */
struct call {
    const CUlaunchConfig *config;
    CUfunction handle;
    void **parameters, **extra;
    bool cooperative, per_thread;
};

CUresult sim_launch_locked(const struct call *call);

struct launch_line {
    const struct launch_request *request;
    const char *stream; /* as text */
    CUresult result;
    int priority;
    bool captured, graph;
};

void sim_log_launch(const struct launch_line *line);
const char *sim_log_escaped(const char *name, char *out, size_t room); /* as the inside of a JSON string */
void sim_trace_add(const struct op *op);
void sim_trace_call(void);
/* What the call waited for: a stream (or NULL: whatever runs), or the record of an event. */
void sim_trace_wait(const char *what, int device, const struct stream *stream, const struct op *record);
void sim_trace_flush(void);
void sim_trace_forget(void);

/* ---- memory (memory.c, copy.c) ---- */

enum { MEMORY_HOST = 1, MEMORY_DEVICE = 2 };

CUdeviceptr sim_memory_new(size_t bytes, const struct context *context, int type);
bool sim_memory_free(CUdeviceptr address);
bool sim_memory_has(CUdeviceptr address, size_t bytes);

/* Where an address is: memory of a device, of the host and page-locked, or of the host and pageable. */
struct place {
    bool device, locked;
    int index; /* of the device */
};

struct place sim_memory_place(CUdeviceptr address);

/* A copy or a fill: done at once, in virtual time on the stream, or as a node of the graph that captures. */
struct transfer {
    void *to;
    const void *from; /* NULL: a fill */
    size_t bytes;
    uint32_t value, value_bytes;
    bool to_driver, from_driver; /* allocated by the driver */
    double us;
    const char *name;
    enum unit unit;
    bool waits; /* the host waits for it, also where the call is called asynchronous */
};

void sim_transfer_run(const struct transfer *transfer);

#endif
