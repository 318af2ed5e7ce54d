/* Stream capture: operations of a capturing stream become nodes of a graph.
 *
 * A stream that captures holds its heads, the nodes that the next one depends on. Other streams join a capture by
 * waiting for an event recorded in it, and must be joined back before it ends. What a capture does not allow
 * invalidates it.
 */
#include <stdlib.h>

#include "sim.h"

static struct capture *captures;
static unsigned long long next_id;
static _Thread_local int thread_mode = MODE_GLOBAL;

static struct capture *capture_of(unsigned long long id) {
    for (struct capture *capture = captures; id != 0 && capture != NULL; capture = capture->next)
        if (capture->id == id)
            return capture;
    return NULL;
}

bool sim_capture_holds(const struct event *event) {
    return capture_of(event->capture_id) != NULL;
}

void sim_capture_invalidate(struct capture *capture) {
    capture->status = CAPTURE_INVALIDATED;
}

/* Calls that are unsafe while anything captures: allocations, unloading, waiting. Loading is not (measured: 580.159). */
CUresult sim_capture_forbids(void) {
    for (struct capture *capture = captures; capture != NULL; capture = capture->next) {
        const bool own = capture->thread == sim_thread_id();
        const bool forbidden = own ? capture->mode != MODE_RELAXED && thread_mode != MODE_RELAXED
                                   : capture->mode == MODE_GLOBAL && thread_mode == MODE_GLOBAL;
        if (!forbidden)
            continue;
        const bool broken = capture->status == CAPTURE_INVALIDATED;
        sim_capture_invalidate(capture);
        return broken ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    return CUDA_SUCCESS;
}

/* A blocking stream that captures, on which the legacy stream must not depend. */
static struct capture *implicit(const struct stream *stream) {
    for (const struct stream *other = stream->legacy ? stream->context->streams : NULL; other != NULL;
         other = other->next)
        if (other->capture != NULL && (other->flags & STREAM_NON_BLOCKING) == 0)
            return other->capture;
    return NULL;
}

bool sim_capture_is_implicit(const struct stream *stream) {
    return implicit(stream) != NULL;
}

CUresult sim_capture_check_legacy(const struct stream *stream) {
    struct capture *const capture = implicit(stream);
    if (capture == NULL)
        return CUDA_SUCCESS;
    sim_capture_invalidate(capture);
    return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
}

CUresult sim_capture_stream_forbids(struct stream *stream) {
    if (stream->capture == NULL) {
        const CUresult result = sim_capture_check_legacy(stream);
        return result != CUDA_SUCCESS ? result : sim_capture_forbids();
    }
    const bool broken = stream->capture->status == CAPTURE_INVALIDATED;
    sim_capture_invalidate(stream->capture);
    return broken ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

CUresult sim_capture_check(struct stream *stream, bool *capturing) {
    *capturing = stream->capture != NULL;
    if (stream->capture == NULL)
        return sim_capture_check_legacy(stream);
    return stream->capture->status == CAPTURE_ACTIVE ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
}

static void add_head(struct stream *stream, struct node *node) {
    for (uint32_t i = 0; i < stream->head_count; i++)
        if (stream->heads[i] == node)
            return;
    stream->heads = sim_grow(stream->heads, stream->head_count + 1u, sizeof *stream->heads);
    stream->heads[stream->head_count++] = node;
}

struct node *sim_capture_node(struct stream *stream, int type) {
    struct node *const node = sim_node_new(stream->capture->graph, type, stream->heads, stream->head_count);
    sim_nodes_set(&stream->heads, &stream->head_count, &node, 1);
    return node;
}

CUresult sim_capture_record(struct stream *stream, struct event *event) {
    event->capture_id = stream->capture->id;
    sim_nodes_set(&event->heads, &event->head_count, stream->heads, stream->head_count);
    return CUDA_SUCCESS;
}

CUresult sim_capture_wait(struct stream *stream, struct event *event) {
    struct capture *const capture = capture_of(event->capture_id);
    if (capture->status == CAPTURE_INVALIDATED)
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (stream->legacy) {
        sim_capture_invalidate(capture);
        return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    }
    if (stream->context != capture->origin->context) { /* a graph of several contexts is not simulated */
        sim_capture_invalidate(capture);
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    if (stream->capture == NULL) {
        stream->capture = capture;
        stream->head_count = 0;
    }
    if (stream->capture != capture) {
        sim_capture_invalidate(capture);
        sim_capture_invalidate(stream->capture);
        return CUDA_ERROR_STREAM_CAPTURE_MERGE;
    }
    for (uint32_t i = 0; i < event->head_count; i++)
        add_head(stream, event->heads[i]);
    return CUDA_SUCCESS;
}

static void leave(struct stream *stream) {
    stream->capture = NULL;
    stream->head_count = 0;
}

/* Takes a capture out of the list and out of its streams. Its graph, if nobody took it, goes too. */
static void capture_end(struct capture *capture, struct context *context) {
    SIM_UNLINK(captures, capture);
    for (struct stream *stream = context->streams; stream != NULL; stream = stream->next)
        if (stream->capture == capture)
            leave(stream);
    if (capture->graph != NULL && capture->given)
        capture->graph->capturing = false;
    else if (capture->graph != NULL)
        sim_graph_free(capture->graph);
    free(capture);
}

void sim_capture_stream_gone(struct stream *stream) {
    struct capture *const capture = stream->capture;
    if (capture == NULL)
        return;
    sim_capture_invalidate(capture);
    leave(stream);
    if (capture->origin == stream)
        capture_end(capture, stream->context);
}

static void capture_begin(struct stream *stream, int mode, struct graph *given) {
    struct capture *const capture = sim_new(1, sizeof *capture);
    capture->graph = given != NULL ? given : sim_graph_new();
    capture->given = given != NULL;
    capture->first = capture->graph->count;
    capture->graph->capturing = true;
    capture->id = ++next_id;
    capture->mode = mode;
    capture->status = CAPTURE_ACTIVE;
    capture->thread = sim_thread_id();
    capture->origin = stream;
    capture->next = captures;
    captures = capture;
    stream->capture = capture;
    stream->head_count = 0;
}

static CUresult may_begin(const struct stream *stream, int mode) {
    if (mode < MODE_GLOBAL || mode > MODE_RELAXED)
        return CUDA_ERROR_INVALID_VALUE;
    if (stream->legacy)
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    return stream->capture == NULL ? CUDA_SUCCESS : CUDA_ERROR_ILLEGAL_STATE;
}

static CUresult begin(CUstream handle, int mode, bool per_thread) {
    SIM_CALL_WITH_STREAM(stream);
    const CUresult result = may_begin(stream, mode);
    if (result == CUDA_SUCCESS)
        capture_begin(stream, mode, NULL);
    return result;
}
SIM_BOTH(cuStreamBeginCapture_v2, begin, (CUstream handle, int mode), handle, mode)

static CUresult begin_global(CUstream handle, bool per_thread) {
    return begin(handle, MODE_GLOBAL, per_thread);
}
SIM_BOTH(cuStreamBeginCapture, begin_global, (CUstream handle), handle)

/* Behind some nodes of the graph. False: they are none. */
static bool add_heads(struct stream *stream, const CUgraphNode *nodes, size_t count) {
    bool good = true;
    for (size_t i = 0; good && i < count; i++) {
        struct node *const node = sim_handle_get(nodes[i], KIND_NODE);
        good = node != NULL && node->graph == stream->capture->graph;
        if (good)
            add_head(stream, node);
    }
    return good;
}

/* What is captured is added to a graph of the program's, behind some of its nodes. */
static CUresult begin_to_graph(CUstream handle, CUgraph graph_handle, const CUgraphNode *nodes,
                               const CUgraphEdgeData *data, size_t count, int mode, bool per_thread) {
    SIM_CALL_WITH_STREAM(stream);
    const CUresult result = may_begin(stream, mode);
    if (result != CUDA_SUCCESS)
        return result;
    struct graph *const graph = sim_handle_get(graph_handle, KIND_GRAPH);
    (void)data; /* every edge orders the whole of two nodes */
    if (graph == NULL || graph->owned || graph->capturing || (count > 0 && nodes == NULL))
        return CUDA_ERROR_INVALID_VALUE;
    capture_begin(stream, mode, graph);
    if (add_heads(stream, nodes, count))
        return CUDA_SUCCESS;
    capture_end(stream->capture, stream->context);
    return CUDA_ERROR_INVALID_VALUE;
}
SIM_BOTH(cuStreamBeginCaptureToGraph, begin_to_graph,
         (CUstream handle, CUgraph graph, const CUgraphNode *nodes, const CUgraphEdgeData *data, size_t count,
          int mode),
         handle, graph, nodes, data, count, mode)

/* Work that no path joins back to the stream that began. */
static bool has_unjoined(const struct capture *capture) {
    const struct graph *const graph = capture->graph;
    bool *const joined = sim_new(graph->count, sizeof *joined);
    for (uint32_t i = 0; i < graph->count; i++)
        for (uint32_t k = 0; k < graph->nodes[i]->before_count; k++)
            joined[graph->nodes[i]->before[k]->index] = true;
    for (uint32_t i = 0; i < capture->origin->head_count; i++)
        joined[capture->origin->heads[i]->index] = true;
    bool found = false;
    for (uint32_t i = capture->first; i < graph->count; i++)
        found = found || !joined[i];
    free(joined);
    return found;
}

static CUresult end(CUstream handle, CUgraph *out, bool per_thread) {
    SIM_CALL_WITH_STREAM(stream);
    if (out == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    struct capture *const capture = stream->capture;
    *out = NULL;
    if (capture == NULL)
        return CUDA_ERROR_ILLEGAL_STATE;
    if (capture->origin != stream) {
        sim_capture_invalidate(capture);
        return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
    }
    if (capture->mode != MODE_RELAXED && capture->thread != sim_thread_id())
        return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
    CUresult result = CUDA_SUCCESS;
    if (capture->status == CAPTURE_INVALIDATED)
        result = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    else if (has_unjoined(capture))
        result = CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
    if (result == CUDA_SUCCESS) {
        *out = capture->graph->handle;
        capture->graph->capturing = false;
        capture->graph = NULL;
    }
    capture_end(capture, stream->context);
    return result;
}
SIM_BOTH(cuStreamEndCapture, end, (CUstream handle, CUgraph *out), handle, out)

static int status_of(const struct stream *stream) {
    return stream->capture != NULL ? stream->capture->status : CAPTURE_NONE;
}

static CUresult is_capturing(CUstream handle, int *status, bool per_thread) {
    SIM_CALL_WITH_STREAM(stream);
    if (status == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (sim_capture_is_implicit(stream))
        return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    *status = status_of(stream);
    return CUDA_SUCCESS;
}
SIM_BOTH(cuStreamIsCapturing, is_capturing, (CUstream handle, int *status), handle, status)

SIM_API CUresult cuThreadExchangeStreamCaptureMode(int *mode) {
    SIM_CALL();
    if (mode == NULL || *mode < MODE_GLOBAL || *mode > MODE_RELAXED)
        return CUDA_ERROR_INVALID_VALUE;
    const int before = thread_mode;
    thread_mode = *mode;
    *mode = before;
    return CUDA_SUCCESS;
}
