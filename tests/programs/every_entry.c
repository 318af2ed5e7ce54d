/* every_entry WAY, NAME:WORDS...: calls each of these functions of the driver, with 0 for every word that is 0, and the address
 * of one buffer of zeros for every one that is 1; prints what it answered, or which signal it ended with, and whether the
 * buffer was written to. What the driver does not survive nobody has to.
 * WAY: dlsym; symbol, which is what the program itself is bound to. */
#include "driver.h"

#include <setjmp.h>
#include <signal.h>

typedef uintptr_t W;
enum { SIZE = 4096, MOST = 12 };
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
    void *handle = strcmp(argv[1], "dlsym") ? RTLD_NEXT : driver_library();
    memset(before, 0, SIZE);
    for (int i = 2; i < argc; i++) {
        char *words = strchr(argv[i], ':');
        W w[MOST] = {0};
        *words++ = 0;
        for (int k = 0; k < MOST && words[k]; k++)
            w[k] = words[k] == '1' ? (W)buffer : 0;
        int (*function)(W, W, W, W, W, W, W, W, W, W, W, W) =
            (int (*)(W, W, W, W, W, W, W, W, W, W, W, W))dlsym(handle, argv[i]);
        memcpy(buffer, before, SIZE);
        int signal = sigsetjmp(back, 1);
        if (!function)
            printf("%s missing\n", argv[i]);
        else if (signal)
            printf("%s signal %d\n", argv[i], signal);
        else {
            const int result = function(w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7], w[8], w[9], w[10], w[11]);
            printf("%s %d %s\n", argv[i], result, memcmp(buffer, before, SIZE) ? "written" : "untouched");
        }
        fflush(stdout);
    }
    _exit(0); /* no more than that: a driver may be in any state now */
}
