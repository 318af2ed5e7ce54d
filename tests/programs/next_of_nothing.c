/* What dlsym says comes next, for names of drivers that are not there. */
#include <dlfcn.h>
#include <stdio.h>

int main(void) {
    static const char *const names[] = {"cuInit", "hipInit", "cudaLaunchKernel", "rocprofiler_configure", "cuNothing"};
    for (int i = 0; i < 5; i++)
        printf("%s %d %d\n", names[i], dlsym(RTLD_NEXT, names[i]) != NULL, dlsym(RTLD_DEFAULT, names[i]) != NULL);
    return dlsym(RTLD_NEXT, "puts") == NULL;
}
