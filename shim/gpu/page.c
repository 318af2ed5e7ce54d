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
#include "resolve.h"

/* program_invocation_name(3), by a name that no program may define. */
extern char *__progname_full __attribute__((weak));

#define WAITING_ROOM "/dev/shm"

enum { NONE, MAKING, MADE };
static uint32_t state = NONE;
static bool opened, initialised;
static struct overlap_page *private_page; /* current before the page is made, and in a forked child */
static char waiting[OVERLAP_NAME_SIZE];   /* file name in WAITING_ROOM until the page is moved to the report's folder */

/* Is this a child that has not called exec, whether by fork, vfork or clone? */
static bool is_forked(void) {
    return overlap_pid() != overlap_start.pid;
}

/* Creates the file; returns it, or a negative errno. If the report's folder is on a network file system, the file is
 * created in WAITING_ROOM as overlap-NAME, and `waiting` holds its name. */
static int make_page(const struct overlap_settings *settings, int report) {
    bool elsewhere = overlap_folder_is_unsafe(settings->directory);
    char name[OVERLAP_NAME_SIZE];
    const int folder = elsewhere ? overlap_folder_open_any(WAITING_ROOM) : report;
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
    page->flags = is_forked() ? OVERLAP_PAGE_FORKED : 0;
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

static void make(const struct overlap_settings *settings) {
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
        make(settings);
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

/* Copies a page from WAITING_ROOM into the report's folder. If that fails, `overlap report` does it later. */
static void bring(const struct overlap_page *page, const char *directory) {
    char name[OVERLAP_NAME_SIZE];
    const size_t size = sizeof *page;
    const int folder = overlap_may_grow(size) ? overlap_folder_open(directory) : -1;
    const int file = folder < 0 ? -1 : overlap_folder_create(name, folder, "", 0, ".page", O_WRONLY);
    size_t done = 0;
    while (file >= 0 && done < size) {
        const long count = kernel_write(file, (const char *)page + done, size - done);
        if (count <= 0)
            break;
        done += (size_t)count;
    }
    if (file >= 0)
        kernel_close(file);
    if (file >= 0 && done < size)
        kernel_unlinkat(folder, name);
    if (folder >= 0)
        kernel_close(folder);
    const int room = done == size ? overlap_folder_open_any(WAITING_ROOM) : -1;
    if (room >= 0) {
        kernel_unlinkat(room, waiting);
        kernel_close(room);
    }
}

static uint64_t launches_of(const struct overlap_page *page) {
    struct overlap_totals totals;
    uint64_t launches = 0;
    overlap_page_totals(page, &totals);
    for (int reason = 0; reason < OVERLAP_REASONS; reason++)
        launches += totals.reasons[reason];
    return launches;
}

/* ---- Launches after our own end, in destructors of libraries ---- */

/* Names the process whose launches the last line counts, if other processes may have launched, too. */
static void say_whose(const struct overlap_page *page, struct overlap_text *text) {
    if (page->world > 1 && page->rank >= 0) {
        overlap_text_add(text, "rank ");
        overlap_text_number(text, (uint64_t)page->rank, true);
        overlap_text_add(text, " of ");
        overlap_text_number(text, page->world, true);
        overlap_text_add(text, ": ");
    } else if (overlap_had_children()) {
        overlap_text_add(text, "without child processes: ");
    }
}

static uint64_t launches_said;

static void say_late(void *unused) {
    (void)unused;
    struct overlap_page *page = overlap_current_page;
    const uint64_t launches = launches_of(page);
    char line[64];
    struct overlap_text text = overlap_text_in(line, sizeof line);
    if (is_forked() || launches <= launches_said)
        return;
    overlap_text_number(&text, launches - launches_said, true);
    overlap_say(line, launches - launches_said == 1 ? " more launch" : " more launches",
                " by destructors of libraries, not in the line above");
}

/* Destructors of other libraries run after ours. glibc calls functions that are registered now once all of them have
 * ended; musl does not. The summary line itself cannot wait for that, because a destructor may end the process. */
static void watch_for_late(const struct overlap_page *page) {
    launches_said = launches_of(page);
    typedef int at_exit(void (*act)(void *), void *argument, void *library);
    at_exit *ask = overlap_libc("gnu_get_libc_version") ? (at_exit *)overlap_libc("__cxa_atexit") : NULL;
    if (ask)
        ask(say_late, NULL, NULL);
}

static bool needs_no_quotes(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || strchr("/._-+:=@%,", c);
}

/* Does the link `last` beside the run's folder name this run? `slash`: the last one of its path. */
static bool is_last(const char *directory, const char *slash) {
    char link[1024], run[OVERLAP_NAME_SIZE] = "";
    struct overlap_text text = overlap_text_in(link, sizeof link);
    overlap_text_bytes(&text, directory, (size_t)(slash - directory));
    overlap_text_add(&text, "/last");
    const long length = kernel_readlink(link, run, sizeof run);
    return length > 0 && (size_t)length == strlen(slash + 1) && memcmp(run, slash + 1, (size_t)length) == 0;
}

/* Adds the report's folder as a user names it in a shell, whatever the folder there: the one that was given to --report
 * if this run is its last one, quoted if necessary. */
static void add_report(struct overlap_text *text, const char *name) {
    const char *const slash = strrchr(name, '/');
    size_t length = strlen(name);
    if (slash && slash > name && is_last(name, slash))
        length = (size_t)(slash - name);
    bool plain = true;
    for (size_t i = 0; i < length; i++)
        plain = plain && needs_no_quotes(name[i]);
    overlap_text_add(text, plain ? "" : "'");
    for (size_t i = 0; i < length; i++)
        overlap_text_bytes(text, name[i] == '\'' ? "'\\''" : name + i, name[i] == '\'' ? 4 : 1);
    overlap_text_add(text, plain ? "" : "'");
}

/* Was this process started by a script, whose shell overlap-run has become? The shell uses no GPU, and says nothing. */
static bool is_of_script(const struct overlap_page *page, uint32_t launcher) {
    char link[32], shell[256];
    struct overlap_text text = overlap_text_in(link, sizeof link);
    overlap_text_add(&text, "/proc/");
    overlap_text_number(&text, launcher, false);
    overlap_text_add(&text, "/exe");
    const long length = launcher && page->parent == launcher ? kernel_readlink(link, shell, sizeof shell) : 0;
    return length > 2 && memcmp(shell + length - 2, "sh", 2) == 0; /* bash, dash, zsh, ... */
}

void overlap_page_end(void) {
    const int saved = errno;
    /* A forked child does not call the loader: another thread of its parent may have held the loader's lock. */
    if (!opened && !is_forked() && driver_is_mapped() && overlap_opened_unseen(initialised))
        opened = true;
    if (opened) /* even if no launch came through us: the report must say so */
        overlap_page_opened();
    if (!overlap_page_used())
        overlap_unopened_say();
    bool made = __atomic_load_n(&state, __ATOMIC_ACQUIRE) == MADE;
    struct overlap_page *page = overlap_current_page;
    if (made && page->pid == (uint32_t)overlap_pid()) { /* else a child by a raw system call: its parent's page */
        const struct overlap_settings *settings = overlap_armed();
        __atomic_fetch_or(&page->flags, OVERLAP_PAGE_ENDED, __ATOMIC_RELAXED);
        const bool is_program = settings->launcher == (uint32_t)overlap_pid() || is_of_script(page, settings->launcher);
        const bool speaks = settings->rank == 0 || (settings->rank < 0 && is_program);
        if (opened && speaks && !is_forked()) {
            char line[900], whose[48], report[600] = "";
            struct overlap_text text = overlap_text_in(whose, sizeof whose);
            if (launches_of(page))
                say_whose(page, &text);
            /* Without a file the line names no next command, which would find nothing. */
            struct overlap_text name = overlap_text_in(report, sizeof report);
            if (page != private_page)
                add_report(&name, settings->directory);
            overlap_page_summary(page, report, line, sizeof line);
            overlap_say(whose, line, NULL);
            watch_for_late(page);
        }
        if (waiting[0])
            bring(page, settings->directory);
    }
    errno = saved;
}
