/* Launches a kernel of a code object the way Triton does: nothing is linked, everything comes by dlsym from a private dlopen.
 *
 *     dlsym_launch LIBRARY CODE_OBJECT KERNEL BLOCKS
 *
 * Prints the result of the launch.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

typedef int get_function(void **function, void *module, const char *name);
typedef int launch(void *function, unsigned blocks_x, unsigned blocks_y, unsigned blocks_z, unsigned threads_x,
                   unsigned threads_y, unsigned threads_z, unsigned dynamic, void *stream, void **arguments,
                   void **extra);

static void *library;

static void *find(const char *name) {
    void *const found = dlsym(library, name);
    if (found == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        exit(1);
    }
    return found;
}

int main(int count, char **words) {
    if (count < 5 || (library = dlopen(words[1], RTLD_NOW | RTLD_LOCAL)) == NULL) {
        fprintf(stderr, "%s\n", count < 5 ? "dlsym_launch LIBRARY CODE_OBJECT KERNEL BLOCKS" : dlerror());
        return 1;
    }
    int (*const allocate)(void **, size_t) = (int (*)(void **, size_t))find("hipMalloc");
    int (*const load)(void **, const char *) = (int (*)(void **, const char *))find("hipModuleLoad");
    int (*const synchronize)(void) = (int (*)(void))find("hipDeviceSynchronize");
    get_function *const function_of = (get_function *)find("hipModuleGetFunction");
    launch *const launch_kernel = (launch *)find("hipModuleLaunchKernel");
    void *data, *module, *communication, *kernel;
    if (allocate(&data, 4096) != 0 || load(&module, words[2]) != 0 ||
        function_of(&communication, module, "ncclDevKernel_Generic_2") != 0 ||
        function_of(&kernel, module, words[3]) != 0)
        return 1;
    void *arguments[] = {&data};
    const unsigned blocks = (unsigned)strtoul(words[4], NULL, 0);
    printf("%d\n", launch_kernel(communication, 16, 1, 1, 256, 1, 1, 0, NULL, arguments, NULL));
    printf("%d\n", launch_kernel(kernel, blocks, 1, 1, 256, 1, 1, 0, NULL, arguments, NULL));
    return synchronize();
}
