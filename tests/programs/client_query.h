/* Attributes and occupancy in client.c, and streams.
 *
 *   set=K,A,V get=K,A          attribute of a kernel or function           cache=K,C  its preference for the cache
 *   occ occflags = K,threads,dynamic         occsize occsizeflags = K,dynamic       occavail=K,blocks,threads
 *   occcallback=K,dynamic      ...with a function that says how many bytes a block needs, which asks the driver itself
 *   occclusters occcluster = K,blocks,threads,dynamic      with the attributes of attr=
 *   sset=S,A,V sget=S,A  scopy=TO,FROM  of=S  destroy=S        streams: attributes, priority
 *   context=D      a context of device D becomes the current one           attach  it is used once more
 *   current=I      the I-th of these becomes the current one again
 *   contextcache=C its preference for the cache
 *   endcontext=HOW the current one: destroy, detach, release, reset (the last two the primary one)
 *   green=N        a green context of N multiprocessors       greenstream=I,P    a stream of the I-th
 *   greencontext=I its context becomes the current one        greenend=I         it ends
 */
#pragma once

static int kernel_attribute(const char *verb) {
    const struct kernel *kernel = find_kernel(words[0]);
    const int id = atoi(words[1]);
    int value = -1, result;
    if (strcmp(verb, "cache") == 0)
        return kernel->kind ? CU(cuKernelSetCacheConfig)(kernel->handle, id, device)
                            : CU(cuFuncSetCacheConfig)(kernel->handle, id);
    if (strcmp(verb, "set") == 0)
        return kernel->kind ? CU(cuKernelSetAttribute)(id, atoi(words[2]), kernel->handle, device)
                            : CU(cuFuncSetAttribute)(kernel->handle, id, atoi(words[2]));
    result = kernel->kind ? CU(cuKernelGetAttribute)(&value, id, kernel->handle, device)
                          : CU(cuFuncGetAttribute)(&value, id, kernel->handle);
    printf("value %d\n", value);
    return result;
}

static size_t bytes_of(int threads) {
    int grid = 0, block = 0;
    CU(cuOccupancyMaxPotentialBlockSize)(&grid, &block, find_kernel(words[0])->handle, NULL, 0, threads);
    return (size_t)threads * 120;
}

static int occupancy(const char *verb) {
    void *const function = find_kernel(words[0])->handle;
    const int second = word_count > 1 ? atoi(words[1]) : 0, third = word_count > 2 ? atoi(words[2]) : 0;
    int one = -1, two = -1, result;
    size_t bytes = 0;
    if (strcmp(verb, "occ") == 0)
        result = CU(cuOccupancyMaxActiveBlocksPerMultiprocessor)(&one, function, second, (size_t)third);
    else if (strcmp(verb, "occflags") == 0)
        result = CU(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags)(&one, function, second, (size_t)third, 1);
    else if (strcmp(verb, "occsize") == 0)
        result = CU(cuOccupancyMaxPotentialBlockSize)(&one, &two, function, NULL, (size_t)second, 0);
    else if (strcmp(verb, "occcallback") == 0)
        result =
            CU(cuOccupancyMaxPotentialBlockSize)(&one, &two, function, (void *)(uintptr_t)bytes_of, (size_t)second, 0);
    else if (strcmp(verb, "occsizeflags") == 0)
        result = CU(cuOccupancyMaxPotentialBlockSizeWithFlags)(&one, &two, function, NULL, (size_t)second, 0, 0);
    else if (strcmp(verb, "occavail") == 0) {
        result = CU(cuOccupancyAvailableDynamicSMemPerBlock)(&bytes, function, second, third);
        one = (int)bytes;
    } else {
        const Config config = {{(uint32_t)second, 1, 1},
                               {(uint32_t)third, 1, 1},
                               (uint32_t)atol(words[3]),
                               0,
                               NULL,
                               attributes,
                               attribute_count,
                               0};
        result = strcmp(verb, "occclusters") == 0 ? CU(cuOccupancyMaxActiveClusters)(&one, function, &config)
                                                  : CU(cuOccupancyMaxPotentialClusterSize)(&one, function, &config);
    }
    printf("occupancy %d %d\n", one, two);
    return result;
}

static int stream_word(const char *verb) {
    void *const stream = streams[atoi(words[0])];
    Attribute attribute;
    memset(&attribute, 0, sizeof attribute);
    attribute.value.number = word_count > 2 ? atoi(words[2]) : -99;
    if (strcmp(verb, "of") == 0) {
        int priority = 99, result = CU(cuStreamGetPriority)(stream, &priority);
        printf("priority %d\n", priority);
        return result;
    }
    if (strcmp(verb, "destroy") == 0)
        return CU(cuStreamDestroy_v2)(stream);
    if (strcmp(verb, "scopy") == 0)
        return CU(cuStreamCopyAttributes)(stream, streams[atoi(words[1])]);
    if (strcmp(verb, "sset") == 0)
        return CU(cuStreamSetAttribute)(stream, atoi(words[1]), &attribute.value);
    const int result = CU(cuStreamGetAttribute)(stream, atoi(words[1]), &attribute.value);
    printf("attribute %d\n", attribute.value.number);
    return result;
}

static void *greens[MOST];
static int green_count;

static int green(const char *verb) {
    static char all[1024], part[1024];
    unsigned groups = 1;
    void *context = NULL, *description = NULL;
    const int number = atoi(words[0]);
    int result;
    if (strcmp(verb, "greenstream") == 0) {
        result = CU(cuGreenCtxStreamCreate)(&streams[stream_count], greens[number], 1, atoi(words[1]));
        stream_count += result == 0;
        return result;
    }
    if (strcmp(verb, "greenend") == 0)
        return CU(cuGreenCtxDestroy)(greens[number]);
    if (strcmp(verb, "greencontext") == 0) {
        result = CU(cuCtxFromGreenCtx)(&context, greens[number]);
        return result ? result : CU(cuCtxSetCurrent)(context);
    }
    result = CU(cuDeviceGetDevResource)(device, all, 1);
    if (result == 0)
        result = CU(cuDevSmResourceSplitByCount)(part, &groups, all, NULL, 0, (unsigned)number);
    if (result == 0)
        result = CU(cuDevResourceGenerateDesc)(&description, part, 1);
    return result ? result : CU(cuGreenCtxCreate)(&greens[green_count++], description, device, 1);
}

static int context_word(const char *verb) {
    static void *contexts[MOST];
    static int context_count;
    void *context = NULL;
    if (strcmp(verb, "context") == 0)
        return CU(cuCtxCreate_v2)(&contexts[context_count++], 0, atoi(words[0]));
    if (strcmp(verb, "current") == 0)
        return CU(cuCtxSetCurrent)(contexts[atoi(words[0])]);
    if (strcmp(verb, "attach") == 0)
        return CU(cuCtxAttach)(&context, 0);
    if (strcmp(verb, "contextcache") == 0) {
        int config = -1, result = CU(cuCtxSetCacheConfig)(atoi(words[0]));
        CU(cuCtxGetCacheConfig)(&config);
        printf("config %d\n", config);
        return result;
    }
    CU(cuCtxGetCurrent)(&context);
    return strcmp(words[0], "destroy") == 0   ? CU(cuCtxDestroy_v2)(context)
           : strcmp(words[0], "detach") == 0  ? CU(cuCtxDetach)(context)
           : strcmp(words[0], "release") == 0 ? CU(cuDevicePrimaryCtxRelease_v2)(device)
           : strcmp(words[0], "none") == 0    ? CU(cuCtxSetCurrent)(NULL)
                                              : CU(cuDevicePrimaryCtxReset_v2)(device);
}

/* False: the word is about something else. */
static int query_word(const char *verb, int *result) {
    static const char *const attribute_words[] = {"set", "get", "cache", NULL};
    static const char *const stream_words[] = {"of", "destroy", "scopy", "sset", "sget", NULL};
    static const char *const context_words[] = {"context", "current", "attach", "contextcache", "endcontext", NULL};
    static const char *const green_words[] = {"green", "greenstream", "greencontext", "greenend", NULL};
    const struct {
        const char *const *verbs;
        int (*act)(const char *);
    } kinds[] = {{attribute_words, kernel_attribute},
                 {stream_words, stream_word},
                 {context_words, context_word},
                 {green_words, green}};
    for (size_t kind = 0; kind < sizeof kinds / sizeof *kinds; kind++)
        for (const char *const *known = kinds[kind].verbs; *known; known++)
            if (strcmp(verb, *known) == 0)
                return *result = kinds[kind].act(verb), 1;
    if (strncmp(verb, "occ", 3) != 0)
        return 0;
    return *result = occupancy(verb), 1;
}
