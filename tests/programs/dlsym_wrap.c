/* Wraps functions of the library behind it, as LLVM's OpenMP runtime and many profilers do: it asks for the next
 * definition of its own name. A dlsym that answers for another caller finds this very function: endless recursion. */
#include <dlfcn.h>
#include <stddef.h>
int answer(void);
int cudnnCreate(void);
int from_default(const char *name);

static int next(const char *name) {
    int (*once)(void) = (int (*)(void))dlsym(RTLD_NEXT, name);
    int (*twice)(void) = (int (*)(void))dlsym(RTLD_NEXT, name);
    return once == NULL || once != twice ? -1000 : once() + 1;
}
int answer(void) {
    return next("answer");
}
int cudnnCreate(void) {
    return next("cudnnCreate");
}

/* What the library itself can see, where it was opened RTLD_LOCAL. */
int from_default(const char *name) {
    int (*found)(void) = (int (*)(void))dlsym(RTLD_DEFAULT, name);
    return found ? found() : -1;
}
