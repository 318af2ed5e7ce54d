/* Events: a waiting thread sleeps here, and the packet processor wakes it in place of an interrupt. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "kfd.h"

struct event {
    struct event *next;
    struct thunk_event shown; /* what the runtime holds */
    uint64_t mailbox;
    bool manual, set;
};

static struct event *events;
static uint32_t last_id;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void prepare(void) {
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&changed, &attributes);
    pthread_condattr_destroy(&attributes);
}

static struct event *event_of(struct thunk_event *shown) {
    return (struct event *)((char *)shown - offsetof(struct event, shown));
}

EXPORT int hsaKmtCreateEvent(struct thunk_event_descriptor *wanted, bool manual, bool set, struct thunk_event **made) {
    pthread_once(&once, prepare);
    struct event *const event = calloc(1, sizeof *event);
    if (event == NULL)
        return THUNK_NO_MEMORY;
    event->manual = manual;
    event->set = set;
    event->shown.type = wanted->type;
    event->shown.mailbox = (uintptr_t)&event->mailbox;
    pthread_mutex_lock(&lock);
    event->shown.id = ++last_id;
    event->next = events;
    events = event;
    pthread_mutex_unlock(&lock);
    *made = &event->shown;
    return THUNK_SUCCESS;
}

EXPORT int hsaKmtDestroyEvent(struct thunk_event *shown) {
    if (shown == NULL)
        return THUNK_INVALID_HANDLE;
    struct event *const event = event_of(shown);
    pthread_mutex_lock(&lock);
    struct event **place = &events;
    while (*place != NULL && *place != event)
        place = &(*place)->next;
    if (*place != NULL)
        *place = event->next;
    pthread_mutex_unlock(&lock);
    free(event);
    return THUNK_SUCCESS;
}

EXPORT int hsaKmtSetEvent(struct thunk_event *shown) {
    pthread_mutex_lock(&lock);
    event_of(shown)->set = true;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    return THUNK_SUCCESS;
}

/* By number: the device knows no addresses of events, and one may be gone by now. */
void kfd_wake(uint32_t id) {
    pthread_mutex_lock(&lock);
    struct event *event = events;
    while (event != NULL && event->shown.id != id)
        event = event->next;
    if (event != NULL) {
        event->set = true;
        pthread_cond_broadcast(&changed);
    }
    pthread_mutex_unlock(&lock);
}

static bool satisfied(struct thunk_event *shown[], uint32_t count, bool all) {
    uint32_t set = 0;
    for (uint32_t i = 0; i < count; i++)
        set += event_of(shown[i])->set;
    if (all ? set < count : set == 0)
        return false;
    for (uint32_t i = 0; i < count; i++)
        if (!event_of(shown[i])->manual)
            event_of(shown[i])->set = false;
    return true;
}

EXPORT int hsaKmtWaitOnMultipleEvents(struct thunk_event *shown[], uint32_t count, bool all, uint32_t milliseconds) {
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += milliseconds / 1000;
    until.tv_nsec += (long)(milliseconds % 1000) * 1000000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_nsec -= 1000000000;
        until.tv_sec++;
    }
    int late = 0;
    pthread_mutex_lock(&lock);
    bool done;
    while (!(done = satisfied(shown, count, all)) && late != ETIMEDOUT)
        late = milliseconds == UINT32_MAX ? pthread_cond_wait(&changed, &lock)
                                          : pthread_cond_timedwait(&changed, &lock, &until);
    pthread_mutex_unlock(&lock);
    return done ? THUNK_SUCCESS : THUNK_WAIT_TIMEOUT;
}

EXPORT int hsaKmtWaitOnEvent(struct thunk_event *shown, uint32_t milliseconds) {
    return hsaKmtWaitOnMultipleEvents(&shown, 1, true, milliseconds);
}
