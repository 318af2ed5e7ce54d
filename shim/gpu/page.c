/* The statistics page: one file for each process that uses a GPU. It is mapped shared, so that the counters survive any
 * end of the process, SIGKILL included. It is allocated before it is mapped, because a store into a hole of a full disk
 * raises SIGBUS.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "../sys/kernel.h"
#include "../sys/sys.h"
#include "../text.h"
#include "../version.h"
#include "page.h"

/* program_invocation_name(3), by a name that no program may define. */
extern char *__progname_full __attribute__((weak));

enum { NONE, MAKING, MADE };
static uint32_t state = NONE;
static bool opened, initialised;
static struct overlap_page *private_page; /* current before the page is made, and in a forked child */
static char
    waiting[OVERLAP_NAME_SIZE]; /* file name in OVERLAP_WAITING_ROOM until the page is moved to the report's folder */

bool overlap_page_is_forked(void) {
    return overlap_pid() != overlap_start.pid;
}

/* Creates the file; returns it, or a negative errno. If the report's folder is on a network file system, the file is
 * created in OVERLAP_WAITING_ROOM as overlap-NAME, and `waiting` holds its name. */
static int make_page(const struct overlap_settings *settings, int report) {
    bool elsewhere = overlap_folder_is_unsafe(settings->directory);
    char name[OVERLAP_NAME_SIZE];
    const int folder = elsewhere ? overlap_folder_open_any(OVERLAP_WAITING_ROOM) : report;
    int file = folder < 0 ? folder
                          : overlap_folder_create(name, folder, elsewhere ? "overlap-" : "",
                                                  elsewhere ? overlap_unguessable() : 0, ".page", O_RDWR);
    if (file >= 0) {
        const int error = overlap_file_allocate(file, 0, sizeof(struct overlap_page));
        if (error) {
            kernel_close(file);
            kernel_unlinkat(folder, name);
            file = error;
        } else if (elsewhere) {
            memcpy(waiting, name, sizeof waiting);
        }
    }
    if (elsewhere && folder >= 0)
        kernel_close(folder);
    return file;
}

/* Creates the page's file and returns it, or a negative errno. */
static int make_files(const struct overlap_settings *settings) {
    if (!overlap_may_grow(sizeof(struct overlap_page)))
        return -EFBIG;
    const int folder = overlap_folder_open(settings->directory);
    if (folder < 0)
        return folder;
    const int file = make_page(settings, folder);
    kernel_close(folder);
    return file;
}

static void copy_text(uint8_t *field, size_t size, const char *text) {
    struct overlap_text line = overlap_text_in((char *)field, size);
    overlap_text_add(&line, text);
}

static void describe(struct overlap_page *page, const struct overlap_settings *settings) {
    struct timespec now = {0};
    overlap_clock_read(CLOCK_REALTIME, &now);
    page->version = OVERLAP_ABI_VERSION;
    page->size = sizeof *page;
    page->flags = overlap_page_is_forked() ? OVERLAP_PAGE_FORKED : 0;
    page->pid = (uint32_t)overlap_pid();
    page->parent = (uint32_t)kernel0(SYS_getppid);
    page->rank = settings->rank;
    page->world = settings->world;
    page->start = (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec;
    copy_text(page->directory, sizeof page->directory, settings->directory);
    copy_text(page->library, sizeof page->library, OVERLAP_VERSION);
    page->table = ((const struct overlap_table *)settings->table)->checksum;
    if (&__progname_full && __progname_full)
        copy_text(page->program, sizeof page->program, __progname_full);
    overlap_host_name((char *)page->host, sizeof page->host);
    __atomic_store_n(&page->magic, OVERLAP_PAGE_MAGIC, __ATOMIC_RELEASE); /* last: readers skip a page without it */
}

static void make_current(const struct overlap_settings *settings) {
    struct overlap_page *page = private_page;
    if (*settings->directory) {
        const int file = make_files(settings), error = -file;
        void *mapped = file < 0 ? NULL : kernel_mmap(sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED, file);
        if (mapped)
            page = mapped;
        else
            overlap_say("no statistics in ", settings->directory,
                        error == ENOSPC   ? ": the disk is full"
                        : error == ENOENT ? ": there is no such folder"
                        : error == EPERM  ? ": it is another user's"
                                          : ": its files cannot be made");
        if (file >= 0)
            kernel_close(file);
    }
    describe(page, settings);
    __atomic_store_n(&overlap_current_page, page, __ATOMIC_RELEASE);
}

bool overlap_page_prepare(void) {
    struct overlap_page *none = NULL, *made;
    if (__atomic_load_n(&overlap_current_page, __ATOMIC_ACQUIRE))
        return true;
    made = overlap_map(sizeof *made);
    if (!made)
        return false;
    if (!__atomic_compare_exchange_n(&private_page, &none, made, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
        overlap_unmap(made, sizeof *made);
        made = none;
        none = NULL;
    }
    __atomic_compare_exchange_n(&overlap_current_page, &none, made, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
    return true;
}

bool overlap_page_start(void) {
    if (__atomic_load_n(&state, __ATOMIC_ACQUIRE) == MADE)
        return true;
    const struct overlap_settings *settings = overlap_armed();
    uint32_t expected = NONE;
    if (!settings || !overlap_page_prepare())
        return false;
    if (__atomic_compare_exchange_n(&state, &expected, MAKING, false, __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE)) {
        const int saved = errno; /* gethostname and statfs may be another library's */
        make_current(settings);
        errno = saved;
        __atomic_store_n(&state, MADE, __ATOMIC_RELEASE);
        return true;
    }
    /* Another thread makes it. Wait, so that this launch is counted in the same page. */
    return overlap_wait(&state, MADE);
}

/* Called at every hipSetDevice and hipMalloc. An unneeded store would take the cache line from other threads. */
static void set_once(bool *flag) {
    if (!__atomic_load_n(flag, __ATOMIC_RELAXED))
        __atomic_store_n(flag, true, __ATOMIC_RELAXED);
}

void overlap_page_opened(void) {
    set_once(&opened);
    if (overlap_page_start() && !(OVERLAP_RELAXED(overlap_current_page->flags) & OVERLAP_PAGE_OPENED_GPU))
        __atomic_fetch_or(&overlap_current_page->flags, OVERLAP_PAGE_OPENED_GPU, __ATOMIC_RELAXED);
}

bool overlap_page_used(void) {
    return opened || initialised || __atomic_load_n(&state, __ATOMIC_ACQUIRE) == MADE;
}

void overlap_page_initialised(void) {
    set_once(&initialised);
}

bool overlap_page_is_opened(void) {
    return opened;
}

bool overlap_page_is_initialised(void) {
    return initialised;
}

struct overlap_page *overlap_page_own(void) {
    struct overlap_page *const page = overlap_current_page;
    return __atomic_load_n(&state, __ATOMIC_ACQUIRE) == MADE && page->pid == (uint32_t)overlap_pid() ? page : NULL;
}

bool overlap_page_has_file(void) {
    return overlap_current_page != private_page;
}

const char *overlap_page_waits(void) {
    return waiting;
}

/* Clears only what was written, so that untouched memory stays unmapped. */
static void clear(struct overlap_page *page) {
    if (page->magic)
        memset(page, 0, offsetof(struct overlap_page, shards));
    for (uint32_t i = 0; i < OVERLAP_SHARDS; i++)
        if (page->shards[i].owner || i == OVERLAP_SHARDS - 1) /* the shared one has no owner */
            memset(&page->shards[i], 0, sizeof page->shards[i]);
}

void overlap_page_forked(void) {
    opened = initialised = false;
    if (private_page) {
        clear(private_page);
        overlap_current_page = private_page;
    }
    waiting[0] = 0;
    __atomic_store_n(&state, NONE, __ATOMIC_RELEASE);
}
