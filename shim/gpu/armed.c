/* Is the library armed in this process? Also the fork handler. */
#include <errno.h>
#include <sys/auxv.h>

#include "../sys/sys.h"
#include "../sys/system.h"
#include "launch.h"
#include "page.h"

/* Names that no program may define (ISO C 7.1.3). */
extern unsigned long __getauxval(unsigned long type) __attribute__((weak));
extern int __register_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void), void *handle)
    __attribute__((weak));
extern void *__dso_handle __attribute__((visibility("hidden"), weak));

static uint32_t table_decoded = OVERLAP_FRESH;
static const char *wrong; /* why the table is ignored, or NULL */
static uint32_t wrong_said = OVERLAP_FRESH;

/* A forked child starts with empty counters; it gets a page of its own when it first uses a GPU. */
static void in_child(void) {
    overlap_start.forked = true;
    overlap_start.objects = overlap_object_count();
    overlap_bind_forked();
    if (!overlap_start.settings.table) /* no driver was used: nothing else has been written */
        return;
    const bool used = overlap_page_used();
    __atomic_store_n(&table_decoded, OVERLAP_DONE, __ATOMIC_RELAXED);
    overlap_wait_forked();
    overlap_page_forked();
    launch_forked(used);
}

/* glibc's shared libraries export pthread_atfork(3) for old programs only; __register_atfork is what it calls. Allocates nothing. */
void overlap_watch_forks(void) {
    static bool watched;
    if (!__register_atfork || __atomic_exchange_n(&watched, true, __ATOMIC_RELAXED))
        return;
    const int saved = errno;
    __register_atfork(NULL, NULL, in_child, &__dso_handle ? __dso_handle : NULL);
    errno = saved;
}

/* Other C libraries have pthread_atfork only, which allocates. So it is called when a driver is used, not at start: without a driver
 * there is nothing that a child must not inherit. */
static void watch_forks_late(void) {
    const int saved = errno;
    int (*at_fork)(void (*)(void), void (*)(void), void (*)(void)) =
        __register_atfork ? NULL
                          : (int (*)(void (*)(void), void (*)(void), void (*)(void)))overlap_libc("pthread_atfork");
    if (at_fork)
        at_fork(NULL, NULL, in_child);
    errno = saved;
}

/* In place: the bytes are fewer than the characters they come from. */
static void decode_table(void) {
    /* A program with raised rights ignores our variables (getauxval(3)). Not checked before a driver is used: until then nothing is
     * done with the copied text. */
    if (__getauxval && __getauxval(AT_SECURE))
        return;
    size_t size = overlap_decode_base64(overlap_start.text, overlap_start.length, (uint8_t *)overlap_start.text);
    wrong = size == SIZE_MAX ? "it is not base64" : overlap_table_check(overlap_start.text, size);
    if (wrong)
        return;
    overlap_find_rank(&overlap_start.settings);
    overlap_start.settings.table = overlap_start.text;
    overlap_watch_forks();
    watch_forks_late();
}

const struct overlap_settings *overlap_settings(void) {
    if (!overlap_is_set_up() || !overlap_once(&table_decoded, decode_table))
        return NULL;
    return overlap_start.settings.table ? &overlap_start.settings : NULL;
}

static void say_what_is_wrong(void) {
    overlap_say("the policy in OVERLAP_TABLE is ignored: ", wrong, ": nothing is done here");
}

const struct overlap_settings *overlap_armed(void) {
    const struct overlap_settings *settings = overlap_settings();
    if (!settings && __atomic_load_n(&table_decoded, __ATOMIC_ACQUIRE) == OVERLAP_DONE && wrong)
        overlap_once(&wrong_said, say_what_is_wrong);
    return settings;
}
