/* SPDX-License-Identifier: Apache-2.0
 * Part of stencil.c: its memory, and the exchange through memory of the host, by how the host waits. */
#pragma once

static void *host_memory(size_t bytes) {
    void *memory = NULL;
    if (pattern->pageable)
        memory = calloc(1, bytes);
    else
        check(cuMemAllocHost_v2(&memory, bytes), "memory");
    if (memory == NULL)
        fail("memory");
    return memset(memory, 0, bytes);
}

static void open_memory(void) {
    plane_bytes = (size_t)n * (size_t)n * sizeof(double);
    for (int i = 0; i < 2; i++)
        check(cuMemAlloc_v2(&points[i], plane_bytes * (size_t)n), "memory");
    check(cuMemAlloc_v2(&counter, sizeof(double)), "memory");
    check(cuMemAlloc_v2(&batch, BATCH), "memory");
    sent = host_memory(2 * plane_bytes > BATCH ? 2 * plane_bytes : BATCH);
    received = host_memory(2 * plane_bytes);
    check(cuCtxSynchronize(), "memory");
}

static uint64_t plane(int iteration, int index) {
    return points[(iteration + 1) % 2] + (uint64_t)index * plane_bytes;
}

/* What MPI does between the copies: its only rank is its own neighbour on both sides. */
static void exchange_on_host(void *unused) {
    (void)unused;
    memcpy(received, sent + plane_bytes, plane_bytes);
    memcpy(received + plane_bytes, sent, plane_bytes);
}

static void copy_out(int iteration) {
    for (int i = 0; i < 2; i++) {
        char *const to = sent + (size_t)i * plane_bytes;
        const uint64_t from = plane(iteration, i == 0 ? 1 : n - 2);
        check(pattern->wait == BLOCKING_COPY ? cuMemcpyDtoH_v2(to, from, plane_bytes)
                                             : cuMemcpyDtoHAsync_v2(to, from, plane_bytes, halo),
              "copy");
    }
}

static void copy_in(int iteration) {
    for (int i = 0; i < 2; i++) {
        const char *const from = received + (size_t)i * plane_bytes;
        const uint64_t to = plane(iteration, i == 0 ? 0 : n - 1);
        check(pattern->wait == BLOCKING_COPY ? cuMemcpyHtoD_v2(to, from, plane_bytes)
                                             : cuMemcpyHtoDAsync_v2(to, from, plane_bytes, halo),
              "copy");
    }
}

static void wait_on_host(void) {
    int state = 0;
    switch (pattern->wait) {
    case BY_STREAM:
        state = cuStreamSynchronize(halo);
        break;
    case BY_EVENT:
        state = cuEventSynchronize(computed);
        break;
    case POLL_EVENT:
        while ((state = cuEventQuery(computed)) == NOT_READY)
            continue;
        break;
    case POLL_STREAM:
        while ((state = cuStreamQuery(halo)) == NOT_READY)
            continue;
        break;
    case BLOCKING_COPY: /* has waited */
    case HOST_FUNCTION: /* the stream waits, and not the host */
    case NO_WAIT:
        break;
    }
    check(state, "wait");
}

static void finish_staged(int iteration) {
    wait_on_host();
    if (pattern->wait == HOST_FUNCTION)
        check(cuLaunchHostFunc(halo, exchange_on_host, NULL), "host function");
    else
        exchange_on_host(NULL);
    copy_in(iteration);
}
