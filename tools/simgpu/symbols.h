/* What the code that nvcc and hipcc write registers before main: host addresses that stand for kernels of a fat binary.
 * Each of the two runtimes includes this once, before it says what a struct binary is. */
#ifndef SIMGPU_SYMBOLS_H
#define SIMGPU_SYMBOLS_H

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

enum { BUCKETS = 1024, SYMBOL_DEVICES = 16 };

struct binary;

struct symbol {
    const void *host;
    const char *name; /* the program's own, like host */
    struct binary *binary;
    void *found[SYMBOL_DEVICES]; /* the kernel's handle; of CUDA's, which are for all devices, in the first */
    struct symbol *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of all below */
static struct symbol *symbols[BUCKETS];

static struct symbol **bucket_of(const void *host) {
    return &symbols[((uintptr_t)host >> 4) % BUCKETS];
}

static struct symbol *find(const void *host) {
    struct symbol *symbol = *bucket_of(host);
    while (symbol != NULL && symbol->host != host)
        symbol = symbol->next;
    return symbol;
}

static void add(void **binary, const void *host, const char *name) {
    struct symbol *const symbol = binary != NULL ? calloc(1, sizeof *symbol) : NULL;
    if (symbol == NULL)
        return; /* a launch of it will say that there is no such function */
    *symbol = (struct symbol){.host = host, .name = name, .binary = (struct binary *)(void *)binary};
    pthread_mutex_lock(&lock);
    struct symbol **const bucket = bucket_of(host);
    symbol->next = *bucket;
    *bucket = symbol;
    pthread_mutex_unlock(&lock);
}

/* All of a binary, with the lock. */
static void forget_symbols(const struct binary *binary) {
    for (size_t i = 0; i < BUCKETS; i++)
        for (struct symbol **at = &symbols[i]; *at != NULL;) {
            struct symbol *const symbol = *at;
            if (symbol->binary != binary) {
                at = &symbol->next;
                continue;
            }
            *at = symbol->next;
            free(symbol);
        }
}

#endif
