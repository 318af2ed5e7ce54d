/* What both programs do: the one that nvcc compiles (program.cu) and the one that does nvcc's part by hand (stub.c).
 *
 * Each defines, before it includes this:
 *   SAXPY(blocks, shared, stream)  BOUNDED(blocks, shared, stream)   launches of 256 and 128 threads
 *   ATTRIBUTE(attribute, number)   sets a launch attribute to the priority `number`
 *   UNASKED   does not ask for saxpy's occupancy
 */
#include <stdio.h>
#include <string.h>

#define DO(call) did(#call, (int)(call))

/* Every call must succeed; the last line says whether all did. */
static int failed;

static void did(const char *call, int error) {
    if (error) {
        printf("%s: %s\n", call, cudaGetErrorString((cudaError_t)error));
        failed++;
    }
}

static void print_device(void) {
    struct cudaDeviceProp properties;
    struct cudaFuncAttributes attributes;
    int count = 0, runtime = 0, blocks = 0;
    memset(&properties, 0, sizeof properties); /* printed where nothing works, too */
    memset(&attributes, 0, sizeof attributes);
    DO(cudaGetDeviceCount(&count));
    DO(cudaRuntimeGetVersion(&runtime));
    DO(cudaGetDeviceProperties(&properties, 0));
    printf("%d of %s, %d.%d, %d multiprocessors, runtime %d\n", count, properties.name, properties.major,
           properties.minor, properties.multiProcessorCount, runtime / 1000);
    DO(cudaFuncGetAttributes(&attributes, (const void *)saxpy));
#ifndef UNASKED /* a kernel whose occupancy was asked for is not shaped */
    DO(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, (const void *)saxpy, 256, 0));
#endif
    printf("saxpy: %d registers, %d bytes, %d blocks\n", attributes.numRegs, (int)attributes.sharedSizeBytes, blocks);
}

static void print_memory(void) {
    int numbers[4] = {1, 2, 3, 4}, back[4] = {0};
    void *there = NULL;
    DO(cudaMalloc(&there, sizeof numbers));
    DO(cudaMemcpy(there, numbers, sizeof numbers, cudaMemcpyHostToDevice));
    DO(cudaMemsetAsync(there, 0, sizeof *numbers, 0));
    DO(cudaMemcpy(back, there, sizeof back, cudaMemcpyDeviceToHost));
    DO(cudaFree(there));
    printf("memory %d %d\n", back[0], back[3]);
}

static void launch_with_more(cudaStream_t stream) {
    int count = 4;
    float factor = 2, *data = NULL;
    void *arguments[] = {&count, &factor, &data, &data};
    cudaLaunchAttribute attribute;
    cudaLaunchConfig_t config;
    dim3 grid, block;
    memset(&attribute, 0, sizeof attribute);
    memset(&config, 0, sizeof config);
    memset(&grid, 0, sizeof grid);
    grid.x = 100, grid.y = grid.z = 1;
    block = grid;
    block.x = 256;
    ATTRIBUTE(attribute, -2);
    config.gridDim = grid, config.blockDim = block, config.stream = stream;
    config.attrs = &attribute, config.numAttrs = 1;
    DO(cudaLaunchKernelExC(&config, (const void *)saxpy, arguments));
    DO(cudaLaunchCooperativeKernel((const void *)saxpy, grid, block, arguments, 0, stream));
    DO(cudaLaunchKernel((const void *)saxpy, grid, block, arguments, 0, stream));
}

static void graphs(cudaStream_t stream) {
    cudaGraph_t graph = NULL;
    cudaGraphExec_t exec = NULL;
    size_t nodes = 0;
    DO(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    SAXPY(2200, 0, stream);
    BOUNDED(2200, 1024, stream);
    DO(cudaStreamEndCapture(stream, &graph));
    DO(cudaGraphGetNodes(graph, NULL, &nodes));
    printf("graph of %d\n", (int)nodes);
    DO(cudaGraphInstantiate(&exec, graph, 0));
    DO(cudaGraphLaunch(exec, stream));
    DO(cudaGraphLaunch(exec, stream));
    DO(cudaGraphExecDestroy(exec));
    DO(cudaGraphDestroy(graph));
}

static void mistakes(void) {
    SAXPY(0, 0, 0);
    printf("no block: %s\n", cudaGetErrorName(cudaGetLastError()));
    SAXPY(1, 60000, 0);
    printf("too much: %s", cudaGetErrorName(cudaPeekAtLastError()));
    printf(" %s", cudaGetErrorName(cudaGetLastError()));
    printf(" %s\n", cudaGetErrorName(cudaGetLastError()));
    DO(cudaFuncSetAttribute((const void *)bounded, cudaFuncAttributeMaxDynamicSharedMemorySize, 100000));
    BOUNDED(1, 100000, 0);
    printf("allowed: %s\n", cudaGetErrorName(cudaGetLastError()));
}

static int steps(void) {
    int least = 0, greatest = 0, priority = 0, stage;
    float milliseconds = 0;
    cudaStream_t streams[2] = {NULL, NULL};
    cudaEvent_t start = NULL, end = NULL;
    print_device();
    print_memory();
    DO(cudaDeviceGetStreamPriorityRange(&least, &greatest));
    DO(cudaStreamCreateWithFlags(&streams[0], cudaStreamNonBlocking));
    DO(cudaStreamCreateWithPriority(&streams[1], cudaStreamNonBlocking, greatest));
    DO(cudaStreamGetPriority(streams[1], &priority));
    DO(cudaEventCreate(&start));
    DO(cudaEventCreate(&end));
    DO(cudaEventRecord(start, streams[0]));
    for (stage = 0; stage < 3; stage++)
        SAXPY(2200, 0, streams[0]);
    DO(cudaEventRecord(end, streams[0]));
    printf("unfinished: %s %s", cudaGetErrorName(cudaStreamQuery(streams[0])), cudaGetErrorName(cudaEventQuery(end)));
    printf(", last error: %s\n", cudaGetErrorName(cudaGetLastError()));
    DO(cudaStreamWaitEvent(streams[1], start, 0));
    BOUNDED(2200, 1024, streams[1]);
    SAXPY(2200, 0, 0);
    DO(cudaEventSynchronize(end));
    DO(cudaEventElapsedTime(&milliseconds, start, end));
    printf("priorities %d to %d, %d; time passed: %d\n", least, greatest, priority, milliseconds > 0);
    launch_with_more(streams[0]);
    graphs(streams[1]);
    mistakes();
    DO(cudaDeviceSynchronize());
    DO(cudaStreamDestroy(streams[0]));
    DO(cudaEventDestroy(start));
    printf("%s\n", failed ? "failed" : "end");
    return failed ? 1 : 3; /* a status that no other way to end has */
}
