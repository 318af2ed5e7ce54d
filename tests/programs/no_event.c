/* NULL in place of an event, in every call that takes one. */
#define WAY_LINKED
#include "driver.h"

extern int cuEventCreate(void **event, unsigned flags);
extern int cuEventRecord(void *event, void *stream);
extern int cuEventQuery(void *event);
extern int cuEventSynchronize(void *event);
extern int cuEventElapsedTime(float *ms, void *from, void *to);
extern int cuEventDestroy_v2(void *event);
extern int cuIpcGetEventHandle(void *handle, void *event);
extern int cuStreamWaitEvent(void *stream, void *event, unsigned flags);

int main(void) {
    void *module = NULL, *function = NULL, *event = NULL, *none = NULL, *found = NULL;
    uint64_t a = 0;
    uint32_t b = 0;
    void *parameters[] = {&a, &b};
    char handle[64];
    float ms = 0;
    driver_start();
    char *text = ptx_of("k,ncclDevKernel_AllReduce");
    int bad = cuModuleLoadData(&module, text);
    bad += cuModuleGetFunction(&function, module, "k") + cuEventCreate(&event, 0);
    bad += cuModuleGetFunction(&found, module, "ncclDevKernel_AllReduce");
    printf("made: %d\n", bad);
    free(text);
    for (int i = 0; i < 3; i++) {
        Attribute completion = {
            .id = i == 0 ? 7 : 12}; /* CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT, LAUNCH_COMPLETION_EVENT */
        memcpy(&completion.value, &none, sizeof none);
        const Config config = {{i < 2, 1, 1}, {32, 1, 1}, 0, 0, NULL, &completion, 1, 0};
        printf("recorded: %d\n", cuEventRecord(NULL, NULL));
        printf("launched: %d\n", cuLaunchKernelEx(&config, i == 1 ? found : function, parameters, NULL));
        printf("waits: %d\n", cuStreamWaitEvent(NULL, NULL, 0));
        printf("synchronized: %d\n", cuEventSynchronize(NULL));
        printf("asked: %d\n", cuEventQuery(NULL));
        printf("elapsed: %d\n", cuEventElapsedTime(&ms, event, NULL));
        printf("exported: %d\n", cuIpcGetEventHandle(handle, NULL));
    }
    printf("destroyed: %d\n", cuEventDestroy_v2(NULL));
    return 0;
}
