#include <ctype.h>
#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "preload.h"

/* The plugin's own, as the linker lays it out. */
extern const ElfW(Ehdr) __ehdr_start __attribute__((visibility("hidden")));

bool preload_is_loadable(const char *library) {
    ElfW(Ehdr) header;
    struct stat about;
    int file = open(library, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (file < 0)
        return false;
    bool good = fstat(file, &about) == 0 && S_ISREG(about.st_mode) &&
                read(file, &header, sizeof header) == (ssize_t)sizeof header &&
                memcmp(header.e_ident, __ehdr_start.e_ident, EI_VERSION) == 0 && header.e_type == ET_DYN &&
                header.e_machine == __ehdr_start.e_machine;
    close(file);
    return good;
}

static const char *base_of(const char *path, size_t length) {
    const char *slash = memrchr(path, '/', length);
    return slash ? slash + 1 : path;
}

/* libasan.so, libclang_rt.tsan.so and so on. */
static bool is_sanitizer(const char *base, size_t length) {
    static const char *const kinds[] = {"asan", "tsan", "lsan", "msan", "hwasan"};
    static const char lib[] = "lib", clang[] = "clang_rt.";
    const char *end = base + length;
    if (length < sizeof lib - 1 || strncmp(base, lib, sizeof lib - 1) != 0)
        return false;
    base += sizeof lib - 1;
    if ((size_t)(end - base) >= sizeof clang - 1 && strncmp(base, clang, sizeof clang - 1) == 0)
        base += sizeof clang - 1;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        size_t kind = strlen(kinds[i]);
        if ((size_t)(end - base) < kind || memcmp(base, kinds[i], kind) != 0)
            continue;
        const char *behind = base + kind;
        return behind == end || !(isalnum((unsigned char)*behind) || *behind == '_');
    }
    return false;
}

enum { SANITIZER = 1, LIBRARY = 2, OTHER = 4 };

static unsigned kind_of(const char *entry, size_t length) {
    const char *base = base_of(entry, length);
    size_t rest = (size_t)(entry + length - base);
    if (rest == sizeof LIBRARY_NAME - 1 && memcmp(base, LIBRARY_NAME, rest) == 0)
        return LIBRARY;
    return is_sanitizer(base, rest) ? SANITIZER : OTHER;
}

/* The next entry, and behind it the place to go on from; the loader takes blanks and colons alike. */
static const char *next_entry(const char **value, size_t *length) {
    const char *entry = *value + strspn(*value, " :");
    *length = strcspn(entry, " :");
    *value = entry + *length;
    return *length ? entry : NULL;
}

static char *append(char *to, const char *text, size_t length) {
    memcpy(to, text, length);
    to[length] = ':';
    return to + length + 1;
}

static char *append_kinds(char *to, const char *value, unsigned kinds) {
    size_t length;
    for (const char *entry; (entry = next_entry(&value, &length));)
        if (kind_of(entry, length) & kinds)
            to = append(to, entry, length);
    return to;
}

static char *ended(char *text, char *end) {
    if (end > text)
        end--; /* the last colon */
    *end = 0;
    return text;
}

/* What the loader puts a folder in for. */
static const char platform[] = "$PLATFORM/";

char *preload_entry(const char *library) {
    struct utsname here;
    struct stat about;
    char path[PATH_MAX];
    size_t folder = (size_t)(base_of(library, strlen(library)) - library);
    if (folder >= PATH_MAX / 2 || uname(&here) != 0)
        return strdup(library);
    snprintf(path, sizeof path, "%.*s%s/%s", (int)folder, library, here.machine, library + folder);
    bool led = stat(path, &about) == 0 && S_ISREG(about.st_mode);
    snprintf(path, sizeof path, "%.*s%s%s", (int)folder, library, led ? platform : "", library + folder);
    return strdup(path);
}

char *preload_find(const char *value) {
    size_t length, led = sizeof platform - 1;
    for (const char *entry; value && (entry = next_entry(&value, &length));) {
        if (kind_of(entry, length) != LIBRARY)
            continue;
        size_t folder = length - (sizeof LIBRARY_NAME - 1);
        if (folder > led && entry[folder - led - 1] == '/' && memcmp(entry + folder - led, platform, led) == 0)
            folder -= led;
        char *file = malloc(folder + sizeof LIBRARY_NAME);
        if (file)
            sprintf(file, "%.*s" LIBRARY_NAME, (int)folder, entry);
        return file;
    }
    return NULL;
}

char *preload_with(const char *value, const char *entry) {
    const char *before = value ? value : "";
    char *text = malloc(strlen(before) + strlen(entry) + 3), *end = text;
    if (!text)
        return NULL;
    end = append_kinds(end, before, SANITIZER);
    end = append(end, entry, strlen(entry));
    return ended(text, append_kinds(end, before, OTHER));
}

char *preload_without(const char *value) {
    char *text = malloc(value ? strlen(value) + 2 : 1);
    return text ? ended(text, append_kinds(text, value ? value : "", SANITIZER | OTHER)) : NULL;
}
