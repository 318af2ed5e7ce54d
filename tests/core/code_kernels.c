/* Prints the kernels of a file for an architecture: code_kernels ARCHITECTURE FILE [whole]. whole: the file is in memory, and
 * nobody says how long it is. */
#include <stdio.h>
#include <stdlib.h>

#include "core/core.h"

static void found(void *context, const char *name, size_t length, uint32_t registers) {
    (void)context;
    printf("%.*s %u\n", (int)length, name, registers);
}

int main(int argc, char **argv) {
    FILE *file = argc > 2 ? fopen(argv[2], "rb") : NULL;
    if (!file || fseek(file, 0, SEEK_END))
        return 2;
    const size_t size = (size_t)ftell(file);
    char *image = malloc(size ? size : 1);
    rewind(file);
    if (!image || fread(image, 1, size, file) != size)
        return 2;
    const uint64_t said = argc > 3 ? UINT64_MAX : size;
    overlap_code_kernels(image, said, argv[1], found, NULL);
    free(image);
    return fclose(file);
}
