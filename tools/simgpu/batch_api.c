/* The entry points of memory operations: cuStreamWaitValue, cuStreamWriteValue, cuStreamBatchMemOp. The older and the newer
 * forms do the same here. In a capture they become batch nodes (node_api.c has those). */
#include <stdlib.h>

#include "sim.h"

static CUresult submit(CUstream handle, unsigned int count, const CUstreamBatchMemOpParams *each, unsigned int flags,
                       bool per_thread) {
    SIM_CALL_WITH_STREAM(stream);
    if (flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    bool capturing;
    struct batch *batch;
    CUresult result = sim_capture_check(stream, &capturing);
    if (result == CUDA_SUCCESS)
        result = sim_batch_make(each, count, &batch);
    if (result != CUDA_SUCCESS)
        return result;
    if (capturing) {
        struct node *const node = sim_capture_node(stream, NODE_BATCH);
        if (node != NULL)
            node->batch = batch;
        else
            free(batch);
        return node != NULL ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
    }
    struct op *const op = sim_stream_op(stream, OP_BATCH);
    sim_batch_attach(op, batch);
    sim_stream_submit(stream, op);
    return CUDA_SUCCESS;
}

static CUresult batch(CUstream handle, unsigned int count, CUstreamBatchMemOpParams *each, unsigned int flags,
                      bool per_thread) {
    return submit(handle, count, each, flags, per_thread);
}
SIM_BOTH(cuStreamBatchMemOp, batch,
         (CUstream handle, unsigned int count, CUstreamBatchMemOpParams *each, unsigned int flags), handle, count, each,
         flags)
SIM_BOTH(cuStreamBatchMemOp_v2, batch,
         (CUstream handle, unsigned int count, CUstreamBatchMemOpParams *each, unsigned int flags), handle, count, each,
         flags)

static CUresult one(CUstream handle, int operation, CUdeviceptr address, uint64_t value, unsigned int flags,
                    bool per_thread) {
    const CUstreamBatchMemOpParams what = {
        .value = {.operation = operation, .address = address, .value = value, .flags = flags}};
    return submit(handle, 1, &what, 0, per_thread);
}

#define ONE(name, operation, type)                                                                                     \
    static CUresult name##_body(CUstream handle, CUdeviceptr address, type value, unsigned int flags,                  \
                                bool per_thread) {                                                                     \
        return one(handle, operation, address, value, flags, per_thread);                                              \
    }                                                                                                                  \
    SIM_BOTH(name, name##_body, (CUstream handle, CUdeviceptr address, type value, unsigned int flags), handle,        \
             address, value, flags)                                                                                    \
    SIM_BOTH(name##_v2, name##_body, (CUstream handle, CUdeviceptr address, type value, unsigned int flags), handle,   \
             address, value, flags)

ONE(cuStreamWaitValue32, MEM_OP_WAIT_32, uint32_t)
ONE(cuStreamWaitValue64, MEM_OP_WAIT_64, uint64_t)
ONE(cuStreamWriteValue32, MEM_OP_WRITE_32, uint32_t)
ONE(cuStreamWriteValue64, MEM_OP_WRITE_64, uint64_t)
