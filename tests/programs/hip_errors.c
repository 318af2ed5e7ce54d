/* What hipGetLastError says behind calls that fail and calls that do not: hip_errors CODE */
#include "hip_client.h"

extern type_hipGetLastError hipGetLastError;

static hipFunction_t kernel;

static hipError_t launch(uint32_t threads, uint32_t dynamic, hipStream_t stream) {
    uint64_t a = 0;
    uint32_t b = 0;
    void *parameters[] = {&a, &b};
    return hipModuleLaunchKernel(kernel, 400, 1, 1, threads, 1, 1, dynamic, stream, parameters, NULL);
}

static void say(const char *what, hipError_t result) {
    printf("%s: %d, last %d\n", what, result, hipGetLastError());
}

int main(int argc, char **argv) {
    const hipStream_t thread = (void *)(uintptr_t)STREAM_PER_THREAD;
    hipModule_t module = NULL;
    hipGraph_t graph = NULL;
    say("device", hipSetDevice(1));
    say("module", hipModuleLoadData(&module, read_file(argc > 1 ? argv[1] : NULL)));
    say("function", hipModuleGetFunction(&kernel, module, "k"));
    for (int i = 0; i < 3; i++) {
        say("too many threads", launch(2048, 0, NULL));
        say("launch", launch(64, 0, NULL));
        say("too many bytes", launch(64, 70000, NULL));
    }
    say("begin", hipStreamBeginCapture(thread, 0));
    say("too many threads", launch(2048, 0, thread));
    say("end", hipStreamEndCapture(thread, &graph));
    say("end", hipStreamEndCapture(thread, &graph));
    return 0;
}
