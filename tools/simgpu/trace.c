/* SIMGPU_TRACE: kernels as they ran, in the form that Perfetto and Chrome show: a JSON array of complete events.
 *
 * One row for each stream, and further ones where kernels of one stream overlap (branches of a graph), because a row cannot
 * show events that cross. Events are buffered and written with one write(2) at every synchronisation, over the
 * closing bracket and with a new one: the file is whole JSON after each write, whoever dies, and several processes may
 * share it. If one is killed inside that write, the bracket is missing, which viewers accept.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sim.h"

enum { BUFFER = 1 << 16, EVENT = 8192, ROWS = 1024 };

static const char OPENING[] = "[\n", BETWEEN[] = ",\n", CLOSING[] = "\n]\n";

/* A row of the picture: a stream, and which of those that it needs. */
struct row {
    unsigned long long stream, context;
    int device, turn;
    double busy_until;
};

static struct row rows[ROWS];
static int row_count;
static int file = -1;
static char buffer[sizeof BETWEEN + BUFFER + sizeof CLOSING];
static size_t buffered; /* of the events, each with BETWEEN before it */
static bool process_named;

static bool ends_with_closing(off_t end) {
    char last[sizeof CLOSING - 1];
    return end >= (off_t)sizeof last && pread(file, last, sizeof last, end - (off_t)sizeof last) == sizeof last &&
           memcmp(last, CLOSING, sizeof last) == 0;
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
    while (bytes > 0) {
        const ssize_t written = pwrite(file, start, bytes, end);
        if (written <= 0)
            break;
        start += written;
        end += written;
        bytes -= (size_t)written;
    }
    flock(file, LOCK_UN);
    buffered = 0;
}

void sim_trace_forget(void) {
    buffered = 0;
}

static bool is_open(void) {
    if (file >= 0 || sim_config.trace == NULL)
        return file >= 0;
    file = open(sim_config.trace, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (file < 0) {
        sim_say("SIMGPU_TRACE: %s cannot be written: %m", sim_config.trace);
        sim_config.trace = NULL;
    }
    return file >= 0;
}

/* The first row of the stream that is free again. Kernels come in the order in which they end. */
static int row_of(const struct op *op, bool *made) {
    const struct launch *const launch = op->launch;
    int turn = 1, last = 0;
    *made = false;
    for (int i = 0; i < row_count; i++) {
        struct row *const row = &rows[i];
        if (row->stream != launch->stream_number || row->context != launch->context_number || row->device != op->device)
            continue;
        if (row->busy_until <= op->start_us)
            return i;
        turn++;
        last = i;
    }
    if (row_count == ROWS)
        return last;
    *made = true;
    rows[row_count] = (struct row){launch->stream_number, launch->context_number, op->device, turn, 0};
    return row_count++;
}

/* Names the process and the row, once. */
static void add_names(int id) {
    const struct row *const row = &rows[id];
    const int pid = (int)getpid();
    char turn[32] = "";
    if (row->turn > 1)
        snprintf(turn, sizeof turn, ", row %d", row->turn);
    if (!process_named)
        buffered += (size_t)snprintf(buffer + buffered, EVENT,
                                     "%s{\"name\": \"process_name\", \"ph\": \"M\", \"pid\": %d, \"tid\": 0, "
                                     "\"args\": {\"name\": \"simulated, rule %s\"}}",
                                     BETWEEN, pid, sim_rule_name(sim_config.rule));
    process_named = true;
    buffered += (size_t)snprintf(buffer + buffered, EVENT,
                                 "%s{\"name\": \"thread_name\", \"ph\": \"M\", \"pid\": %d, \"tid\": %d, "
                                 "\"args\": {\"name\": \"stream 0x%llx, device %d (%s)%s\"}}",
                                 BETWEEN, pid, id + 1, row->stream, row->device, sim_gpu(row->device)->name, turn);
}

void sim_trace_add(const struct op *op) {
    if (!is_open())
        return;
    if (buffered + 2 * EVENT > BUFFER)
        sim_trace_flush();
    bool made;
    const int id = row_of(op, &made);
    if (made)
        add_names(id);
    rows[id].busy_until = op->done_us;
    char name[EVENT / 2];
    const struct launch *const launch = op->launch;
    buffered += (size_t)snprintf(
        buffer + buffered, EVENT,
        "%s{\"name\": \"%s\", \"cat\": \"%s\", \"ph\": \"X\", \"pid\": %d, \"tid\": %d, \"ts\": %.3f, \"dur\": %.3f, "
        "\"args\": {\"grid\": [%u, %u, %u], \"threads\": %d, \"registers\": %d, \"static_shared\": %d, "
        "\"dynamic_shared\": %zu, \"priority\": %d, \"resident_peak\": %d, \"queued_us\": %.3f}}",
        BETWEEN, sim_log_escaped(launch->work->name, name, sizeof name),
        launch->work->communication ? "communication" : "computation", (int)getpid(), id + 1, op->start_us,
        op->done_us - op->start_us, launch->grid[0], launch->grid[1], launch->grid[2], launch->threads,
        launch->work->registers, launch->work->static_shared, launch->dynamic, launch->priority, launch->resident_peak,
        op->queued_us);
}
