/* What a driver has logged of launches, for the programs that call every entry point. FIELDS: those that are printed. */
#pragma once

static FILE *launches;

static const char *owner_of(void *address) {
    Dl_info info;
    if (!address)
        return "none";
    const char *path = dladdr(address, &info) && info.dli_fname ? info.dli_fname : "?";
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* The value of a field in a line of the log. */
static void print_field(const char *line, const char *name) {
    char key[32];
    snprintf(key, sizeof key, "\"%s\": ", name);
    const char *at = strstr(line, key);
    if (at)
        printf(" %s %.*s", name, (int)strcspn(at + strlen(key), ",}"), at + strlen(key));
}

/* What was launched since the last time. */
static void print_launches(void) {
    static const char *const fields[] = {FIELDS};
    char line[4096];
    clearerr(launches);
    while (fgets(line, sizeof line, launches)) {
        printf("driver:%s", strstr(line, "\"graph\": true")  ? " graph:"
                            : strstr(line, "\"node\": true") ? " node:"
                                                             : "");
        for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
            print_field(line, fields[i]);
        printf("\n");
    }
}
