/* Says which object holds what dlsym finds, from the program and from libraries (-DLIBRARY). Words of the program:
 * local=PATH and global=PATH open a library, ask=NAME looks a name up here, by=NAME in every library that is open. With
 * -DDEFINES: a library that defines the names itself. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#ifdef DEFINES
int cuInit(void), cuLaunchKernel(void), cudaLaunchKernel(void), hipLaunchKernel(void);
int cuInit(void) {
    return 77;
}
int cuLaunchKernel(void) {
    return 77;
}
int cudaLaunchKernel(void) {
    return 77;
}
int hipLaunchKernel(void) {
    return 77;
}
#else
static const char *holder(void *address) {
    Dl_info info;
    const char *slash = address && dladdr(address, &info) ? strrchr(info.dli_fname, '/') : NULL;
    return !address ? "nothing" : slash ? slash + 1 : "the program";
}

static void say(const char *how, void *found) {
    const char *error = dlerror();
    printf(" %s %s%s", how, holder(found), error ? ", error" : "");
}

void ask(const char *who, const char *name);
void ask(const char *who, const char *name) {
    dlerror();
    printf("%s in %s:", name, who);
    say("default", dlsym(RTLD_DEFAULT, name));
    say("next", dlsym(RTLD_NEXT, name));
    say("everything", dlsym(dlopen(NULL, RTLD_LAZY), name));
    printf("\n");
}

#ifndef LIBRARY
int main(int argc, char **argv) {
    void *open[8] = {NULL};
    int count = 0;
    for (int i = 1; i < argc; i++) {
        const char *value = strchr(argv[i], '=') + 1;
        if (strncmp(argv[i], "local=", 6) == 0)
            open[count++] = dlopen(value, RTLD_NOW | RTLD_LOCAL);
        else if (strncmp(argv[i], "global=", 7) == 0)
            open[count++] = dlopen(value, RTLD_NOW | RTLD_GLOBAL);
        else if (strncmp(argv[i], "ask=", 4) == 0)
            ask("the program", value);
        for (int k = 0; strncmp(argv[i], "by=", 3) == 0 && k < count; k++) {
            void (*other)(const char *, const char *) = (void (*)(const char *, const char *))dlsym(open[k], "ask");
            if (other)
                other("a library", value);
        }
    }
    return 0;
}
#endif
#endif
