/* The end of a process: its last line, and its page comes home. */
#include <errno.h>
#include <string.h>

#include "../sys/kernel.h"
#include "../sys/sys.h"
#include "../text.h"
#include "../gpu/page.h"
#include "../gpu/resolve.h"
#include "preload.h"

/* Copies a page from OVERLAP_WAITING_ROOM into the report's folder. If that fails, `overlap report` does it later. */
static void bring(const struct overlap_page *page, const char *waiting, const char *directory) {
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
    const int room = done == size ? overlap_folder_open_any(OVERLAP_WAITING_ROOM) : -1;
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

static bool needs_no_quotes(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || strchr("/._-+:=@%,", c);
}

/* Adds the report's folder as a shell reads it. */
static void add_report(struct overlap_text *text, const char *name) {
    const size_t length = strlen(name);
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

/* The last line. Without a file it names no next command, which would find nothing. */
static void say(const struct overlap_page *page, const struct overlap_settings *settings) {
    char line[900], whose[48] = "", report[600] = "";
    struct overlap_text text = overlap_text_in(whose, sizeof whose);
    struct overlap_text name = overlap_text_in(report, sizeof report);
    if (launches_of(page))
        say_whose(page, &text);
    if (overlap_page_has_file())
        add_report(&name, settings->directory);
    overlap_page_summary(page, report, line, sizeof line);
    overlap_say(whose, line, NULL);
}

void overlap_process_ends(void) {
    const int saved = errno;
    /* A forked child does not call the loader: another thread of its parent may have held the loader's lock. */
    if (!overlap_page_is_opened() && !overlap_page_is_forked() && driver_is_mapped())
        overlap_look_for_unseen();
    if (overlap_page_is_opened()) /* even if no launch came through us: the report must say so */
        overlap_page_opened();
    struct overlap_page *const page = overlap_page_own();
    if (page) {
        const struct overlap_settings *const settings = overlap_armed();
        const bool is_program = settings->launcher == (uint32_t)overlap_pid() || is_of_script(page, settings->launcher);
        __atomic_fetch_or(&page->flags, OVERLAP_PAGE_ENDED, __ATOMIC_RELAXED);
        if (overlap_page_is_opened() && !overlap_page_is_forked() &&
            (settings->rank == 0 || (settings->rank < 0 && is_program)))
            say(page, settings);
        if (*overlap_page_waits())
            bring(page, overlap_page_waits(), settings->directory);
    }
    errno = saved;
}
