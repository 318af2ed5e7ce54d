/* A program of another C library: it looks up names, ours among them, opens libraries and starts a thread. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *work(void *unused) {
    return dlsym(RTLD_DEFAULT, unused ? "strlen" : "strlen");
}

int main(void) {
    pthread_t thread;
    void *found;
    char *memory = malloc(100);
    pthread_create(&thread, NULL, work, memory);
    pthread_join(thread, &found);
    free(memory);
    printf("strlen %d\n", found == dlsym(RTLD_DEFAULT, "strlen") && found != NULL);
    printf("cuInit %d\n", dlsym(RTLD_DEFAULT, "cuInit") != NULL);
    printf("cuNobody %d %d\n", dlsym(RTLD_DEFAULT, "cuNobody") != NULL, dlerror() != NULL);
    printf("driver %d\n", dlopen("libcuda.so.1", RTLD_NOW) != NULL);
    printf("itself %d\n", dlopen(NULL, RTLD_NOW) != NULL);
    for (int mode = 0; mode < 16; mode++) { /* 8 is RTLD_DEEPBIND elsewhere */
        const char *text = dlopen("/nowhere/libmissing.so", mode) ? "found" : dlerror();
        printf("missing: %s, then %s\n", text ? text : "no error", dlerror() ? "another" : "none");
    }
    return 7;
}
