/* An allocator in the manner of jemalloc: its first call asks dlsym for something, and whoever allocates meanwhile
 * would wait for itself. Never frees. At the end it says how often that was: before 2.34, glibc's own dlsym allocates
 * once in a program with threads, and a library in front of it must not add to that. */
#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static int state; /* 0 fresh, 1 starting, 2 ready */
static char *next, *end;
static int lock, meanwhile;

static void start(void) {
    int fresh = 0;
    if (__atomic_load_n(&state, __ATOMIC_ACQUIRE) == 2)
        return;
    if (__atomic_compare_exchange_n(&state, &fresh, 1, 0, __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE)) {
        (void)dlsym(RTLD_NEXT, "write"); /* found, so that the C library itself does not allocate for an error */
        __atomic_store_n(&state, 2, __ATOMIC_RELEASE);
    }
}

void *malloc(size_t size) {
    static __thread int inside __attribute__((tls_model("initial-exec")));
    if (inside) {
        meanwhile++;
    } else {
        inside = 1;
        start();
        inside = 0;
    }
    size = (size + 31) / 16 * 16;
    while (__atomic_exchange_n(&lock, 1, __ATOMIC_ACQUIRE))
        ;
    if (size > (size_t)(end - next)) {
        size_t room = size > (64u << 20) ? size : 64u << 20;
        next = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        end = next + room;
    }
    char *given = next;
    next += size;
    __atomic_store_n(&lock, 0, __ATOMIC_RELEASE);
    *(size_t *)(void *)given = size - 16;
    return given + 16;
}
void free(void *memory) {
    (void)memory;
}
void *calloc(size_t count, size_t size) {
    return malloc(count * size);
}
void *realloc(void *memory, size_t size) {
    void *made = malloc(size);
    if (memory) {
        size_t old = *(size_t *)(void *)((char *)memory - 16);
        memcpy(made, memory, old < size ? old : size);
    }
    return made;
}

__attribute__((destructor)) static void say(void) {
    char text[] = "0 allocations while the allocator started\n";
    text[0] = (char)(text[0] + (meanwhile < 9 ? meanwhile : 9));
    if (write(1, text, sizeof text - 1) < 0)
        _exit(98);
}
