/* What the environment says: which GPU, where the logs go. Read once, in cuInit. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim.h"

#define GPU(key, name, major, minor, multiprocessors, threads, blocks, registers, shared, optin, gib)                  \
    {#key, name, major, minor, multiprocessors, threads, blocks, registers, shared, optin, gib, NULL, 0},
/* The limits are those of gpu.c; major and minor are in the architecture. */
#define AMD(key, name, architecture, multiprocessors, shared, gib)                                                     \
    {#key, name, 0, 0, multiprocessors, 4 * 8 * 64, 32, 4 * 512 * 64, shared, shared, gib, #architecture, 0},
static const struct gpu gpus[] = {
#include "gpu.def"
};
#undef AMD
#undef GPU

enum { GPU_COUNT = sizeof gpus / sizeof *gpus };

struct config sim_config = {.devices = 1, .driver_version = 13000};

void sim_say(const char *format, ...) {
    char line[1024];
    const int head = snprintf(line, sizeof line, "simgpu: ");
    va_list arguments;
    va_start(arguments, format);
    int length = head + vsnprintf(line + head, sizeof line - (size_t)head - 1, format, arguments);
    va_end(arguments);
    if (length > (int)sizeof line - 2)
        length = (int)sizeof line - 2;
    line[length++] = '\n';
    const ssize_t written = write(STDERR_FILENO, line, (size_t)length);
    (void)written;
}

static const struct gpu *find_gpu(const char *key, size_t length) {
    for (size_t i = 0; i < GPU_COUNT; i++)
        if (strlen(gpus[i].key) == length && memcmp(gpus[i].key, key, length) == 0)
            return &gpus[i];
    return NULL;
}

static void say_unknown_gpu(const char *text, size_t length) {
    char known[256] = "";
    for (size_t i = 0; i < GPU_COUNT; i++) {
        const size_t at = strlen(known);
        snprintf(known + at, sizeof known - at, " %s", gpus[i].key);
    }
    sim_say("SIMGPU: no GPU is called `%.*s`; known:%s", (int)length, text, known);
}

/* One or more keys with `+` between them; `end` is where they end. Devices take them in turn. */
static int read_kinds(const char *text, const struct gpu **kinds, const char **end) {
    int count = 0;
    for (;;) {
        const size_t length = strcspn(text, "+,");
        const struct gpu *const found = find_gpu(text, length);
        if (found == NULL) {
            say_unknown_gpu(text, length);
            return 0;
        }
        if (count == MAX_DEVICES) {
            sim_say("SIMGPU: more than %d GPUs", MAX_DEVICES);
            return 0;
        }
        kinds[count++] = found;
        text += length;
        if (*text != '+')
            break;
        text++;
    }
    *end = text;
    return count;
}

/* gfx90a is 9.0, step a. */
static void version_of(struct gpu *gpu) {
    const char *const digits = gpu->architecture + 3;
    const size_t length = strlen(digits);
    for (size_t i = 0; i + 2 < length; i++)
        gpu->major = gpu->major * 10 + digits[i] - '0';
    gpu->minor = digits[length - 2] - '0';
}

/* Those of the other vendor are devices of the other library: here there are none of them. */
static void take_ours(const struct gpu *const *kinds, int count) {
    const int all = sim_config.devices;
    sim_config.devices = 0;
    for (int i = 0; i < all; i++) {
        struct gpu *const gpu = &sim_config.gpus[sim_config.devices];
        *gpu = *kinds[i % count];
        if ((gpu->architecture != NULL) != IS_AMD)
            continue;
        if (IS_AMD)
            version_of(gpu);
        gpu->number = sim_config.devices++;
    }
#ifdef SIMGPU_HIP
    sim_config_hide();
#endif
}

/* GPU[+GPU...][,COUNT] */
static CUresult read_gpu(const char *text) {
    const struct gpu *kinds[MAX_DEVICES];
    const int count = read_kinds(text, kinds, &text);
    if (count == 0)
        return CUDA_ERROR_NO_DEVICE;
    sim_config.devices = count;
    if (*text == ',') {
        char *end;
        const long devices = strtol(text + 1, &end, 10);
        if (end == text + 1 || *end != '\0' || devices < 1 || devices > MAX_DEVICES) {
            sim_say("SIMGPU: `%s` is not a number of GPUs from 1 to %d", text + 1, MAX_DEVICES);
            return CUDA_ERROR_NO_DEVICE;
        }
        sim_config.devices = (int)devices;
    }
    take_ours(kinds, count);
    return sim_config.devices > 0 ? CUDA_SUCCESS : CUDA_ERROR_NO_DEVICE;
}

/* A slice of a GPU (MIG) has fewer multiprocessors than its name says. */
static CUresult read_multiprocessors(void) {
    const char *const text = getenv("SIMGPU_MULTIPROCESSORS");
    if (text == NULL || *text == '\0')
        return CUDA_SUCCESS;
    char *end;
    const long wanted = strtol(text, &end, 10);
    for (int i = 0; i < sim_config.devices; i++) {
        struct gpu *const gpu = &sim_config.gpus[i];
        if (end == text || *end != '\0' || wanted < 1 || wanted > gpu->multiprocessors) {
            sim_say("SIMGPU_MULTIPROCESSORS: `%s` is not a number from 1 to %d", text, gpu->multiprocessors);
            return CUDA_ERROR_INVALID_VALUE;
        }
        gpu->multiprocessors = (int)wanted;
    }
    return CUDA_SUCCESS;
}

static CUresult read_version(void) {
    const char *const text = getenv("SIMGPU_DRIVER_VERSION");
    if (text == NULL || *text == '\0')
        return CUDA_SUCCESS;
    char *end;
    const long version = strtol(text, &end, 10);
    if (*end != '\0' || version < 1000 || version >= 100000) {
        sim_say("SIMGPU_DRIVER_VERSION: `%s` is not a version such as 12080", text);
        return CUDA_ERROR_INVALID_VALUE;
    }
    sim_config.driver_version = (int)version;
    return CUDA_SUCCESS;
}

/* GLOB:NUMBER */
static CUresult read_limit(const char *variable, const char *unit, struct limit *limit) {
    const char *const text = getenv(variable);
    if (text == NULL || *text == '\0')
        return CUDA_SUCCESS;
    const char *const colon = strrchr(text, ':');
    char *end = NULL;
    const unsigned long number = colon != NULL ? strtoul(colon + 1, &end, 10) : 0;
    if (colon == NULL || colon == text || end == colon + 1 || *end != '\0') {
        sim_say("%s: `%s` is not GLOB:%s", variable, text, unit);
        return CUDA_ERROR_INVALID_VALUE;
    }
    free(limit->glob);
    limit->glob = strndup(text, (size_t)(colon - text));
    limit->number = number;
    return CUDA_SUCCESS;
}

static const char *path_of(const char *variable) {
    const char *const path = getenv(variable);
    return path != NULL && *path != '\0' ? path : NULL;
}

/* A variable that is unset, empty, or this one word. */
static CUresult read_word(const char *variable, const char *word, bool *chosen) {
    const char *const text = path_of(variable);
    *chosen = text != NULL && strcmp(text, word) == 0;
    if (text == NULL || *chosen)
        return CUDA_SUCCESS;
    sim_say("%s: `%s` is not `%s`", variable, text, word);
    return CUDA_ERROR_INVALID_VALUE;
}

CUresult sim_config_read(void) {
    const char *const gpu = path_of("SIMGPU");
    CUresult result = read_gpu(gpu != NULL ? gpu : DEFAULT_GPU);
    if (result == CUDA_SUCCESS)
        result = read_multiprocessors();
    if (result == CUDA_SUCCESS)
        result = read_word("SIMGPU_INVALID", "crashes", &sim_config.crashes);
    if (result == CUDA_SUCCESS)
        result = read_word("SIMGPU_HANDLES", "fresh", &sim_config.fresh_handles);
    if (result == CUDA_SUCCESS)
        result = read_version();
    if (result == CUDA_SUCCESS)
        result = read_limit("SIMGPU_REFUSE", "BYTES", &sim_config.refuse);
    if (result == CUDA_SUCCESS)
        result = read_limit("SIMGPU_NO_ATTRIBUTES", "CODE", &sim_config.no_attributes);
    const char *const costs = path_of("SIMGPU_COSTS");
    if (result == CUDA_SUCCESS && costs != NULL)
        result = sim_costs_read(costs);
    const char *const launches = path_of("SIMGPU_LAUNCHES"), *const trace = path_of("SIMGPU_TRACE");
    sim_config.launches = launches != NULL ? strdup(launches) : NULL;
    sim_config.trace = trace != NULL ? strdup(trace) : NULL;
    return result;
}
