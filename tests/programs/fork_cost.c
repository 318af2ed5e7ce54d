/* Children that do nothing but exit, of a parent that has opened a GPU: how many pages each touched, for all of them. */
#include <dlfcn.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void) {
    void *driver = dlopen("libcuda.so.1", RTLD_NOW), *context;
    int device;
    if (!driver)
        return 2;
    int (*initialise)(unsigned) = (int (*)(unsigned))dlsym(driver, "cuInit");
    int (*get)(int *, int) = (int (*)(int *, int))dlsym(driver, "cuDeviceGet");
    int (*retain)(void **, int) = (int (*)(void **, int))dlsym(driver, "cuDevicePrimaryCtxRetain");
    if (initialise(0) || get(&device, 0) || retain(&context, device))
        return 2;
    enum { CHILDREN = 20 };
    for (int i = 0; i < CHILDREN; i++) {
        const pid_t child = fork();
        if (child == 0)
            _exit(0);
        waitpid(child, NULL, 0);
    }
    struct rusage used;
    getrusage(RUSAGE_CHILDREN, &used);
    printf("%ld\n", used.ru_minflt / CHILDREN);
    return 0;
}
