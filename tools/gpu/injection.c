/* SPDX-License-Identifier: Apache-2.0
 * What a profiler that comes in by CUDA_INJECTION64_PATH sees: the library that variable names is loaded by the driver,
 * and CUPTI tells it of each launch, as it arrives at the driver. One JSON line at exit, behind those of other processes in
 * the file INJECTION_OUTPUT.
 *
 * nvcc -Xcompiler -fPIC -shared injection.c -o libinjection.so -I$CUDA/extras/CUPTI/include -L$CUDA/extras/CUPTI/lib64 -Xlinker -rpath=$CUDA/extras/CUPTI/lib64 -lcupti
 */
#include <cupti.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of all threads. */
static _Atomic uint64_t launches;
static _Atomic uint64_t communication;
static _Atomic uint64_t with_dynamic; /* launches with dynamic shared memory */
static _Atomic uint64_t raised;       /* launches with an attribute of priority */

static void seen(const char *kernel, uint64_t dynamic) {
    launches++;
    communication += kernel != NULL && strstr(kernel, "nccl") != NULL;
    with_dynamic += dynamic > 0;
}

/* Per-thread default streams have entry points of their own. */
static const CUpti_CallbackId launching[] = {
    CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel,
    CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel_ptsz,
    CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx,
    CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx_ptsz,
    CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel,
    CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel_ptsz,
};

static void CUPTIAPI called(void *user, CUpti_CallbackDomain domain, CUpti_CallbackId id, const void *data) {
    const CUpti_CallbackData *call = data;
    (void)user, (void)domain;
    if (call->callbackSite != CUPTI_API_ENTER)
        return;
    if (id == CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel || id == CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel_ptsz) {
        const cuLaunchKernel_params *given = call->functionParams;
        seen(call->symbolName, given->sharedMemBytes);
    } else if (id == CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel ||
               id == CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel_ptsz) {
        const cuLaunchCooperativeKernel_params *given = call->functionParams;
        seen(call->symbolName, given->sharedMemBytes);
    } else {
        const cuLaunchKernelEx_params *given = call->functionParams;
        seen(call->symbolName, given->config->sharedMemBytes);
        for (unsigned i = 0; i < given->config->numAttrs; i++)
            raised += given->config->attrs[i].id == CU_LAUNCH_ATTRIBUTE_PRIORITY;
    }
}

static void say(void) {
    FILE *file = fopen(getenv("INJECTION_OUTPUT") ? getenv("INJECTION_OUTPUT") : "/dev/null", "a");
    if (file == NULL)
        return;
    fprintf(file, "{\"launches\": %llu, \"communication\": %llu, \"with_dynamic\": %llu, \"raised\": %llu}\n",
            (unsigned long long)launches, (unsigned long long)communication, (unsigned long long)with_dynamic,
            (unsigned long long)raised);
    fclose(file);
}

int InitializeInjection(void) {
    CUpti_SubscriberHandle subscriber;
    if (cuptiSubscribe(&subscriber, called, NULL) != CUPTI_SUCCESS)
        return 0;
    for (unsigned i = 0; i < sizeof launching / sizeof *launching; i++)
        cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API, launching[i]);
    atexit(say);
    return 1;
}
