/* Streams: each operation waits for the one before it. And the entry points of streams.
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
enum { FIRST_NUMBER = 13 }; /* of streams that programs create, as CUPTI counts */

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
    struct stream *const stream = sim_new(1, sizeof *stream);
    stream->handle = sim_handle_new(KIND_STREAM, stream);
    static int numbers = FIRST_NUMBER;
    stream->number = numbers++;
    stream->context = context;
    stream->flags = flags;
    stream->priority = sim_clamp_priority(priority);
    stream->next = context->streams;
    context->streams = stream;
    return stream;
}

void sim_stream_free(struct stream *stream) {
    sim_capture_stream_gone(stream);
    SIM_UNLINK(stream->context->streams, stream);
    sim_handle_free(stream->handle);
    sim_op_release(stream->tail);
    stream->tail = NULL;
    free(stream->heads);
    stream->heads = NULL;
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
    if (green != NULL)
        stream->green = green->handle;
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
    stream->thread = thread;
    return stream;
}

static CUresult default_stream(bool per_thread, struct stream **out) {
    struct context *const context = sim_current_context();
    const struct green *const green = sim_current_green();
    const CUresult result = sim_context_check(context);
    if (result == CUDA_SUCCESS)
        *out = per_thread ? per_thread_stream(context) : green != NULL ? green->stream : context->legacy;
    return result;
}

/* A default stream is the current context's. Any other belongs to its own context, whatever is current (measured: 580.159). */
CUresult sim_stream_of(CUstream handle, bool per_thread, struct stream **out) {
    const uintptr_t number = (uintptr_t)handle;
    if (number <= STREAM_PER_THREAD)
        return default_stream(number == STREAM_PER_THREAD || (number == 0 && per_thread), out);
    *out = sim_handle_get(handle, KIND_STREAM);
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
    op->queue = stream->number;
    sim_call.shown = true;
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

/* ---- entry points ---- */

static CUresult create(CUstream *out, unsigned int flags, int priority) {
    SIM_CALL_IN_CONTEXT(context);
    if (out == NULL || flags > STREAM_NON_BLOCKING)
        return CUDA_ERROR_INVALID_VALUE;
    *out = sim_stream_here(context, flags, priority)->handle;
    return CUDA_SUCCESS;
}

SIM_ENTRY(cuStreamCreate, create, (CUstream * out, unsigned int flags), out, flags, NORMAL_PRIORITY)
SIM_ENTRY(cuStreamCreateWithPriority, create, (CUstream * out, unsigned int flags, int priority), out, flags, priority)

SIM_API CUresult cuStreamDestroy_v2(CUstream handle) {
    SIM_CALL();
    struct stream *const stream = sim_handle_get(handle, KIND_STREAM);
    if (stream == NULL || stream->legacy || stream->of_green || stream->thread != 0)
        return CUDA_ERROR_INVALID_HANDLE;
    sim_stream_free(stream);
    return CUDA_SUCCESS;
}
SIM_ENTRY(cuStreamDestroy, cuStreamDestroy_v2, (CUstream handle), handle)

static CUresult query(CUstream handle, bool per_thread) {
    SIM_CALL_WITH_STREAM(stream);
    const CUresult forbidden = sim_capture_stream_forbids(stream);
    if (forbidden != CUDA_SUCCESS)
        return forbidden;
    sim_engine_run_to(sim_host_us);
    sim_trace_wait("Stream Sync", stream->context->device, stream, NULL);
    return sim_stream_idle(stream) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}
SIM_BOTH(cuStreamQuery, query, (CUstream handle), handle)

static CUresult synchronize(CUstream handle, bool per_thread) {
    SIM_CALL_WITH_STREAM(stream);
    const CUresult forbidden = sim_capture_stream_forbids(stream);
    if (forbidden != CUDA_SUCCESS)
        return forbidden;
    const CUresult result = sim_stream_drain(stream);
    sim_trace_wait("Stream Sync", stream->context->device, stream, NULL);
    sim_trace_flush();
    return result;
}
SIM_BOTH(cuStreamSynchronize, synchronize, (CUstream handle), handle)

static CUresult get_priority(CUstream handle, int *priority, bool per_thread) {
    SIM_CALL_WITH_STREAM(stream);
    if (priority == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    const CUresult result = sim_capture_check_legacy(stream); /* even this question (measured: 580.159) */
    if (result == CUDA_SUCCESS)
        *priority = stream->priority;
    return result;
}
SIM_BOTH(cuStreamGetPriority, get_priority, (CUstream handle, int *priority), handle, priority)

static CUresult get_flags(CUstream handle, unsigned int *flags, bool per_thread) {
    SIM_CALL_WITH_STREAM(stream);
    if (flags == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *flags = stream->flags;
    return CUDA_SUCCESS;
}
SIM_BOTH(cuStreamGetFlags, get_flags, (CUstream handle, unsigned int *flags), handle, flags)

static CUresult get_context(CUstream handle, CUcontext *out, bool per_thread) {
    SIM_CALL_WITH_STREAM(stream);
    if (out == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *out = sim_handle_get(stream->green, KIND_GREEN) != NULL ? stream->green : stream->context->handle;
    return CUDA_SUCCESS;
}
SIM_BOTH(cuStreamGetCtx, get_context, (CUstream handle, CUcontext *out), handle, out)

static CUresult get_device(CUstream handle, CUdevice *device, bool per_thread) {
    SIM_CALL_WITH_STREAM(stream);
    if (device == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *device = stream->context->device;
    return CUDA_SUCCESS;
}
SIM_BOTH(cuStreamGetDevice, get_device, (CUstream handle, CUdevice *device), handle, device)

/* Of a stream's attributes the priority alone. */
static bool has_attribute(int id) {
    return id == LAUNCH_PRIORITY && sim_config.driver_version >= FIRST_VERSION_WITH_PRIORITY;
}

static CUresult get_attribute(CUstream handle, int id, CUlaunchAttributeValue *value, bool per_thread) {
    SIM_CALL_WITH_STREAM(stream);
    if (value == NULL || !has_attribute(id))
        return CUDA_ERROR_INVALID_VALUE;
    value->integer = stream->priority;
    return CUDA_SUCCESS;
}
SIM_BOTH(cuStreamGetAttribute, get_attribute, (CUstream handle, int id, CUlaunchAttributeValue *value), handle, id,
         value)

static CUresult set_attribute(CUstream handle, int id, const CUlaunchAttributeValue *value, bool per_thread) {
    SIM_CALL_WITH_STREAM(stream);
    if (value == NULL || !has_attribute(id))
        return CUDA_ERROR_INVALID_VALUE;
    stream->priority = sim_clamp_priority(value->integer);
    return CUDA_SUCCESS;
}
SIM_BOTH(cuStreamSetAttribute, set_attribute, (CUstream handle, int id, const CUlaunchAttributeValue *value), handle,
         id, value)

static CUresult copy_attributes(CUstream to, CUstream handle, bool per_thread) {
    SIM_CALL_WITH_STREAM(stream);
    struct stream *target;
    const CUresult result = sim_stream_of(to, per_thread, &target);
    if (result != CUDA_SUCCESS)
        return result;
    if (target->context != stream->context)
        return CUDA_ERROR_INVALID_VALUE;
    target->priority = stream->priority;
    return CUDA_SUCCESS;
}
SIM_BOTH(cuStreamCopyAttributes, copy_attributes, (CUstream to, CUstream from), to, from)

/* The signal of another stream takes its time, if a cost was given for that. */
static void wait_for_record(struct op *op, struct op *record, const struct stream *stream) {
    if (sim_event_us() <= 0 || record->done || record->stream == stream) {
        sim_op_wait_for(op, record);
        return;
    }
    struct op *const signal = sim_op_new(OP_DELAY, stream->context->device);
    signal->delay_us = sim_event_us();
    sim_op_wait_for(signal, record);
    sim_op_wait_for(op, signal);
    sim_op_submit(signal);
}

static CUresult wait_event(CUstream handle, CUevent event_handle, unsigned int flags, bool per_thread) {
    SIM_CALL_WITH_STREAM(stream);
    struct event *const event = sim_handle_get(event_handle, KIND_EVENT);
    if (event == NULL)
        return CUDA_ERROR_INVALID_HANDLE;
    if (flags > 1)
        return CUDA_ERROR_INVALID_VALUE;
    bool capturing;
    const bool external = flags == EVENT_EXTERNAL;
    if (!external && sim_capture_holds(event))
        return sim_capture_wait(stream, event);
    const CUresult result = sim_capture_check(stream, &capturing);
    if (result != CUDA_SUCCESS)
        return result;
    if (external) {
        if (capturing)
            sim_capture_node(stream, NODE_WAIT)->event = event_handle;
        return capturing ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    }
    if (event->record == NULL)
        return CUDA_SUCCESS; /* never recorded: nothing to wait for */
    if (capturing) {
        sim_capture_invalidate(stream->capture);
        return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
    }
    struct op *const op = sim_stream_op(stream, OP_NOTHING);
    wait_for_record(op, event->record, stream);
    sim_stream_submit(stream, op);
    sim_trace_wait("Stream Wait Event", stream->context->device, stream, event->record);
    return CUDA_SUCCESS;
}
SIM_BOTH(cuStreamWaitEvent, wait_event, (CUstream handle, CUevent event, unsigned int flags), handle, event, flags)

/* Puts a host function in the stream. True: the caller runs it now, without the lock (copies are done at once, too, so
 * the order of effects is the order of calls). */
static CUresult host_function(CUstream handle, CUhostFn function, void *argument, bool per_thread, bool *run) {
    SIM_CALL_WITH_STREAM(stream);
    bool capturing;
    const CUresult result = sim_capture_check(stream, &capturing);
    if (result != CUDA_SUCCESS)
        return result;
    if (capturing) {
        struct node *const node = sim_capture_node(stream, NODE_HOST);
        node->function = function;
        node->argument = argument;
        return CUDA_SUCCESS;
    }
    struct op *const op = sim_stream_op(stream, OP_DELAY);
    op->delay_us = HOST_FUNCTION_US;
    op->unit = UNIT_HOST;
    sim_stream_submit(stream, op);
    *run = true;
    return CUDA_SUCCESS;
}

static CUresult launch_host(CUstream handle, CUhostFn function, void *argument, bool per_thread) {
    bool run = false;
    if (function == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    const CUresult result = host_function(handle, function, argument, per_thread, &run);
    if (run)
        function(argument);
    return result;
}
SIM_BOTH(cuLaunchHostFunc, launch_host, (CUstream handle, CUhostFn function, void *argument), handle, function,
         argument)
