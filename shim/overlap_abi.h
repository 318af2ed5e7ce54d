/* The contract between the Python front-end and the preloaded library.
 *
 * C compiles this file through abi.h; Python passes it to cffi unchanged. Rules of the file:
 *   - fixed-width types, structs, enums, integer defines and prototypes only: no #include, no #if, no casts;
 *   - every struct is free of padding and a multiple of 8 bytes; abi.h asserts the sizes;
 *   - any change here increments OVERLAP_ABI_VERSION. Both sides are little-endian 64-bit machines.
 */

#define OVERLAP_ABI_VERSION 21

/* ---- Policy table: passed by value from the launcher to the library, in OVERLAP_TABLE (base64) ----
 *
 * Sections without gaps, in this order: header, policies, rules, patterns, strings. A pattern is a string offset. Strings are
 * NUL-terminated, and offsets are relative to the string section; offset 0 is the empty string. No content may be used before
 * overlap_table_check() has accepted the table.
 */
#define OVERLAP_TABLE_MAGIC 0x4c505652
#define OVERLAP_TABLE_MAX_SIZE 65536
#define OVERLAP_LINE_BITS 24 /* bits of `line` for the line number; those above: how many `extends` lead to its file */

enum overlap_when { OVERLAP_WHEN_OVERLAPPING = 0, OVERLAP_WHEN_ALWAYS = 1 };

enum overlap_shape {
    OVERLAP_SHAPE_LEAVE = 0,
    OVERLAP_SHAPE_BLOCKS = 1,   /* value: largest number of resident blocks, >= 1 */
    OVERLAP_SHAPE_PERCENT = 2,  /* value: 1 to 100 per cent of the resident blocks as launched, rounded down, >= 1 */
    OVERLAP_SHAPE_BYTES = 3,    /* value: bytes of dynamic shared memory */
    OVERLAP_SHAPE_MAKE_ROOM = 4 /* the smallest size with which communication fits beside the resident blocks */
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

/* Resources of one block. registers: per thread (AMD: VGPRs and AGPRs together). Shared memory: in bytes, without the driver's
 * reserve. barriers, scalar_registers (AMD: SGPRs per wave): 0 if unknown; they then limit nothing. */
struct overlap_footprint {
    uint32_t threads, registers, static_shared, dynamic_shared, barriers, scalar_registers;
};

struct overlap_table {
    uint32_t magic;    /* OVERLAP_TABLE_MAGIC */
    uint32_t version;  /* OVERLAP_ABI_VERSION */
    uint32_t size;     /* bytes of the whole table, header included */
    uint32_t checksum; /* CRC-32 (as in zlib) of everything after this header */
    uint32_t policy_count, rule_count, pattern_count;
    uint32_t string_size; /* bytes of the string section */
};

struct overlap_policy {
    uint32_t name;                       /* string offset */
    uint32_t hash;                       /* string offset: 16 hexadecimal digits that identify the compiled policy */
    struct overlap_span gpus;            /* device names (globs) or architectures (sm_90); none: every GPU */
    struct overlap_span kernels;         /* communication kernels, in addition to the built-in families */
    struct overlap_span libraries;       /* libraries whose launches are all communication (basename globs) */
    struct overlap_span stream_creators; /* libraries whose streams are created at the device's greatest priority */
    struct overlap_span fixed_size;      /* kernels that read their own dynamic size: never shaped */
    uint32_t first_rule;
    uint32_t rule_count;
    uint32_t
        raise_share; /* per cent, 1 to 100: streams that something waits for are raised if they carry at most so much of
                           * the device's computation (core/judge.h); 0: no stream is judged or raised; above
                           * OVERLAP_OBSERVED: judged by so much less OVERLAP_OBSERVED, and not raised */
    uint32_t reserved;
};

enum { OVERLAP_OBSERVED = 100 };

/* The first matching rule is used. A rule matches if one of its kernels, one of its libraries and all ranges match. */
struct overlap_rule {
    struct overlap_span kernels;   /* globs for the whole name, as the driver gives it or plain */
    struct overlap_span libraries; /* basename of the calling library; none: any */
    struct overlap_range threads;
    struct overlap_range waves_percent;   /* 100 x blocks / (resident blocks x multiprocessors) */
    struct overlap_range resident_blocks; /* as launched */
    uint32_t shape;                       /* enum overlap_shape */
    uint32_t value;
    uint32_t when;          /* enum overlap_when */
    uint32_t keep_at_least; /* per cent of the resident blocks as launched; 0: no limit */
    uint32_t line;          /* line and depth of `extends` in the policy files, for reports: OVERLAP_LINE_BITS */
    uint32_t guard;         /* 1: added by the compiler, to exempt lookalikes of the next rule's kernels */
};

/* ---- GPU, occupancy, decision: computed by core/ ---- */

enum overlap_vendor { OVERLAP_VENDOR_NVIDIA = 0, OVERLAP_VENDOR_AMD = 1 };

/* Limits of one multiprocessor (AMD: compute unit) and of one block, as reported by the driver, and their allocation units
 * (overlap_gpu_units()). In bytes unless stated otherwise. */
struct overlap_gpu {
    uint8_t key[16];          /* such as h100; empty if the driver gave the numbers */
    uint8_t name[128];        /* the answer to cuDeviceGetName */
    uint8_t architecture[16]; /* sm_90, gfx90a */
    uint32_t vendor;          /* enum overlap_vendor */
    uint32_t major;           /* compute capability; 0 on AMD */
    uint32_t minor, multiprocessors;
    uint32_t warp_size; /* threads */
    uint32_t threads;   /* resident on one multiprocessor */
    uint32_t blocks;
    uint32_t registers; /* 32-bit registers of all lanes */
    uint32_t registers_per_block, registers_per_thread, threads_per_block;
    uint32_t shared;         /* at the largest carve-out */
    uint32_t shared_default; /* limit of a block without opting in */
    uint32_t shared_optin;
    uint32_t shared_reserved;  /* by the driver, per block */
    uint32_t shared_unit;      /* allocation unit */
    uint32_t register_unit;    /* allocation unit, for one warp */
    uint32_t barriers;         /* 0: they limit nothing */
    uint32_t scalar_registers; /* of one partition; 0: they limit nothing */
    uint32_t memory_gib;
};

enum overlap_limit {
    OVERLAP_LIMIT_NONE = 0, /* cannot be launched at all */
    OVERLAP_LIMIT_WARPS = 1,
    OVERLAP_LIMIT_SLOTS = 2,
    OVERLAP_LIMIT_REGISTERS = 3,
    OVERLAP_LIMIT_SHARED = 4,
    OVERLAP_LIMIT_BARRIERS = 5
};

struct overlap_occupancy {
    uint32_t blocks; /* resident on one multiprocessor; 0: cannot be launched */
    uint32_t limit;  /* enum overlap_limit: what prevents one more block */
};

enum overlap_launch_flag {
    OVERLAP_LAUNCH_COOPERATIVE = 1,
    OVERLAP_LAUNCH_CLUSTER = 2,
    OVERLAP_LAUNCH_PROGRAMMATIC = 4,
    OVERLAP_LAUNCH_SMALL_CARVEOUT = 8,   /* the program requests a smaller carve-out, or has reset ours */
    OVERLAP_LAUNCH_UNKNOWN = 16,         /* the driver does not report the footprint */
    OVERLAP_LAUNCH_REFUSED = 32,         /* a changed launch of this kernel was refused earlier */
    OVERLAP_LAUNCH_OCCUPANCY_ASKED = 64, /* the program queried the kernel's occupancy */
    OVERLAP_LAUNCH_COMMUNICATION = 128   /* recognized by family, by the policy's kernels or by the calling library */
};

struct overlap_launch {
    uint64_t blocks;          /* of the grid */
    uint32_t flags;           /* enum overlap_launch_flag */
    uint32_t maximum_dynamic; /* largest dynamic size in bytes that one block may have after opting in */
    struct overlap_footprint footprint;
};

enum overlap_control {
    OVERLAP_CONTROL_LEAVE = 0,
    OVERLAP_CONTROL_ROOM_ALREADY = 1, /* communication fits beside the kernel as launched */
    OVERLAP_CONTROL_MAKE_ROOM = 2,    /* more dynamic shared memory, so that communication fits beside the kernel */
    OVERLAP_CONTROL_PRIORITY = 3,     /* communication fits after some blocks have ended, and priority lets it in */
    OVERLAP_CONTROL_CAP = 4           /* the rule's own number, whether communication fits or not */
};

/* What to do with a launch, and the interval of grids for which it holds. */
struct overlap_decision {
    uint32_t reason;         /* index into reason.def */
    uint32_t dynamic_shared; /* bytes to launch with */
    uint32_t rule;           /* index of the rule; UINT32_MAX: none */
    uint32_t native_blocks;
    uint32_t control;        /* enum overlap_control */
    uint32_t windowed;       /* 1: holds inside overlap windows only; outside, the launch is left alone */
    uint64_t minimum_blocks; /* of the grid */
    uint64_t maximum_blocks;
};

/* Dynamic sizes, from minimum to maximum, with which `blocks` blocks are resident and communication fits beside them. */
struct overlap_size_range {
    uint32_t blocks;
    uint32_t inflates; /* 1: fewer blocks are resident than as launched */
    uint32_t minimum;
    uint32_t maximum;
};

/* The planner's result for one computation kernel and one communication kernel on one GPU. */
struct overlap_plan {
    uint32_t native_blocks;     /* resident as launched; 0: cannot be launched */
    uint32_t native_limit;      /* enum overlap_limit: what prevents one more block */
    int32_t beside_after_drain; /* blocks as launched that fit beside one of communication; -1: that cannot run */
    uint32_t control;           /* enum overlap_control */
    uint32_t reason;            /* index into reason.def */
    uint32_t dynamic_shared;    /* bytes to launch with */
    uint32_t blocks;            /* resident with that size */
    uint32_t binding;           /* enum overlap_limit: why communication does not fit beside one block; NONE: it does */
    uint32_t window_count;
    uint32_t reserved;
    struct overlap_size_range windows[32]; /* from native_blocks down to 1 */
};

/* ---- Statistics page: HOST.PID.N.page, mapped, valid at any time ---- */
#define OVERLAP_PAGE_MAGIC 0x47505652
#define OVERLAP_REASONS 40 /* room for the rows of reason.def */
#define OVERLAP_ROWS 320   /* of counters: see struct overlap_row */
#define OVERLAP_COUNTERS 8
#define OVERLAP_SHARDS 33 /* one for each thread that launches; threads that find none share the last one */
#define OVERLAP_DEVICES 16
#define OVERLAP_PAGE_STREAMS 16
#define OVERLAP_RULES 768 /* more than a table can hold */

enum overlap_counter {
    OVERLAP_COUNTER_COMMUNICATION = 0, /* communication launches */
    OVERLAP_COUNTER_RAISED = 1,        /* launches, of both kinds, on a stream while it was raised */
    OVERLAP_COUNTER_REFUSED = 2,       /* changed launches that the driver refused; launched again as requested */
    OVERLAP_COUNTER_GRAPH_LAUNCHES = 3,
    OVERLAP_COUNTER_STREAMS_CREATED_RAISED = 4, /* streams created at another priority than requested (`created_by`) */
    OVERLAP_COUNTER_JUDGEMENTS = 5,             /* of the streams of a device (core/judge.h) */
    OVERLAP_COUNTER_HOST_WAITS = 6,   /* by threads with a shard: for streams, events, contexts, blocking copies */
    OVERLAP_COUNTER_GRAPHS_RAISED = 7 /* graph launches on a stream while it was raised */
};

enum overlap_page_flag {
    OVERLAP_PAGE_OPENED_GPU = 1, /* kernels could be launched in this process (NVIDIA: it had a context) */
    OVERLAP_PAGE_FORKED = 2,     /* made by a forked child that did not exec */
    OVERLAP_PAGE_ENDED = 4       /* the process ended regularly */
};

/* Each has one writer thread (owner: its thread id, 0: free), so plain increments suffice. */
struct overlap_shard {
    uint32_t owner;
    uint32_t reserved[15];
    uint64_t launches[320]; /* [OVERLAP_ROWS] */
    uint64_t counters[8];   /* [OVERLAP_COUNTERS] */
    uint64_t padding[8];
};

/* Every launch is counted in one row. Each of the first OVERLAP_REASONS rows counts a reason, for launches about which nothing
 * else is known, and for those that find no row of their own. Each of the others belongs to a kernel and a reason, or to a
 * rule and a reason: it then counts the rule's kernels without a row, and only `rule` is valid in its record. */
struct overlap_row {
    uint64_t key;      /* reason, hash of the identity << 6; 0: free, like all further rows */
    uint32_t state;    /* 2: the other fields are valid */
    uint32_t rule;     /* index in the table and in `rules`; UINT32_MAX: none */
    uint32_t device;   /* index in `devices`; OVERLAP_DEVICES or more: no entry */
    uint32_t launched; /* decided dynamic shared memory in bytes; this and the two below: of the last decision */
    struct overlap_footprint footprint; /* dynamic_shared: as requested */
    uint64_t blocks;                    /* of the grid */
    uint64_t resident_blocks;           /* as requested, on one multiprocessor; 0: unknown */
    uint8_t kernel[112]; /* the driver's name; in a long one ~HASH~ replaces the middle; empty: unknown */
    uint8_t plain[64];   /* overlap_plain_name() of the whole name, cut off */
    uint8_t library[48]; /* basename of the caller */
};

/* A rule of a policy that applies to devices of this process. */
struct overlap_page_rule {
    uint8_t state, device;      /* 2: the other fields are valid; index in `devices` of a device under this policy */
    uint8_t shape, when, guard; /* as in the table */
    uint8_t reserved[3];
    uint32_t line, value; /* as in the table */
};

struct overlap_device {
    uint32_t state; /* 2: the other fields are valid */
    uint32_t index, multiprocessors;
    uint32_t observes; /* 1: under its policy streams are judged, and none is raised */
    uint8_t uuid[16];
    uint8_t name[96];   /* cut off */
    uint8_t policy[64]; /* empty: no policy fits, launches are only observed */
};

/* Streams that the rule (core/judge.h) has judged, in the order in which they were first judged. The status is the first
 * condition of the rule that did not hold at the latest judgement. Under a policy that observes, OVERLAP_STREAM_RAISED is what
 * would be raised, and the counter of raised launches counts launches on such streams. */
enum overlap_stream_status {
    OVERLAP_STREAM_RAISED = 1,
    OVERLAP_STREAM_NOT_WAITED = 2, /* nothing has waited for it since the judgement before */
    OVERLAP_STREAM_LARGE = 3,      /* it carries more of the device's computation than `raise` allows */
    OVERLAP_STREAM_GRAPHS = 4,     /* it launches graphs whose work is not known, and so counts as large */
    OVERLAP_STREAM_PROGRAMS = 5,   /* the program gives streams of this device priorities itself */
    OVERLAP_STREAM_DEFAULT = 6,    /* a default stream */
    OVERLAP_STREAM_WIDE = 7,       /* its communication takes more than a third of the multiprocessors */
    OVERLAP_STREAM_TOGETHER = 8,   /* all streams that qualify carry too much together */
    OVERLAP_STREAM_FIXED = 9       /* the driver refused the priority */
};
enum { OVERLAP_REGISTERS = 32 }; /* a thread with so many counts once as work (core/judge.h) */
struct overlap_page_stream {
    uint32_t state;        /* 2: the other fields are valid */
    uint32_t device;       /* index in `devices` */
    uint32_t status;       /* enum overlap_stream_status */
    uint32_t share;        /* of the device's computation between the last two judgements, in thousandths */
    uint32_t communicates; /* 1: communication was launched on it */
    int32_t priority;      /* that we gave it; 0: none at present */
    uint64_t work; /* of computation launched on it, up to the last judgement: overlap_block_work() in core/judge.h */
    uint64_t
        since; /* nanoseconds since 1970: the judgement that has raised it, or would have; 0: its status is another one */
    uint8_t creator[48]; /* basename of the library that created it; empty: unknown */
};

/* All fields down to `host` keep their offsets in every version, so that even a page of another version can be attributed to
 * its process. */
struct overlap_page {
    uint32_t magic;
    uint32_t version;
    uint32_t size;  /* bytes of this struct */
    uint32_t flags; /* enum overlap_page_flag */
    uint32_t pid;
    uint32_t parent;
    int32_t rank;   /* -1: unknown */
    uint32_t world; /* 0: unknown */
    uint64_t start; /* nanoseconds since 1970 */
    uint8_t reserved_run[32];
    uint8_t host[64];
    uint8_t program[256];
    uint8_t directory[512]; /* of the report; a page may be in /dev/shm until it is copied there */
    uint8_t library[48];    /* the preloaded library's version */
    uint32_t table;         /* checksum of the policy table; 0: none */
    uint32_t reserved;
    struct overlap_page_stream streams[16]; /* [OVERLAP_PAGE_STREAMS] */
    struct overlap_device devices[16];      /* [OVERLAP_DEVICES], indexed by the driver's ordinal */
    struct overlap_page_rule rules[768];    /* [OVERLAP_RULES], as in the table */
    struct overlap_row rows[320];           /* [OVERLAP_ROWS]; the first OVERLAP_REASONS have no record */
    struct overlap_shard shards[33];        /* [OVERLAP_SHARDS] */
};

/* ---- Functions that Python calls in the same object code ---- */

uint32_t overlap_abi_version(void);

/* Return the name or shapes of an index; NULL (shapes: 0) after the last one. shapes: 1 if launches counted there were
 * changed in size. */
const char *overlap_reason_name(uint32_t reason);
uint32_t overlap_reason_shapes(uint32_t reason);

/* Sums over all shards of a page, modulo 2^64. */
struct overlap_totals {
    uint64_t reasons[40], rows[320]; /* each contains all launches */
    uint32_t row_reasons[320];       /* index into reason.def; OVERLAP_REASONS - 1 if the page is damaged */
    uint64_t counters[8];            /* [OVERLAP_COUNTERS] */
};
void overlap_page_totals(const struct overlap_page *page, struct overlap_totals *totals);

/* Returns NULL if the bytes are a valid table, else a sentence without a full stop. */
const char *overlap_table_check(const void *bytes, uint64_t size);

/* Copies row `index` of the table of known GPUs. Returns 0, and writes nothing, after the last row. */
uint32_t overlap_gpu_known(uint32_t index, struct overlap_gpu *gpu);

struct overlap_occupancy overlap_occupancy_of(const struct overlap_gpu *gpu, const struct overlap_footprint *footprint);

/* Returns the largest number of computation blocks that stay resident beside one communication block. -1: that cannot run at
 * all. */
int32_t overlap_blocks_beside(const struct overlap_gpu *gpu, const struct overlap_footprint *computation,
                              const struct overlap_footprint *communication);

/* Fills in the fields that follow from vendor, compute capability and block slots: units, barriers, registers per thread. */
void overlap_gpu_units(struct overlap_gpu *gpu);

/* Plans a launch (its footprint and maximum_dynamic are used) under a rule of this shape and value that keeps at least
 * keep_at_least per cent of the resident blocks as launched. communication: NULL while none is known. */
void overlap_plan_of(const struct overlap_gpu *gpu, const struct overlap_launch *launch,
                     const struct overlap_footprint *communication, uint32_t shape, uint32_t value,
                     uint32_t keep_at_least, struct overlap_plan *plan);

/* Settings of communication libraries that reduce the resources of their blocks. Returns the name of the setting with this
 * index, and stores the footprint with that setting in *changed (unchanged if it has no effect). NULL after the last one. */
const char *overlap_knob(uint32_t index, const struct overlap_gpu *gpu, const struct overlap_footprint *communication,
                         struct overlap_footprint *changed);

/* Returns the smallest dynamic size, not below the requested one, with at most `blocks` resident. UINT32_MAX: there is none. */
uint32_t overlap_size_for_blocks(const struct overlap_gpu *gpu, const struct overlap_launch *launch, uint32_t blocks);

/* Returns 1 if the glob (`*`, `?`, `[a-z]`, `[!a-z]`) matches the whole name. Case-sensitive. */
uint32_t overlap_glob_match(const char *pattern, const char *name);

/* Returns 1 if the kernel belongs to a known family of communication kernels. */
uint32_t overlap_is_communication(const char *kernel);

/* Stores the plain name: the last identifier of an Itanium-mangled name. Returns the number of bytes written, at most `size`,
 * including the NUL. */
uint32_t overlap_plain_name(const char *kernel, char *plain, uint32_t size);

/* Decides about a launch. table: checked; policy: index; library: basename of the caller, or NULL; communication: NULL while
 * none is known. */
void overlap_decide(const void *table, uint32_t policy, const struct overlap_gpu *gpu, const char *kernel,
                    const char *library, const struct overlap_launch *launch,
                    const struct overlap_footprint *communication, struct overlap_decision *decision);

/* Returns the index of the table's policy for a device. UINT32_MAX: none. architecture: such as "sm_90". */
uint32_t overlap_policy_for(const void *table, const char *device, const char *architecture);
