/* Overlap windows: can a launch overlap a communication launch? See WINDOWS.md for what orders what, and for the cases in
 * which the answer is no because nobody can know.
 *
 * Fed with calls in program order, per stream and event; asks nobody. All state is in one struct overlap_order of zeroed
 * memory, which the caller brings. Any thread may call anything at any time: clocks only grow, entry by entry; events carry
 * a sequence lock; a lock is taken only where a stream or event is seen for the first time, or goes.
 */
#pragma once

#include "core.h"
#include "part.h"

enum {
    OVERLAP_CLOCK_COMMUNICATION = 16, /* streams of communication that are told apart; more share entries */
    OVERLAP_CLOCK_COMPUTATION = 8,    /* streams of computation of which launches are counted as launched_before */
    OVERLAP_CLOCK_ENTRIES = OVERLAP_CLOCK_COMMUNICATION + 2 * OVERLAP_CLOCK_COMPUTATION,
    OVERLAP_ORDER_STREAMS = 1 << 15, /* places: half of them can be counted on */
    OVERLAP_ORDER_EVENTS = 1 << 16,
    OVERLAP_ORDER_CONTEXTS = 16,
    OVERLAP_ORDER_CAPTURES = 32,
    OVERLAP_WINDOW_LAUNCHES = 512, /* that would be shaped, on one stream, after which an open window closes */
};

/* How far one knows each stream: first those of communication (launches on it), then for each of computation two entries,
 * for launches outside windows that would have been shaped, and for grids that fill the GPU in one wave. 64 bits: a counter
 * of launches does not wrap in the life of a process. */
struct overlap_clock {
    uint64_t entry[OVERLAP_CLOCK_ENTRIES];
    uint32_t set; /* entries that may be above 0, by bit: a stream knows few of those that many threads use */
};
_Static_assert(OVERLAP_CLOCK_ENTRIES <= 32, "overlap_clock.set");

enum overlap_stream_kind {
    OVERLAP_STREAM_NON_BLOCKING,
    OVERLAP_STREAM_BLOCKING, /* ordered by the legacy default stream; those of threads, too */
    OVERLAP_STREAM_LEGACY,
};

struct overlap_stream {
    uint64_t key; /* of the caller's; 0: free */
    uint32_t ready;
    uint32_t kind; /* enum overlap_stream_kind */
    struct overlap_world *world;
    struct overlap_context *context;
    struct overlap_stream *captured;    /* stands for it while it captures */
    struct overlap_stream *of, *next;   /* of such a one: for whom, and the next one of its capture */
    int32_t communication, computation; /* which of the world's; -1: none yet */
    uint64_t asker;                     /* the thread whose launches ask about it; 0: none, 1: several have */
    uint64_t unknown;                   /* number of the wait that nobody knows the end of; 0: none */
    uint64_t serial;                    /* no other stream ever had this number */
    uint64_t newest;                    /* the communication of the window that it is in... */
    uint64_t inside;                    /* ...and how many launches were in it */
    uint32_t beside; /* grids of more than one wave that were in a window and have waited for nothing since */
    uint32_t waited; /* for an event, since its last communication */
    uint64_t launched, filling; /* what the two entries of computation count */
    struct overlap_part part;
    struct overlap_clock clock;
} __attribute__((aligned(64)));

struct overlap_event {
    uint64_t key;
    uint32_t sequence; /* odd: being recorded */
    uint32_t flags;    /* enum in event.c */
    uint32_t before;   /* flags when the record that is being made began */
    uint32_t seen;     /* sequence of the last record that the host has seen to be over */
    struct overlap_world *world;
    uint64_t generation; /* of that world */
    struct overlap_context *context;
    uint64_t unknown;          /* as of the stream */
    struct overlap_stream *by; /* the stream that it was recorded on... */
    uint64_t serial, work;     /* ...and how much had been launched there (struct overlap_part) */
    struct overlap_clock clock;
};

struct overlap_context {
    uint64_t key;
    uint64_t settled;              /* waits up to this number have ended */
    struct overlap_stream *legacy; /* its clock is what every blocking stream includes */
    uint32_t blocks;               /* it has, or had, a blocking stream */
    uint32_t padding;
    uint64_t unknown;              /* the last unknown wait of any of its streams... */
    uint64_t blocking_unknown;     /* ...and of a blocking one */
    struct overlap_clock blocking; /* what any blocking stream knows */
    struct overlap_clock known;    /* what any stream knows of other contexts, or of streams that are gone */
    uint64_t work, over;           /* sums of its streams' (struct overlap_part) */
};

/* Where launches can overlap each other: all that runs as it is launched, or one capture. */
struct overlap_world {
    uint64_t generation; /* of a capture: a number of its own; 0: free. Else: how often the model has resumed (below) */
    uint32_t communications, computations; /* entries in use */
    uint32_t doubted;                      /* nothing is known in it any more */
    uint32_t begun;                        /* of the world of surplus captures: how many there are */
    struct overlap_stream *members;        /* of a capture */
    struct overlap_communication {
        struct overlap_stream *owner;    /* NULL: gone */
        struct overlap_context *context; /* NULL: of several */
        uint64_t base;                   /* launches before this one are not its own */
        uint64_t ordinal;                /* when the last launch was: the version then */
        uint64_t sequence;               /* that the caller gave it, + 1 */
        uint64_t used;                   /* launches up to this one were overlapped by something */
        uint16_t prefetch;     /* the last launch did not wait for the computation that was launched before it */
        uint16_t alone_counts; /* for how many the last one of those below was said */
        uint32_t alone[2];     /* launches that were said to overlap nothing: by enum overlap_alone */
        uint32_t alone_last;   /* the last 32 bits of the number of the last one */
    } communication[OVERLAP_CLOCK_COMMUNICATION];
    struct {
        struct overlap_stream *owner;
        uint64_t base[2];    /* of owners before */
        uint64_t counted[2]; /* as launched before communication */
    } computation[OVERLAP_CLOCK_COMPUTATION];
    struct overlap_clock now; /* the last launch of every entry of communication */
};

struct overlap_order {
    uint64_t version;        /* another one whenever answers of other threads may be stale; only grows */
    uint64_t lock;           /* a number of the thread that has it */
    void (*pause)(void);     /* of the caller's, or NULL: lets other threads run */
    uint32_t stuck;          /* nobody has given it back for long */
    uint32_t legacy_matters; /* blocking streams know of communication: launches on the legacy stream pass it on */
    uint32_t lost;           /* a stream found no place: the unknown may know everything */
    uint32_t untold_any;     /* an event found no place: any that is not in the table may carry what is in `untold` */
    uint32_t vague;          /* ...or anything, whatever is launched later */
    uint32_t exported;       /* other processes wait for events of this one */
    uint64_t generation, waits, serials;
    uint32_t counted; /* how often counting of work has begun (critical.h); not 0 */
    uint32_t events_used;
    struct overlap_clock finished; /* what the host has seen to be over */
    struct overlap_clock untold;   /* everything launched when an event found no place, the last time */
    struct overlap_world eager, captures[OVERLAP_ORDER_CAPTURES + 1]; /* the last one: for all surplus */
    struct overlap_context contexts[OVERLAP_ORDER_CONTEXTS];
    uint32_t used[OVERLAP_ORDER_STREAMS], used_count; /* places of streams in the order of their first use */
    struct overlap_stream streams[OVERLAP_ORDER_STREAMS];
    /* Where an event is, by the hash of its key; 0: nowhere yet. New events lie side by side, so that few touch a page of their own. */
    uint32_t places[OVERLAP_ORDER_EVENTS];
    struct overlap_event events[OVERLAP_ORDER_EVENTS + 1]; /* the first one is always free */
};

/* ---- Streams and captures: order.c ---- */

/* The same, made if need be. context: its key, not 0. */
struct overlap_stream *overlap_order_stream(struct overlap_order *order, uint64_t key, uint64_t context,
                                            enum overlap_stream_kind kind);
void overlap_order_stream_gone(struct overlap_order *order, uint64_t key);
/* seen: order->serials before the call that ended it; its address may be another context's by now, with streams of its own. */
void overlap_order_context_gone(struct overlap_order *order, uint64_t key, uint64_t seen);

/* A call on the stream that orders nothing by itself, such as a copy; matters for the legacy default stream. */
void overlap_order_legacy_action(struct overlap_order *order, struct overlap_stream *stream);
static inline void overlap_order_action(struct overlap_order *order, struct overlap_stream *stream) {
    if (stream && __atomic_load_n(&stream->kind, __ATOMIC_ACQUIRE) == OVERLAP_STREAM_LEGACY)
        overlap_order_legacy_action(order, stream);
}

/* From now on the stream may be behind anything, also behind what comes later; or behind all that came before. */
void overlap_order_unknown(struct overlap_order *order, struct overlap_stream *stream);
void overlap_order_behind_all(struct overlap_order *order, struct overlap_stream *stream);

/* ---- While nobody needs it ---- */

/* May the caller stop telling of events, waits and what the host sees? Not while a stream captures, or once one has waited for something
 * unknown. */
bool overlap_order_may_rest(const struct overlap_order *order);
/* It does: windows close, because what would close them is not told. */
void overlap_order_rest(struct overlap_order *order);
/* It tells of them again: all that was launched before counts as over, and an event recorded before tells nothing. */
void overlap_order_resume(struct overlap_order *order);

/* ---- Captures ---- */

void overlap_order_capture(struct overlap_order *order, struct overlap_stream *stream);
void overlap_order_capture_ended(struct overlap_order *order, struct overlap_stream *stream);
/* Somebody has added dependencies to a graph: what is being captured may be behind anything. */
void overlap_order_captures_doubted(struct overlap_order *order);

/* ---- Events, and what the host sees: event.c ---- */

/* Around the call that records an event; what the first returns is for the second, whatever it is. key: of the event.
 * stream: NULL where it is not known. recorded: the call has succeeded. */
struct overlap_event *overlap_order_recording(struct overlap_order *order, uint64_t key, struct overlap_stream *stream);
void overlap_order_write(struct overlap_order *order, struct overlap_event *event, struct overlap_stream *stream,
                         bool recorded);
static inline void overlap_order_recorded(struct overlap_order *order, struct overlap_event *event,
                                          struct overlap_stream *stream, bool recorded);

/* The stream waits for the event from now on; stream NULL: everything does. Anything else that is launched again and again
 * and waits for its last launch, such as a graph, is an event, too. */
uint32_t overlap_order_waits(struct overlap_order *order, struct overlap_stream *stream, uint64_t key);

/* What it returns: communication that nobody has been in a hurry for, and whether this thread's answers for the stream are
 * stale: no other thread has asked about it, so the version stays. */
enum overlap_waited {
    OVERLAP_WAITED_BESIDE = 1,   /* the stream had two or more grids of more than one wave to run beside it */
    OVERLAP_WAITED_PREFETCH = 2, /* it had not waited for the computation that was launched before it */
    OVERLAP_WAITED_PATIENTLY = OVERLAP_WAITED_BESIDE | OVERLAP_WAITED_PREFETCH,
    OVERLAP_WAITED_STALE = 4,
};

/* Who waits for this event, from now on, may be behind all that came before (graphs, other processes record it). */
void overlap_order_event_unknown(struct overlap_order *order, uint64_t key);
/* It is another process's; this process gives one of its own away. */
void overlap_order_event_imported(struct overlap_order *order, uint64_t key);
void overlap_order_event_exported(struct overlap_order *order, uint64_t key);
void overlap_order_event_gone(struct overlap_order *order, uint64_t key);

/* ---- The host: what it will have seen to be over when the call that it makes now succeeds ---- */

struct overlap_seen {
    bool all; /* everything launched so far */
    struct overlap_clock clock;
    struct overlap_stream *stream; /* whose unknown wait this was... */
    uint64_t unknown;
    struct overlap_context *context; /* ...or in which all ended, up to this number */
    uint64_t settled;
    struct overlap_stream *by; /* whose computation it was, up to this */
    uint64_t serial, work;
    struct overlap_event *event; /* whose record of this sequence it was, if it is known */
    uint32_t sequence;
};
/* stream: NULL where it is not known. */
void overlap_order_see_stream(struct overlap_order *order, struct overlap_stream *stream, struct overlap_seen *seen);
/* False: the host has seen this record before, so the call tells nothing. */
bool overlap_order_see_event(struct overlap_order *order, uint64_t key, struct overlap_seen *seen);
void overlap_order_see_context(struct overlap_order *order, uint64_t key, struct overlap_seen *seen);
void overlap_order_saw(struct overlap_order *order, const struct overlap_seen *seen);

/* ---- Launches: window.c ---- */

/* What runs beside a communication launch although it was launched before. */
struct overlap_before {
    uint64_t launched; /* launches that would have been shaped, none of them counted twice */
    uint64_t filling;  /* grids that fill the GPU in one wave */
};

/* Communication was launched on the stream. computed: after the communication before, there was computation. */
struct overlap_before overlap_window_communicates(struct overlap_order *order, struct overlap_stream *stream,
                                                  bool computed);

/* A grid of more than one wave was launched in a window. */
void overlap_window_beside(struct overlap_stream *stream);

/* The stream waits for something now, or has waited: where it is in no window any more, what was beside is forgotten. */
void overlap_window_left_now(struct overlap_order *order, struct overlap_stream *stream);
static inline void overlap_window_left(struct overlap_order *order, struct overlap_stream *stream) {
    if (__atomic_load_n(&stream->beside, __ATOMIC_RELAXED))
        overlap_window_left_now(order, stream);
}

/* Its last communication launch has this number in the caller's log. */
void overlap_window_numbered(struct overlap_order *order, struct overlap_stream *stream, uint64_t sequence);

enum overlap_where {
    OVERLAP_WHERE_OUTSIDE,
    OVERLAP_WHERE_INSIDE,
    OVERLAP_WHERE_EXPIRED,
    OVERLAP_WHERE_SAME_STREAM, /* outside, and communication is on this very stream */
};

/* Why communication overlaps nothing. */
enum overlap_alone {
    OVERLAP_ALONE_SAME_STREAM, /* what was launched behind it is on its stream */
    OVERLAP_ALONE_WAITED_FOR,  /* ...waits for it */
};

struct overlap_found {
    enum overlap_where where;
    uint32_t granted;        /* launches that may take the same answer while the version is the same */
    uint64_t newest, serial; /* for overlap_window_return() */
    bool unknown;            /* outside, because nobody knows what the stream waits for */
    uint32_t undone[2];      /* communication that was said to overlap nothing, and does now */
    uint64_t sequence; /* INSIDE: number of the newest communication launch that it could overlap, + 1; 0: none given */
};

/* Is a launch on this stream (NULL: not known) in a window now? wanted: how many launches ask, and the thread may keep the
 * answer; 0: just looking. */
void overlap_window_ask(struct overlap_order *order, struct overlap_stream *stream, uint32_t wanted,
                        struct overlap_found *found);
static inline struct overlap_found overlap_window_find(struct overlap_order *order, struct overlap_stream *stream,
                                                       uint32_t wanted) {
    struct overlap_found found;
    overlap_window_ask(order, stream, wanted, &found);
    return found;
}

/* The number of the stream's last communication launch; 0: none. */
uint64_t overlap_window_number(struct overlap_stream *stream);

/* The communication launch of this number, and so many with it, seem to overlap nothing; false: something does. */
bool overlap_window_alone(struct overlap_stream *stream, uint64_t number, enum overlap_alone why, uint32_t count);

/* Has the host seen all communication of the stream to be over? */
bool overlap_window_is_over(struct overlap_order *order, struct overlap_stream *stream);

/* Gives back what was granted and not taken. */
void overlap_window_return(struct overlap_stream *stream, uint64_t serial, uint64_t newest, uint32_t left);

/* A place to count launches on a stream that are outside: would have been shaped, or fill the GPU in one wave. NULL: none
 * is left. Only the launching thread adds to it. */
uint64_t *overlap_window_outside(struct overlap_order *order, struct overlap_stream *stream, bool filling);

#include "order.h"
