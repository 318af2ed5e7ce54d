/* The reader of AMD's code objects, fed with bytes from anywhere (fuzz.h). Accepted: something was found in them. */
#include "../../shim/core/core.h"

#define FUZZ_MOST (1 << 20)
#include "fuzz.h"

struct input {
    const char *start, *end;
    long found;
};

static void found(void *context, const char *name, size_t length, uint32_t registers) {
    struct input *input = context;
    if (name < input->start || !length || length > (size_t)(input->end - name) || registers % 8 || registers < 8 ||
        registers > 512 || memchr(name, 0, length))
        abort();
    input->found++;
}

static long kernels_of(const char *image, size_t size, const char *architecture) {
    struct input input = {.start = image, .end = image + size};
    overlap_code_kernels(image, size, architecture, found, &input);
    return input.found;
}

static bool fuzz_one(const uint8_t *data, size_t size) {
    static const char *const architectures[] = {"gfx90a", "gfx942", "sm_90"};
    char *copy = malloc(size ? size : 1); /* of this very size, so that a read behind it is noticed */
    long count = 0;
    if (!copy)
        abort();
    if (size)
        memcpy(copy, data, size);
    for (size_t i = 0; i < sizeof architectures / sizeof *architectures; i++)
        count += kernels_of(copy, size, architectures[i]);
    free(copy);
    return count != 0;
}

static void fuzz_repair(uint8_t *input, size_t size, size_t changed) {
    (void)input, (void)size, (void)changed;
}

static bool fuzz_announce(uint8_t *input, size_t size) {
    (void)input, (void)size;
    return false;
}
