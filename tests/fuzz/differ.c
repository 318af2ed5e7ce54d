/* differ SEED CALLS RECORD [N,N...]: a program of random calls of a driver, and what they answered, a line each.
 *
 * N,N...: of its calls only these. What every call is, and with which arguments, comes from the seed and its number; see
 * differ.h. Threads take turns, so that the order of calls is always the same. */
#ifndef DIFFER_VENDOR /* compiled to be checked only: differ.py says which, and writes its rows */
typedef int differ_of_no_vendor;
#else

#include <dlfcn.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include DIFFER_VENDOR
#include DIFFER_ROWS

enum { ROWS = sizeof rows / sizeof *rows, THEMES = sizeof themes / sizeof *themes, THREADS = 3 };

static void (*ways[2][ROWS])(void);
static uint32_t choices[THEMES][16][ROWS + 1], counts[THEMES][16], fixed[THEMES][BLOCK][ROWS + 1],
    fixed_counts[THEMES][BLOCK];
static int is_timed[ROWS], ends_all[ROWS];

static int matches(const char *const *patterns, size_t count, const char *name) {
    for (size_t i = 0; i < count; i++)
        if (!fnmatch(patterns[i], name, 0))
            return 1;
    return 0;
}
#define MATCHES(patterns, name) matches(patterns, sizeof(patterns) / sizeof *(patterns), name)

static void expand(const char *pattern, uint32_t *into, uint32_t *count) {
    for (uint32_t row = 0; pattern && row < ROWS; row++)
        if (!fnmatch(pattern, rows[row].name, 0))
            into[(*count)++] = row;
    if (pattern && !*count) {
        fprintf(stderr, "differ: no row is named %s\n", pattern);
        _exit(3);
    }
}

static void prepare(void) {
    void *library = dlopen(DRIVER_FILE, RTLD_NOW);
    for (int row = 0; row < ROWS; row++) {
        void *found = library ? dlsym(library, rows[row].name) : NULL;
        ways[0][row] = rows[row].linked;
        memcpy(&ways[1][row], &found, sizeof found);
        is_timed[row] = MATCHES(timed, rows[row].name);
        ends_all[row] = MATCHES(ends, rows[row].name);
    }
    for (int theme = 0; theme < THEMES; theme++) {
        for (int i = 0; i < 16; i++)
            expand(themes[theme].about[i], choices[theme][i], &counts[theme][i]);
        for (int i = 0; i < BLOCK; i++)
            expand(themes[theme].fixed[i], fixed[theme][i], &fixed_counts[theme][i]);
    }
}

static uint32_t row_of_call(void) {
    const uint32_t theme = number < 2 * BLOCK ? 0 : of_block(900, THEMES), at = number % BLOCK;
    if (fixed_counts[theme][at] && roll(12))
        return fixed[theme][at][roll(fixed_counts[theme][at])];
    uint32_t about = 0, row = 0;
    while (about < 16 && counts[theme][about])
        about++;
    for (int again = 0; again < 30; again++) {
        const uint32_t by = roll(about);
        row = choices[theme][by][roll(counts[theme][by])];
        if (!MATCHES(rare, rows[row].name) || !roll(12))
            break;
    }
    return row;
}

static void call_one(uint32_t thread) {
    static _Thread_local unsigned block = UINT32_MAX;
    state = mixed(seed, number);
    if (number / BLOCK != block)
        enter_block(block == UINT32_MAX);
    block = number / BLOCK;
    out_count = shown_bytes = used_count = 0;
    memset(used, 0, sizeof used);
    many_kind = NO_KIND;
    doomed = NULL;
    const uint32_t row = row_of_call(), way = roll(2);
    say("%u %u %s ", number, thread, rows[row].name);
    if (!ways[way][row]) {
        say("missing\n");
        return;
    }
    const int result = rows[row].call(ways[way][row]);
    if (is_timed[row]) {
        after_timed();
        say("%d\n", result == 600 ? 0 : result);
        return;
    }
    say("%d", result);
    if (!result && doomed)
        end_slot(doomed);
    if (!result && ends_all[row])
        end_all();
    say_outs(!result);
    say_many(!result);
    say("\n");
}

/* ---- Threads, one at a time ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t turns = PTHREAD_COND_INITIALIZER;
static uint32_t turn; /* whose it is; THREADS: it is all over */
static unsigned *numbers, total, next;

static uint32_t thread_of(void) {
    const uint32_t one = of_block(901, THREADS + 2);
    return one < THREADS ? one : 0;
}
static void *run(void *argument) {
    const uint32_t me = (uint32_t)(uintptr_t)argument;
    pthread_mutex_lock(&lock);
    while (turn != THREADS) {
        if (turn != me) {
            pthread_cond_wait(&turns, &lock);
            continue;
        }
        while (next < total && (number = numbers[next], thread_of() == me)) {
            next++;
            call_one(me);
        }
        turn = next < total ? thread_of() : THREADS;
        pthread_cond_broadcast(&turns);
    }
    pthread_mutex_unlock(&lock);
    return NULL;
}

static void read_numbers(const char *text, unsigned count) {
    numbers = malloc((count + strlen(text ? text : "")) * sizeof *numbers);
    if (!numbers)
        _exit(3);
    for (char *at = (char *)(uintptr_t)text; text && *at; at += *at == ',')
        numbers[total++] = (unsigned)strtoul(at, &at, 10);
    for (unsigned i = 0; !text && i < count; i++)
        numbers[total++] = i;
}

int main(int argc, char **argv) {
    pthread_t threads[THREADS];
    if (argc < 4)
        return 2;
    seed = strtoull(argv[1], NULL, 0);
    verbose = getenv("DIFFER_ARGUMENTS") != NULL;
    uses_ended = getenv("SIMGPU_HANDLES") != NULL;
    read_numbers(argc > 4 ? argv[4] : NULL, (unsigned)strtoul(argv[2], NULL, 0));
    room = (size_t)total * 800 + 4096;
    const int file = open(argv[3], O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (file < 0 || ftruncate(file, (off_t)room))
        return 3;
    record = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (record == MAP_FAILED)
        return 3;
    prepare();
    for (uint32_t i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, run, (void *)(uintptr_t)i))
            return 3;
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    return ftruncate(file, (off_t)recorded) ? 3 : 0;
}

#endif
