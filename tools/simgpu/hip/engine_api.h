/* Prototypes of the engine's functions (the simulated CUDA driver), as far as HIP's stand on them. */
#ifndef SIMGPU_ENGINE_API_H
#define SIMGPU_ENGINE_API_H

#include "../cuda_abi.h"

CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest);
CUresult cuCtxPopCurrent(CUcontext *out);
CUresult cuCtxPushCurrent(CUcontext handle);
CUresult cuCtxSetCurrent(CUcontext handle);
CUresult cuCtxSynchronize(void);
CUresult cuDeviceGetName(char *name, int length, CUdevice device);
CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice device);
CUresult cuDevicePrimaryCtxReset_v2(CUdevice device);
CUresult cuDevicePrimaryCtxRetain(CUcontext *out, CUdevice device);
CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device);
CUresult cuEventCreate(CUevent *out, unsigned int flags);
CUresult cuEventDestroy_v2(CUevent handle);
CUresult cuEventElapsedTime(float *milliseconds, CUevent from, CUevent to);
CUresult cuEventQuery(CUevent handle);
CUresult cuEventRecord(CUevent event, CUstream handle);
CUresult cuEventRecordWithFlags(CUevent event, CUstream handle, unsigned int flags);
CUresult cuEventRecord_ptsz(CUevent event, CUstream handle);
CUresult cuEventSynchronize(CUevent handle);
CUresult cuGraphCreate(CUgraph *out, unsigned int flags);
CUresult cuGraphDestroy(CUgraph handle);
CUresult cuGraphExecDestroy(CUgraphExec handle);
CUresult cuGraphExecUpdate(CUgraphExec exec, CUgraph graph, CUgraphNode *error, int *outcome);
CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode *out, size_t *count);
CUresult cuGraphInstantiateWithFlags(CUgraphExec *out, CUgraph graph, unsigned long long flags);
CUresult cuGraphInstantiate_v2(CUgraphExec *out, CUgraph graph, CUgraphNode *error, char *log, size_t bytes);
CUresult cuGraphLaunch(CUgraphExec exec, CUstream handle);
CUresult cuGraphLaunch_ptsz(CUgraphExec exec, CUstream handle);
CUresult cuInit(unsigned int flags);
CUresult cuLaunchHostFunc(CUstream handle, CUhostFn function, void *argument);
CUresult cuLibraryGetKernel(CUkernel *out, CUlibrary handle, const char *name);
CUresult cuLibraryLoadData(CUlibrary *out, const void *code, int *options, void **values, unsigned int count,
                           int *library_options, void **library_values, unsigned int library_count);
CUresult cuLibraryUnload(CUlibrary handle);
CUresult cuMemAlloc_v2(CUdeviceptr *out, size_t bytes);
CUresult cuMemFree_v2(CUdeviceptr address);
CUresult cuMemHostAlloc(void **out, size_t bytes, unsigned int flags);
CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t bytes);
CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream);
CUresult cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes);
CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes, CUstream stream);
CUresult cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t bytes);
CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes, CUstream stream);
CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t bytes);
CUresult cuMemsetD32Async(CUdeviceptr to, unsigned int value, size_t count, CUstream stream);
CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t count, CUstream stream);
CUresult cuMemsetD8_v2(CUdeviceptr to, unsigned char value, size_t count);
CUresult cuModuleGetFunction(CUfunction *out, CUmodule handle, const char *name);
CUresult cuModuleLoad(CUmodule *out, const char *path);
CUresult cuModuleLoadData(CUmodule *out, const void *data);
CUresult cuModuleLoadDataEx(CUmodule *out, const void *data, unsigned int count, int *options, void **values);
CUresult cuModuleUnload(CUmodule handle);
CUresult cuPointerGetAttribute(void *value, int id, CUdeviceptr address);
CUresult cuStreamBeginCaptureToGraph(CUstream handle, CUgraph graph, const CUgraphNode *nodes,
                                     const CUgraphEdgeData *data, size_t count, int mode);
CUresult cuStreamBeginCapture_v2(CUstream handle, int mode);
CUresult cuStreamBeginCapture_v2_ptsz(CUstream handle, int mode);
CUresult cuStreamCreate(CUstream *out, unsigned int flags);
CUresult cuStreamCreateWithPriority(CUstream *out, unsigned int flags, int priority);
CUresult cuStreamDestroy_v2(CUstream handle);
CUresult cuStreamEndCapture(CUstream handle, CUgraph *out);
CUresult cuStreamEndCapture_ptsz(CUstream handle, CUgraph *out);
CUresult cuStreamGetFlags(CUstream handle, unsigned int *flags);
CUresult cuStreamGetPriority(CUstream handle, int *priority);
CUresult cuStreamGetPriority_ptsz(CUstream handle, int *priority);
CUresult cuStreamIsCapturing(CUstream handle, int *status);
CUresult cuStreamQuery(CUstream handle);
CUresult cuStreamQuery_ptsz(CUstream handle);
CUresult cuStreamSynchronize(CUstream handle);
CUresult cuStreamSynchronize_ptsz(CUstream handle);
CUresult cuStreamWaitEvent(CUstream handle, CUevent event, unsigned int flags);
CUresult cuStreamWaitEvent_ptsz(CUstream handle, CUevent event, unsigned int flags);
CUresult cuThreadExchangeStreamCaptureMode(int *mode);

#endif
