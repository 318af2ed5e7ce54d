/* Is a library mapped? Checked at the end of every process that has loaded us, most of which never use a GPU. */
#include <link.h>

#include "system.h"

OVERLAP_STARTUP static bool begins(const char *text, const char *beginning) {
    while (*beginning && *text == *beginning)
        text++, beginning++;
    return !*beginning;
}

OVERLAP_STARTUP static int visit(struct dl_phdr_info *info, size_t size, void *data) {
    const char *const *prefixes = data, *name = info->dlpi_name ? info->dlpi_name : "";
    (void)size;
    for (const char *p = name; *p; p++) /* no libc call: see environment.c */
        if (*p == '/')
            name = p + 1;
    return begins(name, prefixes[0]) || begins(name, prefixes[1]);
}

OVERLAP_STARTUP bool overlap_is_mapped(const char *prefix, const char *other) {
    const char *prefixes[] = {prefix, other};
    return overlap_iterate(visit, prefixes) == 1;
}
