/* What orders streams, for hip_entry_recipes.h. The policy shapes the kernel `inside` in overlap windows only, so what a call
 * has ordered shows in the launches behind it. */
#pragma once

static hipStream_t carrier, beside; /* of communication, and of computation beside it */
static char *area;                  /* memory of the GPU */
enum { AREA = 4096, PER_THREAD = STREAM_PER_THREAD };

static void look_on(hipStream_t on) {
    printf("beside: %d\n", hipModuleLaunchKernel(inside_f, BIG, 1, 1, THREADS, 1, 1, 0, on, parameters, NULL));
}
static void look(void) {
    look_on(beside);
}
static void communicate_on(hipStream_t on) {
    printf("communication: %d\n", hipModuleLaunchKernel(comm_f, 16, 1, 1, THREADS, 1, 1, 0, on, parameters, NULL));
}
static void make_streams(uint32_t flags, uint32_t more) {
    carrier = scene_stream(flags), beside = scene_stream(more);
    if (hipMalloc((void **)&area, AREA) || hipMemsetAsync(area, 0, AREA, stream) || hipStreamSynchronize(stream))
        printf("no memory\n");
}
/* Communication, and a launch beside it. */
static void communicate(void) {
    make_streams(1, 1);
    communicate_on(carrier);
    look();
}
static hipEvent_t make_event(uint32_t flags) {
    hipEvent_t made = NULL;
    printf("event: %d\n", hipEventCreateWithFlags(&made, flags));
    return made;
}
/* It is behind the communication. */
static hipEvent_t event_behind(void) {
    hipEvent_t made = make_event(0);
    printf("recorded: %d\n", hipEventRecord(made, carrier));
    return made;
}

/* ---- Events ---- */

#define CREATES(name, good, bad)                                                                                       \
    static void recipe_##name(type_##name *call) {                                                                     \
        hipEvent_t made = NULL;                                                                                        \
        communicate();                                                                                                 \
        printf("%d", good);                                                                                            \
        printf(" %d", bad);                                                                                            \
        printf(" %d\n", hipStreamWaitEvent(beside, made, 0));                                                          \
        look();                                                                                                        \
    }
CREATES(hipEventCreate, call(&made), call(NULL))
CREATES(hipEventCreateWithFlags, call(&made, 2), call(NULL, 77))

#define RECORDS(name, ...)                                                                                             \
    static void recipe_##name(type_##name *call) {                                                                     \
        communicate();                                                                                                 \
        hipEvent_t event = make_event(0);                                                                              \
        hipStream_t on = carrier;                                                                                      \
        printf("%d", call(__VA_ARGS__));                                                                               \
        printf(" %d\n", hipStreamWaitEvent(beside, event, 0));                                                         \
        look();                                                                                                        \
        event = NULL;                                                                                                  \
        printf("%d\n", call(__VA_ARGS__));                                                                             \
    }
RECORDS(hipEventRecord, event, on)
RECORDS(hipEventRecord_spt, event, on)
RECORDS(hipEventRecordWithFlags, event, on, 0)

/* The host sees that the communication is over. */
#define SEES_EVENT(name, ...)                                                                                          \
    static void recipe_##name(type_##name *call) {                                                                     \
        float ms = -1;                                                                                                 \
        (void)ms;                                                                                                      \
        communicate();                                                                                                 \
        hipEvent_t event = event_behind();                                                                             \
        spend();                                                                                                       \
        look();                                                                                                        \
        printf("%d\n", call(__VA_ARGS__));                                                                             \
        look();                                                                                                        \
        event = NULL;                                                                                                  \
        printf("%d\n", call(__VA_ARGS__));                                                                             \
    }
SEES_EVENT(hipEventQuery, event)
SEES_EVENT(hipEventSynchronize, event)
SEES_EVENT(hipEventElapsedTime, &ms, event, event)

/* The next event has its address, or another one: whatever it is, it was not recorded. */
static void recipe_hipEventDestroy(type_hipEventDestroy *call) {
    communicate();
    hipEvent_t event = event_behind();
    printf("%d", call(event));
    printf(" %d\n", call(NULL));
    event = make_event(0);
    printf("waits: %d\n", hipStreamWaitEvent(beside, event, 0));
    look();
}
/* Another process may record it from then on: whoever waits for it may wait for anything. */
static void recipe_hipIpcGetEventHandle(type_hipIpcGetEventHandle *call) {
    hipIpcEventHandle_t handle;
    communicate();
    hipEvent_t event = make_event(2 | 4);
    printf("%d\n", call(&handle, event));
    look();
    printf("waits: %d\n", hipStreamWaitEvent(beside, event, 0));
    look();
}
static void recipe_hipIpcOpenEventHandle(type_hipIpcOpenEventHandle *call) {
    hipIpcEventHandle_t none;
    hipEvent_t event = NULL;
    memset(&none, 0x55, sizeof none);
    communicate();
    printf("%d\n", call(&event, none));
    look();
}

/* ---- Streams ---- */

#define WAITS(name)                                                                                                    \
    static void recipe_##name(type_##name *call) {                                                                     \
        communicate();                                                                                                 \
        hipEvent_t event = event_behind();                                                                             \
        look();                                                                                                        \
        printf("%d", call(beside, event, 0));                                                                          \
        printf(" %d\n", call(beside, NULL, 0));                                                                        \
        look();                                                                                                        \
    }
WAITS(hipStreamWaitEvent)
WAITS(hipStreamWaitEvent_spt)

/* And of the default stream: by the _spt names the thread's, which is what communicates then. */
#define SEES_STREAM(name, own)                                                                                         \
    static void recipe_##name(type_##name *call) {                                                                     \
        communicate();                                                                                                 \
        spend();                                                                                                       \
        look();                                                                                                        \
        printf("%d\n", call(carrier));                                                                                 \
        look();                                                                                                        \
        communicate_on(own);                                                                                           \
        spend();                                                                                                       \
        printf("%d\n", call(NULL));                                                                                    \
        look();                                                                                                        \
    }
#define SEES_STREAM_BOTH(name) SEES_STREAM(name, NULL) SEES_STREAM(name##_spt, (hipStream_t)PER_THREAD)
SEES_STREAM_BOTH(hipStreamSynchronize)
SEES_STREAM_BOTH(hipStreamQuery)

/* Nobody knows what ends such a wait. */
#define WAITS_UNSEEN(name, ...)                                                                                        \
    static void recipe_##name(type_##name *call) {                                                                     \
        communicate();                                                                                                 \
        hipStreamBatchMemOpParams one = {.pad = {hipStreamMemOpWaitValue32, (uintptr_t)area, 0, 0}};                   \
        (void)one;                                                                                                     \
        printf("%d\n", call(__VA_ARGS__));                                                                             \
        look();                                                                                                        \
    }
WAITS_UNSEEN(hipStreamWaitValue32, beside, area, 0, 0, UINT32_MAX)
WAITS_UNSEEN(hipStreamWaitValue64, beside, area, 0, 0, UINT64_MAX)
WAITS_UNSEEN(hipStreamBatchMemOp, beside, 1, &one, 0)
WAITS_UNSEEN(hipWaitExternalSemaphoresAsync, NULL, NULL, 0, beside)

/* ---- Captures: nothing that is captured runs beside what runs now, and nothing launched in one comes with a wrong size ---- */

static hipGraph_t captured;

static void run_captured(void) {
    hipGraphExec_t exec = NULL;
    printf("instantiated: %d\n", hipGraphInstantiate(&exec, captured, NULL, NULL, 0));
    run(exec);
}
#define BEGINS_CAPTURE(name, ...)                                                                                      \
    static void recipe_##name(type_##name *call) {                                                                     \
        communicate();                                                                                                 \
        printf("%d", call(__VA_ARGS__));                                                                               \
        printf(" %d\n", call(__VA_ARGS__)); /* it captures already */                                                  \
        look();                                                                                                        \
        printf("shaped: %d\n", hipLaunchKernel(k, XY(BIG, 1), 1, XY(THREADS, 1), 1, parameters, 0, beside));           \
        printf("ended: %d\n", hipStreamEndCapture(beside, &captured));                                                 \
        look();                                                                                                        \
        run_captured();                                                                                                \
    }
BEGINS_CAPTURE(hipStreamBeginCapture, beside, 0)
BEGINS_CAPTURE(hipStreamBeginCapture_spt, beside, 0)
BEGINS_CAPTURE(hipStreamBeginCaptureToGraph, beside, graph, NULL, NULL, 0, 0)

#define ENDS_CAPTURE(name)                                                                                             \
    static void recipe_##name(type_##name *call) {                                                                     \
        communicate();                                                                                                 \
        printf("%d", call(beside, &captured)); /* it captures nothing */                                               \
        printf(" %d\n", hipStreamBeginCapture(beside, 0));                                                             \
        look();                                                                                                        \
        printf("%d\n", call(beside, &captured));                                                                       \
        look();                                                                                                        \
        run_captured();                                                                                                \
    }
ENDS_CAPTURE(hipStreamEndCapture)
ENDS_CAPTURE(hipStreamEndCapture_spt)

/* Within one capture: communication on a stream, and computation on another beside it, until what that is behind changes. */
static hipStream_t forked_capture(void) {
    hipStream_t origin = scene_stream(1);
    make_streams(1, 1);
    hipEvent_t fork = make_event(0);
    /* Known before: one that captures is asked nothing. */
    printf("over: %d %d %d\n", hipStreamQuery(origin), hipStreamQuery(carrier), hipStreamQuery(beside));
    printf("begun: %d", hipStreamBeginCapture(origin, 0));
    printf(" %d", hipEventRecord(fork, origin));
    printf(" %d", hipStreamWaitEvent(carrier, fork, 0));
    printf(" %d\n", hipStreamWaitEvent(beside, fork, 0));
    communicate_on(carrier);
    look();
    return origin;
}
static void join_capture(hipStream_t origin) {
    const hipStream_t joined[] = {carrier, beside};
    for (int i = 0; i < 2; i++) {
        hipEvent_t end = make_event(0);
        printf("joined: %d", hipEventRecord(end, joined[i]));
        printf(" %d\n", hipStreamWaitEvent(origin, end, 0));
    }
    printf("ended: %d\n", hipStreamEndCapture(origin, &captured));
}
static void recipe_hipStreamUpdateCaptureDependencies(type_hipStreamUpdateCaptureDependencies *call) {
    hipStream_t origin = forked_capture();
    printf("%d\n", call(beside, NULL, 0, 0));
    look();
    join_capture(origin);
}

/* ---- Devices ---- */

#define SEES_ALL(name)                                                                                                 \
    static void recipe_##name(type_##name *call) {                                                                     \
        communicate();                                                                                                 \
        printf("%d\n", call());                                                                                        \
        look();                                                                                                        \
    }
SEES_ALL(hipDeviceSynchronize)
SEES_ALL(hipCtxSynchronize)

/* ---- Nodes of graphs ---- */

/* Who waits for an event that a graph records may wait for anything. */
static void wait_for(hipEvent_t event) {
    printf("waits: %d\n", hipStreamWaitEvent(beside, event, 0));
    look();
}
static void recipe_hipGraphAddEventRecordNode(type_hipGraphAddEventRecordNode *call) {
    hipGraphNode_t node = NULL;
    communicate();
    hipEvent_t event = make_event(0);
    printf("%d", call(&node, graph, NULL, 0, event));
    printf(" %d\n", call(&node, graph, NULL, 0, NULL));
    wait_for(event);
}
static hipGraphNode_t record_node(void) {
    hipGraphNode_t node = NULL;
    printf("node: %d\n", hipGraphAddEventRecordNode(&node, graph, NULL, 0, make_event(0)));
    return node;
}
static void recipe_hipGraphEventRecordNodeSetEvent(type_hipGraphEventRecordNodeSetEvent *call) {
    hipGraphNode_t node = record_node();
    communicate();
    hipEvent_t event = make_event(0);
    printf("%d\n", call(node, event));
    wait_for(event);
}
static void recipe_hipGraphExecEventRecordNodeSetEvent(type_hipGraphExecEventRecordNodeSetEvent *call) {
    hipGraphNode_t node = record_node();
    hipGraphExec_t exec = instantiate();
    communicate();
    hipEvent_t event = make_event(0);
    printf("%d\n", call(exec, node, event));
    wait_for(event);
}

/* A graph that waits, where it is launched. */
static void run_beside(void) {
    hipGraphExec_t exec = instantiate();
    printf("run: %d\n", hipGraphLaunch(exec, beside));
    look();
}
static void recipe_hipGraphAddEventWaitNode(type_hipGraphAddEventWaitNode *call) {
    hipGraphNode_t node = NULL;
    communicate();
    printf("%d", call(&node, graph, NULL, 0, event_behind()));
    printf(" %d\n", call(&node, graph, NULL, 0, NULL));
    run_beside();
}
static void recipe_hipGraphAddExternalSemaphoresWaitNode(type_hipGraphAddExternalSemaphoresWaitNode *call) {
    hipGraphNode_t node = NULL;
    communicate();
    printf("%d\n", call(&node, graph, NULL, 0, NULL));
    run_beside();
}
static void recipe_hipGraphAddBatchMemOpNode(type_hipGraphAddBatchMemOpNode *call) {
    hipGraphNode_t node = NULL;
    communicate();
    printf("%d\n", call(&node, graph, NULL, 0, NULL));
    run_beside();
}

/* What is captured may be behind anything from then on. */
static void recipe_hipGraphAddDependencies(type_hipGraphAddDependencies *call) {
    hipGraphNode_t from = add(leave, 100), to = add(leave, 100);
    hipStream_t origin = forked_capture();
    printf("%d", call(graph, &from, &to, 1));
    printf(" %d\n", call(graph, NULL, NULL, 1));
    look();
    join_capture(origin);
}
