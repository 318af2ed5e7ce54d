/* Looks whether there is a driver, and calls nothing of it. */
#include <dlfcn.h>
#include <stdio.h>

int main(void) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    printf("%d %d\n", library != NULL, library && dlsym(library, "cuInit") != NULL);
    return 0;
}
