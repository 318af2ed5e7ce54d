/* Threads that do words of waiting.c, and meet at named points of the library (shim/gpu/point.h) in one order:
 *
 *   race "1:raise_looked 2:begin ..." WORD... / WORD... / WORD... / WORD...
 *
 * First come words of the main thread, then those of threads 1, 2, ..., last those of the main thread when they have ended.
 * An item THREAD:POINT of the order is reached when that thread comes to that point and all earlier items are reached. The thread
 * stays there until all items before its own next one are reached. `begin` and `end` are points before and after the words of a
 * thread. Points that are not the next item of their thread hold nothing. Besides the words of waiting.c:
 *
 *   @POINT     is at a point
 *   l:0 l:1    load kernel k, or j, into a module of its own in place of the one before; word k launches it
 *   M:N V      load N modules with a kernel each; unload them
 *   y          ask for the end of the primary context, which the driver refuses
 */
#define main waiting_main
#include "../programs/waiting.c"
#undef main

#include <errno.h>
#include <time.h>

enum { ITEMS = 20, THREADS = 4, LIMIT = 20, MANY = 100 }; /* seconds; of an order that cannot be */
static const char *items[ITEMS];
static int count, reached;
static __thread int self; /* number of this thread; 0: the main thread */
static pthread_mutex_t order = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t moved = PTHREAD_COND_INITIALIZER;

static int own_next(void) {
    int i = reached;
    while (i < count && atoi(items[i]) != self)
        i++;
    return i;
}

static void go_on(int to) {
    reached = to;
    pthread_cond_broadcast(&moved);
}

/* The order cannot be kept: say so, and let all threads run. */
static void give_up(int item) {
    printf("not reached: %s\n", items[item]);
    go_on(count);
}

static void wait_for(int item) {
    struct timespec end;
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += LIMIT;
    while (reached < item)
        if (pthread_cond_timedwait(&moved, &order, &end) == ETIMEDOUT && reached < item)
            give_up(reached);
}

/* The library calls this at each of its points. */
extern void overlap_point(const char *name);
void overlap_point(const char *name) {
    const int saved = errno;
    pthread_mutex_lock(&order);
    const int own = own_next();
    if (own < count && strcmp(strchr(items[own], ':') + 1, name) == 0) {
        wait_for(own);
        if (reached == own)
            go_on(own + 1);
        if (own_next() < count)
            wait_for(own_next());
    }
    pthread_mutex_unlock(&order);
    errno = saved;
}

static void *context;

static void load_alone(int other) {
    static void *module;
    void *const before = k;
    char *const text = ptx_of(other ? "j" : "k");
    if (module)
        good(CU(cuModuleUnload)(module), "cuModuleUnload");
    good(CU(cuModuleLoadData)(&module, text), "cuModuleLoadData");
    good(CU(cuModuleGetFunction)(&k, module, other ? "j" : "k"), "cuModuleGetFunction");
    if (other)
        printf("same address: %d\n", k == before);
    free(text);
}

static void load_many(int number) {
    static void *modules[MANY];
    static int loaded;
    void *function;
    char *const text = ptx_of("m");
    for (; loaded < number; loaded++) {
        good(CU(cuModuleLoadData)(&modules[loaded], text), "cuModuleLoadData");
        good(CU(cuModuleGetFunction)(&function, modules[loaded], "m"), "cuModuleGetFunction");
    }
    for (; loaded > number; loaded--)
        good(CU(cuModuleUnload)(modules[loaded - 1]), "cuModuleUnload");
    free(text);
}

/* Up to the next slash. Returns the words behind it. */
static char **act_all(char **word) {
    for (; *word && strcmp(*word, "/") != 0; word++)
        if (**word == '@')
            overlap_point(*word + 1);
        else if (**word == 'l')
            load_alone((*word)[2] == '1');
        else if (**word == 'M' || **word == 'V')
            load_many(**word == 'M' ? atoi(*word + 2) : 0);
        else if (**word == 'y')
            good(cuCtxDestroy_v2(context) == 0, *word);
        else
            act_on(*word);
    return word + (*word != NULL);
}

static struct thread {
    pthread_t thread;
    char **words;
} threads[THREADS];

static void *run(void *data) {
    struct thread *const thread = data;
    self = (int)(thread - threads) + 1;
    good(CU(cuCtxSetCurrent)(context), "cuCtxSetCurrent");
    overlap_point("begin");
    act_all(thread->words);
    overlap_point("end");
    pthread_mutex_lock(&order);
    if (own_next() < count)
        give_up(own_next());
    pthread_mutex_unlock(&order);
    return NULL;
}

int main(int argc, char **argv) {
    int running = 0;
    (void)argc;
    driver_start();
    good(cuCtxGetCurrent(&context), "cuCtxGetCurrent");
    load();
    char **words = act_all(argv + 2);
    for (char *item = strtok(argv[1], " "); item; item = strtok(NULL, " "))
        items[count++] = item;
    for (char **last = words; *last; last++)
        if (strcmp(*last, "/") == 0) {
            threads[running++].words = words;
            words = last + 1;
        }
    for (int i = 0; i < running; i++)
        good(pthread_create(&threads[i].thread, NULL, run, &threads[i]), "pthread_create");
    for (int i = 0; i < running; i++)
        pthread_join(threads[i].thread, NULL);
    act_all(words);
    good(CU(cuCtxSynchronize)(), "at last");
    return bad;
}
