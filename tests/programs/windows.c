/* Runs programs of launches, records, waits and captures, one a line, and prints what every call answered, one line a
 * program. An empty line: what was printed is wanted now. The operations: tests/windows/operations.py.
 *
 * A program begins with nothing and leaves nothing behind but the default streams: what it has not destroyed is
 * destroyed, and every context is waited for, in this order and in the other by turns.
 */
#ifdef VENDOR_AMD
#include "windows_hip.h"
#else
#include "windows_cuda.h"
#endif

#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

enum { STREAMS = 10, EVENTS = 16, GRAPHS = 10, WORDS = 1 << 20, WORDS_EACH = 16 };
enum { RELAXED = 2, EXTERNAL = 2, GEQ = 0, NO_SUCH = -1 };

/* The longest program that is run: one stream of 16,400 operations, say. */
static char line[1 << 20];

static int current = -1; /* the device of this thread */

struct op {
    char kind, how, slot;
    int index, other, thread;
};

static struct {
    void *handle;
    int device;
} streams[STREAMS], events[EVENTS];
static struct {
    void *graph, *exec;
    int device;
} graphs[GRAPHS];
static uint64_t words; /* that streams wait for */
static unsigned words_used;

static void use(int device) {
    if (device != current)
        need(use_device(device), "device");
    current = device;
}

static void start(void) {
    driver_open();
    need(start_devices(), "devices");
    use(0);
    need(allocate(&words, sizeof(uint32_t) * WORDS), "words");
    need(fill(words, WORDS), "words");
}

static struct named named(const struct op *op) {
    const int slot = op->slot - '0';
    struct named stream = {NULL, op->how == 't' || op->how == 'M' || op->how == 'p' || op->how == 'Q', slot, 1};
    if (op->how == 's' || op->how == 't') {
        stream.handle = streams[slot].handle;
        stream.device = streams[slot].device;
        stream.good = stream.handle != NULL;
    } else if (op->how != 'l' && op->how != 'p') {
        stream.handle = op->how == 'L' || op->how == 'M' ? LEGACY : PER_THREAD;
        stream.per_thread &= stream.handle != NULL; /* a vendor without such a handle: the plain way is the only one */
    }
    return stream;
}

static int instantiate(int slot) {
    const int result = graph_instantiate(&graphs[slot].exec, graphs[slot].graph, 0);
    graphs[slot].device = current;
    return result;
}

static int graph_by_hand(const struct op *op) {
    void *node;
    if (op->kind == 'B' && !graphs[op->other].graph)
        return NO_SUCH;
    use(op->kind == 'B' ? graphs[op->other].device : 0);
    need(graph_create(&graphs[op->index].graph, 0), "graph");
    const int result = op->kind == 'B'
                           ? graph_add_child(&node, graphs[op->index].graph, NULL, 0, graphs[op->other].graph)
                           : add_kernel(&node, graphs[op->index].graph, op->other & 1);
    return result ? result : instantiate(op->index);
}

static int destroy_graph(int slot) {
    if (graphs[slot].exec)
        exec_destroy(graphs[slot].exec);
    const int result = graphs[slot].graph ? graph_destroy(graphs[slot].graph) : NO_SUCH;
    graphs[slot].graph = graphs[slot].exec = NULL;
    return result;
}

static void nothing(void *argument) {
    (void)argument;
}

static int add_dependencies(const struct op *op, struct named stream) {
    int status;
    uint64_t id;
    void *const *nodes;
    size_t count;
    const int result = capture_info(streams[op->index].handle, &status, &id, NULL, &nodes, &count);
    return result ? result : capture_update(stream.handle, nodes, count, (unsigned)op->other);
}

static int on_stream(const struct op *op) {
    const struct named stream = named(op);
    const uint64_t memory = devices[stream.device].memory, word = words + 4u * (words_used + (unsigned)op->index);
    void *const event = events[op->index % EVENTS].handle;
    if (!stream.good)
        return NO_SUCH;
    use(stream.device);
    switch (op->kind) {
    case 'k':
    case 'c':
        return launch(stream, op->kind == 'c', op->other);
    case 'K':
    case 'C':
        return launch_recording(stream, op->kind == 'C', op->other == op->index ? NULL : events[op->other].handle,
                                event);
    case 'r':
        return op->other ? ON(event_record_flags, event, stream.handle, op->other == EXTERNAL)
                         : ON(event_record, event, stream.handle);
    case 'w':
        return ON(stream_wait, stream.handle, event, op->other != 0);
    case 'y':
        return ON(stream_synchronize, stream.handle);
    case 'q':
        return ON(stream_query, stream.handle);
    case 'a':
        return ON(copy_async, memory, memory + 64, 4, stream.handle);
    case 'A':
        return copy_and_wait(stream, memory);
    case 'f':
        return ON(fill_async, memory, 4, stream.handle);
    case 'H':
        return ON(host_function, stream.handle, nothing, NULL);
    case 'P':
        return set_priority(stream.handle, -op->index);
    case 'v':
        return ON(wait_value, stream.handle, word, 1, GEQ);
    case 'V':
        return ON(write_value, stream.handle, word, 1, 0);
    case 'b':
        return ON(capture_begin, stream.handle, RELAXED);
    case 'g':
        return graphs[op->index].exec ? ON(graph_launch, graphs[op->index].exec, stream.handle) : NO_SUCH;
    case 'u':
        return add_dependencies(op, stream);
    default:
        break;
    }
    const int result = ON(capture_end, stream.handle, &graphs[op->index].graph);
    return result ? result : instantiate(op->index);
}

static int one(const struct op *op) {
    const int slot = op->slot - '0';
    float milliseconds;
    int result;
    switch (op->kind) {
    case 'n':
        use(op->other);
        streams[slot].device = op->other;
        return stream_create(&streams[slot].handle, (unsigned)op->index);
    case 'x':
        result = stream_destroy(streams[slot].handle);
        streams[slot].handle = NULL;
        return result;
    case 'e':
        use(op->other);
        return event_create(&events[op->index].handle, 0);
    case 'z':
        result = event_destroy(events[op->index].handle);
        events[op->index].handle = NULL;
        return result;
    case 'Y':
        return event_synchronize(events[op->index].handle);
    case 'Q':
        return event_query(events[op->index].handle);
    case 'T':
        return event_elapsed(&milliseconds, events[op->index].handle, events[op->other].handle);
    case 'S':
        use(op->index);
        return device_synchronize();
    case 'h':
    case 'd':
    case 'D':
    case 'm':
        use(slot);
        return copy(op->kind, op->how == 'p', devices[slot].memory);
    case 'G':
        return destroy_graph(op->index);
    case 'B':
    case 'N':
        return graph_by_hand(op);
    default:
        return on_stream(op);
    }
}

/* The second thread of a program, which takes its turn like the first. */
static struct {
    sem_t wanted, done;
    const struct op *op;
    int result;
} other;

static void *other_thread(void *argument) {
    for (;;) {
        sem_wait(&other.wanted);
        const int before = current;
        current = -1; /* each thread has a current context of its own */
        other.result = one(other.op);
        current = before;
        sem_post(&other.done);
    }
    return argument;
}

static int by_thread(const struct op *op) {
    static int started;
    pthread_t made;
    if (op->thread == 0)
        return one(op);
    if (!started) {
        sem_init(&other.wanted, 0, 0);
        sem_init(&other.done, 0, 0);
        started = 1;
        need(pthread_create(&made, NULL, other_thread, NULL), "thread");
    }
    other.op = op;
    sem_post(&other.wanted);
    sem_wait(&other.done);
    return other.result;
}

static void destroy_all(void) {
    for (int i = 0; i < STREAMS; i++) {
        if (streams[i].handle)
            stream_destroy(streams[i].handle);
        streams[i].handle = NULL;
    }
    for (int i = 0; i < EVENTS; i++) {
        if (events[i].handle)
            event_destroy(events[i].handle);
        events[i].handle = NULL;
    }
    for (int i = 0; i < GRAPHS; i++)
        destroy_graph(i);
}

static void wait_for_all(void) {
    for (int i = 0; i < device_count; i++) {
        use(i);
        need(device_synchronize(), "end");
    }
}

static char *running;

/* A program that waits for ever is a mistake of whoever made it, or of the library. */
static void too_long(int signal) {
    if (write(STDERR_FILENO, running, strlen(running)) < 0)
        _exit(signal);
    _exit(7);
}

static void run(char *text) {
    static unsigned programs;
    alarm(10);
    running = strdup(text);
    for (const char *word = strtok(text, " \n"); word; word = strtok(NULL, " \n")) {
        struct op op;
        if (sscanf(word, "%c%c%c,%d,%d,%d", &op.kind, &op.how, &op.slot, &op.index, &op.other, &op.thread) != 6)
            need(1, word);
        printf("%d ", by_thread(&op));
    }
    putchar('\n');
    if (programs++ % 2) {
        destroy_all();
        wait_for_all();
    } else {
        wait_for_all();
        destroy_all();
    }
    words_used = (words_used + WORDS_EACH) % WORDS;
    alarm(0);
    free(running);
}

int main(void) {
    static char buffer[1 << 20];
    setvbuf(stdout, buffer, _IOFBF, sizeof buffer);
    signal(SIGALRM, too_long);
    start();
    while (fgets(line, sizeof line, stdin)) {
        if (*line == '\n')
            fflush(stdout);
        else
            run(line);
    }
    return 0;
}
