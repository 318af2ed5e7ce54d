/* Queues, and the one thread that is all command processors and copy engines of the machine.
 *
 * A doorbell is a word in memory that nobody is told about, so the thread looks at every queue, and sleeps longer and longer
 * while there is nothing.
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "kfd.h"

enum { SHORTEST_SLEEP = 20000, LONGEST_SLEEP = 500000 }; /* nanoseconds */

static struct kfd_queue *queues;
static uint64_t last_id;
static bool running;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static bool run_all(void) {
    bool any = false;
    pthread_mutex_lock(&lock);
    for (struct kfd_queue *queue = queues; queue != NULL; queue = queue->next)
        if (!queue->stopped && (queue->type == QUEUE_AQL ? kfd_run_aql(queue) : kfd_run_sdma(queue)))
            any = true;
    pthread_mutex_unlock(&lock);
    return any;
}

static void *process(void *unused) {
    long sleep = SHORTEST_SLEEP;
    for (;;) {
        if (run_all()) {
            sleep = SHORTEST_SLEEP;
            continue;
        }
        nanosleep(&(struct timespec){0, sleep}, NULL);
        sleep = sleep * 2 < LONGEST_SLEEP ? sleep * 2 : LONGEST_SLEEP;
    }
    return unused;
}

/* Signals are the program's own: none is delivered to this thread. */
static bool start(void) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_t thread;
    const bool started = pthread_create(&thread, NULL, process, NULL) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (started)
        pthread_detach(thread);
    return started;
}

EXPORT int hsaKmtCreateQueue(uint32_t node, uint32_t type, uint32_t percentage, int32_t priority, void *ring,
                             uint64_t ring_bytes, struct thunk_event *event, struct thunk_queue *resource) {
    (void)percentage, (void)event;
    if (kfd_gpu_of(node) == NULL)
        return THUNK_INVALID_NODE;
    if (type != QUEUE_AQL && type != QUEUE_SDMA && type != QUEUE_SDMA_XGMI)
        return THUNK_NOT_SUPPORTED;
    struct kfd_queue *const queue = calloc(1, sizeof *queue);
    if (queue == NULL)
        return THUNK_NO_MEMORY;
    queue->node = node;
    queue->type = type;
    queue->priority = priority;
    queue->ring = ring;
    queue->ring_bytes = ring_bytes;
    if (type == QUEUE_AQL) {
        queue->hardware = (void *)((char *)resource->read_index - offsetof(struct hardware_queue, read_index));
    } else {
        resource->write_index = (uint64_t *)&queue->write_index;
        resource->read_index = (uint64_t *)&queue->read_index;
    }
    resource->doorbell = (uint64_t *)&queue->doorbell;
    pthread_mutex_lock(&lock);
    resource->id = queue->id = ++last_id;
    queue->next = queues;
    queues = queue;
    running = running || start();
    const bool served = running;
    pthread_mutex_unlock(&lock);
    return served ? THUNK_SUCCESS : THUNK_OUT_OF_RESOURCES;
}

static struct kfd_queue **place_of(uint64_t id) {
    struct kfd_queue **place = &queues;
    while (*place != NULL && (*place)->id != id)
        place = &(*place)->next;
    return place;
}

/* A percentage of 0 stops a queue. */
EXPORT int hsaKmtUpdateQueue(uint64_t id, uint32_t percentage, int32_t priority, void *ring, uint64_t ring_bytes,
                             struct thunk_event *event) {
    (void)ring, (void)ring_bytes, (void)event;
    pthread_mutex_lock(&lock);
    struct kfd_queue *const queue = *place_of(id);
    if (queue != NULL) {
        queue->priority = priority;
        queue->stopped = percentage == 0;
    }
    pthread_mutex_unlock(&lock);
    return queue != NULL ? THUNK_SUCCESS : THUNK_INVALID_HANDLE;
}

EXPORT int hsaKmtDestroyQueue(uint64_t id) {
    pthread_mutex_lock(&lock);
    struct kfd_queue **const place = place_of(id);
    struct kfd_queue *const queue = *place;
    if (queue != NULL)
        *place = queue->next;
    pthread_mutex_unlock(&lock);
    free(queue);
    return queue != NULL ? THUNK_SUCCESS : THUNK_INVALID_HANDLE;
}
