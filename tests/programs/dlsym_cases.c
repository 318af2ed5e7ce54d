/* What programs do with dlsym, one case per argument; prints what came of it. Never launches anything. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef __GLIBC__ /* the only one with versions of symbols */
#define dlvsym(handle, name, version) ((void *)0)
#endif

static int call(void *function) {
    return function ? ((int (*)(void))function)() : -1;
}
static const char *error(void) {
    static char kept[2][512];
    static int which;
    const char *text = dlerror();
    snprintf(kept[which ^= 1], sizeof *kept, "%s", text ? text : "none");
    return kept[which];
}

static void *ask(void *name) {
    return dlsym(RTLD_DEFAULT, name);
}
/* The same, whenever it is asked; or something that cannot be. */
static void *ask_next(void *name) {
    void *first = dlsym(RTLD_NEXT, name);
    for (int i = 0; i < 100; i++)
        if (dlsym(RTLD_NEXT, name) != first)
            return name;
    return first;
}

int main(int argc, char **argv) {
    for (int i = 1; i + 1 < argc; i += 2) {
        const char *word = argv[i];
        char *value = argv[i + 1];
        if (!strcmp(word, "wrap") || !strcmp(word, "local")) {
            void *library = dlopen(value, RTLD_NOW | RTLD_LOCAL);
            printf("%s %d", word, call(dlsym(library, "answer")));
            printf(" %d\n", call(dlsym(library, "cudnnCreate")));
            int (*from_default)(const char *) = (int (*)(const char *))dlsym(library, "from_default");
            if (!strcmp(word, "local"))
                printf("default %d %d %d\n", from_default("answer"), from_default("cudnnCreate"),
                       from_default("cuNobody"));
        } else if (!strcmp(word, "handle")) {
            void *library = dlopen(value, RTLD_NOW | RTLD_LOCAL);
            printf("handle %d %d\n", call(dlsym(library, "cudnnCreate")), call(dlsym(library, "cuLaunchKernel")));
            printf("versioned %d\n", call(dlvsym(library, "cuLaunchKernel", "NOBODY_1")));
        } else if (!strcmp(word, "error")) {
            printf("before: %s\n", error());
            printf("%d ", dlsym(RTLD_DEFAULT, value) != NULL);
            printf("%s", error());
            printf(", then %s\n", error());
            printf("%d ", dlsym(RTLD_NEXT, value) != NULL);
            printf("%s", error());
            printf(", then %s\n", error());
            printf("%d ", dlvsym(RTLD_DEFAULT, value, "NOBODY_1") != NULL);
            printf("%s", error());
            printf(", then %s\n", error());
            dlsym(RTLD_DEFAULT, value);
            printf("found %d ", dlsym(RTLD_DEFAULT, "printf") != NULL);
            printf("%s\n", error());
        } else if (!strcmp(word, "weak")) {
            dlerror();
            void *found = dlsym(RTLD_DEFAULT, value);
            const char *text = dlerror();
            printf("%s %s %s\n", value, found ? "there" : "missing", text ? "with error" : "without error");
        } else if (!strcmp(word, "real")) {
            void *(*old)(void *, const char *) = (void *(*)(void *, const char *))dlvsym(RTLD_NEXT, "dlsym", value);
            printf("real %d %d\n", old != NULL,
                   old && old(RTLD_DEFAULT, "strlen") == (void *)dlsym(RTLD_DEFAULT, "strlen"));
        } else if (!strcmp(word, "threads") || !strcmp(word, "next")) {
            pthread_t threads[8];
            void *found[8];
            int equal = 0, there = 0, next = *word == 'n';
            for (int k = 0; k < 8; k++)
                pthread_create(&threads[k], NULL, next ? ask_next : ask, value);
            for (int k = 0; k < 8; k++) {
                pthread_join(threads[k], &found[k]);
                equal += found[k] == found[0] && found[k] != value;
                there += found[k] != NULL;
            }
            if (next)
                printf("next %d, %d of 8 alike\n", there, equal);
            else
                printf("threads %d\n", equal);
        }
    }
    return 0;
}
