/* Registers of modules that come and go (vendor/hip/code.c): code_table IMAGE KERNELS REGISTERS MODULES. The image holds so many
 * kernels, k0 and on, of so many registers; it is loaded as so many modules. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "vendor/hip/hip.h"

enum { THREADS = 4, ROUNDS = 12 };

void *overlap_map(size_t size) {
    return calloc(1, size);
}
void overlap_unmap(void *memory, size_t size) {
    (void)size;
    free(memory);
}

static char *image;
static uint64_t size;
static uint32_t kernels, registers, modules;

static hipModule_t module_at(uintptr_t number) {
    return (hipModule_t)(0x7f0000000000 + number * 0x1c0);
}

/* How many of a module's kernels are known; what is known must be right. */
static uint32_t known(hipModule_t module) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < kernels; i++) {
        char name[16];
        snprintf(name, sizeof name, "k%u", i);
        const uint32_t found = code_registers(module, name);
        if (found && found != registers)
            abort();
        count += found != 0;
    }
    return count;
}

/* A module of its own, and one that all threads load. */
static void *churn(void *own) {
    uint32_t *least = own;
    const hipModule_t module = module_at((uintptr_t)least), shared = module_at(7);
    *least = kernels;
    for (int round = 0; round < ROUNDS; round++) {
        code_learn(module, image, size, "gfx90a");
        code_learn(shared, image, UINT64_MAX, "gfx90a");
        const uint32_t count = known(module);
        *least = count < *least ? count : *least;
        known(shared);
        code_forget(round % 2 ? module : shared, code_learned());
    }
    code_forget(module, code_learned());
    code_forget(shared, code_learned());
    return NULL;
}

int main(int argc, char **argv) {
    FILE *file = argc == 5 ? fopen(argv[1], "rb") : NULL;
    if (!file || fseek(file, 0, SEEK_END))
        return 2;
    size = (uint64_t)ftell(file);
    image = malloc(size);
    rewind(file);
    if (!image || fread(image, 1, size, file) != size || fclose(file))
        return 2;
    kernels = (uint32_t)atoi(argv[2]), registers = (uint32_t)atoi(argv[3]), modules = (uint32_t)atoi(argv[4]);

    printf("before: %u\n", known(module_at(1)));
    uint32_t all = kernels;
    for (uintptr_t i = 1; i <= modules; i++) {
        code_learn(module_at(i), image, size, "gfx90a");
        const uint32_t count = known(module_at(i));
        all = count < all ? count : all;
        code_forget(module_at(i), code_learned());
        if (known(module_at(i)))
            abort();
    }
    printf("one by one: %u\n", all);
    uint64_t together = 0;
    for (uintptr_t i = 1; i <= modules; i++)
        code_learn(module_at(i), image, size, "gfx90a");
    for (uintptr_t i = 1; i <= modules; i++)
        together += known(module_at(i));
    printf("all at once: %llu\n", (unsigned long long)together);
    for (uintptr_t i = 1; i <= modules; i++)
        code_forget(module_at(i), code_learned());

    pthread_t threads[THREADS];
    uint32_t least[THREADS];
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, churn, &least[i]))
            return 2;
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < THREADS; i++)
        printf("thread: %u\n", least[i]);
    return 0;
}
