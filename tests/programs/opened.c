/* A library that opens others: from a function, and from its constructor (EARLY). */
#include <dlfcn.h>
#include <stddef.h>

#ifndef VALUE
#define VALUE 1
#endif
int value(void);
int inner(void);
int value(void) {
    return VALUE;
}

/* INNER is a bare name: whether it is found is up to the RUNPATH, or the namespace, of this very library. */
#ifdef INNER
static int from(void *library) {
    int (*function)(void) = library ? (int (*)(void))dlsym(library, "value") : NULL;
    return function ? function() : -1;
}
#ifndef MODE
#define MODE RTLD_NOW
#endif
#ifndef OPEN
#define OPEN(path, mode) dlopen(path, mode)
#endif
#ifdef EARLY
static int early = -2;
__attribute__((constructor)) static void start(void) {
    early = from(OPEN(INNER, MODE));
}
int inner(void) {
    return early;
}
#else
int inner(void) {
    return from(OPEN(INNER, MODE));
}
#endif
#endif
