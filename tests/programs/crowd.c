/* crowd THREADS ROUNDS [barrier|free] [none] [contexts:N] [devices:N]: threads that share devices.
 *
 * Each thread has two streams of its own. A round launches `small` of 8 blocks on the one, `large` of 24 on the other, and
 * waits for the small one. barrier: all threads begin a round together; free: nothing orders them; else none is more than a round
 * ahead of another one. Thread T is on device T % devices, in its context (T / devices) % contexts; with `none` no context is current in any thread but the
 * first one, which makes the streams beforehand. */
#define WAY_LINKED
#include "driver.h"

#include <pthread.h>
#include <sched.h>

enum { THREADS = 64, CONTEXTS = 16, NON_BLOCKING = 1, SMALL = 8, LARGE = 24, DRIFT = 1 };
static struct context {
    void *context, *small, *large;
} contexts[CONTEXTS];
static struct member {
    pthread_t thread;
    struct context *context;
    void *small, *large; /* streams */
    int round;
} members[THREADS];
static int threads, rounds, barrier, none, unordered;
static pthread_barrier_t all;

static void good(int result, const char *what) {
    if (result == 0)
        return;
    printf("%s: %d\n", what, result);
    exit(1);
}
#define GOOD(call) good(call, #call)

static void make_context(struct context *one, int device, int is_primary) {
    void *module;
    char *text = ptx_of("small,large");
    GOOD(is_primary ? cuDevicePrimaryCtxRetain(&one->context, device) : cuCtxCreate_v2(&one->context, 0, device));
    GOOD(cuCtxSetCurrent(one->context));
    GOOD(cuModuleLoadData(&module, text));
    GOOD(cuModuleGetFunction(&one->small, module, "small"));
    GOOD(cuModuleGetFunction(&one->large, module, "large"));
    free(text);
}

/* The simulated driver waits for nothing: without any order, one thread would run all of its rounds at once. */
static int is_ahead(int round) {
    for (int i = 0; i < threads; i++)
        if (__atomic_load_n(&members[i].round, __ATOMIC_RELAXED) < round - DRIFT)
            return 1;
    return 0;
}

static void *run(void *data) {
    struct member *const me = data;
    if (!none)
        GOOD(cuCtxSetCurrent(me->context->context));
    for (int i = 0; i < rounds; i++) {
        __atomic_store_n(&me->round, i, __ATOMIC_RELAXED);
        if (barrier)
            pthread_barrier_wait(&all);
        while (!barrier && !unordered && is_ahead(i))
            sched_yield();
        GOOD(launch_kernel(me->context->small, SMALL, 256, me->small));
        GOOD(launch_kernel(me->context->large, LARGE, 256, me->large));
        GOOD(cuStreamSynchronize(me->small));
    }
    __atomic_store_n(&me->round, rounds, __ATOMIC_RELAXED);
    return NULL;
}

static int value_of(const char *word, const char *name, int value) {
    const size_t length = strlen(name);
    return strncmp(word, name, length) == 0 && word[length] == ':' ? atoi(word + length + 1) : value;
}

int main(int argc, char **argv) {
    int devices = 1, of_each = 1;
    threads = atoi(argv[1]);
    rounds = atoi(argv[2]);
    for (int i = 3; i < argc; i++) {
        barrier |= strcmp(argv[i], "barrier") == 0;
        none |= strcmp(argv[i], "none") == 0;
        unordered |= strcmp(argv[i], "free") == 0;
        devices = value_of(argv[i], "devices", devices);
        of_each = value_of(argv[i], "contexts", of_each);
    }
    GOOD(cuInit(0));
    for (int i = 0; i < devices * of_each; i++)
        make_context(&contexts[i], i % devices, i < devices);
    pthread_barrier_init(&all, NULL, (unsigned)threads);
    for (int i = 0; i < threads; i++) {
        members[i].context = &contexts[i % (devices * of_each)];
        GOOD(cuCtxSetCurrent(members[i].context->context));
        GOOD(cuStreamCreate(&members[i].small, NON_BLOCKING));
        GOOD(cuStreamCreate(&members[i].large, NON_BLOCKING));
    }
    for (int i = 0; i < threads; i++)
        pthread_create(&members[i].thread, NULL, run, &members[i]);
    for (int i = 0; i < threads; i++)
        pthread_join(members[i].thread, NULL);
    return 0;
}
