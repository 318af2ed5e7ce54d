/* Streams as order: each operation waits for the one before it.
 *
 * The legacy default stream waits for every blocking stream of its context, and they for it. Each thread has a default
 * stream of its own in each context, made at first use. A stream holds at most 1024 unfinished operations;
 * after that the host waits, as with the real driver.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "sim.h"

enum { QUEUE = 1024 };

static unsigned long long next_id;

uint64_t sim_thread_id(void) {
    static atomic_uint_fast64_t next;
    static _Thread_local uint64_t mine;
    if (mine == 0)
        mine = atomic_fetch_add(&next, 1) + 1;
    return mine;
}

int sim_clamp_priority(int priority) {
    return priority > LEAST_PRIORITY ? LEAST_PRIORITY : priority < GREATEST_PRIORITY ? GREATEST_PRIORITY : priority;
}

struct stream *sim_stream_new(struct context *context, unsigned int flags, int priority) {
    struct stream *const stream = calloc(1, sizeof *stream);
    if (stream == NULL)
        return NULL;
    stream->handle = sim_handle_new(KIND_STREAM, stream);
    if (stream->handle == NULL) {
        free(stream);
        return NULL;
    }
    stream->context = context;
    stream->usable = context->usable;
    stream->flags = flags;
    stream->priority = sim_clamp_priority(priority);
    stream->id = ++next_id;
    stream->next = context->streams;
    context->streams = stream;
    return stream;
}

void sim_stream_free(struct stream *stream) {
    sim_capture_stream_gone(stream);
    for (struct stream **at = &stream->context->streams; *at != NULL; at = &(*at)->next)
        if (*at == stream) {
            *at = stream->next;
            break;
        }
    sim_handle_free(stream->handle);
    sim_op_release(stream->tail);
    stream->tail = NULL;
    free(stream->heads);
    free(stream->head_handles);
    free(stream->head_data);
    stream->heads = NULL;
    stream->head_handles = NULL;
    stream->head_data = NULL;
    if (stream->pending > 0)
        stream->gone = true;
    else
        free(stream);
}

void sim_stream_op_finished(struct stream *stream) {
    stream->pending--;
    if (stream->gone && stream->pending == 0)
        free(stream);
}

/* A stream of the context that is current: of the green one, if it is that. */
struct stream *sim_stream_here(struct context *context, unsigned int flags, int priority) {
    struct stream *const stream = sim_stream_new(context, flags, priority);
    const struct green *const green = sim_current_green();
    if (stream != NULL && green != NULL) {
        stream->usable = green->usable;
        stream->green = green->handle;
    }
    return stream;
}

static struct stream *per_thread_stream(struct context *context) {
    const uint64_t thread = sim_thread_id();
    const struct green *const green = sim_current_green();
    const CUcontext handle = green != NULL ? green->handle : NULL;
    for (struct stream *stream = context->streams; stream != NULL; stream = stream->next)
        if (stream->thread == thread && stream->green == handle)
            return stream;
    struct stream *const stream = sim_stream_here(context, 0, NORMAL_PRIORITY);
    if (stream != NULL)
        stream->thread = thread;
    return stream;
}

CUresult sim_stream_of(CUstream handle, bool per_thread, struct context *context, struct stream **out) {
    const uintptr_t number = (uintptr_t)handle;
    if (number == STREAM_PER_THREAD || (number == 0 && per_thread)) {
        *out = per_thread_stream(context);
        return *out != NULL ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
    }
    const struct green *const green = sim_current_green();
    *out = number > STREAM_LEGACY ? sim_handle_get(handle, KIND_STREAM)
           : green != NULL        ? green->stream
                                  : context->legacy;
    if (*out == NULL && sim_config.crashes) {
        fprintf(stderr, "simgpu: a call names a stream that is not there: %p\n", (void *)handle);
        abort();
    }
    return *out != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

unsigned long long sim_stream_number(const struct stream *stream) {
    return stream->legacy ? STREAM_LEGACY : stream->thread != 0 ? STREAM_PER_THREAD : sim_handle_number(stream->handle);
}

static bool is_blocking(const struct stream *stream) {
    return (stream->flags & STREAM_NON_BLOCKING) == 0;
}

struct op *sim_stream_op(struct stream *stream, enum op_kind kind) {
    struct op *const op = sim_op_new(kind, stream->context->device);
    sim_op_wait_for(op, stream->tail);
    if (stream->legacy) {
        for (struct stream *other = stream->context->streams; other != NULL; other = other->next)
            if (is_blocking(other) && other != stream)
                sim_op_wait_for(op, other->tail);
    } else if (is_blocking(stream))
        sim_op_wait_for(op, stream->context->legacy->tail);
    return op;
}

void sim_stream_submit(struct stream *stream, struct op *op) {
    sim_op_release(stream->tail);
    stream->tail = op;
    sim_op_hold(op);
    op->stream = stream;
    stream->pending++;
    sim_op_submit(op);
    sim_engine_run_to(sim_host_us);
    while (stream->pending > QUEUE && sim_engine_wait_for_something())
        continue;
}

static bool finished(const struct stream *stream) {
    return stream->tail == NULL || stream->tail->done;
}

/* The default stream is idle when all that it would wait for is. */
bool sim_stream_idle(const struct stream *stream) {
    if (!finished(stream))
        return false;
    for (const struct stream *other = stream->legacy ? stream->context->streams : NULL; other != NULL;
         other = other->next)
        if (is_blocking(other) && !finished(other))
            return false;
    return true;
}

static CUresult drain(const struct stream *stream) {
    return finished(stream) ? CUDA_SUCCESS : sim_engine_run_until_done(stream->tail);
}

CUresult sim_stream_drain(struct stream *stream) {
    CUresult result = CUDA_SUCCESS;
    for (const struct stream *other = stream->legacy ? stream->context->streams : NULL; other != NULL;
         other = other->next)
        if (is_blocking(other) && result == CUDA_SUCCESS)
            result = drain(other);
    return result == CUDA_SUCCESS ? drain(stream) : result;
}

CUresult sim_context_drain(struct context *context) {
    CUresult result = CUDA_SUCCESS;
    for (const struct stream *stream = context->streams; stream != NULL && result == CUDA_SUCCESS;
         stream = stream->next)
        result = drain(stream);
    return result;
}

void sim_context_free_work(struct context *context) {
    while (context->events != NULL)
        sim_event_free(context->events);
    while (context->streams != NULL)
        sim_stream_free(context->streams);
}
