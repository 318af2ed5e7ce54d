/* A function that is chosen while the library is bound, by what dlsym and its like say then (STT_GNU_IFUNC). */
#include <dlfcn.h>
#include <stddef.h>

#ifndef NODE
#define NODE "GLIBC_2.34"
#endif
#ifndef DRIVER
#define DRIVER "cuLaunchKernel"
#endif

static int yes(void) {
    return 42;
}
static int no(void) {
    return 0;
}
static int (*chosen(void *found))(void) {
    return found ? yes : no;
}

__attribute__((used)) static int (*by_default(void))(void) {
    return chosen(dlsym(RTLD_DEFAULT, "strlen"));
}
__attribute__((used)) static int (*by_driver(void))(void) {
    return chosen(dlsym(RTLD_DEFAULT, DRIVER));
}
__attribute__((used)) static int (*by_next(void))(void) {
    return chosen(dlsym(RTLD_NEXT, "strlen"));
}
__attribute__((used)) static int (*by_version(void))(void) {
    return chosen(dlvsym(RTLD_DEFAULT, "strlen", NODE));
}

/* Called from here alone, so that they are chosen when this library is bound, not when the program is. */
#define CHOSEN(resolver) __attribute__((ifunc(#resolver), visibility("hidden")))
int ask_default(void) CHOSEN(by_default);
int ask_driver(void) CHOSEN(by_driver);
int ask_next(void) CHOSEN(by_next);
int ask_version(void) CHOSEN(by_version);

void ask(int answers[4]);
void ask(int answers[4]) {
    answers[0] = ask_default();
    answers[1] = ask_driver();
    answers[2] = ask_next();
    answers[3] = ask_version();
}
