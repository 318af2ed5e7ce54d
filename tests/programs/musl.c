/* A program of another C library: it looks up names, ours among them, and starts a thread. */
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
    return 7;
}
