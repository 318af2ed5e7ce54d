/* On the stub driver that counts. odd kernels N: kernels k0 to kN-1 in one module, each launched twice | odd names: kernels of long
 * and strange names. Prints how many launches failed, and how many of odd and even kernels had another size. */
#define WAY_LINKED
#include "driver.h"

extern int stub_launched(int odd), stub_changed(int odd);

static void *module;
static int failed;

static void launch(const char *name, int times) {
    void *function = NULL;
    failed += cuModuleGetFunction(&function, module, name) != 0;
    for (int i = 0; i < times; i++)
        failed += launch_kernel(function, 4000, 256, NULL) != 0;
}

/* Of so many bytes, the last of which is `last`. */
static void launch_long(size_t length, char filler, char last) {
    char *name = malloc(length + 1);
    memset(name, filler, length);
    name[length - 1] = last;
    name[length] = 0;
    launch(name, 3);
    free(name);
}

int main(int argc, char **argv) {
    driver_start();
    failed += cuModuleLoadData(&module, "x") != 0;
    if (argc > 2)
        for (int i = 0; i < atoi(argv[2]); i++) {
            char name[32];
            snprintf(name, sizeof name, "k%d", i);
            launch(name, 2);
        }
    else {
        static const size_t lengths[] = {1, 127, 4095, 4096, 4097, 65535, 65536, 200000};
        for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
            launch_long(lengths[i], 'x', 'x');
            launch_long(lengths[i], 'x', 'y');
            launch_long(lengths[i], (char)0xff, (char)0x80);
        }
        launch("", 3);
        launch("\xc3\x28\x01\x7f\"\\\n%s{}", 3);
        launch("_Z", 3);
        launch("_ZN99999999999999999999aE", 3);
        launch("_ZZZZZZZZZZZZZZZZZZZZ", 3);
    }
    printf("failed: %d, odd: %d of %d changed, even: %d of %d\n", failed, stub_changed(1), stub_launched(1),
           stub_changed(0), stub_launched(0));
    return 0;
}
