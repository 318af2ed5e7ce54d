/* A plugin for plugin_host.c that asks for names of the driver in its own scope. */
#include <dlfcn.h>
#include <stdio.h>

#ifdef OWN_STUB
/* It defines the driver's name itself and opens the driver inside, as generated stubs do. */
int cuInit(unsigned flags);
int cuInit(unsigned flags) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    int (*real)(unsigned) = library ? (int (*)(unsigned))dlsym(library, "cuInit") : NULL;
    return real ? real(flags) : 999;
}
#else
extern int cuInit(unsigned flags);
#endif

int plugin_main(int argc, char **argv);
int plugin_main(int argc, char **argv) {
    (void)argc, (void)argv;
#ifndef OWN_STUB
    static const char *const names[] = {"cuLaunchKernel", "cuInit", "cuMemAlloc_v2", "cuNobodyHasThis"};
    for (int i = 0; i < 4; i++) {
        dlerror();
        void *found = dlsym(RTLD_DEFAULT, names[i]);
        const char *text = dlerror();
        printf("%s %d %s\n", names[i], found != NULL, text ? "error" : "no error");
    }
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    void *handles[] = {library, RTLD_DEFAULT};
    for (int i = 0; i < 2; i++) {
        dlerror();
        void *found = dlvsym(handles[i], "cuInit", "NO_SUCH_VERSION");
        const char *text = dlerror();
        printf("versioned %d %s\n", found != NULL, text ? "error" : "no error");
    }
#endif
    for (int i = 0; i < 3; i++)
        printf("cuInit %d\n", cuInit(0));
    return 0;
}
