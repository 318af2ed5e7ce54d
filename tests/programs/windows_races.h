/* What many threads do to overlap windows at once, in windows_hazards.c. */
#pragma once

/* While one thread ends a context with many streams, others make streams and record events: nothing may be lost. */
static int stop;
static void *makes(void *argument) {
    void *made;
    good(CU(cuCtxSetCurrent)(primary));
    while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE)) {
        void *mine = stream();
        launch(comm, mine);
        made = event();
        good(CU(cuEventRecord)(made, mine));
        good(CU(cuStreamWaitEvent)(mine, made, 0));
        good(CU(cuEventDestroy_v2)(made));
        good(CU(cuStreamDestroy_v2)(mine));
    }
    return argument;
}
static void busy(int count) {
    enum { THREADS = 4 };
    pthread_t made[THREADS];
    void *context, *x, *y;
    for (int i = 0; i < THREADS; i++)
        good(pthread_create(&made[i], NULL, makes, NULL));
    for (int i = 0; i < count; i++) {
        good(cuCtxCreate_v2(&context, 0, 0));
        for (int n = 0; n < 3000; n++)
            stream();
        good(cuCtxDestroy_v2(context));
        good(CU(cuCtxSetCurrent)(primary));
    }
    __atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
    for (int i = 0; i < THREADS; i++)
        good(pthread_join(made[i], NULL));
    good(CU(cuCtxSynchronize)());
    probe();
    x = stream();
    y = stream();
    launch(comm, stream());
    wait_for(x, y); /* an event that tells nothing: nobody has lost one that might */
    launch(k, x);
}
/* Everybody uses the same streams and events, all at the same time; and captures, and graphs of its own. */
static void *shared_streams[4], *shared_events[8];
static int races_left;
static void *uses(void *number) {
    unsigned seed = (unsigned)(uintptr_t)number * 977 + 1;
    good(CU(cuCtxSetCurrent)(primary));
    void *own = stream(); /* never a blocking one: others may launch on the legacy stream while it captures */
    while (__atomic_fetch_sub(&races_left, 1, __ATOMIC_RELAXED) > 0) {
        void *const one = shared_streams[(seed = seed * 1103515245u + 12345u) >> 16 & 3];
        void *const it = shared_events[seed >> 20 & 7];
        switch (seed >> 24 & 7) {
        case 0:
            launch(comm, one);
            break;
        case 1:
            good(CU(cuEventRecord)(it, one));
            break;
        case 2:
            good(CU(cuStreamWaitEvent)(own, it, 0));
            break;
        case 3:
            good(CU(cuStreamWaitEvent)(one, it, 0));
            break;
        case 4:
            launch(comm, own);
            CU(cuEventQuery)(it);
            break;
        case 5:
            launch(k, NULL);
            good(CU(cuStreamSynchronize)(own));
            break;
        case 6: {
            void *graph, *exec;
            good(CU(cuStreamBeginCapture_v2)(own, 2));
            launch(comm, own);
            launch(k, own);
            good(CU(cuStreamEndCapture)(own, &graph));
            good(CU(cuGraphInstantiateWithFlags)(&exec, graph, 0));
            good(CU(cuGraphLaunch)(exec, one));
            good(CU(cuGraphExecDestroy)(exec));
            good(CU(cuGraphDestroy)(graph));
            break;
        }
        default:
            good(CU(cuStreamDestroy_v2)(own));
            own = stream();
        }
        launch(k, own);
        launch(k, one);
    }
    return NULL;
}
static void races(int count) {
    enum { THREADS = 4 };
    pthread_t made[THREADS];
    races_left = count;
    for (int i = 0; i < 8; i++)
        shared_events[i] = event();
    for (int i = 0; i < 4; i++)
        shared_streams[i] = stream_of(i != 3);
    for (int i = 0; i < THREADS; i++)
        good(pthread_create(&made[i], NULL, uses, (void *)(uintptr_t)i));
    for (int i = 0; i < THREADS; i++)
        good(pthread_join(made[i], NULL));
    good(CU(cuCtxSynchronize)());
    probe();
}
static void forks_busy(int count) {
    enum { THREADS = 2 };
    pthread_t made[THREADS];
    for (int i = 0; i < THREADS; i++)
        good(pthread_create(&made[i], NULL, makes, NULL));
    forks(count);
    __atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
    for (int i = 0; i < THREADS; i++)
        good(pthread_join(made[i], NULL));
}
