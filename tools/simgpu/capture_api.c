/* The entry points of stream capture. */
#include <stdlib.h>

#include "sim.h"

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
    if (result != CUDA_SUCCESS)
        return result;
    return sim_capture_begin(stream, mode, NULL) != NULL ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}
SIM_BOTH(cuStreamBeginCapture_v2, begin, (CUstream handle, int mode), handle, mode)

static CUresult begin_global(CUstream handle, bool per_thread) {
    return begin(handle, MODE_GLOBAL, per_thread);
}
SIM_BOTH(cuStreamBeginCapture, begin_global, (CUstream handle), handle)

/* Whether these are nodes of the graph, from which edges may lead to whatever is captured next. */
static bool are_good(const struct graph *graph, const CUgraphNode *nodes, const CUgraphEdgeData *data, size_t count) {
    for (size_t i = 0; i < count; i++) {
        const struct edge edge = sim_edge_from(nodes[i], data != NULL ? &data[i] : NULL);
        if (edge.from == NULL || edge.from->graph != graph || !sim_edge_is_good(&edge, NODE_KERNEL))
            return false;
    }
    return true;
}

static CUresult add_heads(struct stream *stream, const CUgraphNode *nodes, const CUgraphEdgeData *data, size_t count) {
    for (size_t i = 0; i < count; i++) {
        const struct edge edge = sim_edge_from(nodes[i], data != NULL ? &data[i] : NULL);
        if (!sim_capture_add_head(stream, &edge))
            return CUDA_ERROR_OUT_OF_MEMORY;
    }
    return CUDA_SUCCESS;
}

/* What is captured is added to a graph of the program's, behind some of its nodes. */
static CUresult begin_to_graph(CUstream handle, CUgraph graph_handle, const CUgraphNode *nodes,
                               const CUgraphEdgeData *data, size_t count, int mode, bool per_thread) {
    SIM_CALL_WITH_STREAM(stream);
    const CUresult result = may_begin(stream, mode);
    if (result != CUDA_SUCCESS)
        return result;
    struct graph *const graph = sim_handle_get(graph_handle, KIND_GRAPH);
    if (graph == NULL || graph->owned || graph->capturing || (count > 0 && nodes == NULL) ||
        !are_good(graph, nodes, data, count))
        return CUDA_ERROR_INVALID_VALUE;
    if (sim_capture_begin(stream, mode, graph) == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    return add_heads(stream, nodes, data, count);
}
SIM_BOTH(cuStreamBeginCaptureToGraph, begin_to_graph,
         (CUstream handle, CUgraph graph, const CUgraphNode *nodes, const CUgraphEdgeData *data, size_t count,
          int mode),
         handle, graph, nodes, data, count, mode)

/* Work that no path joins back to the stream that began. What that stream would not wait for to its end is not joined. */
static bool has_unjoined(const struct capture *capture) {
    const struct graph *const graph = capture->graph;
    bool *const joined = calloc(graph->count + 1, sizeof *joined);
    if (joined == NULL)
        return false;
    for (uint32_t i = 0; i < graph->count; i++)
        for (uint32_t k = 0; k < graph->nodes[i]->before_count; k++)
            joined[graph->nodes[i]->before[k].from->index] = true;
    for (uint32_t i = 0; i < capture->origin->head_count; i++)
        if (capture->origin->heads[i].data.from_port == PORT_END)
            joined[capture->origin->heads[i].from->index] = true;
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
    sim_capture_end(capture, stream->context);
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

struct info {
    int *status;
    unsigned long long *id;
    CUgraph *graph;
    const CUgraphNode **nodes;
    const CUgraphEdgeData **edges;
    size_t *count;
};

/* The heads of a stream, as its program reads them. */
static bool hand_out(struct stream *stream) {
    CUgraphNode *const handles = realloc(stream->head_handles, (stream->head_count + 1) * sizeof *handles);
    if (handles != NULL)
        stream->head_handles = handles;
    CUgraphEdgeData *const data = realloc(stream->head_data, (stream->head_count + 1) * sizeof *data);
    if (data != NULL)
        stream->head_data = data;
    for (uint32_t i = 0; handles != NULL && data != NULL && i < stream->head_count; i++) {
        handles[i] = stream->heads[i].from->handle;
        data[i] = stream->heads[i].data;
    }
    return handles != NULL && data != NULL;
}

static CUresult get_info(CUstream handle, const struct info *info, bool per_thread) {
    SIM_CALL_WITH_STREAM(stream);
    if (info->status == NULL || (info->edges != NULL && info->nodes == NULL))
        return CUDA_ERROR_INVALID_VALUE;
    if (sim_capture_is_implicit(stream))
        return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    *info->status = status_of(stream);
    if (*info->status != CAPTURE_ACTIVE)
        return CUDA_SUCCESS;
    for (uint32_t i = 0; info->nodes != NULL && info->edges == NULL && i < stream->head_count; i++)
        if (sim_edge_has_data(&stream->heads[i]))
            return CUDA_ERROR_LOSSY_QUERY;
    if (!hand_out(stream))
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (info->id != NULL)
        *info->id = stream->capture->id;
    if (info->graph != NULL)
        *info->graph = stream->capture->graph->handle;
    if (info->nodes != NULL)
        *info->nodes = stream->head_handles;
    if (info->edges != NULL)
        *info->edges = stream->head_data;
    if (info->count != NULL)
        *info->count = stream->head_count;
    return CUDA_SUCCESS;
}

static CUresult get_info_v1(CUstream handle, int *status, unsigned long long *id, bool per_thread) {
    return get_info(handle, &(struct info){.status = status, .id = id}, per_thread);
}
SIM_BOTH(cuStreamGetCaptureInfo, get_info_v1, (CUstream handle, int *status, unsigned long long *id), handle, status,
         id)

static CUresult get_info_v2(CUstream handle, int *status, unsigned long long *id, CUgraph *graph,
                            const CUgraphNode **nodes, size_t *count, bool per_thread) {
    return get_info(handle, &(struct info){status, id, graph, nodes, NULL, count}, per_thread);
}
SIM_BOTH(cuStreamGetCaptureInfo_v2, get_info_v2,
         (CUstream handle, int *status, unsigned long long *id, CUgraph *graph, const CUgraphNode **nodes,
          size_t *count),
         handle, status, id, graph, nodes, count)

static CUresult get_info_v3(CUstream handle, int *status, unsigned long long *id, CUgraph *graph,
                            const CUgraphNode **nodes, const CUgraphEdgeData **edges, size_t *count, bool per_thread) {
    return get_info(handle, &(struct info){status, id, graph, nodes, edges, count}, per_thread);
}
SIM_BOTH(cuStreamGetCaptureInfo_v3, get_info_v3,
         (CUstream handle, int *status, unsigned long long *id, CUgraph *graph, const CUgraphNode **nodes,
          const CUgraphEdgeData **edges, size_t *count),
         handle, status, id, graph, nodes, edges, count)

/* What the next captured operation waits for: nodes that the program added to the graph itself, say. */
static CUresult set_dependencies_v2(CUstream handle, const CUgraphNode *nodes, const CUgraphEdgeData *data,
                                    size_t count, unsigned int flags, bool per_thread) {
    enum { ADD = 0, SET = 1 };
    SIM_CALL_WITH_STREAM(stream);
    if (flags > SET || (count > 0 && nodes == NULL))
        return CUDA_ERROR_INVALID_VALUE;
    if (stream->capture == NULL || stream->capture->status != CAPTURE_ACTIVE)
        return CUDA_ERROR_ILLEGAL_STATE;
    if (!are_good(stream->capture->graph, nodes, data, count))
        return CUDA_ERROR_INVALID_VALUE;
    if (flags == SET)
        stream->head_count = 0;
    return add_heads(stream, nodes, data, count);
}
SIM_BOTH(cuStreamUpdateCaptureDependencies_v2, set_dependencies_v2,
         (CUstream handle, CUgraphNode *nodes, const CUgraphEdgeData *data, size_t count, unsigned int flags), handle,
         nodes, data, count, flags)

static CUresult set_dependencies(CUstream handle, const CUgraphNode *nodes, size_t count, unsigned int flags,
                                 bool per_thread) {
    return set_dependencies_v2(handle, nodes, NULL, count, flags, per_thread);
}
SIM_BOTH(cuStreamUpdateCaptureDependencies, set_dependencies,
         (CUstream handle, CUgraphNode *nodes, size_t count, unsigned int flags), handle, nodes, count, flags)

SIM_API CUresult cuThreadExchangeStreamCaptureMode(int *mode) {
    SIM_CALL();
    if (mode == NULL || *mode < MODE_GLOBAL || *mode > MODE_RELAXED)
        return CUDA_ERROR_INVALID_VALUE;
    *mode = sim_capture_exchange_mode(*mode);
    return CUDA_SUCCESS;
}
