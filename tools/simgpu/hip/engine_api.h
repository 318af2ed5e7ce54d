/* Prototypes of the engine's functions (the simulated CUDA driver), as far as HIP's stand on them. */
#ifndef SIMGPU_ENGINE_API_H
#define SIMGPU_ENGINE_API_H

#include "../cuda_abi.h"

CUresult cuCtxDisablePeerAccess(CUcontext peer);
CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned int flags);
CUresult cuCtxGetApiVersion(CUcontext handle, unsigned int *version);
CUresult cuCtxGetCacheConfig(int *config);
CUresult cuCtxGetCurrent(CUcontext *out);
CUresult cuCtxGetDevice(CUdevice *device);
CUresult cuCtxGetFlags(unsigned int *flags);
CUresult cuCtxGetLimit(size_t *value, int limit);
CUresult cuCtxGetSharedMemConfig(int *config);
CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest);
CUresult cuCtxPopCurrent(CUcontext *out);
CUresult cuCtxPushCurrent(CUcontext handle);
CUresult cuCtxSetCacheConfig(int config);
CUresult cuCtxSetCurrent(CUcontext handle);
CUresult cuCtxSetLimit(int limit, size_t value);
CUresult cuCtxSetSharedMemConfig(int config);
CUresult cuCtxSynchronize(void);
CUresult cuDeviceCanAccessPeer(int *can, CUdevice device, CUdevice peer);
CUresult cuDeviceComputeCapability(int *major, int *minor, CUdevice device);
CUresult cuDeviceGetAttribute(int *value, int id, CUdevice device);
CUresult cuDeviceGetByPCIBusId(CUdevice *device, const char *text);
CUresult cuDeviceGetName(char *name, int length, CUdevice device);
CUresult cuDeviceGetPCIBusId(char *text, int length, CUdevice device);
CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice device);
CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned int *flags, int *active);
CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device);
CUresult cuDevicePrimaryCtxReset_v2(CUdevice device);
CUresult cuDevicePrimaryCtxRetain(CUcontext *out, CUdevice device);
CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned int flags);
CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device);
CUresult cuEventCreate(CUevent *out, unsigned int flags);
CUresult cuEventDestroy_v2(CUevent handle);
CUresult cuEventElapsedTime(float *milliseconds, CUevent from, CUevent to);
CUresult cuEventQuery(CUevent handle);
CUresult cuEventRecord(CUevent event, CUstream handle);
CUresult cuEventRecordWithFlags(CUevent event, CUstream handle, unsigned int flags);
CUresult cuEventRecord_ptsz(CUevent event, CUstream handle);
CUresult cuEventSynchronize(CUevent handle);
CUresult cuGraphAddChildGraphNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *before, size_t count,
                                  CUgraph child);
CUresult cuGraphAddDependencies(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to, size_t count);
CUresult cuGraphAddEmptyNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *before, size_t count);
CUresult cuGraphAddEventRecordNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *before, size_t count,
                                   CUevent event);
CUresult cuGraphAddEventWaitNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *before, size_t count,
                                 CUevent event);
CUresult cuGraphAddHostNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *before, size_t count,
                            const CUDA_HOST_NODE_PARAMS *what);
CUresult cuGraphAddKernelNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *before, size_t count,
                              const CUDA_KERNEL_NODE_PARAMS_v1 *what);
CUresult cuGraphAddNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *before, size_t count,
                        CUgraphNodeParams *what);
CUresult cuGraphChildGraphNodeGetGraph(CUgraphNode node, CUgraph *out);
CUresult cuGraphClone(CUgraph *out, CUgraph handle);
CUresult cuGraphCreate(CUgraph *out, unsigned int flags);
CUresult cuGraphDestroy(CUgraph handle);
CUresult cuGraphDestroyNode(CUgraphNode handle);
CUresult cuGraphExecDestroy(CUgraphExec handle);
CUresult cuGraphExecGetFlags(CUgraphExec handle, uint64_t *flags);
CUresult cuGraphExecKernelNodeSetParams(CUgraphExec exec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1 *what);
CUresult cuGraphExecNodeSetParams(CUgraphExec exec, CUgraphNode node, CUgraphNodeParams *what);
CUresult cuGraphExecUpdate(CUgraphExec exec, CUgraph graph, CUgraphNode *error, int *outcome);
CUresult cuGraphGetEdges(CUgraph graph, CUgraphNode *from, CUgraphNode *to, size_t *count);
CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode *out, size_t *count);
CUresult cuGraphGetRootNodes(CUgraph graph, CUgraphNode *out, size_t *count);
CUresult cuGraphInstantiateWithFlags(CUgraphExec *out, CUgraph graph, unsigned long long flags);
CUresult cuGraphInstantiateWithParams(CUgraphExec *out, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *what);
CUresult cuGraphInstantiate_v2(CUgraphExec *out, CUgraph graph, CUgraphNode *error, char *log, size_t bytes);
CUresult cuGraphKernelNodeCopyAttributes(CUgraphNode to, CUgraphNode from);
CUresult cuGraphKernelNodeGetAttribute(CUgraphNode handle, int id, CUlaunchAttributeValue *value);
CUresult cuGraphKernelNodeGetParams(CUgraphNode handle, CUDA_KERNEL_NODE_PARAMS_v1 *out);
CUresult cuGraphKernelNodeSetAttribute(CUgraphNode handle, int id, const CUlaunchAttributeValue *value);
CUresult cuGraphKernelNodeSetParams(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1 *what);
CUresult cuGraphLaunch(CUgraphExec exec, CUstream handle);
CUresult cuGraphLaunch_ptsz(CUgraphExec exec, CUstream handle);
CUresult cuGraphNodeFindInClone(CUgraphNode *out, CUgraphNode handle, CUgraph clone);
CUresult cuGraphNodeGetDependencies(CUgraphNode node, CUgraphNode *out, size_t *count);
CUresult cuGraphNodeGetDependentNodes(CUgraphNode node, CUgraphNode *out, size_t *count);
CUresult cuGraphNodeGetType(CUgraphNode handle, int *type);
CUresult cuGraphNodeSetParams(CUgraphNode node, CUgraphNodeParams *what);
CUresult cuGraphRemoveDependencies(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to, size_t count);
CUresult cuGraphUpload(CUgraphExec exec, CUstream handle);
CUresult cuInit(unsigned int flags);
CUresult cuKernelGetLibrary(CUlibrary *out, CUkernel handle);
CUresult cuKernelGetName(const char **name, CUkernel handle);
CUresult cuLaunchCooperativeKernelMultiDevice(const CUDA_LAUNCH_PARAMS *list, unsigned int count, unsigned int flags);
CUresult cuLaunchHostFunc(CUstream handle, CUhostFn function, void *argument);
CUresult cuLaunchHostFunc_ptsz(CUstream handle, CUhostFn function, void *argument);
CUresult cuLibraryEnumerateKernels(CUkernel *out, unsigned int count, CUlibrary handle);
CUresult cuLibraryGetKernel(CUkernel *out, CUlibrary handle, const char *name);
CUresult cuLibraryGetKernelCount(unsigned int *count, CUlibrary handle);
CUresult cuLibraryLoadData(CUlibrary *out, const void *code, int *options, void **values, unsigned int count,
                           int *library_options, void **library_values, unsigned int library_count);
CUresult cuLibraryLoadFromFile(CUlibrary *out, const char *path, int *options, void **values, unsigned int count,
                               int *library_options, void **library_values, unsigned int library_count);
CUresult cuLibraryUnload(CUlibrary handle);
CUresult cuMemAllocAsync(CUdeviceptr *out, size_t bytes, CUstream handle);
CUresult cuMemAllocManaged(CUdeviceptr *out, size_t bytes, unsigned int flags);
CUresult cuMemAllocPitch_v2(CUdeviceptr *out, size_t *pitch, size_t width, size_t height, unsigned int element);
CUresult cuMemAlloc_v2(CUdeviceptr *out, size_t bytes);
CUresult cuMemFreeAsync(CUdeviceptr address, CUstream handle);
CUresult cuMemFree_v2(CUdeviceptr address);
CUresult cuMemGetAddressRange_v2(CUdeviceptr *start, size_t *bytes, CUdeviceptr address);
CUresult cuMemGetInfo_v2(size_t *available, size_t *total);
CUresult cuMemHostAlloc(void **out, size_t bytes, unsigned int flags);
CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *out, void *address, unsigned int flags);
CUresult cuMemHostRegister_v2(void *address, size_t bytes, unsigned int flags);
CUresult cuMemHostUnregister(void *address);
CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t bytes);
CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D *what, CUstream stream);
CUresult cuMemcpy2DAsync_v2_ptsz(const CUDA_MEMCPY2D *what, CUstream stream);
CUresult cuMemcpy2D_v2(const CUDA_MEMCPY2D *what);
CUresult cuMemcpy2D_v2_ptds(const CUDA_MEMCPY2D *what);
CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream);
CUresult cuMemcpyAsync_ptsz(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream);
CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream);
CUresult cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes);
CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes, CUstream stream);
CUresult cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t bytes);
CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes, CUstream stream);
CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t bytes);
CUresult cuMemcpyPeer(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context, size_t bytes);
CUresult cuMemcpyPeerAsync(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context, size_t bytes,
                           CUstream stream);
CUresult cuMemcpy_ptds(CUdeviceptr to, CUdeviceptr from, size_t bytes);
CUresult cuMemsetD16Async(CUdeviceptr to, unsigned short value, size_t count, CUstream stream);
CUresult cuMemsetD16_v2(CUdeviceptr to, unsigned short value, size_t count);
CUresult cuMemsetD2D8Async(CUdeviceptr to, size_t pitch, unsigned char value, size_t width, size_t height,
                           CUstream stream);
CUresult cuMemsetD2D8_v2(CUdeviceptr to, size_t pitch, unsigned char value, size_t width, size_t height);
CUresult cuMemsetD32Async(CUdeviceptr to, unsigned int value, size_t count, CUstream stream);
CUresult cuMemsetD32_v2(CUdeviceptr to, unsigned int value, size_t count);
CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t count, CUstream stream);
CUresult cuMemsetD8Async_ptsz(CUdeviceptr to, unsigned char value, size_t count, CUstream stream);
CUresult cuMemsetD8_v2(CUdeviceptr to, unsigned char value, size_t count);
CUresult cuMemsetD8_v2_ptds(CUdeviceptr to, unsigned char value, size_t count);
CUresult cuModuleGetFunction(CUfunction *out, CUmodule handle, const char *name);
CUresult cuModuleGetFunctionCount(unsigned int *count, CUmodule handle);
CUresult cuModuleGetGlobal_v2(CUdeviceptr *address, size_t *bytes, CUmodule handle, const char *name);
CUresult cuModuleLoad(CUmodule *out, const char *path);
CUresult cuModuleLoadData(CUmodule *out, const void *data);
CUresult cuModuleLoadDataEx(CUmodule *out, const void *data, unsigned int count, int *options, void **values);
CUresult cuModuleUnload(CUmodule handle);
CUresult cuPointerGetAttribute(void *value, int id, CUdeviceptr address);
CUresult cuPointerGetAttributes(unsigned int attributes, int *ids, void **values, CUdeviceptr address);
CUresult cuProfilerStart(void);
CUresult cuProfilerStop(void);
CUresult cuStreamAddCallback(CUstream handle, CUstreamCallback callback, void *argument, unsigned int flags);
CUresult cuStreamAddCallback_ptsz(CUstream handle, CUstreamCallback callback, void *argument, unsigned int flags);
CUresult cuStreamAttachMemAsync(CUstream handle, CUdeviceptr address, size_t bytes, unsigned int flags);
CUresult cuStreamBeginCaptureToGraph(CUstream handle, CUgraph graph, const CUgraphNode *nodes,
                                     const CUgraphEdgeData *data, size_t count, int mode);
CUresult cuStreamBeginCapture_v2(CUstream handle, int mode);
CUresult cuStreamBeginCapture_v2_ptsz(CUstream handle, int mode);
CUresult cuStreamCopyAttributes(CUstream to, CUstream from);
CUresult cuStreamCreate(CUstream *out, unsigned int flags);
CUresult cuStreamCreateWithPriority(CUstream *out, unsigned int flags, int priority);
CUresult cuStreamDestroy_v2(CUstream handle);
CUresult cuStreamEndCapture(CUstream handle, CUgraph *out);
CUresult cuStreamEndCapture_ptsz(CUstream handle, CUgraph *out);
CUresult cuStreamGetAttribute(CUstream handle, int id, CUlaunchAttributeValue *value);
CUresult cuStreamGetCaptureInfo(CUstream handle, int *status, unsigned long long *id);
CUresult cuStreamGetCaptureInfo_ptsz(CUstream handle, int *status, unsigned long long *id);
CUresult cuStreamGetCaptureInfo_v2(CUstream handle, int *status, unsigned long long *id, CUgraph *graph,
                                   const CUgraphNode **nodes, size_t *count);
CUresult cuStreamGetCaptureInfo_v2_ptsz(CUstream handle, int *status, unsigned long long *id, CUgraph *graph,
                                        const CUgraphNode **nodes, size_t *count);
CUresult cuStreamGetDevice(CUstream handle, CUdevice *device);
CUresult cuStreamGetFlags(CUstream handle, unsigned int *flags);
CUresult cuStreamGetFlags_ptsz(CUstream handle, unsigned int *flags);
CUresult cuStreamGetId(CUstream handle, unsigned long long *id);
CUresult cuStreamGetPriority(CUstream handle, int *priority);
CUresult cuStreamGetPriority_ptsz(CUstream handle, int *priority);
CUresult cuStreamIsCapturing(CUstream handle, int *status);
CUresult cuStreamIsCapturing_ptsz(CUstream handle, int *status);
CUresult cuStreamQuery(CUstream handle);
CUresult cuStreamQuery_ptsz(CUstream handle);
CUresult cuStreamSetAttribute(CUstream handle, int id, const CUlaunchAttributeValue *value);
CUresult cuStreamSynchronize(CUstream handle);
CUresult cuStreamSynchronize_ptsz(CUstream handle);
CUresult cuStreamUpdateCaptureDependencies(CUstream handle, CUgraphNode *nodes, size_t count, unsigned int flags);
CUresult cuStreamWaitEvent(CUstream handle, CUevent event, unsigned int flags);
CUresult cuStreamWaitEvent_ptsz(CUstream handle, CUevent event, unsigned int flags);
CUresult cuThreadExchangeStreamCaptureMode(int *mode);
CUresult cuStreamWaitValue32_v2(CUstream stream, CUdeviceptr address, uint32_t value, unsigned int flags);
CUresult cuStreamWaitValue64_v2(CUstream stream, CUdeviceptr address, uint64_t value, unsigned int flags);
CUresult cuStreamWriteValue32_v2(CUstream stream, CUdeviceptr address, uint32_t value, unsigned int flags);
CUresult cuStreamWriteValue64_v2(CUstream stream, CUdeviceptr address, uint64_t value, unsigned int flags);

#endif
