/* The happens-before model of overlap windows: which launches are ordered after which communication launches.
 * WINDOWS.md says what orders what, and in which cases the order is unknown. window.h queries the model for a launch.
 *
 * The model is fed with calls in program order, per stream and event, and calls nothing itself. All state is in one
 * struct overlap_sync_model of zeroed memory, which the caller supplies. Any thread may call any function at any time:
 * entries of clocks only grow; each event has a seqlock; a lock is taken only when a stream or event is first seen or
 * destroyed.
 */
#pragma once

#include "core.h"
#include "part.h"

enum {
    OVERLAP_CLOCK_COMMUNICATION = 16, /* streams of communication with entries of their own; further ones share */
    OVERLAP_CLOCK_COMPUTATION = 8,    /* streams of computation whose launches are counted as launched_before */
    OVERLAP_CLOCK_ENTRIES = OVERLAP_CLOCK_COMMUNICATION + 2 * OVERLAP_CLOCK_COMPUTATION,
    OVERLAP_SYNC_STREAM_BITS = 15,
    OVERLAP_SYNC_STREAMS = 1 << OVERLAP_SYNC_STREAM_BITS, /* slots; half of them can be relied on */
    OVERLAP_SYNC_EVENT_BITS = 16,
    OVERLAP_SYNC_EVENTS = 1 << OVERLAP_SYNC_EVENT_BITS,
    OVERLAP_SYNC_CONTEXTS = 16,
    OVERLAP_SYNC_CAPTURES = 32,
    OVERLAP_WINDOW_LAUNCHES = 512, /* an open window closes after so many launches of one stream that would be shaped */
};

/* A vector clock: for each entry, the number of its last launch that is known to come before. First the streams of
 * communication, counting communication launches; then two entries for each stream of computation, counting launches
 * outside windows that would have been shaped, and grids that fill the GPU in one wave. 64 bits: no counter of launches
 * wraps in the life of a process. */
struct overlap_clock {
    uint64_t entry[OVERLAP_CLOCK_ENTRIES];
    uint32_t set; /* bits of the entries that may be above 0: few of those that the domain uses */
};
_Static_assert(OVERLAP_CLOCK_ENTRIES <= 32, "overlap_clock.set");

enum overlap_stream_kind {
    OVERLAP_STREAM_NON_BLOCKING,
    OVERLAP_STREAM_BLOCKING, /* ordered by the legacy default stream; per-thread default streams, too */
    OVERLAP_STREAM_LEGACY,
};

/* Streams and events are not in tables of slots.h: they are inserted under the lock, and found by one inlined
 * comparison. */
struct overlap_stream {
    uint64_t key; /* the caller's key; 0: free */
    uint32_t ready;
    uint32_t kind; /* enum overlap_stream_kind */
    struct overlap_clock_domain *domain;
    struct overlap_context *context;
    struct overlap_stream *captured;    /* stands for the stream while it captures */
    struct overlap_stream *of, *next;   /* of a stand-in: the stream it stands for, and the next one of its capture */
    int32_t communication, computation; /* indices of the domain's entries; -1: none yet */
    uint64_t asker;                     /* the thread whose launches query the stream; 0: none, 1: several */
    uint64_t unknown;                   /* number of a wait whose end is unknown; 0: none */
    uint64_t serial;                    /* unique: no other stream ever has this number */
    uint64_t newest;                    /* ordinal of the newest communication of its window... */
    uint64_t inside;                    /* ...and the launches counted inside it */
    uint32_t beside;                    /* grids of more than one wave launched inside its window */
    uint32_t waited;                    /* it has waited for an event since its last communication */
    uint64_t launched, filling;         /* counts of the two entries of computation */
    struct overlap_part part;
    struct overlap_clock clock;
} __attribute__((aligned(64)));

struct overlap_event {
    uint64_t key;
    uint32_t sequence;  /* seqlock; odd: being recorded */
    uint32_t flags;     /* enum overlap_event_flag (event.h) */
    uint32_t before;    /* flags when the current record began */
    uint32_t completed; /* sequence of the last record that the host has seen finish */
    struct overlap_clock_domain *domain;
    uint64_t generation; /* of that domain when the event was recorded */
    struct overlap_context *context;
    uint64_t unknown;          /* as in struct overlap_stream */
    struct overlap_stream *by; /* the stream that recorded it... */
    uint64_t serial, work;     /* ...and how much it had launched by then (struct overlap_part) */
    struct overlap_clock clock;
};

struct overlap_context {
    uint64_t key;
    uint64_t settled;              /* unknown waits up to this number have ended */
    struct overlap_stream *legacy; /* every blocking stream's clock includes its clock */
    uint32_t blocks;               /* it has, or had, a blocking stream */
    uint32_t padding;
    uint64_t unknown;              /* the last unknown wait of any of its streams... */
    uint64_t blocking_unknown;     /* ...and of a blocking one */
    struct overlap_clock blocking; /* join of all blocking streams' clocks */
    struct overlap_clock known;    /* what its streams know of other contexts and of destroyed streams */
    uint64_t work, over;           /* sums over its streams (struct overlap_part) */
};

/* A set of launches that can overlap each other: everything that runs as it is launched, or one capture. */
struct overlap_clock_domain {
    uint64_t generation; /* of a capture: its unique number, 0: free; of `eager`: how often the model has resumed */
    uint32_t communications, computations; /* entries in use */
    uint32_t order_unknown;                /* the order of everything in it is unknown */
    uint32_t begun;                        /* captures in progress: one, or several in the surplus domain */
    struct overlap_stream *members;        /* stand-ins of its capturing streams */
    struct overlap_communication {
        struct overlap_stream *owner;    /* NULL: destroyed */
        struct overlap_context *context; /* NULL: several */
        uint64_t base;                   /* launches up to this one are a previous owner's */
        uint64_t ordinal;                /* version of the model at the last launch: which launch is newest? */
        uint64_t sequence;               /* the caller's number of the last launch, + 1 */
        uint64_t used;                   /* something overlapped the launches up to this one */
        uint16_t prefetch;               /* the last launch did not wait for the computation launched before it */
        uint16_t no_overlap_counts;      /* launches that the last report below counted for */
        uint32_t no_overlap[2];          /* launches reported to overlap nothing, by enum overlap_no_overlap */
        uint32_t no_overlap_last;        /* number of the last launch so reported, modulo 2^32 */
    } communication[OVERLAP_CLOCK_COMMUNICATION];
    struct {
        struct overlap_stream *owner;
        uint64_t base[2];    /* counts of previous owners */
        uint64_t counted[2]; /* counted as launched_before up to here */
    } computation[OVERLAP_CLOCK_COMPUTATION];
    struct overlap_clock now; /* the last launch of every entry of communication */
};

struct overlap_sync_model {
    uint64_t version;         /* incremented when other threads' cached answers may be stale */
    uint64_t lock;            /* the holder's overlap_this_thread(); 0: free */
    void (*pause)(void);      /* supplied by the caller: lets other threads run; may be NULL */
    uint32_t stuck;           /* the last attempt to lock timed out */
    uint32_t legacy_matters;  /* blocking streams know of communication, which launches on the legacy stream pass on */
    uint32_t stream_overflow; /* a stream got no slot: untracked streams may know everything */
    uint32_t event_overflow_any; /* an event got no slot: one that is not in the table may carry `event_overflow` */
    uint32_t event_unknown;      /* ...or launches that come later, too */
    uint32_t exported;           /* other processes may wait for events of this one */
    uint64_t generation, waits, serials;
    uint32_t counted; /* how often counting of work began (critical.h); never 0 */
    uint32_t events_used;
    struct overlap_clock finished;       /* what the host has seen finish */
    struct overlap_clock event_overflow; /* everything launched when an event last got no slot */
    struct overlap_clock_domain eager;
    struct overlap_clock_domain captures[OVERLAP_SYNC_CAPTURES + 1]; /* the last one serves all surplus captures */
    struct overlap_context contexts[OVERLAP_SYNC_CONTEXTS];
    uint32_t used[OVERLAP_SYNC_STREAMS], used_count; /* slots of streams in the order of first use */
    struct overlap_stream streams[OVERLAP_SYNC_STREAMS];
    /* Indices of events, by the hash of the key; 0: none yet. New events are contiguous, so that a small number of them
     * touches few pages. */
    uint32_t event_indices[OVERLAP_SYNC_EVENTS];
    struct overlap_event events[OVERLAP_SYNC_EVENTS + 1]; /* the first one is always free */
};

/* ---- Streams and captures: sync_model.c ---- */

/* Returns the stream with this key, and creates it if needed. context: key of its context, not 0. NULL: no slot is
 * free, or the lock timed out. */
struct overlap_stream *overlap_sync_stream(struct overlap_sync_model *model, uint64_t key, uint64_t context,
                                           enum overlap_stream_kind kind);
void overlap_sync_stream_gone(struct overlap_sync_model *model, uint64_t key);
/* The context was destroyed. last_serial: model->serials before the call that destroyed it. A new context may already
 * have its address and streams of its own, which have higher serials. */
void overlap_sync_context_gone(struct overlap_sync_model *model, uint64_t key, uint64_t last_serial);

/* Called for operations that order nothing by themselves, such as copies. They matter on the legacy default stream,
 * which implicitly waits for blocking streams. */
void overlap_sync_legacy_action(struct overlap_sync_model *model, struct overlap_stream *stream);
static inline void overlap_sync_action(struct overlap_sync_model *model, struct overlap_stream *stream) {
    if (stream && __atomic_load_n(&stream->kind, __ATOMIC_ACQUIRE) == OVERLAP_STREAM_LEGACY)
        overlap_sync_legacy_action(model, stream);
}

/* The stream may now be ordered after anything, including later launches (unknown), or after everything launched so far
 * (behind_all). */
void overlap_sync_unknown(struct overlap_sync_model *model, struct overlap_stream *stream);
void overlap_sync_behind_all(struct overlap_sync_model *model, struct overlap_stream *stream);

/* ---- While the model is not needed ---- */

/* May the caller stop reporting events, waits and what the host sees? Not while a stream captures, nor after an unknown
 * wait. */
bool overlap_sync_may_sleep(const struct overlap_sync_model *model);
/* The caller stops reporting. Windows close, because waits that would close them are not reported. */
void overlap_sync_sleep(struct overlap_sync_model *model);
/* The caller reports again. Everything launched so far counts as finished, and events recorded earlier carry
 * nothing. */
void overlap_sync_wake(struct overlap_sync_model *model);

/* ---- Captures ---- */

void overlap_sync_capture(struct overlap_sync_model *model, struct overlap_stream *stream);
void overlap_sync_capture_ended(struct overlap_sync_model *model, struct overlap_stream *stream);
/* Dependencies were added to a graph by hand: streams that capture may be ordered after anything. */
void overlap_sync_captures_unknown(struct overlap_sync_model *model);

/* ---- Events, and what the host sees: event.c ---- */

/* Called before and after the driver's call that records an event; the result of the first (may be NULL) is passed to
 * the second. key: of the event. stream: NULL if untracked. recorded: the call has succeeded. */
struct overlap_event *overlap_sync_recording(struct overlap_sync_model *model, uint64_t key,
                                             struct overlap_stream *stream);
void overlap_sync_write(struct overlap_sync_model *model, struct overlap_event *event, struct overlap_stream *stream,
                        bool recorded);

/* The stream (NULL: every stream) waits for the event from now on. Other objects whose launches wait for their own
 * previous launch, such as graphs, are modeled as events. Returns flags of enum overlap_waited. */
uint32_t overlap_sync_waits(struct overlap_sync_model *model, struct overlap_stream *stream, uint64_t key);

/* PATIENTLY: nothing needed the communication early. STALE: the calling thread's cached answers for the stream are
 * stale; no other thread has queried it, so the version does not change. */
enum overlap_waited {
    OVERLAP_WAITED_BESIDE = 1,   /* two or more grids of more than one wave could run beside it */
    OVERLAP_WAITED_PREFETCH = 2, /* it had not waited for the computation launched before it */
    OVERLAP_WAITED_PATIENTLY = OVERLAP_WAITED_BESIDE | OVERLAP_WAITED_PREFETCH,
    OVERLAP_WAITED_STALE = 4,
};

/* From now on a wait for this event orders after everything launched so far (graphs or other processes record it). */
void overlap_sync_event_unknown(struct overlap_sync_model *model, uint64_t key);
/* Imported: the event is another process's. Exported: this process gives its event to others. */
void overlap_sync_event_imported(struct overlap_sync_model *model, uint64_t key);
void overlap_sync_event_exported(struct overlap_sync_model *model, uint64_t key);
void overlap_sync_event_gone(struct overlap_sync_model *model, uint64_t key);

/* ---- The host: what it knows to be finished if the call that it makes now succeeds ---- */

struct overlap_completion {
    bool all; /* everything launched so far */
    struct overlap_clock clock;
    struct overlap_stream *stream; /* ends this unknown wait of the stream... */
    uint64_t unknown;
    struct overlap_context *context; /* ...or all unknown waits of the context up to this number */
    uint64_t settled;
    struct overlap_stream *by; /* computation of this stream has finished, up to `work` */
    uint64_t serial, work;
    struct overlap_event *event; /* the record of this event, if known, by its sequence */
    uint32_t sequence;
};
/* stream: NULL if untracked. */
void overlap_sync_completion_of_stream(struct overlap_sync_model *model, struct overlap_stream *stream,
                                       struct overlap_completion *completion);
/* False: the host knows already that this record is finished. */
bool overlap_sync_completion_of_event(struct overlap_sync_model *model, uint64_t key,
                                      struct overlap_completion *completion);
void overlap_sync_completion_of_context(struct overlap_sync_model *model, uint64_t key,
                                        struct overlap_completion *completion);
void overlap_sync_complete(struct overlap_sync_model *model, const struct overlap_completion *completion);
