/* Whose functions a program is given, one line each: the name, how it was asked for, the library that holds the answer. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

extern int cuGetProcAddress_v2(const char *, void **, int, uint64_t, int *);
extern int hipGetProcAddress(const char *, void **, int, uint64_t, int *);

static void say(const char *name, const char *how, void *answer) {
    Dl_info info;
    const char *slash = answer && dladdr(answer, &info) ? strrchr(info.dli_fname, '/') : "/nobody";
    printf("%s %s %s\n", name, how, slash ? slash + 1 : "itself");
}

int main(int argc, char **argv) {
    static const char *const names[] = {"cuInit",
                                        "cuLaunchKernel",
                                        "cuLaunchKernelEx_ptsz",
                                        "cuGetProcAddress_v2",
                                        "cuStreamWaitEvent",
                                        "cudaLaunchKernel",
                                        "cudaStreamCreate",
                                        "hipInit",
                                        "hipLaunchKernel",
                                        "hipModuleLaunchKernel",
                                        "hipGetProcAddress",
                                        "rocprofiler_set_api_table",
                                        "rocprofiler_configure",
                                        "ncclAllReduce"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        void *answer = NULL;
        int status;
        say(names[i], "everywhere", dlsym(RTLD_DEFAULT, names[i]));
        for (int library = 1; library < argc; library++)
            say(names[i], "there", dlsym(dlopen(argv[library], RTLD_LAZY), names[i]));
        const char *error = dlerror();
        printf("%s\n", error ? "an error" : "no error");
        if (strncmp(names[i], "cuda", 4) != 0 && cuGetProcAddress_v2(names[i], &answer, 13000, 0, &status) == 0)
            say(names[i], "from the driver", answer);
        answer = NULL;
        if (hipGetProcAddress(names[i], &answer, 70000000, 0, &status) == 0)
            say(names[i], "from HIP", answer);
    }
    return 0;
}
