#include <dirent.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "preload.h"
#include "site.h"

#define UPPER "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define LOWER "abcdefghijklmnopqrstuvwxyz"
#define DIGITS "0123456789"
static const char in_names[] = UPPER LOWER DIGITS "._-";
static const char in_paths[] = UPPER LOWER DIGITS "._/+=@%~,-";
static const char in_values[] = UPPER LOWER DIGITS "._/+:=@%~,-"; /* what passes through every launcher unquoted */
static const char ending[] = ".env";

static bool consists_of(const char *text, const char *set) {
    return *text && text[strspn(text, set)] == 0;
}

bool site_is_name(const char *text) {
    return consists_of(text, in_names) && *text != '.' && strlen(text) < NAME_SIZE;
}

bool site_is_prefix(const char *text) {
    return *text == '/' && consists_of(text, in_paths) && strlen(text) < PATH_MAX / 2;
}

static bool is_library(const char *text) {
    const char *slash = strrchr(text, '/');
    return site_is_prefix(text) && slash && strcmp(slash + 1, LIBRARY_NAME) == 0;
}

/* Of what a value may be; an empty one is one, too. */
static bool is_value(const char *text) {
    return text[strspn(text, in_values)] == 0 && strlen(text) <= VALUE_LIMIT;
}

/* The first `limit` bytes as text, to be freed; NULL: not a file, not readable, or a NUL is in there. */
static char *read_text(int folder, const char *path, size_t limit) {
    int file = openat(folder, path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    struct stat about;
    if (file < 0)
        return NULL;
    char *text = fstat(file, &about) == 0 && S_ISREG(about.st_mode) ? malloc(limit + 1) : NULL;
    size_t length = 0;
    ssize_t got = text ? 1 : -1;
    while (got > 0 && length < limit) {
        got = read(file, text + length, limit - length);
        length += got > 0 ? (size_t)got : 0;
    }
    close(file);
    if (got < 0 || memchr(text, 0, length)) {
        free(text);
        return NULL;
    }
    text[length] = 0;
    return text;
}

bool site_first_line(int folder, const char *path, char line[LINE_SIZE]) {
    char *text = read_text(folder, path, LINE_SIZE - 1);
    line[0] = 0;
    if (!text)
        return false;
    const char *start = text + strspn(text, " \t\n");
    size_t length = strcspn(start, "\n");
    while (length && strchr(" \t", start[length - 1]))
        length--;
    memcpy(line, start, length);
    line[length] = 0;
    free(text);
    return length > 0;
}

static bool may_be_set(const char *name) {
    static const struct {
        const char *glob;
        bool may;
    } rows[] = {
#define MAY(glob) {glob, true},
#define MAY_NOT(glob) {glob, false},
#include "variables.def"
#undef MAY
#undef MAY_NOT
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows && consists_of(name, UPPER DIGITS "_"); i++)
        if (fnmatch(rows[i].glob, name, 0) == 0)
            return rows[i].may;
    return false;
}

/* One line: export NAME=VALUE. What is anything else is left out. */
static void parse_line(char *line, struct policy *policy) {
    static const char word[] = "export ";
    char *name = line + sizeof word - 1;
    char *sign = strchr(line, '=');
    if (strncmp(line, word, sizeof word - 1) != 0 || !sign)
        return;
    *sign = 0;
    const char *value = sign + 1;
    if (strcmp(name, "OVERLAP_TABLE") == 0)
        policy->table = consists_of(value, in_paths) && is_value(value) ? value : NULL;
    else if (strcmp(name, "LD_PRELOAD") == 0)
        policy->library = is_library(value) ? value : NULL;
    else if (may_be_set(name) && is_value(value) && policy->count < SETTINGS)
        policy->settings[policy->count++] = (struct setting){name, value};
}

bool site_parse_policy(char *text, struct policy *policy) {
    *policy = (struct policy){.text = text};
    for (char *line = text, *next; line; line = next) {
        next = strchr(line, '\n');
        if (next)
            *next++ = 0;
        parse_line(line, policy);
    }
    if (!policy->table || !policy->library)
        site_forget_policy(policy);
    return policy->table;
}

void site_forget_policy(struct policy *policy) {
    free(policy->text);
    *policy = (struct policy){0};
}

bool site_read_policy(int folder, const char *name, struct policy *policy) {
    char path[sizeof "env/" + NAME_SIZE + sizeof ending];
    *policy = (struct policy){0};
    if (!site_is_name(name))
        return false;
    snprintf(path, sizeof path, "env/%s%s", name, ending);
    char *text = read_text(folder, path, POLICY_LIMIT + 1);
    if (text && strlen(text) > POLICY_LIMIT) {
        free(text); /* half of a policy is none */
        text = NULL;
    }
    return text && site_parse_policy(text, policy);
}

/* As NCCL reads it: no blanks are taken away, # begins a comment at the start of a line. */
static bool sets(const char *text, const char *name) {
    size_t length = strlen(name);
    for (const char *line = text; line; line = strchr(line, '\n'), line += line ? 1 : 0)
        if (strncmp(line, name, length) == 0 && line[length + strspn(line + length, " \t")] == '=')
            return true;
    return false;
}

bool site_in_nccl_conf(const char *name, const char *conf, const char *home) {
    char of_home[PATH_MAX] = "";
    if (home)
        snprintf(of_home, sizeof of_home, "%s/.nccl.conf", home);
    const char *const files[] = {conf ? conf : "", of_home, "/etc/nccl.conf"};
    bool found = false;
    for (size_t i = 0; i < sizeof files / sizeof *files && !found; i++) {
        char *text = read_text(AT_FDCWD, files[i], POLICY_LIMIT);
        found = text && sets(text, name);
        free(text);
    }
    return found;
}

enum site_answer site_has_policy(const char *prefix, const char *name) {
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/env/%s%s", prefix, name, ending);
    if (access(path, F_OK) == 0)
        return SITE_THERE;
    *strrchr(path, '/') = 0;
    return access(path, R_OK | X_OK) == 0 ? SITE_NOT_THERE : SITE_UNKNOWN;
}

static int is_policy(const struct dirent *entry) {
    size_t length = strlen(entry->d_name), end = sizeof ending - 1;
    char name[NAME_SIZE];
    if (length <= end || length - end >= sizeof name || strcmp(entry->d_name + length - end, ending) != 0)
        return 0;
    memcpy(name, entry->d_name, length - end);
    name[length - end] = 0;
    return site_is_name(name);
}

static int by_name(const struct dirent **a, const struct dirent **b) {
    size_t left = strlen((*a)->d_name) - (sizeof ending - 1), right = strlen((*b)->d_name) - (sizeof ending - 1);
    int order = memcmp((*a)->d_name, (*b)->d_name, left < right ? left : right);
    return order ? order : (left > right) - (left < right);
}

void site_list_policies(const char *prefix, char *out, size_t size) {
    char folder[PATH_MAX];
    struct dirent **found = NULL;
    size_t length = 0;
    bool full = false;
    out[0] = 0;
    snprintf(folder, sizeof folder, "%s/env", prefix);
    int count = scandir(folder, &found, is_policy, by_name);
    for (int i = 0; i < count; i++) {
        size_t name = strlen(found[i]->d_name) - (sizeof ending - 1);
        full = full || size - length < sizeof ", " + name + sizeof ", ...";
        if (!full)
            length +=
                (size_t)snprintf(out + length, size - length, "%s%.*s", i ? ", " : "", (int)name, found[i]->d_name);
        free(found[i]);
    }
    free(found);
    if (full)
        snprintf(out + length, size - length, ", ...");
}
