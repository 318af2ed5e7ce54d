/* The site folder: PREFIX/env/NAME.env, PREFIX/default, PREFIX/lib/liboverlap.so. Nothing here knows Slurm.
 *
 * Every file is read up to a limit, and never waited for: a named pipe in its place is no file. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum {
    NAME_SIZE = 252,       /* of a policy, with the NUL: with .env behind it, it is the name of a file */
    LINE_SIZE = 256,       /* of the first line of a file */
    POLICY_LIMIT = 262144, /* an env/NAME.env */
    VALUE_LIMIT = 122880,  /* of a variable; Linux takes 128 KiB with the name */
    SETTINGS = 64,
};

struct setting {
    const char *name, *value;
};

/* What a NAME.env says. The strings are in `text`. */
struct policy {
    char *text;
    const char *table;   /* OVERLAP_TABLE */
    const char *library; /* LD_PRELOAD */
    struct setting settings[SETTINGS];
    size_t count;
};

/* Of [A-Za-z0-9._-], no dot in front, not too long. */
bool site_is_name(const char *text);

/* An absolute path that LD_PRELOAD can hold. */
bool site_is_prefix(const char *text);

/* The first line of a file that is not blank, without the blanks around it; false: there is none. `folder` as openat()
 * takes it. */
bool site_first_line(int folder, const char *path, char line[LINE_SIZE]);

/* Reads env/NAME.env in `folder`. False: there is none, or it lacks a table or a library; then `policy` is empty. */
bool site_read_policy(int folder, const char *name, struct policy *policy);
void site_forget_policy(struct policy *policy);

/* Does one of the files from which NCCL takes what the environment does not say set this variable? Either may be NULL.
 */
bool site_in_nccl_conf(const char *name, const char *conf, const char *home);

/* As site_read_policy(), of text that was allocated; takes it over. */
bool site_parse_policy(char *text, struct policy *policy);

/* Is there env/NAME.env below this folder, and can the folder be read at all? */
enum site_answer { SITE_THERE, SITE_NOT_THERE, SITE_UNKNOWN };
enum site_answer site_has_policy(const char *prefix, const char *name);

/* The names that there are, sorted, as "a, b, c"; what does not fit becomes "...". */
void site_list_policies(const char *prefix, char *out, size_t size);
