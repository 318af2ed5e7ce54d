/* The machine that the runtime finds: one CPU node, and one node for each GPU of SIMGPU=GPU[+GPU...][:RULE][,COUNT].
 *
 * The rule is simgpu's and means nothing here, because kernels are not timed.
 */
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "kfd.h"

enum { gfx90a = 9 << 16 | 0 << 8 | 10, gfx942 = 9 << 16 | 4 << 8 | 2 };

#define GPU(...) /* NVIDIA's: no GPU of this driver */
#define AMD(key, name, architecture, multiprocessors, shared, gib)                                                     \
    {#key, name, architecture >> 16, architecture >> 8 & 255, architecture & 255, multiprocessors, shared, gib},
static const struct kfd_gpu known[] = {
#include "gpu.def"
};
#undef GPU

enum { KNOWN = sizeof known / sizeof *known };

static struct kfd_gpu gpus[MAX_GPUS];
static uint32_t gpu_count;
static void *registers; /* a page that stands for the GPU's own, where the runtime flushes host writes */
static pthread_once_t once = PTHREAD_ONCE_INIT;

void kfd_say(const char *format, ...) {
    char line[512];
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

uint64_t kfd_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static const struct kfd_gpu *find(const char *key, size_t length) {
    for (size_t i = 0; i < KNOWN; i++)
        if (strlen(known[i].key) == length && memcmp(known[i].key, key, length) == 0)
            return &known[i];
    return NULL;
}

static void say_unknown(const char *text, size_t length) {
    char names[128] = "";
    for (size_t i = 0; i < KNOWN; i++) {
        const size_t at = strlen(names);
        snprintf(names + at, sizeof names - at, " %s", known[i].key);
    }
    kfd_say("SIMGPU: `%.*s` is no GPU of AMD that can be simulated; known:%s", (int)length, text, names);
}

static void read_environment(void) {
    const char *text = getenv("SIMGPU");
    if (text == NULL || *text == '\0')
        text = known[0].key;
    const struct kfd_gpu *kinds[MAX_GPUS];
    uint32_t kind_count = 0;
    for (;; text++) {
        const size_t length = strcspn(text, "+:,");
        const struct kfd_gpu *const kind = find(text, length);
        if (kind == NULL) {
            say_unknown(text, length);
            return;
        }
        if (kind_count == MAX_GPUS) {
            kfd_say("SIMGPU: more than %d GPUs", MAX_GPUS);
            return;
        }
        kinds[kind_count++] = kind;
        text += length;
        if (*text != '+')
            break;
    }
    if (*text == ':')
        text += strcspn(text, ",");
    long count = kind_count;
    if (*text == ',') {
        char *end;
        count = strtol(text + 1, &end, 10);
        if (end == text + 1 || *end != '\0' || count < 1 || count > MAX_GPUS) {
            kfd_say("SIMGPU: `%s` is not a number of GPUs from 1 to %d", text + 1, MAX_GPUS);
            return;
        }
    }
    for (long i = 0; i < count; i++)
        gpus[i] = *kinds[i % kind_count];
    registers = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    gpu_count = registers == MAP_FAILED ? 0 : (uint32_t)count;
}

const struct kfd_gpu *kfd_gpu_of(uint32_t node) {
    return node >= 1 && node <= gpu_count ? &gpus[node - 1] : NULL;
}

EXPORT int hsaKmtOpenKFD(void) {
    pthread_once(&once, read_environment);
    return gpu_count > 0 ? THUNK_SUCCESS : THUNK_ERROR;
}

EXPORT int hsaKmtCloseKFD(void) {
    return THUNK_SUCCESS;
}

EXPORT int hsaKmtGetVersion(struct thunk_version *version) {
    *version = (struct thunk_version){1, 8};
    return THUNK_SUCCESS;
}

EXPORT int hsaKmtAcquireSystemProperties(struct thunk_system *system) {
    *system = (struct thunk_system){.nodes = 1 + gpu_count};
    return THUNK_SUCCESS;
}

EXPORT int hsaKmtReleaseSystemProperties(void) {
    return THUNK_SUCCESS;
}

static void describe_cpu(struct thunk_node *node) {
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    node->cpu_cores = cores > 0 ? (uint32_t)cores : 1;
    node->memory_banks = 1;
    node->caches = 2;
    node->io_links = gpu_count;
    node->cpu_mhz = 2000;
    node->render_minor = -1;
    const char name[] = "simulated host";
    for (size_t i = 0; i < sizeof name; i++)
        node->marketing_name[i] = (uint8_t)name[i];
}

static void describe_gpu(struct thunk_node *node, const struct kfd_gpu *gpu, uint32_t index) {
    *node = (struct thunk_node){
        .simds = 4 * gpu->compute_units,
        .memory_banks = 4,
        .caches = 2,
        .io_links = gpu_count, /* to the CPU and to the others */
        .gpu_id_low = 0x80000000,
        .capability = CAPABILITY_DOORBELL_64 | CAPABILITY_WATCH_POINTS | CAPABILITY_COHERENT_HOST,
        .waves_per_simd = 8,
        .lds_kib = gpu->lds_bytes / 1024,
        .wave_size = 64,
        .shader_engines = 8,
        .arrays_per_engine = 1,
        .cus_per_array = (gpu->compute_units + 7) / 8,
        .simds_per_cu = 4,
        .scratch_slots_per_cu = 32,
        .engine = 64 | gpu->major << 10 | gpu->minor << 16 | gpu->stepping << 24,
        .vendor = 0x1002,
        .device = gpu->minor == 0 ? 0x7408 : 0x74a1,
        .location = (index + 1) << 8, /* bus 1, 2, ... */
        .local_memory = (uint64_t)gpu->memory_gib << 30,
        .gpu_mhz = 1700,
        .render_minor = 128 + (int32_t)index,
        .microcode = 8,
        .hive = 0x5f5f5f5f,
        .sdma_engines = 2,
        .sdma_xgmi_engines = 3,
        .sdma_queues_per_engine = 8,
        .cp_queues = 24,
        .gws = 64,
        .unique_id = 0x5100000000000001 + index,
        .vgpr_bytes_per_cu = 512 * 1024,
        .sgpr_bytes_per_cu = 12800,
        .dies = 1,
        .gpu_id = 1000 + index,
        .family = 141, /* AI: Vega and all that followed it in data centres */
    };
    for (size_t i = 0; gpu->name[i] != '\0'; i++)
        node->marketing_name[i] = (uint8_t)gpu->name[i];
    snprintf((char *)node->amd_name, sizeof node->amd_name, "simulated");
}

EXPORT int hsaKmtGetNodeProperties(uint32_t node, struct thunk_node *properties) {
    *properties = (struct thunk_node){0};
    const struct kfd_gpu *const gpu = kfd_gpu_of(node);
    if (gpu != NULL)
        describe_gpu(properties, gpu, node - 1);
    else if (node == 0)
        describe_cpu(properties);
    else
        return THUNK_INVALID_NODE;
    return THUNK_SUCCESS;
}

EXPORT int hsaKmtGetNodeMemoryProperties(uint32_t node, uint32_t count, struct thunk_memory *banks) {
    const struct kfd_gpu *const gpu = kfd_gpu_of(node);
    const long pages = sysconf(_SC_PHYS_PAGES);
    const struct thunk_memory host[] = {{.heap = HEAP_SYSTEM, .bytes = (uint64_t)pages * 4096, .width = 64}};
    /* The host may write to all of the GPU's memory ("large BAR"), as on servers with these GPUs. */
    const struct thunk_memory device[] = {
        {HEAP_VRAM_PUBLIC, gpu != NULL ? (uint64_t)gpu->memory_gib << 30 : 0, 0, 4096, 1600, 0},
        {HEAP_LDS, gpu != NULL ? gpu->lds_bytes : 0, 0, 0, 0, 0x1000000000000},
        {HEAP_SCRATCH, (uint64_t)4 << 30, 0, 0, 0, 0x2000000000000},
        {HEAP_MMIO_REMAP, 4096, 0, 0, 0, (uintptr_t)registers},
    };
    if (gpu == NULL && node != 0)
        return THUNK_INVALID_NODE;
    const struct thunk_memory *const known_banks = gpu != NULL ? device : host;
    const uint32_t known_count = gpu != NULL ? sizeof device / sizeof *device : 1;
    for (uint32_t i = 0; i < count && i < known_count; i++)
        banks[i] = known_banks[i];
    return THUNK_SUCCESS;
}

EXPORT int hsaKmtGetNodeCacheProperties(uint32_t node, uint32_t processor, uint32_t count, struct thunk_cache *caches) {
    const bool gpu = kfd_gpu_of(node) != NULL;
    for (uint32_t i = 0; i < count; i++)
        caches[i] = (struct thunk_cache){.processor = processor,
                                         .level = i + 1,
                                         .size = i == 0 ? 16 : 8192,
                                         .line_size = gpu ? 128 : 64,
                                         .lines_per_tag = 1,
                                         .type = CACHE_DATA | (gpu ? CACHE_OF_GPU : CACHE_OF_CPU)};
    return THUNK_SUCCESS;
}

EXPORT int hsaKmtGetNodeIoLinkProperties(uint32_t node, uint32_t count, struct thunk_link *links) {
    if (node > gpu_count)
        return THUNK_INVALID_NODE;
    uint32_t made = 0;
    for (uint32_t to = 0; to <= gpu_count && made < count; to++) {
        if (to == node)
            continue;
        const bool host = node == 0 || to == 0;
        links[made++] = (struct thunk_link){
            .type = host ? LINK_PCI_EXPRESS : LINK_XGMI, .from = node, .to = to, .weight = host ? 20 : 15};
    }
    return THUNK_SUCCESS;
}

/* One clock for everything, in nanoseconds: that of the host. */
EXPORT int hsaKmtGetClockCounters(uint32_t node, struct thunk_clocks *clocks) {
    (void)node;
    const uint64_t now = kfd_now();
    *clocks = (struct thunk_clocks){now, now, now, 1000000000};
    return THUNK_SUCCESS;
}
