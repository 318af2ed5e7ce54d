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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *copy = malloc(size ? size : 1); /* of this very size, so that one byte behind it is noticed */
    if (!copy)
        abort();
    if (size)
        memcpy(copy, data, size);
    struct input input = {.start = copy, .end = copy + size};
    overlap_code_kernels(copy, size, "gfx90a", found, &input);
    overlap_code_kernels(copy, size, "gfx942", found, &input);
    overlap_code_kernels(copy, size, "sm_90", found, &input);
    tried++;
    accepted += input.found != 0;
    free(copy);
    return 0;
}

#ifndef WITH_LIBFUZZER
void fuzz_repair(uint8_t *input, size_t size, size_t changed) {
    (void)input, (void)size, (void)changed;
}

bool fuzz_announce(uint8_t *input, size_t size) {
    (void)input, (void)size;
    return false;
}
#endif
