/* What nodes of every kind are made of, in the one form that cuGraphAddNode takes. */
#include <stdlib.h>
#include <string.h>

#include "sim.h"

enum { TYPE_HOST = 1, TYPE_DEVICE = 2, TYPE_ARRAY = 3 };

static CUresult put_transfer(struct node *node, const struct transfer *transfer) {
    if (node->transfer == NULL && (node->transfer = malloc(sizeof *node->transfer)) == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *node->transfer = *transfer;
    sim_transfer_measure(node->transfer);
    return CUDA_SUCCESS;
}

static bool reaches(int type, uintptr_t address, size_t pitch, const CUDA_MEMCPY3D *what) {
    return type == TYPE_HOST || sim_memory_has(address, pitch * (what->Height - 1) + what->WidthInBytes);
}

/* Copies of one plane between host and device; nothing of arrays. */
static CUresult write_copy(struct node *node, const CUDA_MEMCPY3D *what) {
    if (what->srcMemoryType == TYPE_ARRAY || what->dstMemoryType == TYPE_ARRAY || what->Depth > 1)
        return CUDA_ERROR_NOT_SUPPORTED;
    if (what->WidthInBytes == 0 || what->Height == 0 || what->Depth == 0)
        return CUDA_ERROR_INVALID_VALUE;
    const size_t to_pitch = what->Height > 1 ? what->dstPitch : 0, from_pitch = what->Height > 1 ? what->srcPitch : 0;
    uintptr_t to = what->dstMemoryType == TYPE_HOST ? (uintptr_t)what->dstHost : (uintptr_t)what->dstDevice;
    uintptr_t from = what->srcMemoryType == TYPE_HOST ? (uintptr_t)what->srcHost : (uintptr_t)what->srcDevice;
    if (to == 0 || from == 0)
        return CUDA_ERROR_INVALID_VALUE;
    to += what->dstY * what->dstPitch + what->dstXInBytes;
    from += what->srcY * what->srcPitch + what->srcXInBytes;
    if (!reaches(what->dstMemoryType, to, to_pitch, what) || !reaches(what->srcMemoryType, from, from_pitch, what))
        return CUDA_ERROR_INVALID_VALUE;
    return put_transfer(node, &(struct transfer){.to = (void *)to,
                                                 .from = (const void *)from,
                                                 .to_pitch = to_pitch,
                                                 .from_pitch = from_pitch,
                                                 .width = what->WidthInBytes,
                                                 .height = what->Height});
}

static void read_copy(const struct transfer *transfer, CUDA_MEMCPY3D *out) {
    const CUdeviceptr to = (uintptr_t)transfer->to, from = (uintptr_t)transfer->from;
    const bool to_host = !sim_memory_has(to, 1), from_host = !sim_memory_has(from, 1);
    *out = (CUDA_MEMCPY3D){
        .srcMemoryType = from_host ? TYPE_HOST : TYPE_DEVICE,
        .srcHost = from_host ? transfer->from : NULL,
        .srcDevice = from_host ? 0 : from,
        .srcPitch = transfer->from_pitch,
        .dstMemoryType = to_host ? TYPE_HOST : TYPE_DEVICE,
        .dstHost = to_host ? transfer->to : NULL,
        .dstDevice = to_host ? 0 : to,
        .dstPitch = transfer->to_pitch,
        .WidthInBytes = transfer->width,
        .Height = transfer->height,
        .Depth = 1,
    };
}

static CUresult write_fill(struct node *node, const CUDA_MEMSET_NODE_PARAMS_v2 *what) {
    const unsigned int bytes = what->elementSize;
    if ((bytes != 1 && bytes != 2 && bytes != 4) || what->width == 0 || what->height == 0 || what->dst % bytes != 0)
        return CUDA_ERROR_INVALID_VALUE;
    const size_t pitch = what->height > 1 ? what->pitch : 0, width = what->width * bytes;
    if (!sim_memory_has(what->dst, pitch * (what->height - 1) + width))
        return CUDA_ERROR_INVALID_VALUE;
    return put_transfer(node, &(struct transfer){.to = (void *)(uintptr_t)what->dst,
                                                 .to_pitch = pitch,
                                                 .width = width,
                                                 .height = what->height,
                                                 .value = what->value,
                                                 .value_bytes = bytes});
}

static void read_fill(const struct transfer *transfer, CUDA_MEMSET_NODE_PARAMS_v2 *out) {
    *out = (CUDA_MEMSET_NODE_PARAMS_v2){
        .dst = (uintptr_t)transfer->to,
        .pitch = transfer->to_pitch,
        .value = transfer->value,
        .elementSize = transfer->value_bytes,
        .width = transfer->width / transfer->value_bytes,
        .height = transfer->height,
    };
}

static CUresult write_child(struct node *node, const CUDA_CHILD_GRAPH_NODE_PARAMS *what) {
    const struct graph *const graph = sim_handle_get(what->graph, KIND_GRAPH);
    if (graph == NULL || graph == node->graph)
        return CUDA_ERROR_INVALID_VALUE;
    if (what->ownership > 0) /* a graph that is moved, not cloned */
        return CUDA_ERROR_NOT_SUPPORTED;
    struct graph *const copy = sim_graph_copy(graph);
    if (copy == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (!sim_graph_sort(copy)) {
        sim_graph_free(copy);
        return CUDA_ERROR_INVALID_VALUE;
    }
    copy->owned = true;
    if (node->child != NULL) { /* nodes keep the identity by which the program knows them */
        sim_graph_take_origins(copy, node->child);
        sim_graph_free(node->child);
    }
    node->child = copy;
    return CUDA_SUCCESS;
}

static CUresult write_batch(struct node *node, const CUDA_BATCH_MEM_OP_NODE_PARAMS *what) {
    if (what->flags != 0 || (what->ctx != NULL && sim_context_of(what->ctx) == NULL))
        return CUDA_ERROR_INVALID_VALUE;
    struct batch *made;
    const CUresult result = sim_batch_make(what->paramArray, what->count, &made);
    if (result != CUDA_SUCCESS)
        return result;
    free(node->batch);
    node->batch = made;
    node->context = what->ctx;
    return CUDA_SUCCESS;
}

CUresult sim_node_write(struct node *node, const CUgraphNodeParams *what, const char *entry) {
    if (what->type != node->type)
        return CUDA_ERROR_INVALID_VALUE;
    switch (what->type) {
    case NODE_KERNEL:
        return sim_kernel_node_write(node, &what->of.kernel, entry);
    case NODE_MEMCPY:
        return write_copy(node, &what->of.memcpy.copyParams);
    case NODE_MEMSET:
        return write_fill(node, &what->of.memset);
    case NODE_HOST:
        if (what->of.host.fn == NULL)
            return CUDA_ERROR_INVALID_VALUE;
        node->function = what->of.host.fn;
        node->argument = what->of.host.userData;
        return CUDA_SUCCESS;
    case NODE_CHILD:
        return write_child(node, &what->of.graph);
    case NODE_EMPTY:
        return CUDA_SUCCESS;
    case NODE_BATCH:
        return write_batch(node, &what->of.batch);
    case NODE_WAIT:
    case NODE_RECORD:
        if (sim_handle_get(what->of.event.event, KIND_EVENT) == NULL)
            return CUDA_ERROR_INVALID_HANDLE;
        node->event = what->of.event.event;
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_NOT_SUPPORTED;
    }
}

CUresult sim_node_read(struct node *node, CUgraphNodeParams *out) {
    memset(out, 0, sizeof *out);
    out->type = node->type;
    switch (node->type) {
    case NODE_KERNEL:
        return sim_kernel_node_read(node, &out->of.kernel);
    case NODE_MEMCPY:
        read_copy(node->transfer, &out->of.memcpy.copyParams);
        return CUDA_SUCCESS;
    case NODE_MEMSET:
        read_fill(node->transfer, &out->of.memset);
        return CUDA_SUCCESS;
    case NODE_HOST:
        out->of.host = (CUDA_HOST_NODE_PARAMS){node->function, node->argument};
        return CUDA_SUCCESS;
    case NODE_CHILD:
        out->of.graph.graph = node->child->handle;
        return CUDA_SUCCESS;
    case NODE_BATCH:
        out->of.batch = (CUDA_BATCH_MEM_OP_NODE_PARAMS){
            .ctx = node->context, .count = node->batch->count, .paramArray = node->batch->each};
        return CUDA_SUCCESS;
    case NODE_WAIT:
    case NODE_RECORD:
        out->of.event.event = node->event;
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}
