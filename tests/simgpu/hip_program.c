/* A program as hipcc makes one, with declarations of its own: its code comes from the file that is named. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct {
    unsigned int x, y, z;
} dim3;

struct wrapper {
    unsigned int magic, version;
    const void *data;
    void *unused;
};

void **__hipRegisterFatBinary(const void *wrapper);
void __hipRegisterFunction(void **binary, const void *host, char *device, const char *name, unsigned int limit,
                           void *thread, void *block, dim3 *block_size, dim3 *grid_size, int *wave);
void __hipUnregisterFatBinary(void **binary);
int __hipPushCallConfiguration(dim3 grid, dim3 block, size_t shared, void *stream);
int __hipPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void **stream);
int hipLaunchKernel(const void *function, dim3 grid, dim3 block, void **arguments, size_t shared, void *stream);
int hipDeviceSynchronize(void);

/* The stub of a kernel: what k<<<...>>>(p) calls. */
static int k(float *p) {
    dim3 grid, block;
    size_t shared;
    void *stream, *arguments[] = {&p};
    __hipPopCallConfiguration(&grid, &block, &shared, &stream);
    return hipLaunchKernel((const void *)k, grid, block, arguments, shared, stream);
}

int main(int count, char **words) {
    static char name[] = "_Z1kPf";
    FILE *const file = count > 1 ? fopen(words[1], "rb") : NULL;
    const size_t room = 1 << 20;
    char *const code = calloc(1, room);
    if (file == NULL || code == NULL || fread(code, 1, room, file) == 0)
        return 1;
    const struct wrapper wrapper = {0x48495046, 1, code, NULL};
    void **const binary = __hipRegisterFatBinary(&wrapper);
    __hipRegisterFunction(binary, (const void *)k, name, name, -1u, NULL, NULL, NULL, NULL, NULL);
    const int pushed = __hipPushCallConfiguration((dim3){3, 2, 1}, (dim3){64, 1, 1}, 512, NULL);
    const int launched = k(NULL);
    printf("%d %d %d\n", pushed, launched, hipDeviceSynchronize());
    __hipUnregisterFatBinary(binary);
    fclose(file);
    free(code);
    return 0;
}
