/* SIMGPU_LAUNCHES: launches as they were asked for, refused ones too. JSON lines, one write(2) each, appended, so that
 * several processes may share a file. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim.h"

enum { LINE = 8192 };

_Thread_local const char *sim_entry;

static int launches = -1;

static bool is_open(void) {
    if (launches >= 0 || sim_config.launches == NULL)
        return launches >= 0;
    launches = open(sim_config.launches, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (launches < 0) {
        sim_say("SIMGPU_LAUNCHES: %s cannot be written: %m", sim_config.launches);
        sim_config.launches = NULL;
    }
    return launches >= 0;
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

static uint64_t hash_of(const uint8_t *bytes, size_t count) {
    uint64_t hash = 0xcbf29ce484222325u;
    for (size_t i = 0; i < count; i++)
        hash = (hash ^ bytes[i]) * 0x100000001b3u;
    return hash;
}

void sim_log_launch(const struct launch_line *line) {
    if (!is_open())
        return;
    const struct launch_request *const request = line->request;
    char name[LINE / 2], text[LINE];
    const char *const kernel = request->function != NULL ? request->function->image->name : "";
    const int length = snprintf(
        text, sizeof text,
        "{\"entry\": \"%s\", \"result\": %d, \"kernel\": \"%s\", \"blocks\": %llu, \"threads\": %llu, "
        "\"dynamic_shared\": %u, \"static_shared\": %d, \"priority\": %d, \"stream\": \"%s\", \"captured\": %s, "
        "\"graph\": %s, \"cooperative\": %s, \"cluster\": %d, \"parameters\": \"%016llx\"}\n",
        sim_entry, line->result, sim_log_escaped(kernel, name, sizeof name),
        (unsigned long long)request->grid[0] * request->grid[1] * request->grid[2],
        (unsigned long long)request->block[0] * request->block[1] * request->block[2], request->dynamic,
        request->function != NULL ? request->function->image->static_shared : 0, line->priority, line->stream,
        line->captured ? "true" : "false", line->graph ? "true" : "false", request->set.cooperative ? "true" : "false",
        request->set.cluster > 1 ? request->set.cluster : 1,
        (unsigned long long)hash_of(request->parameters, request->parameters != NULL ? request->parameter_bytes : 0));
    write_all(launches, text, (size_t)length);
}
