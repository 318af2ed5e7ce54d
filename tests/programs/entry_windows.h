/* What orders streams, for entry_recipes.h. The policy shapes the kernel `inside` in overlap windows only, so what a call
 * has ordered shows in the launches behind it. */
#pragma once

static CUstream carrier, beside; /* of communication, and of computation beside it; made behind our back */
static uint64_t area;            /* memory of the GPU */
enum { AREA = 4096, MAPPED = 64, GLOBAL = 0, WAIT_GEQ = 0 };

static void look_on(CUstream on) {
    printf("beside: %d\n", cuLaunchKernel(inside, BIG, 1, 1, THREADS, 1, 1, 0, on, parameters, NULL));
}
static void look(void) {
    look_on(beside);
}
static void communicate_on(CUstream on) {
    printf("communication: %d\n", cuLaunchKernel(comm, 16, 1, 1, THREADS, 1, 1, 0, on, parameters, NULL));
}
static void make_streams(uint32_t flags, uint32_t more) {
    printf("made: %d %d %d\n", RAW(cuStreamCreate)(&carrier, flags), RAW(cuStreamCreate)(&beside, more),
           cuMemAlloc_v2(&area, AREA));
    RAW(cuMemsetD8_v2)(area, 0, AREA);
}
/* Communication, and a launch beside it. */
static void communicate(void) {
    make_streams(1, 1);
    communicate_on(carrier);
    look();
}
static CUevent make_event(uint32_t flags) {
    CUevent made = NULL;
    printf("event: %d\n", cuEventCreate(&made, flags));
    return made;
}
/* It is behind the communication. */
static CUevent event_behind(uint32_t flags) {
    CUevent made = make_event(flags);
    printf("recorded: %d\n", cuEventRecord(made, carrier));
    return made;
}

/* ---- Events ---- */

static void recipe_cuEventCreate(type_cuEventCreate *call) {
    CUevent made = NULL;
    communicate();
    printf("%d", call(&made, 0));
    printf(" %d %d", call(NULL, 0), call(&made, 77));
    printf(" %d\n", cuStreamWaitEvent(beside, made, 0));
    look();
}

#define RECORD(name, ...)                                                                                              \
    static void recipe_##name(type_##name *call) {                                                                     \
        communicate();                                                                                                 \
        CUevent event = make_event(0);                                                                                 \
        CUstream on = carrier;                                                                                         \
        printf("%d", call(__VA_ARGS__));                                                                               \
        printf(" %d\n", cuStreamWaitEvent(beside, event, 0));                                                          \
        look();                                                                                                        \
        event = NULL;                                                                                                  \
        printf("%d\n", call(__VA_ARGS__));                                                                             \
    }
RECORD(cuEventRecord, event, on)
RECORD(cuEventRecord_ptsz, event, on)
RECORD(cuEventRecordWithFlags, event, on, 0)
RECORD(cuEventRecordWithFlags_ptsz, event, on, 0)

/* The host sees that the communication is over. */
#define SEES_EVENT(name, ...)                                                                                          \
    static void recipe_##name(type_##name *call) {                                                                     \
        float ms = -1;                                                                                                 \
        (void)ms;                                                                                                      \
        communicate();                                                                                                 \
        CUevent event = event_behind(0);                                                                               \
        printf("over: %d\n", RAW(cuStreamSynchronize)(carrier));                                                       \
        look();                                                                                                        \
        printf("%d\n", call(__VA_ARGS__));                                                                             \
        look();                                                                                                        \
        event = NULL;                                                                                                  \
        printf("%d\n", call(__VA_ARGS__));                                                                             \
    }
SEES_EVENT(cuEventQuery, event)
SEES_EVENT(cuEventSynchronize, event)
SEES_EVENT(cuEventElapsedTime, &ms, event, event)
SEES_EVENT(cuEventElapsedTime_v2, &ms, event, event)

/* The next event has its address, or another one: whatever it is, it was not recorded. */
#define EVENT_END(name)                                                                                                \
    static void recipe_##name(type_##name *call) {                                                                     \
        communicate();                                                                                                 \
        CUevent event = event_behind(0);                                                                               \
        printf("%d", call(event));                                                                                     \
        printf(" %d\n", call(NULL));                                                                                   \
        RAW(cuEventCreate)(&event, 0);                                                                                 \
        printf("waits: %d\n", cuStreamWaitEvent(beside, event, 0));                                                    \
        look();                                                                                                        \
    }
EVENT_END(cuEventDestroy)
EVENT_END(cuEventDestroy_v2)

/* Another process may record it from then on: whoever waits for it may wait for anything. */
static void recipe_cuIpcGetEventHandle(type_cuIpcGetEventHandle *call) {
    CUipcEventHandle handle;
    communicate();
    CUevent event = make_event(2 | 4);
    printf("%d", call(&handle, event));
    printf(" %d\n", call(&handle, NULL));
    look();
    printf("waits: %d\n", cuStreamWaitEvent(beside, event, 0));
    look();
}
/* One's own is refused; an event of another process is not to be had here. */
static void recipe_cuIpcOpenEventHandle(type_cuIpcOpenEventHandle *call) {
    CUipcEventHandle handle, none;
    CUevent event = make_event(2 | 4), opened = NULL;
    memset(&handle, 0, sizeof handle);
    memset(&none, 0x55, sizeof none);
    communicate();
    printf("given: %d\n", cuIpcGetEventHandle(&handle, event));
    printf("%d", call(&opened, handle));
    printf(" %d\n", call(&event, none));
    if (opened)
        printf("waits: %d\n", cuStreamWaitEvent(beside, opened, 0));
    look();
}

/* ---- Streams ---- */

#define WAITS(name)                                                                                                    \
    static void recipe_##name(type_##name *call) {                                                                     \
        communicate();                                                                                                 \
        CUevent event = event_behind(0);                                                                               \
        look();                                                                                                        \
        printf("%d", call(beside, event, 0));                                                                          \
        printf(" %d\n", call(beside, NULL, 0));                                                                        \
        look();                                                                                                        \
    }
WAITS(cuStreamWaitEvent)
WAITS(cuStreamWaitEvent_ptsz)

#define SEES_STREAM(name)                                                                                              \
    static void recipe_##name(type_##name *call) {                                                                     \
        communicate();                                                                                                 \
        printf("over: %d\n", RAW(cuStreamSynchronize)(carrier));                                                       \
        look();                                                                                                        \
        printf("%d\n", call(carrier));                                                                                 \
        look();                                                                                                        \
        communicate_on((CUstream)CU_STREAM_PER_THREAD);                                                                \
        RAW(cuStreamSynchronize)((CUstream)CU_STREAM_PER_THREAD);                                                      \
        printf("%d\n", call(NULL)); /* legacy or per thread, it is over */                                             \
        look();                                                                                                        \
    }
SEES_STREAM(cuStreamSynchronize)
SEES_STREAM(cuStreamSynchronize_ptsz)
SEES_STREAM(cuStreamQuery)
SEES_STREAM(cuStreamQuery_ptsz)

/* Nobody knows what ends such a wait. */
#define WAITS_UNSEEN(name, ...)                                                                                        \
    static void recipe_##name(type_##name *call) {                                                                     \
        communicate();                                                                                                 \
        CUstreamBatchMemOpParams one = {.pad = {CU_STREAM_MEM_OP_WAIT_VALUE_32, area, 0, WAIT_GEQ}};                   \
        (void)one;                                                                                                     \
        printf("%d\n", call(__VA_ARGS__));                                                                             \
        look();                                                                                                        \
    }
#define BOTH_WAIT_UNSEEN(name, ...) WAITS_UNSEEN(name, __VA_ARGS__) WAITS_UNSEEN(name##_ptsz, __VA_ARGS__)
BOTH_WAIT_UNSEEN(cuStreamWaitValue32, beside, area, 0, WAIT_GEQ)
BOTH_WAIT_UNSEEN(cuStreamWaitValue32_v2, beside, area, 0, WAIT_GEQ)
BOTH_WAIT_UNSEEN(cuStreamWaitValue64, beside, area, 0, WAIT_GEQ)
BOTH_WAIT_UNSEEN(cuStreamWaitValue64_v2, beside, area, 0, WAIT_GEQ)
BOTH_WAIT_UNSEEN(cuStreamBatchMemOp, beside, 1, &one, 0)
BOTH_WAIT_UNSEEN(cuStreamBatchMemOp_v2, beside, 1, &one, 0)
BOTH_WAIT_UNSEEN(cuWaitExternalSemaphoresAsync, NULL, NULL, 0, beside)

/* ---- Captures: nothing that is captured runs beside what runs now ---- */

static CUgraph captured;

static void end_capture(void) {
    printf("ended: %d\n", cuStreamEndCapture(beside, &captured));
}
#define BEGINS_CAPTURE(name, form, ...)                                                                                \
    static void recipe_##name(type_##name *call) {                                                                     \
        form *const begin = (form *)call;                                                                              \
        communicate();                                                                                                 \
        printf("%d", begin(__VA_ARGS__));                                                                              \
        printf(" %d\n", begin(__VA_ARGS__)); /* it captures already */                                                 \
        look();                                                                                                        \
        end_capture();                                                                                                 \
        look();                                                                                                        \
    }
#define BOTH_BEGIN_CAPTURE(name, form, ...)                                                                            \
    BEGINS_CAPTURE(name, form, __VA_ARGS__) BEGINS_CAPTURE(name##_ptsz, form, __VA_ARGS__)
typedef CUresult begin_global(CUstream stream); /* 10.0; the second form has a mode */
BOTH_BEGIN_CAPTURE(cuStreamBeginCapture, begin_global, beside)
BOTH_BEGIN_CAPTURE(cuStreamBeginCapture_v2, type_cuStreamBeginCapture_v2, beside, GLOBAL)
BOTH_BEGIN_CAPTURE(cuStreamBeginCaptureToGraph, type_cuStreamBeginCaptureToGraph, beside, graph, NULL, NULL, 0, GLOBAL)

#define ENDS_CAPTURE(name)                                                                                             \
    static void recipe_##name(type_##name *call) {                                                                     \
        communicate();                                                                                                 \
        printf("%d", call(beside, &captured)); /* it captures nothing */                                               \
        printf(" %d\n", cuStreamBeginCapture_v2(beside, GLOBAL));                                                      \
        look();                                                                                                        \
        printf("%d\n", call(beside, &captured));                                                                       \
        look();                                                                                                        \
    }
ENDS_CAPTURE(cuStreamEndCapture)
ENDS_CAPTURE(cuStreamEndCapture_ptsz)

/* Within one capture: communication on a stream, and computation on another beside it, until what that is behind changes. */
static CUstream forked_capture(void) {
    CUstream origin = NULL;
    make_streams(1, 1);
    CUevent fork = make_event(0);
    RAW(cuStreamCreate)(&origin, 1);
    /* Known before: one that captures is asked nothing. */
    printf("over: %d %d %d\n", cuStreamQuery(origin), cuStreamQuery(carrier), cuStreamQuery(beside));
    printf("begun: %d", cuStreamBeginCapture_v2(origin, GLOBAL));
    printf(" %d", cuEventRecord(fork, origin));
    printf(" %d", cuStreamWaitEvent(carrier, fork, 0));
    printf(" %d\n", cuStreamWaitEvent(beside, fork, 0));
    communicate_on(carrier);
    look();
    return origin;
}
static void join_capture(CUstream origin) {
    const CUstream joined[] = {carrier, beside};
    for (int i = 0; i < 2; i++) {
        CUevent end = make_event(0);
        printf("joined: %d", cuEventRecord(end, joined[i]));
        printf(" %d\n", cuStreamWaitEvent(origin, end, 0));
    }
    printf("ended: %d\n", cuStreamEndCapture(origin, &captured));
}
#define UPDATES(name, ...)                                                                                             \
    static void recipe_##name(type_##name *call) {                                                                     \
        CUstream origin = forked_capture();                                                                            \
        printf("%d\n", call(__VA_ARGS__));                                                                             \
        look();                                                                                                        \
        join_capture(origin);                                                                                          \
    }
UPDATES(cuStreamUpdateCaptureDependencies, beside, NULL, 0, 0)
UPDATES(cuStreamUpdateCaptureDependencies_ptsz, beside, NULL, 0, 0)
UPDATES(cuStreamUpdateCaptureDependencies_v2, beside, NULL, NULL, 0, 0)
UPDATES(cuStreamUpdateCaptureDependencies_v2_ptsz, beside, NULL, NULL, 0, 0)

/* ---- Contexts ---- */

static void recipe_cuCtxSynchronize(type_cuCtxSynchronize *call) {
    communicate();
    printf("%d\n", call());
    look();
}
static void recipe_cuCtxSynchronize_v2(type_cuCtxSynchronize_v2 *call) {
    communicate();
    printf("%d\n", call(primary));
    look();
}
#define RECORDS_ALL(name, of)                                                                                          \
    static void recipe_##name(type_##name *call) {                                                                     \
        communicate();                                                                                                 \
        CUevent event = make_event(0);                                                                                 \
        CUresult recorded = call(of, event);                                                                           \
        printf("%d\n", recorded);                                                                                      \
        if (recorded == CUDA_SUCCESS)                                                                                  \
            printf("waits: %d\n", cuStreamWaitEvent(beside, event, 0));                                                \
        look();                                                                                                        \
    }
#define ALL_WAIT(name, of)                                                                                             \
    static void recipe_##name(type_##name *call) {                                                                     \
        communicate();                                                                                                 \
        CUevent event = event_behind(0);                                                                               \
        printf("%d\n", call(of, event));                                                                               \
        look();                                                                                                        \
    }
RECORDS_ALL(cuCtxRecordEvent, primary)
RECORDS_ALL(cuGreenCtxRecordEvent, split())
ALL_WAIT(cuCtxWaitEvent, primary)
ALL_WAIT(cuGreenCtxWaitEvent, split())

/* ---- Nodes of graphs ---- */

/* Who waits for an event that a graph records may wait for anything. */
static void wait_for(CUevent event) {
    printf("waits: %d\n", cuStreamWaitEvent(beside, event, 0));
    look();
}
static void recipe_cuGraphAddEventRecordNode(type_cuGraphAddEventRecordNode *call) {
    CUgraphNode node = NULL;
    communicate();
    CUevent event = make_event(0);
    printf("%d", call(&node, graph, NULL, 0, event));
    printf(" %d\n", call(&node, graph, NULL, 0, NULL));
    wait_for(event);
}
static CUgraphNode record_node(void) {
    CUgraphNode node = NULL;
    printf("node: %d\n", cuGraphAddEventRecordNode(&node, graph, NULL, 0, make_event(0)));
    return node;
}
static void recipe_cuGraphEventRecordNodeSetEvent(type_cuGraphEventRecordNodeSetEvent *call) {
    CUgraphNode node = record_node();
    communicate();
    CUevent event = make_event(0);
    printf("%d\n", call(node, event));
    wait_for(event);
}
static void recipe_cuGraphExecEventRecordNodeSetEvent(type_cuGraphExecEventRecordNodeSetEvent *call) {
    CUgraphNode node = record_node();
    CUgraphExec exec = instantiate();
    communicate();
    CUevent event = make_event(0);
    printf("%d\n", call(exec, node, event));
    wait_for(event);
}

/* A graph that waits, where it is launched. */
static void run_beside(void) {
    CUgraphExec exec = instantiate();
    printf("run: %d\n", cuGraphLaunch(exec, beside));
    look();
}
static void recipe_cuGraphAddEventWaitNode(type_cuGraphAddEventWaitNode *call) {
    CUgraphNode node = NULL;
    communicate();
    printf("%d", call(&node, graph, NULL, 0, event_behind(0)));
    printf(" %d\n", call(&node, graph, NULL, 0, NULL));
    run_beside();
}
static void recipe_cuGraphAddExternalSemaphoresWaitNode(type_cuGraphAddExternalSemaphoresWaitNode *call) {
    const struct {
        const void *semaphores, *params;
        uint32_t count;
    } none = {NULL, NULL, 0};
    CUgraphNode node = NULL;
    communicate();
    printf("%d\n", call(&node, graph, NULL, 0, &none));
    run_beside();
}
static void recipe_cuGraphAddBatchMemOpNode(type_cuGraphAddBatchMemOpNode *call) {
    communicate();
    CUstreamBatchMemOpParams one = {.pad = {CU_STREAM_MEM_OP_WAIT_VALUE_32, area, 0, WAIT_GEQ}};
    const struct {
        CUcontext context;
        uint32_t count;
        CUstreamBatchMemOpParams *operations;
        uint32_t flags;
    } batch = {primary, 1, &one, 0};
    CUgraphNode node = NULL;
    printf("%d", call(&node, graph, NULL, 0, &batch));
    printf(" %d\n", call(&node, graph, NULL, 0, NULL));
    run_beside();
}

/* What is captured may be behind anything from then on. */
static void recipe_cuGraphAddDependencies(type_cuGraphAddDependencies *call) {
    CUgraphNode from = add(leave, 100), to = add(leave, 100);
    CUstream origin = forked_capture();
    printf("%d", call(graph, &from, &to, 1));
    printf(" %d\n", call(graph, NULL, NULL, 1));
    look();
    join_capture(origin);
}
