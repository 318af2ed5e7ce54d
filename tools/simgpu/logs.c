/* The two logs: kernels as they ran (SIMGPU_TIMELINE) and launches as they were asked for (SIMGPU_LAUNCHES). JSON
 * lines, appended, so that several processes may share a file. Launches are one write(2) each; the timeline is
 * buffered and written at every synchronisation and at exit.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim.h"

enum { BUFFER = 1 << 16, LINE = 8192 };

_Thread_local const char *sim_entry;

static char buffer[BUFFER];
static size_t buffered;
static int timeline = -1, launches = -1;

static int open_log(const char *path, const char *variable) {
    const int file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (file < 0)
        sim_say("%s: %s cannot be written: %m", variable, path);
    return file;
}

static void write_all(int file, const char *text, size_t bytes) {
    while (bytes > 0) {
        const ssize_t written = write(file, text, bytes);
        if (written <= 0)
            return;
        text += written;
        bytes -= (size_t)written;
    }
}

const char *sim_log_escaped(const char *name, char *out, size_t room) {
    size_t at = 0;
    for (; *name != '\0' && at + 8 < room; name++) {
        const unsigned char c = (unsigned char)*name;
        if (c == '"' || c == '\\')
            at += (size_t)snprintf(out + at, room - at, "\\%c", c);
        else if (c < 0x20)
            at += (size_t)snprintf(out + at, room - at, "\\u%04x", c);
        else
            out[at++] = (char)c;
    }
    out[at] = '\0';
    return out;
}

void sim_log_flush(void) {
    if (buffered > 0 && timeline >= 0)
        write_all(timeline, buffer, buffered);
    buffered = 0;
    sim_trace_flush();
}

void sim_log_forget(void) {
    buffered = 0;
    sim_trace_forget();
}

void sim_log_close(void) {
    sim_log_flush();
}

void sim_log_timeline(const struct op *op) {
    sim_trace_add(op);
    if (sim_config.timeline == NULL)
        return;
    if (timeline < 0 && (timeline = open_log(sim_config.timeline, "SIMGPU_TIMELINE")) < 0) {
        sim_config.timeline = NULL;
        return;
    }
    if (BUFFER - buffered < LINE)
        sim_log_flush();
    char name[LINE / 2];
    const struct launch *const launch = op->launch;
    const struct work_class *const work = launch->work;
    buffered += (size_t)snprintf(
        buffer + buffered, BUFFER - buffered,
        "{\"kernel\": \"%s\", \"stream\": \"0x%llx\", \"priority\": %d, \"device\": %d, \"queued_us\": %.3f, "
        "\"start_us\": %.3f, \"end_us\": %.3f, \"blocks\": %llu, \"threads\": %d, \"dynamic_shared\": %zu, "
        "\"registers\": %d, \"communication\": %s, \"resident_peak\": %d, \"context\": \"0x%llx\"}\n",
        sim_log_escaped(work->name, name, sizeof name), launch->stream_number, launch->priority, op->device,
        op->queued_us, op->start_us, op->done_us, launch->blocks, launch->threads, launch->dynamic, work->registers,
        work->communication ? "true" : "false", launch->resident_peak, launch->context_number);
}

static uint64_t hash_of(const uint8_t *bytes, size_t count) {
    uint64_t hash = 0xcbf29ce484222325u;
    for (size_t i = 0; i < count; i++)
        hash = (hash ^ bytes[i]) * 0x100000001b3u;
    return hash;
}

void sim_log_launch(const struct launch_line *line) {
    if (sim_config.launches == NULL)
        return;
    if (launches < 0 && (launches = open_log(sim_config.launches, "SIMGPU_LAUNCHES")) < 0) {
        sim_config.launches = NULL;
        return;
    }
    const struct launch_request *const request = line->request;
    char name[LINE / 2], text[LINE];
    const char *const kernel = request->function != NULL ? request->function->image->name : "";
    const int length = snprintf(
        text, sizeof text,
        "{\"entry\": \"%s\", \"result\": %d, \"kernel\": \"%s\", \"blocks\": %llu, \"threads\": %llu, "
        "\"dynamic_shared\": %u, \"static_shared\": %d, \"priority\": %d, \"stream\": \"%s\", \"captured\": %s, "
        "\"graph\": %s, "
        "\"node\": %s, \"cooperative\": %s, \"cluster\": %d, \"parameters\": \"%016llx\"}\n",
        sim_entry != NULL ? sim_entry : line->entry, line->result, sim_log_escaped(kernel, name, sizeof name),
        (unsigned long long)request->grid[0] * request->grid[1] * request->grid[2],
        (unsigned long long)request->block[0] * request->block[1] * request->block[2], request->dynamic,
        request->function != NULL ? request->function->image->static_shared : 0, line->priority, line->stream,
        line->captured ? "true" : "false", line->graph ? "true" : "false", line->node ? "true" : "false",
        request->set.cooperative ? "true" : "false", request->set.cluster > 1 ? request->set.cluster : 1,
        (unsigned long long)hash_of(request->parameters, request->parameters != NULL ? request->parameter_bytes : 0));
    write_all(launches, text, (size_t)length);
}
