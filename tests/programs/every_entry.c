/* every_entry null | buffer, WAY, NAME...: calls each of these functions of the driver with NULL, or with the address of one
 * buffer, for everything; prints what it answered, or which signal it ended with, and whether the buffer was written to.
 * What is not written to stays so in a wrapper, and what the driver does not survive nobody has to.
 * WAY: dlsym; symbol, which is what the program itself is bound to. */
#include "driver.h"

#include <setjmp.h>
#include <signal.h>

typedef uintptr_t W;
enum { SIZE = 4096 };
static sigjmp_buf back;

static void caught(int number) {
    siglongjmp(back, number);
}

int main(int argc, char **argv) {
    static unsigned char before[SIZE], buffer[SIZE] __attribute__((aligned(16)));
    struct sigaction action = {.sa_handler = caught, .sa_flags = SA_NODEFER};
    sigaction(SIGSEGV, &action, NULL);
    sigaction(SIGBUS, &action, NULL);
    driver_start();
    void *handle = strcmp(argv[2], "dlsym") ? RTLD_NEXT : driver_library();
    memset(before, 0, SIZE);
    for (int i = 3; i < argc; i++) {
        int (*function)(W, W, W, W, W, W, W, W, W, W, W, W) =
            (int (*)(W, W, W, W, W, W, W, W, W, W, W, W))dlsym(handle, argv[i]);
        const W a = strcmp(argv[1], "null") ? (W)buffer : 0;
        memcpy(buffer, before, SIZE);
        int signal = sigsetjmp(back, 1);
        printf("%s ", argv[i]);
        if (!function)
            printf("missing\n");
        else if (signal)
            printf("signal %d\n", signal);
        else
            printf("%d %s\n", function(a, a, a, a, a, a, a, a, a, a, a, a),
                   memcmp(buffer, before, SIZE) ? "written" : "untouched");
        fflush(stdout);
    }
    _exit(0); /* no more than that: a driver may be in any state now */
}
