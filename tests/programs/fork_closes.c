/* A child of a fork in which one thread opens and closes a library while another one calls a function of NVIDIA's runtime, of
 * which there is none: all objects are searched for it each time. Ends as the child does. */
#include <dlfcn.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

extern int cudaStreamCreate(void **) __attribute__((weak));

enum { TIMES = 3000 };
static int ended;

static void *close_often(void *library) {
    for (int i = 0; i < TIMES; i++) {
        void *const opened = dlopen("libutil.so.1", RTLD_NOW);
        if (opened)
            dlclose(opened);
    }
    __atomic_store_n(&ended, 1, __ATOMIC_RELEASE);
    return library;
}

int main(void) {
    int status = 1;
    const pid_t child = fork();
    if (child == 0) {
        pthread_t thread;
        void *stream;
        pthread_create(&thread, NULL, close_often, NULL);
        while (!__atomic_load_n(&ended, __ATOMIC_ACQUIRE))
            if (cudaStreamCreate(&stream) == 0)
                _exit(2);
        _exit(0);
    }
    waitpid(child, &status, 0);
    return status != 0;
}
