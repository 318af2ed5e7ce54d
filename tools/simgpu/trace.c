/* SIMGPU_TRACE: what ran, and the calls of the host that put it there or waited for it, in the words of Kineto (PyTorch's
 * profiler): a JSON array of complete events, which Perfetto and Chrome show and `overlap explain` reads.
 *
 * kernel, gpu_memcpy, gpu_memset: one row for each stream, and further ones where kernels of one stream overlap (branches of
 * a graph), because a row cannot show events that cross. cuda_driver: calls, one row for each thread, with the number
 * (`correlation`) by which the others name the call that they come from. cuda_sync: what a call waited for.
 *
 * Events are buffered and written with one write(2) at every synchronisation, over the closing bracket and with a new
 * one: the file is whole JSON after each write, whoever dies, and several processes may share it. If one is killed inside
 * that write, the bracket is missing, which viewers accept.
 */
#include <fcntl.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "sim.h"

enum { BUFFER = 1 << 16, EVENT = 8192, ROWS = 1024 };

static const char OPENING[] = "[\n", BETWEEN[] = ",\n", CLOSING[] = "\n]\n";
/* Times are rounded to nanoseconds: a call that waited must not end before what it waited for. */
static const double ROUNDING_US = 0.001;

/* A row of the picture. Of a stream, which of those that it needs; of a thread: device -1. */
struct row {
    int device, turn;
    uint64_t number;
    double busy_until;
};

static struct row rows[ROWS];
static int row_count;
static int file = -1;
static char buffer[sizeof BETWEEN + BUFFER + sizeof CLOSING];
static size_t buffered; /* of the events, each with BETWEEN before it */

static bool ends_with_closing(off_t end) {
    char last[sizeof CLOSING - 1];
    return end >= (off_t)sizeof last && pread(file, last, sizeof last, end - (off_t)sizeof last) == sizeof last &&
           memcmp(last, CLOSING, sizeof last) == 0;
}

/* What was written before `end` stays, whole; closing it unlocks it. */
static void give_up(off_t end) {
    sim_say("SIMGPU_TRACE: %s cannot be written: %m", sim_config.trace);
    if (ftruncate(file, end) == 0 && end > 0 && pwrite(file, CLOSING, sizeof CLOSING - 1, end) < 0)
        sim_say("SIMGPU_TRACE: %s is not whole: %m", sim_config.trace);
    sim_config.trace = NULL;
    close(file);
    file = -1;
}

void sim_trace_flush(void) {
    if (buffered == 0 || file < 0)
        return;
    flock(file, LOCK_EX);
    off_t end = lseek(file, 0, SEEK_END);
    const char *start = buffer;
    size_t bytes = buffered + sizeof CLOSING - 1;
    memcpy(buffer + buffered, CLOSING, sizeof CLOSING - 1);
    if (end <= 0) { /* the first event has nothing to be divided from */
        memcpy(buffer, OPENING, sizeof OPENING - 1);
        end = 0;
    } else if (ends_with_closing(end))
        end -= (off_t)sizeof CLOSING - 1;
    const off_t begin = end;
    while (bytes > 0) {
        const ssize_t written = pwrite(file, start, bytes, end);
        if (written <= 0)
            break;
        start += written;
        end += written;
        bytes -= (size_t)written;
    }
    if (bytes > 0)
        give_up(begin);
    else
        flock(file, LOCK_UN);
    buffered = 0;
}

void sim_trace_forget(void) {
    buffered = 0;
}

static void add(const char *format, ...) SIM_PRINTF(1, 2);
static void add(const char *format, ...) {
    va_list arguments;
    if (buffered + EVENT > BUFFER)
        sim_trace_flush();
    va_start(arguments, format);
    memcpy(buffer + buffered, BETWEEN, sizeof BETWEEN - 1);
    buffered += sizeof BETWEEN - 1;
    buffered += (size_t)vsnprintf(buffer + buffered, EVENT, format, arguments);
    va_end(arguments);
}

static bool is_open(void) {
    if (sim_config.trace == NULL || file >= 0)
        return sim_config.trace != NULL;
    file = open(sim_config.trace, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (file < 0) {
        sim_say("SIMGPU_TRACE: %s cannot be written: %m", sim_config.trace);
        sim_config.trace = NULL;
        return false;
    }
    add("{\"name\": \"process_name\", \"ph\": \"M\", \"pid\": %d, \"tid\": 0, "
        "\"args\": {\"name\": \"simulated\"}}",
        (int)getpid());
    return true;
}

/* The first row of the stream or thread that is free again, named when it is new. Kernels come in the order in which they end. */
static int row_of(int device, uint64_t number, double start_us, double end_us) {
    int turn = 1, last = 0;
    for (int i = 0; i < row_count; i++) {
        struct row *const row = &rows[i];
        if (row->device != device || row->number != number)
            continue;
        last = i;
        if (device >= 0 && row->busy_until > start_us) {
            turn++;
            continue;
        }
        row->busy_until = end_us;
        return i + 1;
    }
    if (row_count == ROWS)
        return last + 1;
    rows[row_count++] = (struct row){device, turn, number, end_us};
    char name[256], more[32] = "";
    if (turn > 1)
        snprintf(more, sizeof more, ", row %d", turn);
    if (device < 0)
        snprintf(name, sizeof name, "thread %llu", (unsigned long long)number);
    else
        snprintf(name, sizeof name, "stream %llu, device %d (%s)%s", (unsigned long long)number, device,
                 sim_gpu(device)->name, more);
    add("{\"name\": \"thread_name\", \"ph\": \"M\", \"pid\": %d, \"tid\": %d, \"args\": {\"name\": \"%s\"}}",
        (int)getpid(), row_count, name);
    return row_count;
}

/* The end of every event's head: start and length, both of rounded moments. */
static const char *times(char *text, size_t room, double start_us, double end_us) {
    const double from = round(start_us * 1000) / 1000, to = round(end_us * 1000) / 1000;
    snprintf(text, room, "\"ts\": %.3f, \"dur\": %.3f", from, to - from);
    return text;
}

void sim_trace_add(const struct op *op) {
    if (!is_open())
        return;
    char name[EVENT / 2], when[96];
    const int row = row_of(op->device, (uint64_t)op->queue, op->start_us, op->done_us), pid = (int)getpid();
    times(when, sizeof when, op->start_us, op->done_us);
    if (op->kind != OP_KERNEL) {
        add("{\"name\": \"%s\", \"cat\": \"%s\", \"ph\": \"X\", \"pid\": %d, \"tid\": %d, %s, "
            "\"args\": {\"device\": %d, \"stream\": %d, \"correlation\": %u}}",
            op->transfer, strcmp(op->transfer, "Memset") == 0 ? "gpu_memset" : "gpu_memcpy", pid, row, when, op->device,
            op->queue, op->correlation);
        return;
    }
    const struct launch *const launch = op->launch;
    const struct work_class *const work = launch->work;
    add("{\"name\": \"%s\", \"cat\": \"kernel\", \"ph\": \"X\", \"pid\": %d, \"tid\": %d, %s, \"args\": {\"device\": "
        "%d, "
        "\"stream\": %d, \"correlation\": %u, \"grid\": [%u, %u, %u], \"block\": [%d, 1, 1], \"registers per thread\": "
        "%d, "
        "\"static_shared\": %d, \"dynamic_shared\": %zu, \"priority\": %d, \"graph node id\": %llu, "
        "\"resident_peak\": %d, \"queued_us\": %.3f}}",
        sim_log_escaped(work->name, name, sizeof name), pid, row, when, op->device, op->queue, op->correlation,
        launch->grid[0], launch->grid[1], launch->grid[2], launch->threads, work->registers, work->static_shared,
        launch->dynamic, launch->priority, (unsigned long long)op->node, launch->resident_peak, op->queued_us);
}

/* An event of the host, in the row of the thread that makes the call, from the beginning of the call on. */
static void add_of_host(const char *name, const char *category, const char *more) {
    char when[96];
    const double end_us = sim_host_us + ROUNDING_US;
    const int row = row_of(-1, sim_thread_id(), sim_call.start_us, end_us);
    add("{\"name\": \"%s\", \"cat\": \"%s\", \"ph\": \"X\", \"pid\": %d, \"tid\": %d, %s, \"args\": {\"correlation\": "
        "%u%s}}",
        name, category, (int)getpid(), row, times(when, sizeof when, sim_call.start_us, end_us), sim_call.number, more);
}

void sim_trace_call(void) {
    if (sim_call.shown && is_open())
        add_of_host(sim_entry != NULL ? sim_entry : "", "cuda_driver", "");
}

void sim_trace_wait(const char *what, int device, const struct stream *stream, const struct op *record) {
    char more[128];
    sim_call.shown = true;
    if (!is_open())
        return;
    int length =
        snprintf(more, sizeof more, ", \"device\": %d, \"stream\": %d", device, stream != NULL ? stream->number : -1);
    if (record != NULL)
        snprintf(more + length, sizeof more - (size_t)length,
                 ", \"wait_on_stream\": %d, \"wait_on_cuda_event_record_corr_id\": %u", record->queue,
                 record->correlation);
    add_of_host(what, "cuda_sync", more);
}
