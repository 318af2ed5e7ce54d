/* The reader of AMD's code objects, fed with bytes from anywhere (fuzz.h). Accepted: something was found in them. */
#include "../../shim/core/core.h"
#include "../../shim/core/zstd.h"

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

/* Memory of this very size, so that one byte behind it is noticed. */
static char *exactly(size_t size) {
    char *memory = malloc(size ? size : 1);
    if (!memory)
        abort();
    return memory;
}

static long kernels_of(const char *image, size_t size, const char *architecture) {
    struct input input = {.start = image, .end = image + size};
    overlap_code_kernels(image, size, architecture, found, &input);
    return input.found;
}

static long kernels_inside(const struct overlap_packed *packed, const char *architecture) {
    static struct overlap_zstd decoder;
    if (packed->unpacked > FUZZ_MOST) /* they would only cost time */
        return 0;
    char *inside = exactly((size_t)packed->unpacked);
    const bool good = overlap_zstd_read(&decoder, packed->at, packed->size, inside, (size_t)packed->unpacked);
    const long count = good ? kernels_of(inside, (size_t)packed->unpacked, architecture) : 0;
    free(inside);
    return count;
}

static bool fuzz_one(const uint8_t *data, size_t size) {
    static const char *const architectures[] = {"gfx90a", "gfx942", "sm_90"};
    char *copy = exactly(size);
    long count = 0;
    if (size)
        memcpy(copy, data, size);
    for (size_t i = 0; i < sizeof architectures / sizeof *architectures; i++) {
        struct overlap_packed packed;
        count += kernels_of(copy, size, architectures[i]);
        if (overlap_code_packed(copy, size, architectures[i], &packed))
            count += kernels_inside(&packed, architectures[i]);
    }
    free(copy);
    return count != 0;
}

static void fuzz_repair(uint8_t *input, size_t size, size_t changed) {
    (void)input, (void)size, (void)changed;
}

/* Of what is compressed, version 3. */
static bool fuzz_announce(uint8_t *input, size_t size) {
    const uint64_t whole = size;
    if (size < 16 || memcmp(input, "CCOB\3", 5) != 0)
        return false;
    memcpy(input + 8, &whole, sizeof whole);
    return true;
}
