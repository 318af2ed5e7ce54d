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

/* Of two edges from one node the ordinary one counts, which waits for all of it. */
bool sim_capture_add_head(struct stream *stream, const struct edge *edge) {
    for (uint32_t i = 0; i < stream->head_count; i++)
        if (stream->heads[i].from == edge->from) {
            if (!sim_edge_has_data(edge))
                stream->heads[i].data = edge->data;
            return true;
        }
    struct edge *const grown = realloc(stream->heads, (stream->head_count + 1) * sizeof *grown);
    if (grown == NULL)
        return false;
    grown[stream->head_count++] = *edge;
    stream->heads = grown;
    return true;
}

/* Only a kernel may begin before what it depends on has ended. */
struct node *sim_capture_node(struct stream *stream, int type) {
    struct node *const node = sim_node_new(stream->capture->graph, type, stream->heads, stream->head_count);
    if (node == NULL || !sim_edges_set(&stream->heads, &stream->head_count, &(struct edge){.from = node}, 1))
        return NULL;
    for (uint32_t i = 0; type != NODE_KERNEL && i < node->before_count; i++)
        node->before[i].data = (CUgraphEdgeData){0};
    return node;
}

CUresult sim_capture_record(struct stream *stream, struct event *event) {
    event->capture_id = stream->capture->id;
    return sim_edges_set(&event->heads, &event->head_count, stream->heads, stream->head_count)
               ? CUDA_SUCCESS
               : CUDA_ERROR_OUT_OF_MEMORY;
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
        if (!sim_capture_add_head(stream, &event->heads[i]))
            return CUDA_ERROR_OUT_OF_MEMORY;
    return CUDA_SUCCESS;
}

void sim_capture_leave(struct stream *stream) {
    stream->capture = NULL;
    stream->head_count = 0;
}

void sim_capture_stream_gone(struct stream *stream) {
    struct capture *const capture = stream->capture;
    if (capture == NULL)
        return;
    sim_capture_invalidate(capture);
    sim_capture_leave(stream);
    if (capture->origin == stream)
        sim_capture_end(capture, stream->context);
}

/* Takes a capture out of the list and out of its streams. Its graph, if nobody took it, goes too. */
void sim_capture_end(struct capture *capture, struct context *context) {
    for (struct capture **at = &captures; *at != NULL; at = &(*at)->next)
        if (*at == capture) {
            *at = capture->next;
            break;
        }
    for (struct stream *stream = context->streams; stream != NULL; stream = stream->next)
        if (stream->capture == capture)
            sim_capture_leave(stream);
    if (capture->graph != NULL && capture->given)
        capture->graph->capturing = false;
    else if (capture->graph != NULL)
        sim_graph_free(capture->graph);
    free(capture);
}

struct capture *sim_capture_begin(struct stream *stream, int mode, struct graph *given) {
    struct capture *const capture = calloc(1, sizeof *capture);
    if (capture == NULL || (capture->graph = given != NULL ? given : sim_graph_new()) == NULL) {
        free(capture);
        return NULL;
    }
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
    return capture;
}

int sim_capture_exchange_mode(int mode) {
    const int before = thread_mode;
    thread_mode = mode;
    return before;
}
