/* The simulated GPU's readers of code, fed with bytes from anywhere (fuzz.h): cubins, fat binaries and PTX, or with -DHIP code
 * objects and their bundles; of known size, and in memory of which nobody says where it ends. Accepted: a kernel was found.
 */
#include "../../tools/simgpu/image.h"

#define FUZZ_MOST (1 << 18)
#include "fuzz.h"

#ifdef HIP
static const struct gpu gpu = {.key = "mi250x", .name = "", .architecture = "gfx90a"};
#else
static const struct gpu gpu = {.key = "h100", .name = "", .major = 9};
#endif

void sim_say(const char *format, ...) {
    (void)format;
}

/* What the simulated driver reads of an image: one byte too many is noticed. */
static bool use(const struct image *image) {
    static volatile size_t sum;
    for (uint32_t i = 0; i < image->kernels; i++)
        sum += strlen(image->kernel[i].name) + sim_parameter_bytes(&image->kernel[i]);
    for (uint32_t i = 0; i < image->globals; i++) {
        const uint8_t *const initial = image->global[i].initial;
        sum += strlen(image->global[i].name) +
               (initial && image->global[i].bytes ? initial[image->global[i].bytes - 1] : 0);
    }
    return image->kernels != 0 && sum != SIZE_MAX;
}

static bool load(const void *data, size_t size, bool size_known) {
    struct image *image = NULL;
    if (sim_image_load(data, size, size_known, &gpu, &image) != CUDA_SUCCESS)
        return false;
    const bool found = use(image);
    sim_image_release(image);
    return found;
}

/* The bytes at the end of the last page before one that nobody may read. */
static const uint8_t *at_the_end(const uint8_t *data, size_t size) {
    enum { GUARD = 1 << 16 };
    static uint8_t *memory;
    if (!memory) {
        memory = mmap(NULL, FUZZ_MOST + GUARD, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED || mprotect(memory + FUZZ_MOST, GUARD, PROT_NONE))
            abort();
    }
    return size ? memcpy(memory + FUZZ_MOST - size, data, size) : memory + FUZZ_MOST;
}

static bool fuzz_one(const uint8_t *data, size_t size) {
    /* Behind this magic number stands an address, and any address may be one of ours. */
    static const uint8_t wrapper[] = {0xb1, 0x43, 0x62, 0x46};
    if (size > FUZZ_MOST || (size >= sizeof wrapper && memcmp(data, wrapper, sizeof wrapper) == 0))
        return false;
    uint8_t *const copy = malloc(size ? size : 1); /* of this very size, so that one byte behind it is noticed */
    if (!copy)
        abort();
    if (size)
        memcpy(copy, data, size);
    const bool found = load(copy, size, true);
    free(copy);
    return load(at_the_end(data, size), 0, false) || found;
}

static void fuzz_repair(uint8_t *data, size_t size, size_t changed) {
    (void)data, (void)size, (void)changed;
}

static bool fuzz_announce(uint8_t *data, size_t size) {
    (void)data, (void)size;
    return false;
}
