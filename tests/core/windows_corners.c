/* Corners of overlap windows that no program comes to by itself: windows_corners CASE. Prints what is asked for. */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/critical.h"
#include "core/window.h"

enum { CONTEXT = 0x1000, C = 0x2000, X = 0x3000, Y = 0x4000, B = 0x5000, E = 0x6000 };
static struct overlap_sync_model *model;
static struct overlap_stream *c, *x, *y;

static void let_others(void) {
    sched_yield();
}
static struct overlap_stream *stream(uint64_t key) {
    return overlap_sync_stream(model, key, CONTEXT, OVERLAP_STREAM_NON_BLOCKING);
}
static void start(void) {
    model = calloc(1, sizeof *model);
    if (!model)
        exit(2);
    model->version = 2;
    model->pause = let_others;
    c = stream(C);
    x = stream(X);
    y = stream(Y);
}
static void records(uint64_t event, struct overlap_stream *on) {
    overlap_sync_recorded(model, overlap_sync_recording(model, event, on), on, true);
}
static struct overlap_window_answer query(struct overlap_stream *of, uint32_t wanted) {
    struct overlap_window_answer answer;
    overlap_window_query(model, of, wanted, &answer);
    return answer;
}
static char where(struct overlap_stream *of, uint32_t wanted) {
    return "oies"[query(of, wanted).position];
}

/* ---- A lock that is held for long, or for ever ---- */

static int holding;
static void *holds(void *argument) {
    const struct timespec time = {.tv_nsec = 20000000};
    if (!overlap_sync_lock(model))
        return argument;
    __atomic_store_n(&holding, 1, __ATOMIC_RELEASE);
    nanosleep(&time, NULL);
    if (!argument)
        overlap_sync_unlock(model);
    return NULL;
}
static void held(void *for_ever) {
    pthread_t made;
    pthread_create(&made, NULL, holds, for_ever);
    while (!__atomic_load_n(&holding, __ATOMIC_ACQUIRE))
        sched_yield();
    printf("%s ", stream(B) ? "made" : "none");
    pthread_join(made, NULL);
    printf("%u %s\n", model->stream_overflow, stream(B) ? "made" : "none");
}
/* As a signal handler that has interrupted the holder. */
static void inside(void) {
    printf("%d", overlap_sync_lock(model));
    printf("%d", overlap_sync_lock(model));
    printf("%s", stream(B) ? "made" : "none");
    overlap_sync_unlock(model);
    printf("%s\n", stream(B) ? "made" : "none");
}

/* ---- An event whose record the driver has refused ---- */

/* At the address of one that was captured. It was never recorded, so waiting for it means nothing. */
static void refused(void) {
    overlap_sync_capture(model, c);
    records(E, c);
    overlap_sync_capture_ended(model, c);
    overlap_sync_event_gone(model, E);
    overlap_window_communicates(model, c, false);
    overlap_sync_recorded(model, overlap_sync_recording(model, E, c), c, false);
    overlap_sync_waits(model, x, E);
    printf("%c", where(x, 1));
    records(E, c);
    overlap_sync_waits(model, x, E);
    printf("%c\n", where(x, 1));
}

/* ---- A time in which nothing is told ---- */

static char fed_by(uint64_t event) {
    const struct overlap_stream *by = overlap_critical_recorder(model, event);
    return by == c ? 'c' : by == y ? 'y' : '-';
}

/* What was launched before is over, and an event tells only what it was recorded with since. */
static void resumes(void) {
    uint64_t serial;
    overlap_window_communicates(model, c, false);
    records(E, c);
    printf("%c%c ", where(x, 1), fed_by(E));
    overlap_sync_sleep(model); /* the program records the event on another stream, untold */
    printf("%c ", where(x, 1));
    overlap_sync_wake(model);
    printf("%c%c%c ", where(x, 1), fed_by(E), overlap_critical_recorded_last(model, E, &serial) == c ? 'c' : '-');
    overlap_window_communicates(model, c, false);
    overlap_sync_waits(model, x, E);
    printf("%c ", where(x, 1));
    records(E, c);
    overlap_sync_waits(model, x, E);
    printf("%c%c ", where(x, 1), fed_by(E));
    printf("%d", overlap_sync_may_sleep(model));
    overlap_sync_capture(model, y);
    printf("%d", overlap_sync_may_sleep(model));
    overlap_sync_capture_ended(model, y);
    printf("%d", overlap_sync_may_sleep(model));
    overlap_sync_unknown(model, y);
    printf("%d\n", overlap_sync_may_sleep(model));
}

/* ---- Numbers that wrap ---- */

static void wraps(void) {
    overlap_window_communicates(model, c, false);
    records(E, c);
    for (uint32_t e = 0; e < OVERLAP_SYNC_EVENTS; e++)
        if (model->events[e].key == E)
            model->events[e].sequence = UINT32_MAX - 5;
    for (int i = 0; i < 6; i++) { /* the number of its records */
        overlap_window_communicates(model, c, false);
        putchar(where(x, 1));
        records(E, c);
        overlap_sync_waits(model, x, E);
        putchar(where(x, 1));
    }
    putchar(' ');
    model->version = UINT64_MAX - 3; /* the number of changes */
    for (int i = 0; i < 4; i++) {
        overlap_window_communicates(model, c, false);
        putchar(where(y, 1));
        records(E, c);
        overlap_sync_waits(model, y, E);
        putchar(where(y, 1));
    }
    putchar(' ');
    model->eager.now.entry[0] = x->clock.entry[0] = UINT64_MAX - 2; /* launches: not in the life of a process */
    model->serials = model->generation = model->waits = UINT64_MAX - 1;
    for (int i = 0; i < 6; i++) {
        overlap_window_communicates(model, c, false);
        records(E, c);
        overlap_sync_waits(model, x, E);
        putchar(where(x, 1));
    }
    putchar(' ');
    uint64_t *outside = overlap_window_outside(model, x, false);
    *outside = UINT64_MAX - 1;
    for (int i = 0; i < 6; i++) {
        ++*outside;
        printf("%u,", (unsigned)overlap_window_communicates(model, c, false).launched);
    }
    putchar('\n');
}

/* ---- What is given back ---- */

static void returns(void) {
    overlap_window_communicates(model, c, false);
    struct overlap_window_answer first = query(x, 64);
    x->inside = 0; /* another thread was in another window of the stream meanwhile, and is back */
    overlap_window_return(x, first.serial, first.newest, first.granted);
    printf("%c ", where(x, 64));
    uint32_t all = 32;
    for (struct overlap_window_answer more; (more = query(x, 64)).position == OVERLAP_POSITION_INSIDE;)
        all += more.granted;
    printf("%u\n", all);
}

/* ---- Whose answers a wait makes stale ---- */

static void *asks(void *stream) {
    (void)where(stream, 1);
    return NULL;
}
static void waits(struct overlap_stream *on) {
    const uint64_t version = model->version;
    overlap_window_communicates(model, c, false);
    records(E, c);
    const uint64_t before = model->version;
    const uint32_t waited = overlap_sync_waits(model, on, E);
    printf("%s%s ", waited & OVERLAP_WAITED_STALE ? "mine" : "", model->version == before ? "" : "all");
    if (before == version)
        printf("nothing was launched ");
}
static void stale(void) {
    pthread_t other;
    waits(x); /* nobody has asked */
    (void)where(x, 0);
    waits(x); /* or keeps the answer */
    (void)where(x, 1);
    waits(x);
    overlap_sync_waits(model, x, E); /* known already */
    pthread_create(&other, NULL, asks, x);
    pthread_join(other, NULL);
    waits(x);
    pthread_create(&other, NULL, asks, y);
    pthread_join(other, NULL);
    waits(y);
    struct overlap_stream *legacy = overlap_sync_stream(model, B, CONTEXT, OVERLAP_STREAM_LEGACY);
    (void)where(legacy, 1);
    waits(legacy);
    struct overlap_stream *blocking = overlap_sync_stream(model, B + 16, CONTEXT, OVERLAP_STREAM_BLOCKING);
    waits(legacy);
    (void)where(blocking, 1);
    waits(blocking);
    putchar('\n');
}

/* ---- Recorded by one thread, waited for by another ---- */

static uint64_t published, wrong, waited;
static int stop;
static void *recorder(void *argument) {
    while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE)) {
        overlap_window_communicates(model, c, false);
        records(E, c);
        (void)where(x, 1); /* another thread than the one that waits there asks about it */
        __atomic_store_n(&published, model->eager.now.entry[0], __ATOMIC_RELEASE);
    }
    return argument;
}
static void *comes_and_goes(void *argument) {
    for (uint64_t key = 0x100000 * (1 + (uint64_t)(uintptr_t)argument); !__atomic_load_n(&stop, __ATOMIC_ACQUIRE);
         key += 16) {
        struct overlap_stream *own = stream(key);
        records(key + 8, own);
        overlap_sync_waits(model, own, E);
        (void)where(own, 8);
        overlap_sync_event_gone(model, key + 8);
        overlap_sync_stream_gone(model, key);
    }
    return NULL;
}
static void *waiter(void *argument) {
    struct overlap_stream *mine = argument;
    for (int i = 0; i < 20000; i++) {
        const uint64_t least = __atomic_load_n(&published, __ATOMIC_ACQUIRE);
        overlap_sync_waits(model, mine, E);
        if (overlap_stream_knows(model, mine, 0) < least)
            __atomic_fetch_add(&wrong, 1, __ATOMIC_RELAXED);
        (void)where(mine, 32);
        __atomic_fetch_add(&waited, 1, __ATOMIC_RELAXED);
    }
    return NULL;
}
static void races(void) {
    pthread_t made[4];
    overlap_window_communicates(model, c, false);
    pthread_create(&made[0], NULL, recorder, NULL);
    pthread_create(&made[1], NULL, comes_and_goes, (void *)1);
    pthread_create(&made[2], NULL, waiter, x);
    pthread_create(&made[3], NULL, waiter, y);
    pthread_join(made[2], NULL);
    pthread_join(made[3], NULL);
    __atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
    pthread_join(made[0], NULL);
    pthread_join(made[1], NULL);
    printf("%d %d %u\n", (int)waited, (int)wrong, model->stream_overflow);
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "";
    start();
    if (strcmp(what, "held") == 0)
        held(NULL);
    else if (strcmp(what, "stuck") == 0)
        held(model);
    else if (strcmp(what, "inside") == 0)
        inside();
    else if (strcmp(what, "refused") == 0)
        refused();
    else if (strcmp(what, "resumes") == 0)
        resumes();
    else if (strcmp(what, "wraps") == 0)
        wraps();
    else if (strcmp(what, "returns") == 0)
        returns();
    else if (strcmp(what, "stale") == 0)
        stale();
    else
        races();
    return 0;
}
