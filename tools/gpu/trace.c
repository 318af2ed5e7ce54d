/* SPDX-License-Identifier: Apache-2.0
 * A trace of any CUDA program, for `overlap explain`, where nsys is not at hand: the driver loads the library that
 * CUDA_INJECTION64_PATH names, and CUPTI tells it what ran. At exit it writes the file that TRACE_OUTPUT names, with the
 * process id behind it, in the format of torch.profiler. Unlike PyTorch it asks for records of events, so that each wait
 * says for which work.
 *
 * nvcc -Xcompiler -fPIC -shared trace.c -o libtrace.so -I$CUDA/extras/CUPTI/include -L$CUDA/extras/CUPTI/lib64 -Xlinker -rpath=$CUDA/extras/CUPTI/lib64 -lcupti
 */
#include <cupti.h>
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BUFFER (8u << 20)

typedef CUpti_ActivitySynchronization2 Wait;
typedef CUpti_ActivityCudaEvent2 Event;

/* Waits and the events they wait for: they meet at the end. */
struct list {
    size_t count, size;
    void *items;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static FILE *file;
static uint64_t begun;
static pid_t process;
static struct list waits, events;

/* A host that polls waits from its first poll on. Of the polls that find work still going on, one every POLLS_NS is kept for
 * each stream or event: a loop of polls would fill the memory. */
enum { POLLED = 1024, POLLS_NS = 5000 };
static struct poll {
    uint32_t context, stream;
    uint64_t event, kept_at; /* 0: none */
} polled[POLLED];
static uint32_t device_of[64]; /* by context, where something ran */

static void keep(struct list *list, const void *item, size_t size) {
    if (list->count == list->size) {
        list->size = list->size ? 2 * list->size : 4096;
        void *more = realloc(list->items, list->size * size);
        if (more == NULL) { /* the trace then lacks waits, and the program goes on */
            list->size = list->count;
            return;
        }
        list->items = more;
    }
    memcpy((char *)list->items + size * list->count++, item, size);
}

static bool is_kept(const Wait *one) {
    struct poll *last = &polled[(one->contextId + 31 * one->streamId + 131 * one->cudaEventSyncId) % POLLED];
    bool same = last->kept_at && last->context == one->contextId && last->stream == one->streamId &&
                last->event == one->cudaEventSyncId;
    bool goes_on = one->returnValue == CUDA_ERROR_NOT_READY;
    if (goes_on && same && one->start < last->kept_at + POLLS_NS)
        return false;
    *last = (struct poll){one->contextId, one->streamId, one->cudaEventSyncId, goes_on ? one->start : 0};
    return true;
}

static double us(uint64_t at) {
    return (double)(int64_t)(at - begun) / 1e3;
}

/* Everything but the arguments that only one category has; those follow, after a comma. CUPTI says 0 where it does not know
 * the time (cupti_activity.h): readers pass such rows over by their category. */
static void row(const char *category, const char *name, uint32_t device, uint32_t stream, uint64_t start, uint64_t end,
                uint32_t correlation) {
    fprintf(file,
            "{\"ph\":\"X\",\"cat\":\"%s\",\"name\":\"%s\",\"pid\":%u,\"tid\":%u,\"ts\":%.3f,\"dur\":%.3f,\"args\":{"
            "\"device\":%u,\"stream\":%u,\"correlation\":%u",
            start ? category : "untimed", name, device, stream, us(start), (double)(end - start) / 1e3, device, stream,
            correlation);
}

static void end_row(void) {
    fputs("}},\n", file);
}

static void kernel(const CUpti_ActivityKernel10 *one) {
    device_of[one->contextId % 64] = one->deviceId;
    row("kernel", one->name, one->deviceId, one->streamId, one->start, one->end, one->correlationId);
    fprintf(file,
            ",\"grid\":[%d,%d,%d],\"block\":[%d,%d,%d],\"registers per thread\":%u,\"shared memory\":%d,"
            "\"graph node id\":%llu",
            one->gridX, one->gridY, one->gridZ, one->blockX, one->blockY, one->blockZ, one->registersPerThread,
            one->staticSharedMemory + one->dynamicSharedMemory, (unsigned long long)one->graphNodeId);
    end_row();
}

/* Queries start nothing, and polls are in the records of waits. What the runtime launches has the number of its call, not
 * of the driver's inside it. */
static void call(const CUpti_ActivityAPI *one, const char *category, CUpti_CallbackDomain domain) {
    const char *name = NULL;
    if (cuptiGetCallbackName(domain, one->cbid, &name) != CUPTI_SUCCESS || strstr(name, "Get") || strstr(name, "Query"))
        return;
    row(category, name, 0, one->threadId, one->start, one->end, one->correlationId);
    end_row();
}

/* The driver is asked at the end: CUPTI's own records of devices did not come where the driver loads the library. */
static void devices(void) {
    static const CUdevice_attribute asked[] = {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
                                               CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
                                               CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT};
    void *driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    if (driver == NULL)
        return;
    CUresult (*get_count)(int *) = (CUresult (*)(int *))dlsym(driver, "cuDeviceGetCount");
    CUresult (*get_name)(char *, int, CUdevice) = (CUresult (*)(char *, int, CUdevice))dlsym(driver, "cuDeviceGetName");
    CUresult (*get)(int *, CUdevice_attribute, CUdevice) =
        (CUresult (*)(int *, CUdevice_attribute, CUdevice))dlsym(driver, "cuDeviceGetAttribute");
    int count = 0;
    if (get_count == NULL || get_name == NULL || get == NULL || get_count(&count) != CUDA_SUCCESS)
        return;
    for (int device = 0; device < count; device++) {
        char name[256] = "";
        int told[3] = {0};
        get_name(name, sizeof name, device);
        for (int i = 0; i < 3; i++)
            get(&told[i], asked[i], device);
        fprintf(file, "%s{\"id\":%d,\"name\":\"%s\",\"computeMajor\":%d,\"computeMinor\":%d,\"numSms\":%d}",
                device ? "," : "", device, name, told[0], told[1], told[2]);
    }
}

/* As Kineto writes them: what helps a copy depends on the host's memory. */
static const char *memory(uint8_t kind) {
    return kind == CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE ? "Pageable"
           : kind == CUPTI_ACTIVITY_MEMORY_KIND_PINNED ? "Pinned"
           : kind == CUPTI_ACTIVITY_MEMORY_KIND_DEVICE ? "Device"
                                                       : "Other";
}

static void copied(const CUpti_ActivityMemcpy6 *copy) {
    char name[32];
    snprintf(name, sizeof name, "Memcpy (%s -> %s)", memory(copy->srcKind), memory(copy->dstKind));
    row("gpu_memcpy", name, copy->deviceId, copy->streamId, copy->start, copy->end, copy->correlationId);
    end_row();
}

static void record(const CUpti_Activity *one) {
    if (one->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) {
        kernel((const void *)one);
    } else if (one->kind == CUPTI_ACTIVITY_KIND_MEMCPY) {
        copied((const void *)one);
    } else if (one->kind == CUPTI_ACTIVITY_KIND_MEMSET) {
        const CUpti_ActivityMemset4 *set = (const void *)one;
        row("gpu_memset", "memset", set->deviceId, set->streamId, set->start, set->end, set->correlationId);
        end_row();
    } else if (one->kind == CUPTI_ACTIVITY_KIND_DRIVER) {
        call((const void *)one, "cuda_driver", CUPTI_CB_DOMAIN_DRIVER_API);
    } else if (one->kind == CUPTI_ACTIVITY_KIND_RUNTIME) {
        call((const void *)one, "cuda_runtime", CUPTI_CB_DOMAIN_RUNTIME_API);
    } else if (one->kind == CUPTI_ACTIVITY_KIND_SYNCHRONIZATION) {
        if (is_kept((const void *)one))
            keep(&waits, one, sizeof(Wait));
    } else if (one->kind == CUPTI_ACTIVITY_KIND_CUDA_EVENT) {
        keep(&events, one, sizeof(Event));
    }
}

static void CUPTIAPI wanted(uint8_t **buffer, size_t *size, size_t *records) {
    *size = BUFFER;
    *records = 0; /* as many as fit */
    *buffer = aligned_alloc(8, BUFFER);
}

static void CUPTIAPI filled(CUcontext context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid) {
    CUpti_Activity *one = NULL;
    (void)context, (void)stream, (void)size;
    pthread_mutex_lock(&lock);
    while (file != NULL && valid > 0 && cuptiActivityGetNextRecord(buffer, valid, &one) == CUPTI_SUCCESS)
        record(one);
    pthread_mutex_unlock(&lock);
    free(buffer);
}

static int in_order(const void *left, const void *right) {
    uint64_t one = ((const Event *)left)->cudaEventSyncId, other = ((const Event *)right)->cudaEventSyncId;
    return (one > other) - (one < other);
}

static void wait_row(const Wait *one) {
    static const char *const names[] = {
        [CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE] = "Event Sync",
        [CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT] = "Stream Wait Event",
        [CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE] = "Stream Sync",
        [CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE] = "Context Sync",
    };
    if (one->type <= 0 || (size_t)one->type >= sizeof names / sizeof *names)
        return;
    Event key = {.cudaEventSyncId = one->cudaEventSyncId};
    const Event *event = bsearch(&key, events.items, events.count, sizeof key, in_order);
    row("cuda_sync", names[one->type], device_of[one->contextId % 64], one->streamId, one->start, one->end,
        one->correlationId);
    fprintf(file, ",\"wait_on_stream\":%lld,\"wait_on_cuda_event_record_corr_id\":%lld",
            event ? (long long)event->streamId : -1, event ? (long long)event->correlationId : -1);
    end_row();
}

static void flush(void) { /* before a fork: what is buffered would be written twice */
    if (file != NULL)
        fflush(file);
}

static void finish(void) {
    if (getpid() != process) /* a fork's */
        return;
    cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
    pthread_mutex_lock(&lock);
    qsort(events.items, events.count, sizeof(Event), in_order);
    for (size_t i = 0; i < waits.count; i++)
        wait_row((const Wait *)waits.items + i);
    fputs("{}],\"deviceProperties\":[", file);
    devices();
    fputs("]}\n", file);
    fclose(file);
    file = NULL;
    pthread_mutex_unlock(&lock);
}

int InitializeInjection(void) {
    static const CUpti_ActivityKind kinds[] = {
        CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
        CUPTI_ACTIVITY_KIND_MEMCPY,
        CUPTI_ACTIVITY_KIND_MEMSET,
        CUPTI_ACTIVITY_KIND_DRIVER,
        CUPTI_ACTIVITY_KIND_SYNCHRONIZATION,
        CUPTI_ACTIVITY_KIND_CUDA_EVENT,
        CUPTI_ACTIVITY_KIND_RUNTIME,
    };
    char path[4096];
    const char *output = getenv("TRACE_OUTPUT");
    snprintf(path, sizeof path, "%s.%d.json", output ? output : "trace", (int)getpid());
    CUptiResult registered = cuptiActivityRegisterCallbacks(wanted, filled);
    if (registered != CUPTI_SUCCESS) {
        const char *said = NULL;
        cuptiGetResultString(registered, &said);
        fprintf(stderr, "trace: no trace of process %d: CUPTI: %s\n", (int)getpid(), said ? said : "unknown");
        return 0;
    }
    file = fopen(path, "w");
    if (file == NULL) {
        fprintf(stderr, "trace: no trace of process %d: %s: %s\n", (int)getpid(), path, strerror(errno));
        return 0;
    }
    fputs("{\"traceEvents\":[\n", file);
    process = getpid();
    cuptiGetTimestamp(&begun);
    for (unsigned i = 0; i < sizeof kinds / sizeof *kinds; i++)
        cuptiActivityEnable(kinds[i]);
    cuptiActivityEnableAllSyncRecords(1); /* also polls of work that goes on: is_kept() */
    pthread_atfork(flush, NULL, NULL);
    atexit(finish);
    return 1;
}
