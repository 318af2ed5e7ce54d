/* The contract between the Python front-end and the preloaded library.
 *
 * C compiles this file through abi.h; Python gives it to cffi as it stands. Rules of the file:
 *   - fixed-width types, structs, enums, integer defines and prototypes only: no #include, no #if, no casts;
 *   - every struct is free of padding and a multiple of 8 bytes; abi.h asserts the sizes;
 *   - a change of anything here raises OVERLAP_ABI_VERSION. Both sides are little-endian 64-bit machines.
 */

#define OVERLAP_ABI_VERSION 10

/* ---- Policy table: what the launcher hands to the library, by value, in OVERLAP_TABLE (base64) ----
 *
 * Sections without gaps, in this order: header, policies, rules, patterns, strings. A pattern is a string offset. A
 * string is NUL-terminated, and an offset counts from the start of the string section; offset 0 is the empty string.
 * overlap_table_check() must accept a table before anything in it is believed.
 */
#define OVERLAP_TABLE_MAGIC 0x4c505652
#define OVERLAP_TABLE_MAX_SIZE 65536
#define OVERLAP_LINE_BITS 24 /* of a rule's line; above them, how many `extends` lead to the file that has that line */

enum overlap_when { OVERLAP_WHEN_OVERLAPPING = 0, OVERLAP_WHEN_ALWAYS = 1 };

enum overlap_shape {
    OVERLAP_SHAPE_LEAVE = 0,
    OVERLAP_SHAPE_BLOCKS = 1,     /* value: at most so many resident blocks, >= 1 */
    OVERLAP_SHAPE_PERCENT = 2,    /* value: per cent of its own resident blocks, 1 to 100, rounded down, at least 1 */
    OVERLAP_SHAPE_BYTES = 3,      /* value: bytes of dynamic shared memory */
    OVERLAP_SHAPE_MAKE_ROOM = 4,  /* the smallest size with which communication fits beside the resident blocks */
    OVERLAP_SHAPE_QUICK_ENTRY = 5 /* the smallest size with which it fits as soon as one of them has ended */
};

/* What the block scheduler does while a block of higher priority fits nowhere. In a policy: what was found out about its
 * GPUs; in a rule: the answer under which the rule acts (unknown: under any). */
enum overlap_dispatch {
    OVERLAP_DISPATCH_UNKNOWN = 0,
    OVERLAP_DISPATCH_HOLD = 1,     /* no block of lower priority starts */
    OVERLAP_DISPATCH_BACKFILL = 2, /* freed slots are taken by blocks of lower priority */
    OVERLAP_DISPATCH_DRAIN = 3     /* none starts on the multiprocessor that was chosen for it */
};

enum overlap_carveout {
    OVERLAP_CARVEOUT_KEEP = 0,
    OVERLAP_CARVEOUT_MAX = 1,   /* ask for the largest shared-memory carve-out, unless the program asked for one */
    OVERLAP_CARVEOUT_ALWAYS = 2 /* likewise for launches that the rule finds room or entry for as they are */
};

/* Who waits for a stream. One that somebody waits for, and that is minor (a small part of the device's computation), is critical: what is
 * launched on it is raised. */
enum overlap_critical {
    OVERLAP_CRITICAL_COMMUNICATION = 1, /* communication kernels run on it */
    OVERLAP_CRITICAL_HOST_WAITS = 2,    /* the host, while other streams have work that it has not seen to be over */
    OVERLAP_CRITICAL_FEEDING = 4        /* a critical stream, for an event that was recorded on it */
};

enum overlap_priority {
    OVERLAP_PRIORITY_INHERIT = 0, /* as the program has it */
    OVERLAP_PRIORITY_HIGHEST = 1, /* the greatest that the device offers */
    OVERLAP_PRIORITY_NUMBER = 2,  /* priority_value, clamped by the driver; lower numbers are greater priorities */
    OVERLAP_PRIORITY_AUTO = 3     /* the greatest, until something is seen that it could harm */
};

struct overlap_span {
    uint32_t first; /* index of the first pattern */
    uint32_t count;
};

/* Inclusive range of an unsigned quantity; {0, UINT64_MAX} matches everything. */
struct overlap_range {
    uint64_t minimum;
    uint64_t maximum;
};

/* What one block takes. registers are per thread (AMD: VGPRs and AGPRs together); shared memory in bytes, without the
 * driver's reserve. barriers and scalar_registers (AMD: SGPRs per wave): 0 where they are not known, then they limit
 * nothing. */
struct overlap_footprint {
    uint32_t threads, registers, static_shared, dynamic_shared, barriers, scalar_registers;
};

struct overlap_table {
    uint32_t magic;    /* OVERLAP_TABLE_MAGIC */
    uint32_t version;  /* OVERLAP_ABI_VERSION */
    uint32_t size;     /* bytes of the whole table, header included */
    uint32_t checksum; /* CRC-32 (zlib's) of everything behind this header */
    uint32_t policy_count, rule_count, pattern_count;
    uint32_t string_size; /* bytes of the string section */
};

struct overlap_policy {
    uint32_t name;                       /* string offset */
    uint32_t hash;                       /* string offset: 16 hexadecimal digits that identify the compiled policy */
    struct overlap_span gpus;            /* device names (globs) or architectures (sm_90); none: every GPU */
    struct overlap_span kernels;         /* communication, besides the families that the library knows */
    struct overlap_span libraries;       /* whatever these launch is communication (basename globs) */
    struct overlap_span stream_creators; /* streams that these libraries create get stream_priority */
    uint32_t first_rule;
    uint32_t rule_count;
    uint32_t priority; /* enum overlap_priority, of communication launches */
    int32_t priority_value;
    uint32_t stream_priority; /* enum overlap_priority, of streams made by stream_creators */
    int32_t stream_priority_value;
    uint32_t footprint_given;       /* 1: footprint is the policy's word; 0: measured */
    uint32_t dispatch;              /* enum overlap_dispatch */
    struct overlap_span fixed_size; /* kernels that read their own dynamic size: never shaped */
    struct overlap_span families;   /* families of communication (nccl) that may be raised; none: every family */
    uint32_t critical;              /* enum overlap_critical, by bit: whose launches are raised; 0: nobody's */
    uint32_t carveout;              /* enum overlap_carveout, of communication */
    uint32_t reserve_cus; /* AMD: compute units that streams created with a mask leave to communication; 0: none */
    uint32_t
        critical_share; /* per cent: of the device's computation between two waits, at most, for a stream to be critical */
    struct overlap_footprint footprint;
};

/* First match wins. All of kernels (any of them), libraries (any) and the ranges must hold. */
struct overlap_rule {
    struct overlap_span kernels;   /* globs, anchored at both ends, on the driver's name and on the plain name */
    struct overlap_span libraries; /* basename of the calling library; none: any */
    struct overlap_range blocks;
    struct overlap_range threads;
    struct overlap_range registers;
    struct overlap_range waves_percent;   /* 100 x blocks / (resident blocks x multiprocessors) */
    struct overlap_range resident_blocks; /* as launched */
    uint32_t shape;                       /* enum overlap_shape */
    uint32_t value;
    uint32_t when;          /* enum overlap_when */
    uint32_t keep_at_least; /* per cent of the kernel's own resident blocks; 0: not asked for */
    uint32_t line;          /* of the rule in its policy file, for reports: OVERLAP_LINE_BITS */
    uint32_t when_dispatch; /* enum overlap_dispatch */
    uint32_t carveout;      /* enum overlap_carveout, of the launches that the rule shapes */
    uint32_t guard;         /* 1: nobody wrote it: it spares what only looks like the kernels of the rule behind it */
};

/* ---- GPU, occupancy, decision: the pure core ---- */

enum overlap_vendor { OVERLAP_VENDOR_NVIDIA = 0, OVERLAP_VENDOR_AMD = 1 };

/* Limits of one multiprocessor (AMD: compute unit) and one block, as the driver tells them, and the units in which they
 * are given out (overlap_gpu_units()). Bytes unless said otherwise. */
struct overlap_gpu {
    uint8_t key[16];          /* h100; empty where the driver gave the numbers */
    uint8_t name[128];        /* as cuDeviceGetName answers */
    uint8_t architecture[16]; /* sm_90, gfx90a */
    uint32_t vendor;          /* enum overlap_vendor */
    uint32_t major;           /* compute capability; 0 on AMD */
    uint32_t minor, multiprocessors;
    uint32_t warp_size; /* threads */
    uint32_t threads;   /* resident on a multiprocessor */
    uint32_t blocks;
    uint32_t registers; /* of 32 bits, of all lanes */
    uint32_t registers_per_block, registers_per_thread, threads_per_block;
    uint32_t shared;         /* largest carve-out */
    uint32_t shared_default; /* a block's limit without opting in */
    uint32_t shared_optin;
    uint32_t shared_reserved;  /* the driver's own, per block */
    uint32_t shared_unit;      /* in which it is given out */
    uint32_t register_unit;    /* likewise, for one warp */
    uint32_t barriers;         /* 0: they limit nothing */
    uint32_t scalar_registers; /* of one partition; 0: they limit nothing */
    uint32_t memory_gib;
};

enum overlap_limit {
    OVERLAP_LIMIT_NONE = 0, /* fits nowhere: cannot be launched */
    OVERLAP_LIMIT_WARPS = 1,
    OVERLAP_LIMIT_SLOTS = 2,
    OVERLAP_LIMIT_REGISTERS = 3,
    OVERLAP_LIMIT_SHARED = 4,
    OVERLAP_LIMIT_BARRIERS = 5
};

struct overlap_occupancy {
    uint32_t blocks; /* resident on one multiprocessor, 0: cannot be launched */
    uint32_t limit;  /* enum overlap_limit: what stops one more */
};

enum overlap_launch_flag {
    OVERLAP_LAUNCH_COOPERATIVE = 1,
    OVERLAP_LAUNCH_CLUSTER = 2,
    OVERLAP_LAUNCH_PROGRAMMATIC = 4,
    OVERLAP_LAUNCH_SMALL_CARVEOUT =
        8,                       /* the program asks for another carve-out than the largest, or has ours taken back */
    OVERLAP_LAUNCH_UNKNOWN = 16, /* the driver did not tell the footprint */
    OVERLAP_LAUNCH_REFUSED = 32, /* a changed launch of this kernel was refused before */
    OVERLAP_LAUNCH_OCCUPANCY_ASKED = 64, /* the program asked how many of its blocks fit */
    OVERLAP_LAUNCH_COMMUNICATION = 256,  /* by family, by the policy's kernels or by the calling library */
    OVERLAP_LAUNCH_CLUSTER_CHECKED = 128 /* of a cluster: the caller will ask the driver whether it still fits */
};

struct overlap_launch {
    uint64_t blocks;          /* product of the grid */
    uint32_t flags;           /* enum overlap_launch_flag */
    uint32_t maximum_dynamic; /* bytes that one block of this kernel may ask for after opting in */
    struct overlap_footprint footprint;
};

/* Which control works. */
enum overlap_control {
    OVERLAP_CONTROL_LEAVE = 0,
    OVERLAP_CONTROL_ROOM_ALREADY = 1,  /* communication fits beside the kernel as launched */
    OVERLAP_CONTROL_ENTRY_ALREADY = 2, /* ...as soon as one of its blocks has ended */
    OVERLAP_CONTROL_MAKE_ROOM = 3,     /* more dynamic shared memory, so that it fits beside */
    OVERLAP_CONTROL_QUICK_ENTRY = 4,   /* ...so that it fits as soon as one block has ended */
    OVERLAP_CONTROL_PRIORITY = 5,      /* it fits after some blocks have ended: priority lets it in */
    OVERLAP_CONTROL_CAP = 6            /* the rule's own number, whether communication fits or not */
};

/* What to do with a launch, and for which grids the same answer holds. */
struct overlap_decision {
    uint32_t reason;         /* index into reason.def */
    uint32_t dynamic_shared; /* bytes to launch with */
    uint32_t rule;           /* index of the rule, UINT32_MAX: none */
    uint32_t native_blocks;
    uint32_t control;        /* enum overlap_control */
    uint32_t windowed;       /* 1: holds in overlap windows; outside, the launch is left as asked (not_overlapping) */
    uint64_t minimum_blocks; /* of the grid */
    uint64_t maximum_blocks;
};

/* Dynamic sizes, both ends included, with which so many blocks are resident and something fits beside them. */
struct overlap_window {
    uint32_t blocks;
    uint32_t inflates; /* 1: fewer blocks than as launched */
    uint32_t minimum;
    uint32_t maximum;
};

/* Everything that the planner knows about one computation kernel and one communication kernel on one GPU. */
struct overlap_plan {
    uint32_t native_blocks;     /* resident as launched; 0: cannot be launched */
    uint32_t native_limit;      /* enum overlap_limit: what stops one more */
    int32_t beside_after_drain; /* blocks as launched that fit beside one of communication; -1: it fits nowhere */
    uint32_t control;           /* enum overlap_control */
    uint32_t reason;            /* index into reason.def */
    uint32_t dynamic_shared;    /* bytes to launch with */
    uint32_t blocks;            /* then resident */
    uint32_t binding;           /* enum overlap_limit: what leaves no room beside one block; NONE: there is room */
    uint32_t window_count;
    uint32_t entry_count;
    struct overlap_window windows[32]; /* make room: communication fits beside `blocks`; from native_blocks down to 1 */
    struct overlap_window entries[32]; /* quick entry: it fits beside `blocks` - 1; down to 2 */
};

/* ---- Statistics page: HOST.PID.N.page, mapped, valid at any instant ---- */
#define OVERLAP_PAGE_MAGIC 0x47505652
#define OVERLAP_WAYS 6     /* room for way.def */
#define OVERLAP_REASONS 40 /* room for reason.def */
#define OVERLAP_ROWS 320   /* of counters: see struct overlap_row */
#define OVERLAP_COUNTERS 12
#define OVERLAP_SHARDS 257     /* at most */
#define OVERLAP_SHARDS_FIRST 4 /* in every page; the last of them is shared by threads that have none of their own */
#define OVERLAP_SHARDS_MORE 11 /* added at a time, for processes of which more threads launch */
#define OVERLAP_DEVICES 16
#define OVERLAP_PAGE_STREAMS 16
#define OVERLAP_RULES 512   /* more than a table can hold */
#define OVERLAP_SAMPLES 512 /* of the times of communication launches */

enum overlap_counter {
    OVERLAP_COUNTER_COMMUNICATION = 0, /* communication launches */
    OVERLAP_COUNTER_RAISED = 1,        /* of them: launched with another priority than their stream's */
    OVERLAP_COUNTER_REFUSED = 2, /* changed launches that the driver refused and that were launched again as asked */
    OVERLAP_COUNTER_GRAPH_LAUNCHES = 3,
    OVERLAP_COUNTER_TRACE_DROPPED = 4,  /* launches that --trace could not keep */
    OVERLAP_COUNTER_STREAMS_RAISED = 5, /* streams created with another priority than the program asks for */
    /* Communication launches that overlap nothing, by the next launches of their thread: on the same stream; waited for. */
    OVERLAP_COUNTER_SAME_STREAM = 6,
    OVERLAP_COUNTER_WAITED_FOR = 7,
    OVERLAP_COUNTER_UNHURRIED = 8,       /* communication launches that `auto` no longer raises: nobody is in a hurry */
    OVERLAP_COUNTER_STREAMS_REDUCED = 9, /* streams created without the compute units of `communication.reserve_cus` */
    OVERLAP_COUNTER_LAUNCHED_BEFORE = 10, /* launches counted as not_overlapping that were launched_before */
    OVERLAP_COUNTER_WIDE = 11 /* communication launches that `auto` no longer raises: they take many multiprocessors */
};

enum overlap_page_flag {
    OVERLAP_PAGE_OPENED_GPU = 1, /* kernels could be launched in this process: NVIDIA: it had a context */
    OVERLAP_PAGE_FORKED = 2,     /* made by a forked child that did not exec */
    OVERLAP_PAGE_ENDED = 4       /* the process came to its regular end */
};

/* One writer thread each (owner: its thread id, 0 while free), so plain increments suffice. A launch is counted by way and by row,
 * one after the other. */
struct overlap_shard {
    uint32_t owner;
    uint32_t reserved[15];
    uint64_t launches[320]; /* [OVERLAP_ROWS] */
    uint64_t ways[6];       /* [OVERLAP_WAYS] */
    uint64_t counters[12];  /* [OVERLAP_COUNTERS] */
    uint64_t sample_at;     /* communication launches counted here at which the thread takes the next time */
    uint64_t padding[5];
};

/* Every launch is counted in one row. The first OVERLAP_REASONS rows stand for a reason each, whatever the kernel: of launches
 * of which nothing else is known, and where no room is left. The others belong to kernels, or to a rule (its kernels that
 * have no room; the rest of the record is empty), in groups; the first row has the record. Kind: how many rows a group has: one;
 * not raised, and raised; in an overlap window, and outside as not_overlapping, as window_expired, as same_stream. */
enum overlap_row_kind { OVERLAP_ROW_SINGLE = 1, OVERLAP_ROW_RAISED = 2, OVERLAP_ROW_WINDOWED = 4 };
#define OVERLAP_ROW_KIND 7 /* in the key */

struct overlap_row {
    uint64_t key;      /* kind, reason << 3, hash of what tells rows apart << 9 (0: any rule); 0: free, as all behind */
    uint32_t state;    /* 2: the rest is valid */
    uint32_t rule;     /* index in the table, and in `rules`; UINT32_MAX: none */
    uint32_t device;   /* index in `devices`; OVERLAP_DEVICES and more: not there */
    uint32_t launched; /* bytes of dynamic shared memory as decided; this and the two below: of the last decision */
    struct overlap_footprint footprint; /* dynamic_shared: as asked */
    uint64_t blocks;                    /* of the grid */
    uint64_t resident_blocks;           /* as asked, on one multiprocessor; 0: not known */
    uint8_t kernel[112]; /* as the driver gives it; in a long one the middle is replaced by ~HASH~; empty: not known */
    uint8_t plain[64];   /* overlap_plain_name() of all of it, cut */
    uint8_t library[48]; /* basename of the caller */
};

/* A rule of a policy that devices of this process run under. */
struct overlap_page_rule {
    uint8_t state, device; /* 2: the rest is valid; index in `devices` of one that runs under its policy */
    uint8_t dispatch;      /* enum overlap_dispatch, of the policy */
    uint8_t shape, when, when_dispatch, guard, reserved; /* as in the table */
    uint32_t line, value;                                /* likewise */
};

/* When communication was launched. The first 512 launches leave a time each, then every second one until there are 512
 * more, then every fourth: every 256th at last. A thread takes the times of its own launches. */
struct overlap_sample {
    uint64_t launches;    /* of communication so far, in the process: the sum of what all samples stand for; 0: none */
    uint64_t nanoseconds; /* CLOCK_MONOTONIC */
    uint64_t check;       /* launches ^ nanoseconds; else it is being written */
};
struct overlap_cadence {
    uint64_t taken, reserved[7];        /* times so far; the next one goes to this place, modulo OVERLAP_SAMPLES */
    struct overlap_sample samples[512]; /* [OVERLAP_SAMPLES] */
};

struct overlap_device {
    uint32_t state; /* 2: the rest of the record is valid */
    uint32_t index, multiprocessors, reserved;
    uint8_t uuid[16];
    uint8_t name[96];   /* cut */
    uint8_t policy[64]; /* empty: none fits, observed only */
};
/* Libraries that the program asked for by dlmopen, in another namespace: their launches are not seen. */
struct overlap_opened {
    uint64_t times;
    uint8_t names[4][46]; /* basenames, cut, of the first; empty: none */
};

/* Streams that somebody has waited for, in the order in which they were learned about. */
enum overlap_stream_status {
    OVERLAP_STREAM_LEARNING = 0, /* too few rounds yet */
    OVERLAP_STREAM_RAISED = 1,   /* critical: what is launched on it is raised */
    OVERLAP_STREAM_MAJOR = 2,    /* most of the device's computation is its own: left as it is */
    OVERLAP_STREAM_PROGRAMS = 3, /* the program has set its priority, and keeps it */
    OVERLAP_STREAM_FIXED = 4     /* its priority is known at its creation only (HIP), or the driver did not take ours */
};
struct overlap_page_stream {
    uint32_t state;      /* 2: the rest is valid */
    uint32_t device;     /* index in `devices` */
    uint32_t why;        /* enum overlap_critical, by bit */
    uint32_t status;     /* enum overlap_stream_status, the last one */
    uint32_t share;      /* of the device's computation between the last two waits, in thousandths */
    int32_t priority;    /* that it was given; 0: none */
    uint64_t launches;   /* of computation, made on it while it was raised */
    uint8_t creator[48]; /* basename of the library that made it; empty: not known */
};

/* Everything down to `host` keeps its place in every version: of a page of another one it can still be said whose it is. */
struct overlap_page {
    uint32_t magic;
    uint32_t version;
    uint32_t size;  /* bytes of this struct */
    uint32_t flags; /* enum overlap_page_flag */
    uint32_t pid;
    uint32_t parent;
    int32_t rank;    /* -1: unknown */
    uint32_t world;  /* 0: unknown */
    uint64_t start;  /* nanoseconds since 1970 */
    uint8_t run[32]; /* of the run-ID.json that belongs to it */
    uint8_t host[64];
    uint8_t program[256];
    uint8_t directory[512]; /* of the report; a page may wait in /dev/shm until it is copied there */
    uint8_t library[48];    /* version of the preloaded library */
    uint32_t table;         /* checksum of the table that it runs under; 0: none */
    uint32_t more_shards;   /* behind the first ones; the file ends behind the last of them */
    struct overlap_opened opened_apart;
    struct overlap_page_stream streams[16]; /* [OVERLAP_PAGE_STREAMS] */
    struct overlap_device devices[16];      /* [OVERLAP_DEVICES], indexed by the driver's ordinal */
    struct overlap_page_rule rules[512];    /* [OVERLAP_RULES], as in the table */
    struct overlap_row rows[320];           /* [OVERLAP_ROWS]; the first OVERLAP_REASONS have no record */
    struct overlap_cadence cadence;
    struct overlap_shard shards[257]; /* [OVERLAP_SHARDS] */
};

/* ---- Trace: HOST.PID.N.trace, one record per launch, written in the order of the launches of each thread ---- */
#define OVERLAP_TRACE_MAGIC 0x54505652
#define OVERLAP_TRACE_LIMIT 67108864

enum overlap_trace_flag {
    OVERLAP_TRACE_RAISED = 1,      /* priority is valid */
    OVERLAP_TRACE_OVERLAPPING = 2, /* in a window */
    OVERLAP_TRACE_WINDOWED = 4     /* OVERLAPPING says true or false; else (a rule that says `always`) null */
};

/* Followed by kernel_size bytes of the kernel's name and library_size bytes of the library's, then zeros up to size. */
struct overlap_trace {
    uint32_t magic;
    uint32_t size; /* of the record, names included, a multiple of 8 */
    uint64_t sequence;
    uint64_t overlaps; /* sequence of the newest communication launch that it could overlap, + 1; 0: none */
    uint64_t stream;
    uint64_t blocks;
    uint32_t threads;
    uint32_t asked, launched; /* bytes of dynamic shared memory */
    int32_t priority;
    uint32_t flags; /* enum overlap_trace_flag */
    uint32_t reason;
    uint32_t device;
    uint16_t kernel_size;
    uint16_t library_size;
};

/* ---- Functions that Python calls in the same object code ---- */

uint32_t overlap_abi_version(void);

/* Names for indices; NULL behind the last one. shapes: 1 if launches counted there were changed in size. */
const char *overlap_reason_name(uint32_t reason);
const char *overlap_reason_sentence(uint32_t reason);
uint32_t overlap_reason_shapes(uint32_t reason);
const char *overlap_way_name(uint32_t way);

/* Sums over the shards of a page, modulo 2^64. */
struct overlap_totals {
    /* [OVERLAP_WAYS], ...; all launches are in each of the three. Ways: but for those that were being counted. */
    uint64_t ways[6], reasons[40], rows[320];
    uint32_t row_reasons[320]; /* index into reason.def; OVERLAP_REASONS - 1 for what only a damaged page has */
    uint32_t row_heads[320];   /* the row that has the record; the bare rows and free ones: themselves */
    uint64_t counters[12];     /* [OVERLAP_COUNTERS] */
};
void overlap_page_totals(const struct overlap_page *page, struct overlap_totals *totals);

/* NULL if the bytes are a table that may be believed, else a sentence without a full stop. */
const char *overlap_table_check(const void *bytes, uint64_t size);

/* The table of known GPUs; 0 and nothing written behind the last one. */
uint32_t overlap_gpu_known(uint32_t index, struct overlap_gpu *gpu);

struct overlap_occupancy overlap_occupancy_of(const struct overlap_gpu *gpu, const struct overlap_footprint *footprint);

/* How many blocks of computation, at most, stay resident beside one of communication; -1: it does not fit at all. */
int32_t overlap_blocks_beside(const struct overlap_gpu *gpu, const struct overlap_footprint *computation,
                              const struct overlap_footprint *communication);

/* Fills in what follows from vendor, compute capability and block slots: units, barriers, registers per thread. */
void overlap_gpu_units(struct overlap_gpu *gpu);

/* The whole plan for a launch (its footprint and maximum_dynamic count) by a rule of this shape and value that keeps
 * keep_at_least per cent of the kernel's own resident blocks. communication: NULL while none is known. */
void overlap_plan_of(const struct overlap_gpu *gpu, const struct overlap_launch *launch,
                     const struct overlap_footprint *communication, uint32_t shape, uint32_t value,
                     uint32_t keep_at_least, struct overlap_plan *plan);

/* Settings of communication libraries that shrink what a block of theirs takes: the name of the index-th, with what
 * *communication would become in *changed (equal where it does nothing); NULL behind the last one. */
const char *overlap_knob(uint32_t index, const struct overlap_gpu *gpu, const struct overlap_footprint *communication,
                         struct overlap_footprint *changed);

/* The smallest dynamic size, not below the one asked, with at most `blocks` resident; UINT32_MAX: there is none. */
uint32_t overlap_size_for_blocks(const struct overlap_gpu *gpu, const struct overlap_launch *launch, uint32_t blocks);

/* 1 if the glob (`*`, `?`, `[a-z]`, `[!a-z]`) matches all of the name, case-sensitively. */
uint32_t overlap_glob_match(const char *pattern, const char *name);

/* 1 if the kernel belongs to a known family of communication kernels. */
uint32_t overlap_is_communication(const char *kernel);

/* The plain name: last identifier of an Itanium-mangled one; returns the bytes written, at most size, NUL included. */
uint32_t overlap_plain_name(const char *kernel, char *plain, uint32_t size);

/* table: checked; policy: index; library: basename of the caller, or NULL; communication: NULL while none is known. */
void overlap_decide(const void *table, uint32_t policy, const struct overlap_gpu *gpu, const char *kernel,
                    const char *library, const struct overlap_launch *launch,
                    const struct overlap_footprint *communication, struct overlap_decision *decision);

/* The index of the table's policy for a device, UINT32_MAX: none. architecture: "sm_90". */
uint32_t overlap_policy_for(const void *table, const char *device, const char *architecture);
