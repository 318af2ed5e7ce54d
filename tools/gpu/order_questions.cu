// Questions to a real driver about order: what makes work wait for other work, what host calls wait, captures, and costs.
// One JSON line an answer.
//
//   nvcc -O2 -std=c++17 -arch=sm_90 order_questions.cu -o order_questions -lcuda
//   nvcc -cubin -arch=sm_90 question_kernels.cu -o question_kernels.cubin
//   ./order_questions QUESTION question_kernels.cubin [CASE]
//
// Each question is asked in a process of its own. CASE: for `reset` alone, what is done after the reset.
#include "questions.h"

#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <set>
#include <thread>

typedef unsigned long long Time;

static CUmodule module;
static CUfunction mark_time, touch, empty;
static volatile Time *times; // pinned: two a mark
static CUstream blocking[3], separate[3];
static CUevent event, done, never;

static Time *slot(int index) {
    return (Time *)times + 8 * index;
}

static CUresult mark(CUstream stream, double microseconds, int index) {
    Time nanoseconds = (Time)(microseconds * 1000), *out = slot(index);
    void *parameters[] = {&nanoseconds, &out};
    memset(out, 0, 64);
    return cuLaunchKernel(mark_time, 1, 1, 1, 1, 1, 1, 0, stream, parameters, nullptr);
}

static double host_us() {
    auto now = std::chrono::steady_clock::now().time_since_epoch();
    return std::chrono::duration<double, std::micro>(now).count();
}

static void prepare() {
    module = load();
    mark_time = function_of(module, "mark_time");
    touch = function_of(module, "touch");
    empty = function_of(module, "empty");
    MUST(cuMemHostAlloc((void **)&times, 4096, CU_MEMHOSTALLOC_PORTABLE));
    for (int i = 0; i < 3; i++) {
        MUST(cuStreamCreate(&blocking[i], CU_STREAM_DEFAULT));
        MUST(cuStreamCreate(&separate[i], CU_STREAM_NON_BLOCKING));
    }
    for (CUevent *made : {&event, &done, &never})
        MUST(cuEventCreate(made, CU_EVENT_DISABLE_TIMING));
    MUST(cuEventRecord(done, separate[0]));
    MUST(mark(separate[0], 1, 0));
    MUST(launch(touch, 1, 32, 128, separate[0]));
    MUST(cuLaunchKernel(empty, 1, 1, 1, 1, 1, 1, 0, separate[0], nullptr, nullptr));
    MUST(cuCtxSynchronize());
}

typedef std::function<CUresult()> Call;

static CUgraphExec graph_of_a_mark(double microseconds, int index, CUevent recorded_after = nullptr) {
    Time nanoseconds = (Time)(microseconds * 1000), *out = slot(index);
    void *parameters[] = {&nanoseconds, &out};
    CUDA_KERNEL_NODE_PARAMS params = {};
    params.func = mark_time;
    params.gridDimX = params.gridDimY = params.gridDimZ = params.blockDimX = params.blockDimY = params.blockDimZ = 1;
    params.kernelParams = parameters;
    CUgraph graph;
    CUgraphNode node, record;
    CUgraphExec executable;
    MUST(cuGraphCreate(&graph, 0));
    MUST(cuGraphAddKernelNode(&node, graph, nullptr, 0, &params));
    if (recorded_after)
        MUST(cuGraphAddEventRecordNode(&record, graph, &node, 1, recorded_after));
    MUST(cuGraphInstantiate(&executable, graph, 0));
    return executable;
}

/* ---- barriers: A (2 ms) is launched, a call is made, B is launched: does B wait for A? ---- */

static void order(const std::string &what, Call first, Call between, Call second) {
    int waits = 0, told = 0;
    double host = 0, lead = 1e30;
    CUresult result = CUDA_SUCCESS;
    for (int i = 0; i < 5; i++) {
        memset(slot(0), 0, 128);
        MUST(first());
        double start = host_us();
        result = between();
        host = std::max(host, host_us() - start);
        MUST(second());
        MUST(cuCtxSynchronize());
        waits += slot(1)[0] >= slot(0)[1];
        told++;
        lead = std::min(lead, ((double)slot(1)[0] - (double)slot(0)[1]) / 1000);
    }
    answer(what, result,
           number("repetitions", told) + "," + number("second_waited", waits) + "," +
               number("second_start_less_first_end_us", (long long)lead) + "," + number("call_us", (long long)host));
}

static void ask_barriers() {
    CUdeviceptr a, b;
    void *pinned;
    static char pageable[1 << 20];
    CUgraph nothing;
    CUgraphExec of_nothing, of_a_mark = graph_of_a_mark(1, 3), long_graph = graph_of_a_mark(2000, 0);
    MUST(cuMemAlloc(&a, 1 << 20));
    MUST(cuMemAlloc(&b, 1 << 20));
    MUST(cuMemHostAlloc(&pinned, 1 << 20, 0));
    MUST(cuGraphCreate(&nothing, 0));
    MUST(cuGraphInstantiate(&of_nothing, nothing, 0));
    CUdeviceptr allocated, pieces[5];
    int next = 0;
    for (CUdeviceptr &piece : pieces)
        MUST(cuMemAllocAsync(&piece, 4096, separate[0]));
    MUST(cuCtxSynchronize());
    CUevent timing;
    MUST(cuEventCreate(&timing, CU_EVENT_DEFAULT));
    auto on = [](CUstream stream, int index) { return [=] { return mark(stream, index ? 1 : 2000, index); }; };
    struct Between {
        const char *name;
        Call call;
    };
    const CUstream null = nullptr;
    const Between calls[] = {
        {"nothing", [] { return CUDA_SUCCESS; }},
        {"launch", [&] { return mark(null, 1, 2); }},
        {"cuEventRecord", [&] { return cuEventRecord(event, null); }},
        {"cuEventRecord of an event with timing", [&] { return cuEventRecord(timing, null); }},
        {"cuStreamWaitEvent, event that is done", [&] { return cuStreamWaitEvent(null, done, 0); }},
        {"cuStreamWaitEvent, event never recorded", [&] { return cuStreamWaitEvent(null, never, 0); }},
        {"cuStreamWaitEvent, event of the first stream",
         [&] {
             CUresult result = cuEventRecord(event, blocking[0]);
             return result ? result : cuStreamWaitEvent(null, event, 0);
         }},
        {"cuMemcpyAsync, device to device", [&] { return cuMemcpyAsync(a, b, 1 << 16, null); }},
        {"cuMemcpyAsync, 0 bytes", [&] { return cuMemcpyAsync(a, b, 0, null); }},
        {"cuMemcpyHtoDAsync, pinned", [&] { return cuMemcpyHtoDAsync(a, pinned, 1 << 16, null); }},
        {"cuMemcpyDtoHAsync, pinned", [&] { return cuMemcpyDtoHAsync(pinned, a, 1 << 16, null); }},
        {"cuMemcpyHtoDAsync, pageable, 1 KiB", [&] { return cuMemcpyHtoDAsync(a, pageable, 1 << 10, null); }},
        {"cuMemcpyHtoDAsync, pageable, 1 MiB", [&] { return cuMemcpyHtoDAsync(a, pageable, 1 << 20, null); }},
        {"cuMemcpyDtoHAsync, pageable", [&] { return cuMemcpyDtoHAsync(pageable, a, 1 << 16, null); }},
        {"cuMemsetD8Async", [&] { return cuMemsetD8Async(a, 1, 1 << 16, null); }},
        {"cuLaunchHostFunc", [&] { return cuLaunchHostFunc(null, [](void *) {}, nullptr); }},
        {"cuStreamWriteValue32", [&] { return cuStreamWriteValue32(null, a, 1, 0); }},
        {"cuStreamWaitValue32, true", [&] { return cuStreamWaitValue32(null, b, 0, CU_STREAM_WAIT_VALUE_GEQ); }},
        {"cuGraphLaunch", [&] { return cuGraphLaunch(of_a_mark, null); }},
        {"cuGraphLaunch, no nodes", [&] { return cuGraphLaunch(of_nothing, null); }},
        {"cuMemAllocAsync", [&] { return cuMemAllocAsync(&allocated, 4096, null); }},
        {"cuMemFreeAsync", [&] { return cuMemFreeAsync(pieces[next++], null); }},
        {"cuStreamQuery", [&] { return cuStreamQuery(null); }},
        {"cuStreamGetPriority",
         [&] {
             int priority;
             return cuStreamGetPriority(null, &priority);
         }},
        {"cuMemcpyDtoD", [&] { return cuMemcpyDtoD(a, b, 1 << 16); }},
        {"cuMemcpyHtoD, pageable, 1 KiB", [&] { return cuMemcpyHtoD(a, pageable, 1 << 10); }},
        {"cuMemcpyHtoD, pinned", [&] { return cuMemcpyHtoD(a, pinned, 1 << 16); }},
        {"cuMemcpyDtoH, pinned", [&] { return cuMemcpyDtoH(pinned, a, 1 << 16); }},
        {"cuMemsetD8", [&] { return cuMemsetD8(a, 1, 1 << 16); }},
        {"launch on the per-thread stream", [&] { return mark(CU_STREAM_PER_THREAD, 1, 2); }},
        {"cuEventRecord on the per-thread stream", [&] { return cuEventRecord(event, CU_STREAM_PER_THREAD); }},
        {"launch on a stream that does not block", [&] { return mark(separate[2], 1, 2); }},
    };
    for (const Between &between : calls) {
        std::string name = between.name;
        order("blocking; legacy: " + name + "; another blocking", on(blocking[0], 0), between.call, on(blocking[1], 1));
    }
    for (const Between &between : calls) {
        std::string name = between.name;
        if (name == "nothing" || name == "launch" || name == "cuEventRecord" || name == "cuMemcpyDtoD" ||
            name == "cuMemcpyHtoD, pinned" || name == "cuMemcpyDtoH, pinned" || name == "cuMemsetD8")
            order("non-blocking; legacy: " + name + "; another non-blocking", on(separate[0], 0), between.call,
                  on(separate[1], 1));
    }
    struct Kind {
        const char *name;
        CUstream stream, other;
    };
    const Kind kinds[] = {{"blocking", blocking[0], blocking[1]},
                          {"non-blocking", separate[0], separate[1]},
                          {"legacy", null, null},
                          {"per thread", CU_STREAM_PER_THREAD, CU_STREAM_PER_THREAD}};
    auto none = [] { return CUDA_SUCCESS; };
    for (const Kind &first : kinds)
        for (const Kind &second : kinds)
            order(std::string(first.name) + "; then " + second.name, on(first.stream, 0), none, on(second.other, 1));
    order("graph on blocking; then legacy", [&] { return cuGraphLaunch(long_graph, blocking[0]); }, none, on(null, 1));
    order("graph on legacy; then blocking", [&] { return cuGraphLaunch(long_graph, null); }, none, on(blocking[0], 1));
    order(
        "graph on non-blocking; then legacy", [&] { return cuGraphLaunch(long_graph, separate[0]); }, none,
        on(null, 1));
    auto record_and_wait = [](CUstream recorded, CUstream waiting) {
        return [=] {
            CUresult result = cuEventRecord(event, recorded);
            return result ? result : cuStreamWaitEvent(waiting, event, 0);
        };
    };
    order("blocking; event of legacy; non-blocking waits for it", on(blocking[0], 0),
          record_and_wait(null, separate[1]), on(separate[1], 1));
    order("non-blocking; event of legacy; another non-blocking waits for it", on(separate[0], 0),
          record_and_wait(null, separate[1]), on(separate[1], 1));
    order("legacy; event of a blocking stream; non-blocking waits for it", on(null, 0),
          record_and_wait(blocking[0], separate[1]), on(separate[1], 1));
    for (const Kind &second : kinds)
        order(std::string("non-blocking; legacy waits for its event; then ") + second.name, on(separate[0], 0),
              record_and_wait(separate[0], null), on(second.other, 1));
    order(
        "non-blocking; legacy waits for its event; launch on legacy; then blocking", on(separate[0], 0),
        [&] {
            CUresult result = record_and_wait(separate[0], null)();
            return result ? result : mark(null, 1, 2);
        },
        on(blocking[1], 1));
    order("non-blocking; a blocking stream waits for its event; then legacy", on(separate[0], 0),
          record_and_wait(separate[0], blocking[0]), on(null, 1));
    order(
        "non-blocking; a blocking stream waits for its event; event of legacy; another non-blocking waits for it",
        on(separate[0], 0),
        [&] {
            CUresult result = record_and_wait(separate[0], blocking[0])();
            return result ? result : record_and_wait(null, separate[1])();
        },
        on(separate[1], 1));
    order(
        "non-blocking; legacy waits for its event; event of a blocking stream; another non-blocking waits for it",
        on(separate[0], 0),
        [&] {
            CUresult result = record_and_wait(separate[0], null)();
            return result ? result : record_and_wait(blocking[0], separate[1])();
        },
        on(separate[1], 1));
    order(
        "event recorded again while waited for: B waits for the first record", on(separate[0], 0),
        [&] {
            CUresult result = record_and_wait(separate[0], separate[1])();
            return result ? result : cuEventRecord(event, separate[2]);
        },
        on(separate[1], 1));
    order(
        "event destroyed while waited for", on(separate[0], 0),
        [&] {
            CUevent made;
            CUresult result = cuEventCreate(&made, CU_EVENT_DISABLE_TIMING);
            result = result ? result : cuEventRecord(made, separate[0]);
            result = result ? result : cuStreamWaitEvent(separate[1], made, 0);
            return result ? result : cuEventDestroy(made);
        },
        on(separate[1], 1));
    order(
        "stream destroyed, its event waited for", on(separate[0], 0),
        [&] {
            CUstream made;
            CUresult result = cuStreamCreate(&made, CU_STREAM_NON_BLOCKING);
            result = result ? result : record_and_wait(separate[0], made)();
            result = result ? result : record_and_wait(made, separate[1])();
            return result ? result : cuStreamDestroy(made);
        },
        on(separate[1], 1));
    MUST(cuEventRecord(event, separate[2]));
    order(
        "wait for an event, then it is recorded: B does not wait for what is recorded later",
        [&] { return cuStreamWaitEvent(separate[1], event, 0); },
        [&] {
            CUresult result = mark(separate[0], 2000, 0);
            return result ? result : cuEventRecord(event, separate[0]);
        },
        on(separate[1], 1));
}

/* ---- host: which calls wait for a kernel (5 ms) that runs on another stream? ---- */

static void ask_host() {
    struct Call2 {
        const char *name;
        Call prepare, call;
    };
    CUdeviceptr memory, kept, from_pool;
    void *pinned, *kept_pinned, *registered = aligned_alloc(4096, 1 << 20);
    static char pageable[1 << 16];
    CUmodule loaded;
    CUlibrary library;
    CUstream stream;
    CUevent made;
    CUgraph graph;
    CUgraphExec executable;
    CUfunction function;
    MUST(cuMemAlloc(&kept, 1 << 20));
    MUST(cuMemHostAlloc(&kept_pinned, 1 << 20, 0));
    auto nothing = [] { return CUDA_SUCCESS; };
    const Call2 calls[] = {
        {"nothing", nothing, nothing},
        {"cuMemAlloc", nothing, [&] { return cuMemAlloc(&memory, 8 << 20); }},
        {"cuMemFree", [&] { return cuMemAlloc(&memory, 8 << 20); }, [&] { return cuMemFree(memory); }},
        {"cuMemHostAlloc", nothing, [&] { return cuMemHostAlloc(&pinned, 1 << 20, 0); }},
        {"cuMemFreeHost", [&] { return cuMemHostAlloc(&pinned, 1 << 20, 0); }, [&] { return cuMemFreeHost(pinned); }},
        {"cuMemHostRegister", [&] { return cuMemHostUnregister(registered), CUDA_SUCCESS; },
         [&] { return cuMemHostRegister(registered, 1 << 20, 0); }},
        {"cuMemHostUnregister", [&] { return cuMemHostRegister(registered, 1 << 20, 0), CUDA_SUCCESS; },
         [&] { return cuMemHostUnregister(registered); }},
        {"cuModuleLoadData", nothing, [&] { return cuModuleLoadData(&loaded, image.data()); }},
        {"cuModuleGetFunction and cuFuncGetAttribute", [&] { return cuModuleLoadData(&loaded, image.data()); },
         [&] {
             int value;
             CUresult result = cuModuleGetFunction(&function, loaded, "touch");
             return result ? result : cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, function);
         }},
        {"first launch of a function",
         [&] {
             CUresult result = cuModuleLoadData(&loaded, image.data());
             return result ? result : cuModuleGetFunction(&function, loaded, "touch");
         },
         [&] { return launch(function, 1, 32, 128, separate[1]); }},
        {"cuModuleUnload", [&] { return cuModuleLoadData(&loaded, image.data()); },
         [&] { return cuModuleUnload(loaded); }},
        {"cuModuleUnload, functions were launched",
         [&] {
             CUresult result = cuModuleLoadData(&loaded, image.data());
             result = result ? result : cuModuleGetFunction(&function, loaded, "touch");
             result = result ? result : launch(function, 1, 32, 128, separate[1]);
             return result ? result : cuStreamSynchronize(separate[1]);
         },
         [&] { return cuModuleUnload(loaded); }},
        {"cuLibraryLoadData", nothing,
         [&] { return cuLibraryLoadData(&library, image.data(), nullptr, nullptr, 0, nullptr, nullptr, 0); }},
        {"cuLibraryUnload",
         [&] { return cuLibraryLoadData(&library, image.data(), nullptr, nullptr, 0, nullptr, nullptr, 0); },
         [&] { return cuLibraryUnload(library); }},
        {"cuStreamCreate", nothing, [&] { return cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING); }},
        {"cuStreamDestroy", [&] { return cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING); },
         [&] { return cuStreamDestroy(stream); }},
        {"cuEventCreate", nothing, [&] { return cuEventCreate(&made, CU_EVENT_DISABLE_TIMING); }},
        {"cuEventDestroy", [&] { return cuEventCreate(&made, CU_EVENT_DISABLE_TIMING); },
         [&] { return cuEventDestroy(made); }},
        {"cuEventSynchronize, event that is done", nothing, [&] { return cuEventSynchronize(done); }},
        {"cuMemcpyHtoD, pageable, 1 KiB", nothing, [&] { return cuMemcpyHtoD(kept, pageable, 1 << 10); }},
        {"cuMemcpyHtoD, pageable, 64 KiB", nothing, [&] { return cuMemcpyHtoD(kept, pageable, 1 << 16); }},
        {"cuMemcpyHtoD, pinned", nothing, [&] { return cuMemcpyHtoD(kept, kept_pinned, 1 << 16); }},
        {"cuMemcpyDtoH, pageable", nothing, [&] { return cuMemcpyDtoH(pageable, kept, 1 << 10); }},
        {"cuMemcpyDtoH, pinned", nothing, [&] { return cuMemcpyDtoH(kept_pinned, kept, 1 << 10); }},
        {"cuMemcpyDtoD", nothing, [&] { return cuMemcpyDtoD(kept, kept + 65536, 1 << 10); }},
        {"cuMemsetD8", nothing, [&] { return cuMemsetD8(kept, 0, 1 << 10); }},
        {"cuMemcpyHtoDAsync, pageable, non-blocking stream", nothing,
         [&] { return cuMemcpyHtoDAsync(kept, pageable, 1 << 16, separate[1]); }},
        {"cuMemcpyDtoHAsync, pageable, non-blocking stream", nothing,
         [&] { return cuMemcpyDtoHAsync(pageable, kept, 1 << 16, separate[1]); }},
        {"cuMemAllocAsync", nothing, [&] { return cuMemAllocAsync(&from_pool, 1 << 20, separate[1]); }},
        {"cuMemFreeAsync", [&] { return cuMemAllocAsync(&from_pool, 1 << 20, separate[1]); },
         [&] { return cuMemFreeAsync(from_pool, separate[1]); }},
        {"cuStreamSynchronize of the legacy stream", nothing, [&] { return cuStreamSynchronize(nullptr); }},
        {"cuStreamSynchronize of another stream", nothing, [&] { return cuStreamSynchronize(separate[1]); }},
        {"cuStreamQuery of the legacy stream", nothing, [&] { return cuStreamQuery(nullptr); }},
        {"cuGraphInstantiate",
         [&] {
             CUgraphNode node;
             CUresult result = cuGraphCreate(&graph, 0);
             return result ? result : cuGraphAddEmptyNode(&node, graph, nullptr, 0);
         },
         [&] { return cuGraphInstantiate(&executable, graph, 0); }},
        {"cuGraphExecDestroy",
         [&] {
             CUresult result = cuGraphCreate(&graph, 0);
             return result ? result : cuGraphInstantiate(&executable, graph, 0);
         },
         [&] { return cuGraphExecDestroy(executable); }},
        {"cuFuncSetAttribute", nothing,
         [&] { return cuFuncSetAttribute(touch, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 60000); }},
        {"cuDeviceSynchronize by cuCtxSynchronize", nothing, [&] { return cuCtxSynchronize(); }},
    };
    for (bool blocks : {false, true})
        for (const Call2 &call : calls) {
            int waited = 0;
            double longest = 0;
            CUresult result = CUDA_SUCCESS;
            for (int i = 0; i < 2; i++) {
                MUST(call.prepare());
                MUST(cuCtxSynchronize());
                MUST(mark(blocks ? blocking[0] : separate[0], 5000, 0));
                while (slot(0)[0] == 0)
                    ;
                double start = host_us();
                result = call.call();
                longest = std::max(longest, host_us() - start);
                waited += ((volatile Time *)slot(0))[1] != 0;
                MUST(cuCtxSynchronize());
            }
            answer(call.name, result,
                   number("kernel_on_a_blocking_stream", blocks) + "," + number("waited_of_2", waited) + "," +
                       number("us", (long long)longest));
        }
}

/* ---- captured: events that were recorded in a capture, used elsewhere ---- */

static void ask_captured() {
    struct Use {
        const char *name;
        Call call;
    };
    CUstream stream, another;
    MUST(cuStreamCreate(&another, CU_STREAM_NON_BLOCKING));
    auto capturing = [&] {
        CUstreamCaptureStatus status;
        return cuStreamIsCapturing(another, &status) || status != CU_STREAM_CAPTURE_STATUS_NONE;
    };
    auto in_thread = [](Call call) {
        CUresult result = CUDA_SUCCESS;
        std::thread([&] {
            cuCtxSetCurrent(context);
            result = call();
        }).join();
        return result;
    };
    auto relaxed = [](Call call) {
        CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
        cuThreadExchangeStreamCaptureMode(&mode);
        CUresult result = call();
        cuThreadExchangeStreamCaptureMode(&mode);
        return result;
    };
    const Use uses[] = {
        {"cuStreamWaitEvent of another stream", [&] { return cuStreamWaitEvent(another, event, 0); }},
        {"cuStreamWaitEvent of another stream, other thread",
         [&] { return in_thread([&] { return cuStreamWaitEvent(another, event, 0); }); }},
        {"cuStreamWaitEvent of the legacy stream", [&] { return cuStreamWaitEvent(nullptr, event, 0); }},
        {"cuStreamWaitEvent of a blocking stream", [&] { return cuStreamWaitEvent(blocking[1], event, 0); }},
        {"cuEventQuery", [&] { return cuEventQuery(event); }},
        {"cuEventQuery, relaxed", [&] { return relaxed([&] { return cuEventQuery(event); }); }},
        {"cuEventSynchronize", [&] { return cuEventSynchronize(event); }},
        {"cuEventSynchronize, relaxed", [&] { return relaxed([&] { return cuEventSynchronize(event); }); }},
        {"cuEventRecord on another stream", [&] { return cuEventRecord(event, another); }},
        {"cuEventRecord on the legacy stream", [&] { return cuEventRecord(event, nullptr); }},
        {"cuEventDestroy of another event that was captured",
         [&] {
             CUevent made;
             CUresult result = cuEventCreate(&made, CU_EVENT_DISABLE_TIMING);
             result = result ? result : cuEventRecord(made, stream);
             return result ? result : cuEventDestroy(made);
         }},
    };
    for (int blocks = 0; blocks < 2; blocks++)
        for (const Use &use : uses) {
            MUST(cuStreamCreate(&stream, blocks ? CU_STREAM_DEFAULT : CU_STREAM_NON_BLOCKING));
            MUST(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
            MUST(mark(stream, 1, 2));
            MUST(cuEventRecord(event, stream));
            CUresult result = use.call();
            bool joined = capturing();
            CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
            cuStreamIsCapturing(stream, &status);
            CUgraph graph = nullptr;
            CUresult end = cuStreamEndCapture(stream, &graph);
            // The event is still one of a capture that is over.
            CUresult wait = cuStreamWaitEvent(separate[2], event, 0), query = cuEventQuery(event);
            CUresult record = cuEventRecord(event, separate[2]), again = cuStreamWaitEvent(separate[1], event, 0);
            answer(std::string("while it captures: ") + use.name, result,
                   number("blocking_stream", blocks) + "," + number("other_stream_joined", joined) + "," +
                       number("capture_spoiled", status != CU_STREAM_CAPTURE_STATUS_ACTIVE) + ",\"end_capture\":\"" +
                       name_of(end) + "\",\"after_it_cuStreamWaitEvent\":\"" + name_of(wait) +
                       "\",\"cuEventQuery\":\"" + name_of(query) + "\",\"recorded_again\":\"" + name_of(record) +
                       "\",\"then_cuStreamWaitEvent\":\"" + name_of(again) + "\"");
            if (graph)
                cuGraphDestroy(graph);
            MUST(cuStreamDestroy(stream));
            cuStreamDestroy(another);
            MUST(cuStreamCreate(&another, CU_STREAM_NON_BLOCKING));
            MUST(cuCtxSynchronize());
        }
    // Two captures.
    CUgraph graph;
    CUevent second;
    MUST(cuEventCreate(&second, CU_EVENT_DISABLE_TIMING));
    MUST(cuStreamBeginCapture(separate[0], CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    MUST(cuStreamBeginCapture(separate[1], CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    MUST(cuEventRecord(event, separate[0]));
    CUresult merge = cuStreamWaitEvent(separate[1], event, 0);
    CUresult end_first = cuStreamEndCapture(separate[0], &graph), end_second = cuStreamEndCapture(separate[1], &graph);
    answer("event of another capture", merge,
           "\"end_capture\":\"" + name_of(end_first) + "\",\"end_capture_of_the_waiting\":\"" + name_of(end_second) +
               "\"");
    // Joined, but not joined back.
    MUST(cuStreamBeginCapture(separate[0], CU_STREAM_CAPTURE_MODE_GLOBAL));
    MUST(cuEventRecord(event, separate[0]));
    MUST(cuStreamWaitEvent(separate[1], event, 0));
    MUST(mark(separate[1], 1, 2));
    CUresult end = cuStreamEndCapture(separate[0], &graph);
    CUstreamCaptureStatus status;
    cuStreamIsCapturing(separate[1], &status);
    answer("joined, not joined back", end, number("status_of_the_joined_after", status));
    // A record that becomes a node.
    MUST(cuStreamBeginCapture(separate[0], CU_STREAM_CAPTURE_MODE_GLOBAL));
    MUST(mark(separate[0], 2000, 0));
    CUresult external = cuEventRecordWithFlags(event, separate[0], CU_EVENT_RECORD_EXTERNAL);
    MUST(cuStreamEndCapture(separate[0], &graph));
    CUgraphExec executable;
    MUST(cuGraphInstantiate(&executable, graph, 0));
    MUST(cuGraphLaunch(executable, separate[0]));
    CUresult wait = cuStreamWaitEvent(separate[1], event, 0);
    MUST(mark(separate[1], 1, 1));
    MUST(cuCtxSynchronize());
    answer("cuEventRecordWithFlags EXTERNAL captured, then waited for after cuGraphLaunch", external,
           "\"cuStreamWaitEvent\":\"" + name_of(wait) + "\"," + number("waited", slot(1)[0] >= slot(0)[1]));
}

/* ---- graph-event: an event that a graph records, waited for after the launch of the graph ---- */

static void ask_graph_event() {
    CUgraphExec executable = graph_of_a_mark(3000, 0, event);
    for (const char *before : {"never recorded", "recorded by the last launch", "recorded on a stream before"}) {
        if (!strcmp(before, "recorded on a stream before"))
            MUST(cuEventRecord(event, separate[2]));
        for (const char *which : {"after", "before", "event before, but on the launch's stream"}) {
            MUST(cuCtxSynchronize());
            memset(slot(0), 0, 128);
            CUresult wait = CUDA_SUCCESS;
            if (!strcmp(which, "before"))
                wait = cuStreamWaitEvent(separate[1], event, 0);
            MUST(cuGraphLaunch(executable, separate[0]));
            if (!strcmp(which, "after"))
                wait = cuStreamWaitEvent(separate[1], event, 0);
            if (!strcmp(which, "event before, but on the launch's stream"))
                wait = cuEventRecord(never, separate[0]), cuStreamWaitEvent(separate[1], never, 0);
            CUresult query = cuEventQuery(event);
            MUST(mark(separate[1], 1, 1));
            MUST(cuCtxSynchronize());
            answer(std::string("wait ") + which + " cuGraphLaunch, event " + before, wait,
                   number("waited", slot(1)[0] >= slot(0)[1]) + ",\"cuEventQuery\":\"" + name_of(query) + "\"");
        }
    }
}

/* ---- capture-ids and reuse: what is given out again? ---- */

static unsigned long long capture_id(CUstream stream) {
    static auto get = (CaptureInfo2)dlsym(RTLD_DEFAULT, "cuStreamGetCaptureInfo_v2");
    unsigned long long id = 0;
    CUstreamCaptureStatus status;
    MUST(get(stream, &status, &id, nullptr, nullptr, nullptr));
    return id;
}

static void ask_capture_ids() {
    std::vector<std::vector<unsigned long long>> seen(8);
    std::vector<std::thread> threads;
    for (int index = 0; index < 8; index++)
        threads.emplace_back([&, index] {
            CUstream stream;
            CUgraph graph;
            MUST(cuCtxSetCurrent(context));
            for (int i = 0; i < 2000; i++) {
                if (i % 50 == 0)
                    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
                MUST(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
                seen[index].push_back(capture_id(stream));
                cuStreamEndCapture(stream, &graph);
                cuGraphDestroy(graph);
                if (i % 50 == 49)
                    MUST(cuStreamDestroy(stream));
            }
        });
    for (std::thread &thread : threads)
        thread.join();
    std::set<unsigned long long> all;
    size_t count = 0, downwards = 0;
    for (auto &list : seen) {
        for (size_t i = 0; i < list.size(); i++) {
            downwards += i && list[i] <= list[i - 1];
            all.insert(list[i]);
            count++;
        }
    }
    answer("ids of captures in 8 threads", CUDA_SUCCESS,
           number("captures", (long long)count) + "," + number("different", (long long)all.size()) + "," +
               number("not_above_the_last_of_the_thread", (long long)downwards) + "," +
               number("least", (long long)*all.begin()) + "," + number("greatest", (long long)*all.rbegin()));
    CUgraph graph;
    MUST(cuStreamBeginCapture(separate[0], CU_STREAM_CAPTURE_MODE_GLOBAL));
    MUST(cuEventRecord(event, separate[0]));
    MUST(cuStreamWaitEvent(separate[1], event, 0));
    unsigned long long first = capture_id(separate[0]), joined = capture_id(separate[1]);
    MUST(cuEventRecord(event, separate[1]));
    MUST(cuStreamWaitEvent(separate[0], event, 0));
    MUST(cuStreamEndCapture(separate[0], &graph));
    answer("id of a stream that joined", CUDA_SUCCESS,
           number("same", first == joined) + "," + number("id_after_the_end", (long long)capture_id(separate[0])) +
               "," + number("next_after_greatest", first > *all.rbegin()));
    CUcontext other;
    MUST(cuCtxCreate(&other, nullptr, 0, device));
    CUstream stream;
    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    MUST(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    unsigned long long of_other = capture_id(stream);
    MUST(cuStreamEndCapture(stream, &graph));
    answer("id in another context", CUDA_SUCCESS,
           number("id", (long long)of_other) + "," + number("seen_in_the_first", all.count(of_other) != 0));
}

static void ask_reuse() {
    struct Kind {
        const char *name;
        std::function<void *()> make;
        std::function<void(void *)> destroy;
    };
    const Kind kinds[] = {
        {"stream",
         [] {
             CUstream made;
             MUST(cuStreamCreate(&made, CU_STREAM_NON_BLOCKING));
             return (void *)made;
         },
         [](void *made) { MUST(cuStreamDestroy((CUstream)made)); }},
        {"event",
         [] {
             CUevent made;
             MUST(cuEventCreate(&made, CU_EVENT_DISABLE_TIMING));
             return (void *)made;
         },
         [](void *made) { MUST(cuEventDestroy((CUevent)made)); }},
        {"graph",
         [] {
             CUgraph made;
             MUST(cuGraphCreate(&made, 0));
             return (void *)made;
         },
         [](void *made) { MUST(cuGraphDestroy((CUgraph)made)); }},
        {"executable graph",
         [] {
             CUgraph graph;
             CUgraphExec made;
             MUST(cuGraphCreate(&graph, 0));
             MUST(cuGraphInstantiate(&made, graph, 0));
             MUST(cuGraphDestroy(graph));
             return (void *)made;
         },
         [](void *made) { MUST(cuGraphExecDestroy((CUgraphExec)made)); }},
        {"context",
         [] {
             CUcontext made;
             MUST(cuCtxCreate(&made, nullptr, 0, device));
             MUST(cuCtxSetCurrent(context));
             return (void *)made;
         },
         [](void *made) { MUST(cuCtxDestroy((CUcontext)made)); }},
    };
    for (const Kind &kind : kinds)
        for (int together : {1, 20}) {
            int rounds = !strcmp(kind.name, "context") ? (together == 1 ? 12 : 0) : 400 / together;
            std::set<void *> seen, before;
            int again = 0, of_last_round = 0, count = 0;
            std::set<unsigned long long> ids;
            for (int round = 0; round < rounds; round++) {
                std::vector<void *> made;
                for (int i = 0; i < together; i++) {
                    made.push_back(kind.make());
                    unsigned long long id = 0;
                    if (!strcmp(kind.name, "stream"))
                        MUST(cuStreamGetId((CUstream)made.back(), &id));
                    if (!strcmp(kind.name, "context"))
                        MUST(cuCtxGetId((CUcontext)made.back(), &id));
                    ids.insert(id);
                    again += !seen.insert(made.back()).second;
                    of_last_round += (int)before.count(made.back());
                    count++;
                }
                before.clear();
                for (void *one : made) {
                    before.insert(one);
                    kind.destroy(one);
                }
            }
            if (count)
                answer(std::string(kind.name) + ", " + std::to_string(together) + " at a time", CUDA_SUCCESS,
                       number("made", count) + "," + number("given_out_before", again) + "," +
                           number("of_the_round_before", of_last_round) + "," +
                           number("different_ids", (long long)ids.size()));
        }
    // Destroyed with work left, and what an event of it says.
    CUstream busy, next;
    MUST(cuStreamCreate(&busy, CU_STREAM_NON_BLOCKING));
    MUST(mark(busy, 5000, 0));
    MUST(cuEventRecord(event, busy));
    MUST(cuStreamDestroy(busy));
    MUST(cuStreamCreate(&next, CU_STREAM_NON_BLOCKING));
    CUresult query = cuEventQuery(event);
    answer("stream destroyed while a kernel runs", query, number("next_stream_has_its_address", next == busy));
    MUST(cuStreamWaitEvent(separate[1], event, 0));
    MUST(mark(separate[1], 1, 1));
    MUST(cuCtxSynchronize());
    answer("wait for an event of a destroyed stream", CUDA_SUCCESS, number("waited", slot(1)[0] >= slot(0)[1]));
    void *made = kinds[1].make();
    kinds[1].destroy(made);
    void *stream = kinds[0].make();
    answer("a stream after an event was destroyed", CUDA_SUCCESS, number("same_address", stream == made));
}

/* ---- costs: ns a call ---- */

static void ask_costs() {
    CUstream captured;
    MUST(cuStreamCreate(&captured, CU_STREAM_NON_BLOCKING));
    CUstreamCaptureStatus status;
    unsigned flags;
    int priority;
    unsigned long long id;
    CUcontext owner;
    CUdevice of_stream;
    CUevent pending;
    auto get_v2 = (CaptureInfo2)dlsym(RTLD_DEFAULT, "cuStreamGetCaptureInfo_v2");
    auto get_v3 = (CaptureInfo3)dlsym(RTLD_DEFAULT, "cuStreamGetCaptureInfo_v3");
    MUST(cuEventCreate(&pending, CU_EVENT_DISABLE_TIMING));
    struct Cost {
        const char *name;
        bool queues;
        std::function<CUresult(CUstream)> call;
    };
    const Cost costs[] = {
        {"cuStreamIsCapturing", false, [&](CUstream s) { return cuStreamIsCapturing(s, &status); }},
        {"cuStreamGetCaptureInfo_v2, id", false,
         [&](CUstream s) { return get_v2(s, &status, &id, nullptr, nullptr, nullptr); }},
        {"cuStreamGetCaptureInfo_v3, id", false,
         [&](CUstream s) { return get_v3(s, &status, &id, nullptr, nullptr, nullptr, nullptr); }},
        {"cuStreamGetFlags", false, [&](CUstream s) { return cuStreamGetFlags(s, &flags); }},
        {"cuStreamGetCtx", false, [&](CUstream s) { return cuStreamGetCtx(s, &owner); }},
        {"cuStreamGetId", false, [&](CUstream s) { return cuStreamGetId(s, &id); }},
        {"cuStreamGetDevice", false, [&](CUstream s) { return cuStreamGetDevice(s, &of_stream); }},
        {"cuStreamGetPriority", false, [&](CUstream s) { return cuStreamGetPriority(s, &priority); }},
        {"cuStreamQuery", false, [&](CUstream s) { return cuStreamQuery(s); }},
        {"cuCtxGetCurrent", false, [&](CUstream) { return cuCtxGetCurrent(&owner); }},
        {"cuCtxGetId", false, [&](CUstream) { return cuCtxGetId(nullptr, &id); }},
        {"cuCtxGetDevice", false, [&](CUstream) { return cuCtxGetDevice(&of_stream); }},
        {"cuEventQuery, done", false, [&](CUstream) { return cuEventQuery(done); }},
        {"cuEventQuery, not done", false, [&](CUstream) { return cuEventQuery(pending); }},
        {"cuEventSynchronize, done", false, [&](CUstream) { return cuEventSynchronize(done); }},
        {"cuThreadExchangeStreamCaptureMode", false,
         [&](CUstream) {
             static CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
             return cuThreadExchangeStreamCaptureMode(&mode);
         }},
        {"cuEventRecord", true, [&](CUstream s) { return cuEventRecord(event, s); }},
        {"cuStreamWaitEvent, done", true, [&](CUstream s) { return cuStreamWaitEvent(s, done, 0); }},
        {"cuStreamWaitEvent, not done", true, [&](CUstream s) { return cuStreamWaitEvent(s, pending, 0); }},
        {"cuLaunchKernel", true,
         [&](CUstream s) { return cuLaunchKernel(empty, 1, 1, 1, 1, 1, 1, 0, s, nullptr, nullptr); }},
        {"cuEventCreate and cuEventDestroy", false,
         [&](CUstream) {
             CUevent made;
             CUresult result = cuEventCreate(&made, CU_EVENT_DISABLE_TIMING);
             return result ? result : cuEventDestroy(made);
         }},
    };
    static const int CALLS = 100, ROUNDS = 60;
    for (const char *contended : {"alone", "while another thread launches"}) {
        std::atomic<bool> stop{false};
        std::thread other([&] {
            cuCtxSetCurrent(context);
            for (int i = 1; !stop && strcmp(contended, "alone"); i++) {
                cuLaunchKernel(empty, 1, 1, 1, 1, 1, 1, 0, separate[2], nullptr, nullptr);
                if (i % 64 == 0)
                    cuStreamSynchronize(separate[2]);
            }
        });
        for (const char *which : {"idle", "busy", "legacy", "captured"}) {
            bool busy = !strcmp(which, "busy"), capture = !strcmp(which, "captured");
            CUstream stream = !strcmp(which, "legacy") ? nullptr : capture ? captured : separate[0];
            for (const Cost &cost : costs) {
                bool spoils = strstr(cost.name, "Query") || strstr(cost.name, "GetFlags") ||
                              strstr(cost.name, "StreamGetId") || strstr(cost.name, "StreamGetDevice");
                if (capture && (cost.queues || spoils || strstr(cost.name, "Event")))
                    continue;
                std::vector<double> samples;
                CUresult result = CUDA_SUCCESS;
                bool waits_long = strstr(cost.name, "not done") != nullptr;
                for (int round = 0; round < ROUNDS; round++) {
                    if (waits_long) {
                        MUST(mark(separate[1], 400, 5));
                        MUST(cuEventRecord(pending, separate[1]));
                    }
                    if (busy)
                        MUST(mark(stream, 400, 4));
                    if (capture)
                        MUST(cuStreamBeginCapture(captured, CU_STREAM_CAPTURE_MODE_RELAXED));
                    double start = host_us();
                    for (int i = 0; i < CALLS; i++)
                        result = cost.call(stream);
                    samples.push_back((host_us() - start) * 1000 / CALLS);
                    if (capture) {
                        CUgraph graph;
                        MUST(cuStreamEndCapture(captured, &graph));
                        cuGraphDestroy(graph);
                    }
                    cuStreamSynchronize(separate[1]);
                    cuStreamSynchronize(stream);
                }
                std::sort(samples.begin(), samples.end());
                answer(std::string(cost.name) + ", " + which + ", " + contended, result,
                       number("median_ns", (long long)samples[ROUNDS / 2]) + "," +
                           number("p10_ns", (long long)samples[ROUNDS / 10]) + "," +
                           number("p90_ns", (long long)samples[ROUNDS * 9 / 10]));
            }
        }
        stop = true;
        other.join();
    }
}

/* ---- contexts: do kernels of two contexts of one process run at the same time? ---- */

static void ask_contexts() {
    struct Side {
        const char *name;
        CUcontext context;
        CUstream stream;
        CUfunction watch;
        int index;
    };
    auto start = [](Side &side, Time nanoseconds) {
        MUST(cuCtxSetCurrent(side.context));
        Time *out = slot(side.index);
        void *parameters[] = {&nanoseconds, &out};
        MUST(cuLaunchKernel(side.watch, 1, 1, 1, 1, 1, 1, 0, side.stream, parameters, nullptr));
    };
    std::vector<Side> sides = {{"primary", context, nullptr, nullptr, 0}, {"primary, another stream", context}};
    CUcontext first, second;
    MUST(cuCtxCreate(&first, nullptr, 0, device));
    MUST(cuCtxCreate(&second, nullptr, 0, device));
    sides.push_back({"made", first});
    sides.push_back({"made, another", second});
    CUdevResource all = {}, group = {}, rest = {};
    CUdevResourceDesc description;
    CUgreenCtx green;
    CUcontext of_green = nullptr;
    unsigned groups = 1;
    if (!cuDeviceGetDevResource(device, &all, CU_DEV_RESOURCE_TYPE_SM) &&
        !cuDevSmResourceSplitByCount(&group, &groups, &all, &rest, 0, 16) &&
        !cuDevResourceGenerateDesc(&description, &group, 1) &&
        !cuGreenCtxCreate(&green, description, device, CU_GREEN_CTX_DEFAULT_STREAM) &&
        !cuCtxFromGreenCtx(&of_green, green))
        sides.push_back({"green, 16 multiprocessors", of_green});
    for (size_t i = 0; i < sides.size(); i++) {
        Side &side = sides[i];
        side.index = (int)i;
        MUST(cuCtxSetCurrent(side.context));
        MUST(cuStreamCreate(&side.stream, CU_STREAM_NON_BLOCKING));
        side.watch = function_of(load(), "watch_gaps");
        start(side, 1000);
        MUST(cuStreamSynchronize(side.stream));
    }
    for (size_t i = 0; i < sides.size(); i++)
        for (size_t j = i + 1; j < sides.size(); j++) {
            Side &a = sides[i], &b = sides[j];
            for (int repetition = 0; repetition < 3; repetition++) {
                start(a, 20000000);
                start(b, 20000000);
                for (Side *side : {&a, &b}) {
                    MUST(cuCtxSetCurrent(side->context));
                    MUST(cuStreamSynchronize(side->stream));
                }
                const Time *x = slot(a.index), *y = slot(b.index);
                double both = ((double)std::min(x[1], y[1]) - (double)std::max(x[0], y[0])) / 1000;
                answer(std::string(a.name) + "; " + b.name, CUDA_SUCCESS,
                       number("intervals_overlap_us", (long long)both) + "," +
                           number("gaps_of_first", (long long)x[2]) + "," +
                           number("longest_us", (long long)x[3] / 1000) + "," +
                           number("sum_us", (long long)x[4] / 1000) + "," + number("gaps_of_second", (long long)y[2]) +
                           "," + number("longest_of_second_us", (long long)y[3] / 1000) + "," +
                           number("sum_of_second_us", (long long)y[4] / 1000) + "," +
                           number("first_us", (long long)(x[1] - x[0]) / 1000) + "," +
                           number("second_us", (long long)(y[1] - y[0]) / 1000));
            }
        }
    // Order by the legacy stream, across contexts.
    Side &a = sides[0];
    for (size_t j = 2; j < sides.size(); j++) {
        Side &b = sides[j];
        MUST(cuCtxSetCurrent(b.context));
        CUstream of_b;
        MUST(cuStreamCreate(&of_b, CU_STREAM_DEFAULT));
        Side blocks = {b.name, b.context, of_b, b.watch, 6}, legacy = {a.name, a.context, nullptr, a.watch, 7};
        start(legacy, 4000000);
        start(blocks, 1000);
        MUST(cuCtxSetCurrent(a.context));
        MUST(cuStreamSynchronize(nullptr));
        MUST(cuCtxSetCurrent(b.context));
        MUST(cuStreamSynchronize(of_b));
        answer(std::string("legacy stream of the primary; blocking stream of: ") + b.name, CUDA_SUCCESS,
               number("second_waited", slot(6)[0] >= slot(7)[1]));
    }
}

/* ---- capture-priority: the priority of a stream is set while it captures ---- */

static void ask_capture_priority() {
    for (const char *when : {"not at all", "before", "while it captures", "while it captures, relaxed",
                             "while it captures, by another thread", "while it captures, a stream that joined",
                             "while a blocking stream captures, the legacy stream", "while it captures, back"})
        for (CUstreamCaptureMode mode : {CU_STREAM_CAPTURE_MODE_GLOBAL, CU_STREAM_CAPTURE_MODE_RELAXED}) {
            CUstream stream, joined;
            int priority = 99, after = 99;
            bool legacy = strstr(when, "legacy");
            MUST(cuStreamCreate(&stream, legacy ? CU_STREAM_DEFAULT : CU_STREAM_NON_BLOCKING));
            MUST(cuStreamCreate(&joined, CU_STREAM_NON_BLOCKING));
            auto set = [](CUstream s, int asked) {
                CUstreamAttrValue value = {};
                value.priority = asked;
                return cuStreamSetAttribute(s, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value);
            };
            CUresult result = CUDA_SUCCESS;
            if (!strcmp(when, "before"))
                result = set(stream, -5);
            MUST(cuStreamBeginCapture(stream, mode));
            MUST(mark(stream, 1, 2));
            MUST(cuEventRecord(event, stream));
            MUST(cuStreamWaitEvent(joined, event, 0));
            MUST(mark(joined, 1, 2));
            if (!strcmp(when, "while it captures"))
                result = set(stream, -5);
            if (!strcmp(when, "while it captures, back")) {
                result = set(stream, -5);
                result = result ? result : set(stream, 0);
            }
            if (strstr(when, "joined"))
                result = set(joined, -5);
            if (legacy)
                result = set(nullptr, -5);
            if (strstr(when, "relaxed")) {
                CUstreamCaptureMode relaxed = CU_STREAM_CAPTURE_MODE_RELAXED;
                cuThreadExchangeStreamCaptureMode(&relaxed);
                result = set(stream, -5);
                cuThreadExchangeStreamCaptureMode(&relaxed);
            }
            if (strstr(when, "thread"))
                std::thread([&] {
                    cuCtxSetCurrent(context);
                    result = set(stream, -5);
                }).join();
            CUresult read = cuStreamGetPriority(strstr(when, "joined") ? joined : stream, &priority);
            CUresult second = mark(stream, 1, 2), of_joined = mark(joined, 1, 2);
            CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
            cuStreamIsCapturing(stream, &status);
            cuEventRecord(event, joined);
            cuStreamWaitEvent(stream, event, 0);
            CUgraph graph = nullptr;
            CUresult end = cuStreamEndCapture(stream, &graph);
            cuStreamGetPriority(stream, &after);
            std::string priorities;
            CUresult made = CUDA_ERROR_UNKNOWN, run = CUDA_ERROR_UNKNOWN;
            if (graph) {
                CUgraphNode nodes[8];
                size_t count = 8;
                cuGraphGetNodes(graph, nodes, &count);
                for (size_t i = 0; i < count; i++) {
                    CUkernelNodeAttrValue value = {};
                    if (cuGraphKernelNodeGetAttribute(nodes[i], CU_LAUNCH_ATTRIBUTE_PRIORITY, &value))
                        continue;
                    priorities += (priorities.empty() ? "" : ",") + std::to_string(value.priority);
                }
                CUgraphExec executable;
                made = cuGraphInstantiate(&executable, graph, CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY);
                if (!made)
                    run = cuGraphLaunch(executable, separate[0]);
                cuCtxSynchronize();
            }
            if (legacy)
                set(nullptr, 0);
            answer(std::string("priority set ") + when, result,
                   "\"mode\":\"" + std::string(mode == CU_STREAM_CAPTURE_MODE_GLOBAL ? "global" : "relaxed") + "\"," +
                       number("capture_spoiled", status != CU_STREAM_CAPTURE_STATUS_ACTIVE) + "," +
                       number("read_code", read) + "," + number("read", priority) + "," +
                       number("launch_after", second) + "," + number("launch_of_the_joined_after", of_joined) +
                       ",\"end_capture\":\"" + name_of(end) + "\",\"node_priorities\":[" + priorities + "]," +
                       number("instantiate", made) + "," + number("launch_of_the_graph", run) + "," +
                       number("priority_after", after));
        }
}

/* ---- update-priority: cuGraphExecUpdate with a node of another priority ---- */

static void ask_update_priority() {
    CUfunction hold = function_of(module, "hold_place");
    auto graph_with = [](int priority) {
        Time nanoseconds = 1000, *out = slot(1);
        void *parameters[] = {&nanoseconds, &out};
        CUDA_KERNEL_NODE_PARAMS params = {};
        params.func = mark_time;
        params.gridDimX = params.gridDimY = params.gridDimZ = 1;
        params.blockDimX = params.blockDimY = params.blockDimZ = 1;
        params.kernelParams = parameters;
        CUgraph graph;
        CUgraphNode node;
        CUkernelNodeAttrValue value = {};
        MUST(cuGraphCreate(&graph, 0));
        MUST(cuGraphAddKernelNode(&node, graph, nullptr, 0, &params));
        value.priority = priority;
        MUST(cuGraphKernelNodeSetAttribute(node, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value));
        return graph;
    };
    // How long the graph waits behind 20 waves of blocks that fill the GPU, 100 us each.
    auto waits = [&](CUgraphExec executable) {
        std::vector<double> samples;
        for (int i = 0; i < 5; i++) {
            Time nanoseconds = 100000;
            void *parameters[] = {&nanoseconds};
            memset(slot(1), 0, 64);
            MUST(cuLaunchKernel(hold, (unsigned)multiprocessors * 2 * 20, 1, 1, 1024, 1, 1, 0, separate[1], parameters,
                                nullptr));
            double start = host_us();
            while (host_us() - start < 300)
                ;
            MUST(cuGraphLaunch(executable, separate[0]));
            start = host_us();
            while (((volatile Time *)slot(1))[1] == 0)
                ;
            samples.push_back(host_us() - start);
            MUST(cuCtxSynchronize());
        }
        std::sort(samples.begin(), samples.end());
        return (long long)samples[2];
    };
    for (bool flag : {true, false})
        for (int made_with : {0, -5})
            for (int updated_with : {0, -5}) {
                CUgraphExec executable;
                MUST(cuGraphInstantiate(&executable, graph_with(made_with),
                                        flag ? CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY : 0));
                long long before = waits(executable);
                CUgraphExecUpdateResultInfo info = {};
                CUresult result = cuGraphExecUpdate(executable, graph_with(updated_with), &info);
                long long after = waits(executable);
                answer("cuGraphExecUpdate", result,
                       number("use_node_priority", flag) + "," + number("made_with", made_with) + "," +
                           number("updated_with", updated_with) + "," + number("update_result", info.result) + "," +
                           number("waited_before_us", before) + "," + number("waited_after_us", after));
                MUST(cuGraphExecDestroy(executable));
            }
}

/* ---- reset: the primary context after cuDevicePrimaryCtxReset ---- */

static void ask_reset(const std::string &which) {
    CUlibrary library;
    CUkernel kernel;
    MUST(cuLibraryLoadData(&library, image.data(), nullptr, nullptr, 0, nullptr, nullptr, 0));
    MUST(cuLibraryGetKernel(&kernel, library, "touch"));
    MUST(launch((CUfunction)kernel, 1, 32, 128, separate[0]));
    MUST(cuCtxSynchronize());
    unsigned long long id = 0, id_after = 0;
    unsigned flags = 0;
    int active = -1, active_before = -1, value = -1;
    MUST(cuCtxGetId(context, &id));
    MUST(cuDevicePrimaryCtxGetState(device, &flags, &active_before));
    CUcontext now = nullptr, again = nullptr;
    CUresult reset = cuDevicePrimaryCtxReset(device);
    answer("cuDevicePrimaryCtxReset, retained once", reset);
    auto retain = [&] {
        CUresult result = cuDevicePrimaryCtxRetain(&again, device);
        return result ? result : cuCtxSetCurrent(again);
    };
    if (which == "state") {
        CUresult current = cuCtxGetCurrent(&now);
        answer("cuCtxGetCurrent", current, number("same", now == context));
        CUdevice found = -1;
        answer("cuCtxGetDevice", cuCtxGetDevice(&found));
        CUresult asked = cuCtxGetId(context, &id_after);
        answer("cuCtxGetId", asked, number("same", id == id_after));
        CUresult state = cuDevicePrimaryCtxGetState(device, &flags, &active);
        answer("cuDevicePrimaryCtxGetState", state,
               number("active", active) + "," + number("active_before", active_before));
        CUresult retained = retain();
        answer("cuDevicePrimaryCtxRetain", retained, number("same_handle", again == context));
        asked = cuCtxGetId(again, &id_after);
        answer("cuCtxGetId of the new", asked, number("same", id == id_after));
        state = cuDevicePrimaryCtxGetState(device, &flags, &active);
        answer("cuDevicePrimaryCtxGetState after that", state, number("active", active));
        CUfunction fresh = function_of(load(), "touch");
        answer("launch of a function loaded after that", launch(fresh, 1, 32, 128, nullptr));
        answer("synchronise", cuCtxSynchronize(), number("new_function_has_the_old_address", fresh == touch));
        answer("release, once", cuDevicePrimaryCtxRelease(device));
        answer("release, twice", cuDevicePrimaryCtxRelease(device));
        answer("release, three times", cuDevicePrimaryCtxRelease(device));
    } else if (which == "launch") {
        answer("launch of an old function, legacy stream", launch(touch, 1, 32, 128, nullptr));
    } else if (which == "launch-stream") {
        answer("launch of an old function on an old stream", launch(touch, 1, 32, 128, separate[0]));
    } else if (which == "retained-launch") {
        CUresult retained = retain();
        answer("retain", retained, number("same_handle", again == context));
        answer("launch of an old function after retain", launch(touch, 1, 32, 128, nullptr));
        answer("synchronise", cuCtxSynchronize());
    } else if (which == "retained-kernel") {
        answer("retain", retain());
        CUresult read = cuKernelGetAttribute(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, kernel, device);
        answer("cuKernelGetAttribute of an old CUkernel", read, number("value", value));
        answer("launch of an old CUkernel after retain", launch((CUfunction)kernel, 1, 32, 128, nullptr));
        answer("synchronise", cuCtxSynchronize());
    } else if (which == "retained-stream") {
        answer("retain", retain());
        answer("cuStreamQuery of an old stream", cuStreamQuery(separate[0]));
    } else if (which == "retained-event") {
        answer("retain", retain());
        answer("cuEventQuery of an old event", cuEventQuery(done));
    } else if (which == "retained-attribute") {
        answer("retain", retain());
        CUresult read = cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, touch);
        answer("cuFuncGetAttribute of an old function", read, number("value", value));
    } else if (which == "retained-module") {
        CUfunction found = nullptr;
        answer("retain", retain());
        answer("cuModuleGetFunction of an old module", cuModuleGetFunction(&found, module, "empty"));
    } else if (which == "not-retained") {
        CUdeviceptr memory;
        answer("cuMemAlloc without retaining again", cuMemAlloc(&memory, 1024));
        CUmodule loaded;
        answer("cuModuleLoadData without retaining again", cuModuleLoadData(&loaded, image.data()));
        answer("cuStreamQuery of the legacy stream", cuStreamQuery(nullptr));
        answer("cuCtxSetCurrent of the old handle", cuCtxSetCurrent(context));
        answer("cuMemAlloc after that", cuMemAlloc(&memory, 1024));
    }
}

int main(int argc, char **argv) {
    if (argc < 3) {
        fprintf(stderr, "usage: order_questions QUESTION CUBIN [CASE]\n");
        return 2;
    }
    begin(argv[1], argv[2]);
    prepare();
    const std::map<std::string, void (*)()> questions = {{"barriers", ask_barriers},
                                                         {"host", ask_host},
                                                         {"captured", ask_captured},
                                                         {"graph-event", ask_graph_event},
                                                         {"capture-ids", ask_capture_ids},
                                                         {"reuse", ask_reuse},
                                                         {"costs", ask_costs},
                                                         {"contexts", ask_contexts},
                                                         {"capture-priority", ask_capture_priority},
                                                         {"update-priority", ask_update_priority}};
    auto found = questions.find(question);
    if (found != questions.end())
        found->second();
    else if (question == "reset" && argc > 3)
        ask_reset(argv[3]);
    else
        return 2;
    return 0;
}
