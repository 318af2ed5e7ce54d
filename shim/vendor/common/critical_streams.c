/* Raise streams that the host or communication waits for, if they are a minor part of the device's work. sync_calls.c,
 * copy_calls.c, graph_exec.c and windows.c report the waits; core (critical.h) classifies the stream; raised.c raises it.
 *
 * How much a stream computes is counted in periods. During a period the hot path finds an empty cache, so no launch is
 * a direct hit. A period begins when a stream is waited for the first time, then again after more and more waits; it
 * ends when enough rounds agree. Once a stream is raised, every computation launch looks up its stream: to count it,
 * and to notice when the stream is no longer waited for.
 */
#include "../../core/core.h"
#include "../../core/critical.h"
#include "../../core/sync_access.h"
#include "../../sys/sys.h"
#include "arms.h"
#include "critical_streams.h"
#include "device.h"
#include "handle.h"
#include "launch_slow.h"
#include "page.h"
#include "priority.h"
#include "raised.h"
#include "request.h"
#include "sleep.h"
#include "state.h"
#include "this_thread.h"
#include "windows.h"

enum {
    WAITS = 64,        /* in a period, after the last change of a stream's state */
    LAUNCHES = 4096,   /* a period also ends after so many launches without a wait */
    PAUSE = 256,       /* waits between two periods at first */
    LONGEST = 4096,    /* and at most */
    NEW = 64,          /* new streams that begin a period at once */
    FORGOTTEN = 512,   /* launches on a raised stream without a wait, after which it is lowered */
    FEW = 64,          /* streams to visit if all are waited for */
    DOUBTS = 512,      /* waits that extend a period while it is in doubt whether a raised stream is waited for */
    UNTRACKED = 8,     /* untracked events that begin a period at once */
    GRAPH = INT32_MAX, /* threads assumed for a graph: more than any one launch has, so that its stream is not minor */
};

uint32_t critical_counting, critical_wanted;
static uint32_t major_communication; /* number of streams */
static uint32_t waits_left, launches_left, pause_left, pause_now = PAUSE, new_left = NEW, untracked_left = UNTRACKED;
static uint32_t doubts_left;
static uint64_t over_last; /* what the host queried last and found finished, + 1 */
static uint32_t unwaited;  /* launches on raised streams since the last host wait, while the model sleeps */

bool critical_is_wanted(const struct overlap_settings *settings) {
    const struct overlap_view view = overlap_table_view(settings->table);
    for (uint32_t i = 0; i < view.table->policy_count; i++)
        if (view.policies[i].critical)
            return true;
    return false;
}

static inline bool is_wanted(void) {
    if (__builtin_expect(!get(&critical_wanted), 0) && overlap_armed())
        set(&critical_wanted, critical_is_wanted(overlap_armed()) ? 2 : 1);
    return get(&critical_wanted) == 2;
}

/* ---- Periods of counting ---- */

RARE void critical_begin(struct overlap_sync_model *model) {
    if (!is_wanted())
        return;
    overlap_critical_count(model);
    set(&waits_left, WAITS);
    set(&doubts_left, DOUBTS);
    set(&launches_left, LAUNCHES);
    set(&unwaited, 0);
    /* Before the cache is hidden: a decision made from now on must be hidden, too. */
    __atomic_store_n(&critical_counting, 1, __ATOMIC_SEQ_CST);
    window_wake_if_asleep(model);
    overlap_cache_hide(&launch_cache, true);
}

static void end(struct overlap_sync_model *model) {
    const uint32_t pause = get(&pause_now);
    set(&pause_left, pause);
    set(&pause_now, pause < LONGEST ? 2 * pause : pause);
    set(&critical_counting, 0);
    overlap_cache_hide(&launch_cache, false);
    overlap_critical_all_over(model, NULL); /* else events would be kept only for their order of this work */
    window_sleep_after_period(model);
}

/* Begin a period if one is due, or at once while *left allows it for something new. Returns true during a period. */
static bool in_period(struct overlap_sync_model *model, bool is_new, uint32_t *left) {
    if (get(&critical_counting))
        return true;
    if (get(&unwaited))
        set(&unwaited, 0);
    if (is_new && get(left)) {
        set(left, get(left) - 1);
    } else if (get(&pause_left)) {
        set(&pause_left, get(&pause_left) - 1);
        return false;
    } else if (get(&untracked_left) < UNTRACKED) {
        set(&untracked_left, get(&untracked_left) + 1);
    }
    critical_begin(model);
    return true;
}

/* ---- Waits ---- */

/* The device of the stream's context, looked up once and cached. */
static const struct device *device_of(enum vendor vendor, struct overlap_stream *tracked) {
    const uint32_t known = get(&tracked->part.device);
    const struct device *device = known ? device_at(vendor, (int)known - 1) : device_current(vendor);
    if (device && !known)
        set(&tracked->part.device, (uint32_t)device->ordinal + 1);
    return device;
}

/* Raise a critical stream, or lower it while the arm of a trial is in force that raises no such stream. */
static void follow_arm(enum vendor vendor, struct overlap_stream *tracked, const struct device *device,
                       const struct overlap_policy *policy) {
    const uint32_t why = get(&tracked->part.why), raised = get(&tracked->part.raised);
    if (policy->critical & why && raised == OVERLAP_PART_NOT_RAISED)
        raised_raise(vendor, tracked, device,
                     get(&tracked->part.for_communication) || why & OVERLAP_CRITICAL_COMMUNICATION);
    else if (!(policy->critical & why) && raised == OVERLAP_PART_RAISED)
        raised_lower(vendor, tracked, device, OVERLAP_STREAM_OTHER_ARM);
}

RARE void critical_switch(enum vendor vendor) {
    struct overlap_sync_model *const model = windows();
    for (uint32_t i = 0; model && i < OVERLAP_LOAD(model->used_count); i++) {
        struct overlap_stream *const tracked = &model->streams[model->used[i]];
        if (!OVERLAP_LOAD(tracked->ready) || get(&tracked->part.state) != OVERLAP_PART_CRITICAL ||
            !get(&tracked->part.device))
            continue;
        const struct device *const device = device_of(vendor, tracked);
        const struct overlap_policy *const policy = device_policy(device);
        if (policy)
            follow_arm(vendor, tracked, device, policy);
    }
}

void critical_waited(struct overlap_sync_model *model, enum vendor vendor, struct overlap_stream *tracked, uint32_t why,
                     bool communication) {
    if (!is_wanted() || !tracked || !tracked->part.handle)
        return;
    if (get(&tracked->part.since))
        set(&tracked->part.since, 0);
    if (!in_period(model, get(&tracked->part.state) == OVERLAP_PART_UNKNOWN && !get(&tracked->part.round), &new_left))
        return;
    const struct device *device = device_of(vendor, tracked);
    const struct overlap_policy *policy = device_policy(device);
    if (!device || !policy || !(device->critical & why))
        return;
    const bool changed = overlap_critical_waited(model, tracked, why, device->critical_share);
    set(&launches_left, LAUNCHES);
    if (changed) {
        set(&waits_left, WAITS);
        set(&pause_now, PAUSE);
    } else if (get(&waits_left) > 1) {
        set(&waits_left, get(&waits_left) - 1);
    } else if (get(&doubts_left) && raised_in_doubt()) {
        set(&doubts_left, get(&doubts_left) - 1);
    } else {
        end(model);
    }
    const uint32_t state = get(&tracked->part.state);
    /* With two major streams of communication, the computation that raised communication delays is waited for just
     * as much. */
    if (changed && state == OVERLAP_PART_MAJOR && why == OVERLAP_CRITICAL_COMMUNICATION &&
        __atomic_add_fetch(&major_communication, 1, __ATOMIC_RELAXED) == 2)
        priority_waited_late();
    if (communication)
        set(&tracked->part.for_communication, 1);
    if (state == OVERLAP_PART_CRITICAL)
        follow_arm(vendor, tracked, device, policy);
    else if (state == OVERLAP_PART_MAJOR && (changed || get(&tracked->part.raised) == OVERLAP_PART_RAISED))
        raised_lower(vendor, tracked, device, OVERLAP_STREAM_MAJOR);
}

void critical_feeder_waited(struct overlap_sync_model *model, enum vendor vendor, struct overlap_stream *tracked,
                            uint64_t event) {
    if (!overlap_critical_passes_on(tracked) || !is_wanted())
        return;
    struct overlap_stream *const feeder = overlap_critical_recorder(model, event);
    if (feeder && feeder != tracked)
        critical_waited(model, vendor, feeder, OVERLAP_CRITICAL_FEEDING,
                        get(&tracked->part.why) & OVERLAP_CRITICAL_COMMUNICATION);
}

/* A host wait for the legacy default stream also waits for its blocking streams. */
void critical_host_waits(struct overlap_sync_model *model, enum vendor vendor,
                         const struct overlap_completion *completion) {
    struct overlap_stream *const tracked = completion->by;
    if (!is_wanted() || !tracked || !overlap_stream_is(tracked, completion->serial))
        return;
    critical_waited(model, vendor, tracked, OVERLAP_CRITICAL_HOST_WAITS, false);
    bool critical = get(&tracked->part.state) == OVERLAP_PART_CRITICAL;
    const uint32_t used = OVERLAP_LOAD(tracked->kind) == OVERLAP_STREAM_LEGACY ? OVERLAP_LOAD(model->used_count) : 0;
    for (uint32_t i = 0; i < used && i < FEW; i++) {
        struct overlap_stream *const other = &model->streams[model->used[i]];
        if (OVERLAP_LOAD(other->ready) && OVERLAP_LOAD(other->kind) == OVERLAP_STREAM_BLOCKING &&
            OVERLAP_LOAD(other->context) == OVERLAP_LOAD(tracked->context)) {
            critical_waited(model, vendor, other, OVERLAP_CRITICAL_HOST_WAITS, false);
            critical |= get(&other->part.state) == OVERLAP_PART_CRITICAL;
        }
    }
    arms_waited(critical);
}

/* ---- While the model sleeps ---- */

void critical_completion_of_stream(struct overlap_stream *tracked, struct overlap_completion *completion) {
    completion->by = tracked;
    completion->serial = tracked ? OVERLAP_LOAD(tracked->serial) : 0;
}

RARE void critical_untracked_event(struct overlap_sync_model *model) {
    if (is_wanted())
        in_period(model, true, &untracked_left);
}

bool critical_polled(uint64_t what, bool is_over) {
    const uint64_t name = what + 1; /* + 1: the null stream is 0, which means none here */
    const bool again = OVERLAP_RELAXED(over_last) == name;
    if (again != is_over)
        __atomic_store_n(&over_last, is_over ? name : 0, __ATOMIC_RELAXED);
    return is_over && !again;
}

/* ---- Launches ---- */

struct critical_stream *critical_launch(const struct request *request) {
    const enum default_stream null_stream = hook_default(request->hook);
    const uint64_t threads = threads_of(request) * blocks_of(request);
    struct overlap_sync_model *model = windows();
    if (model && get(&critical_counting)) {
        overlap_critical_launched(window_stream(model, request->config.hStream, null_stream), threads);
        const uint32_t left = get(&launches_left);
        set(&launches_left, left - 1);
        if (left == 1)
            end(model);
    }
    struct critical_stream *const entry = critical_find(request->config.hStream);
    return entry && critical_launch_raised(request, entry) ? entry : NULL;
}

bool critical_launch_raised(const struct request *request, struct critical_stream *entry) {
    struct overlap_stream *const tracked = OVERLAP_LOAD(entry->tracked);
    struct overlap_page_stream *const record = OVERLAP_LOAD(entry->record);
    if (window_asleep()) { /* waits go unseen while the model sleeps; begin a period to find out */
        if (__atomic_add_fetch(&unwaited, 1, __ATOMIC_RELAXED) == FORGOTTEN)
            critical_begin(windows());
    } else if (__atomic_add_fetch(&tracked->part.since, 1, __ATOMIC_RELAXED) == FORGOTTEN) {
        const enum vendor vendor = hook_vendor(request->hook);
        if (raised_lower(vendor, tracked, device_current(vendor), OVERLAP_STREAM_LEARNING)) {
            set(&tracked->part.state, OVERLAP_PART_UNKNOWN);
            return false;
        }
        set(&tracked->part.since, 0);
    }
    if (record)
        __atomic_fetch_add(&record->launches, 1, __ATOMIC_RELAXED);
    struct handle *const handle = OVERLAP_LOAD(tracked->captured) ? handle_find(request->function) : NULL;
    if (handle) /* graph nodes captured from the stream are raised */
        __atomic_fetch_or(&handle->marks, (uint32_t)HANDLE_RAISED, __ATOMIC_RELAXED);
    return true;
}

void critical_graph(struct overlap_stream *tracked) {
    if (get(&critical_counting))
        overlap_critical_launched(tracked, GRAPH);
}

/* ---- Creation and destruction of streams ---- */

RARE void critical_program_set_priority(vendor_stream stream) {
    struct critical_stream *const entry = critical_find(stream);
    struct overlap_sync_model *model = windows();
    struct overlap_stream *tracked = model && stream ? overlap_sync_find(model, (uint64_t)(uintptr_t)stream) : NULL;
    if (entry)
        raised_drop(entry);
    if (tracked) {
        set(&tracked->part.raised, OVERLAP_PART_PROGRAM_SETS);
        if (get(&tracked->part.record))
            set(&overlap_current_page->streams[get(&tracked->part.record) - 1].status, OVERLAP_STREAM_PROGRAMS);
    }
}

RARE void critical_priority_copied(vendor_stream to, enum default_stream null_stream,
                                   const struct critical_stream *from) {
    struct overlap_sync_model *model = windows();
    if (model)
        raised_copied(window_stream(model, to, null_stream), from);
}

/* A stream may exist for one iteration only. So what was learnt is kept for the code that creates it and applied to
 * the next stream. Not if that code creates several at a time, which may be of different kinds. */
static struct site *site_of(uintptr_t site, bool add) {
    struct site *const sites = state ? state->sites : NULL;
    for (uint32_t i = 0; sites && i < SITES; i++) {
        struct site *const at = &sites[(site / 16 + i) % SITES];
        uintptr_t now = __atomic_load_n(&at->site, __ATOMIC_ACQUIRE);
        if (now == 0 && add &&
            __atomic_compare_exchange_n(&at->site, &now, site, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
            now = site;
        if (now == site || now == 0)
            return now ? at : NULL;
    }
    return NULL;
}

RARE static bool raises_lasting(enum vendor vendor, uint32_t why) {
    const struct overlap_policy *const policy = device_policy_for(device_current(vendor), true);
    return policy && policy->critical & why;
}

RARE bool critical_site_priority(enum vendor vendor, uintptr_t site, int *priority) {
    const struct site *const at = is_wanted() ? site_of(outer_site(site), false) : NULL;
    return at && !get(&at->shared) && !get(&at->alive) && get(&at->last.state) == OVERLAP_PART_CRITICAL &&
           raises_lasting(vendor, get(&at->last.why)) &&
           raised_level(vendor, get(&at->last.why) & OVERLAP_CRITICAL_COMMUNICATION, priority);
}

/* Copy field by field: other threads may read or add to either. */
static void inherit(struct overlap_part *to, const struct overlap_part *from) {
    const uint64_t work = OVERLAP_RELAXED(from->work);
    __atomic_store_n(&to->work, work, __ATOMIC_RELAXED);
    __atomic_store_n(&to->over, work, __ATOMIC_RELAXED); /* the destroyed stream is no longer waited for */
    __atomic_store_n(&to->own, OVERLAP_RELAXED(from->own), __ATOMIC_RELAXED);
    __atomic_store_n(&to->all, OVERLAP_RELAXED(from->all), __ATOMIC_RELAXED);
    set(&to->round, get(&from->round));
    set(&to->state, get(&from->state));
    set(&to->leans, get(&from->leans));
    set(&to->streak, get(&from->streak));
    set(&to->falls, get(&from->falls));
    set(&to->why, get(&from->why));
    set(&to->share, get(&from->share));
    set(&to->record, get(&from->record));
}

RARE void critical_stream_created(enum vendor vendor, uintptr_t site, struct overlap_stream *tracked) {
    struct site *const at = tracked && is_wanted() ? site_of(outer_site(site), true) : NULL;
    if (!at)
        return;
    tracked->part.site = at->site;
    if (__atomic_fetch_add(&at->alive, 1, __ATOMIC_RELAXED)) {
        set(&at->shared, 1);
        return;
    }
    if (get(&at->shared) || !take(&at->busy))
        return;
    if (get(&at->last.round) && at->context == OVERLAP_LOAD(tracked->context)) /* shares refer to one context */
        inherit(&tracked->part, &at->last);
    leave(&at->busy);
    const struct device *device =
        get(&tracked->part.state) == OVERLAP_PART_CRITICAL ? device_of(vendor, tracked) : NULL;
    const struct overlap_policy *policy = device_policy(device);
    if (device && policy)
        follow_arm(vendor, tracked, device, policy);
}

RARE void critical_stream_destroyed(struct overlap_sync_model *model, vendor_stream stream) {
    struct critical_stream *const entry = critical_find(stream);
    struct overlap_stream *const tracked = overlap_sync_find(model, (uint64_t)(uintptr_t)stream);
    struct site *const at = tracked && tracked->part.site ? site_of(tracked->part.site, false) : NULL;
    if (at) {
        if (take(&at->busy)) {
            inherit(&at->last, &tracked->part);
            at->context = OVERLAP_LOAD(tracked->context);
            leave(&at->busy);
        }
        __atomic_fetch_sub(&at->alive, 1, __ATOMIC_RELAXED);
    }
    if (entry)
        raised_drop(entry);
    if (tracked)
        raised_gone(tracked);
}

RARE void critical_forked(void) {
    raised_forked();
    if (critical_counting)
        overlap_cache_hide(&launch_cache, false);
    critical_counting = pause_left = major_communication = unwaited = 0;
    pause_now = PAUSE;
    new_left = NEW;
    untracked_left = UNTRACKED;
    for (uint32_t i = 0; state && i < SITES; i++)
        state->sites[i] = (struct site){0};
}
