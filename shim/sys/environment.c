/* What the launcher says to this process, by its environment.
 *
 * Every process of a job passes here, most of which never touch a GPU. So the constructor only looks for OVERLAP_TABLE;
 * where it is set, the variables are copied, because programs overwrite their environment. Everything else waits until
 * a driver is used (gpu/armed.c). Code of the program may call us before the constructor has run:
 * overlap_is_set_up() does its work then.
 */
#include <string.h>
#include <sys/mman.h>

#include "kernel.h"

extern char **__environ __attribute__((weak)); /* a name that no program may define (ISO C 7.1.3) */

static uint32_t environment_read = OVERLAP_FRESH;

struct variables {
#define ENV(field, name, meaning) const char *field;
#include "env.def"
#undef ENV
};

static void read_variables(struct variables *found) {
    for (char **entry = __environ; *entry; entry++) {
        if (strncmp(*entry, "OVERLAP_", strlen("OVERLAP_")) != 0) /* in most processes this is all that happens */
            continue;
#define ENV(field, name, meaning)                                                                                      \
    if (strncmp(*entry, name "=", strlen(name "=")) == 0)                                                              \
        found->field = *entry + strlen(name "=");
#include "env.def"
#undef ENV
    }
}

const char *overlap_variable(const char *name) {
    size_t length = strlen(name);
    for (char **entry = __environ; entry && *entry; entry++)
        if (strncmp(*entry, name, length) == 0 && (*entry)[length] == '=')
            return *entry + length + 1;
    return NULL;
}

/* Returns the value of a decimal number, or -1. */
static int64_t number(const char *text) {
    int64_t value = 0;
    if (!text || !*text)
        return -1;
    for (; *text; text++) {
        if (*text < '0' || *text > '9' || value > INT32_MAX)
            return -1;
        value = value * 10 + (*text - '0');
    }
    return value > INT32_MAX ? -1 : value;
}

void overlap_find_rank(struct overlap_settings *settings) {
    static const char launchers[][2][24] = {
#define RANK(rank, world) {rank, world},
#include "rank.def"
#undef RANK
    };
    settings->rank = -1;
    for (size_t i = 0; i < sizeof launchers / sizeof *launchers && settings->rank < 0; i++) {
        settings->rank = (int32_t)number(overlap_variable(launchers[i][0]));
        int64_t world = settings->rank < 0 ? 0 : number(overlap_variable(launchers[i][1]));
        settings->world = world > 0 ? (uint32_t)world : 0;
    }
}

static int digit_of(char c) {
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                  : -1;
}

/* Undoes percent-encoding into `out`, at most size bytes with the NUL. */
static void decode_path(const char *text, char *out, size_t size) {
    size_t at = 0;
    for (; *text && at < size - 1; text++) {
        if (*text == '%' && digit_of(text[1]) >= 0 && digit_of(text[2]) >= 0) {
            out[at++] = (char)(digit_of(text[1]) * 16 + digit_of(text[2]));
            text += 2;
        } else {
            out[at++] = *text;
        }
    }
    out[at] = 0;
}

/* Makes the path of the report's folder absolute: users may set a relative one by hand, and the program may change its
 * folder. "": it is too long. */
static void find_directory(const char *text, char *out, size_t size) {
    decode_path(text, out, size);
    if (!out[0] || out[0] == '/')
        return;
    const size_t length = strlen(out);
    char here[512];
    here[0] = 0;
    /* The length with the NUL. An unreachable path does not begin with a slash. */
    const long answer = kernel3(SYS_getcwd, (long)here, sizeof here, 0);
    const size_t before = answer > 1 && here[0] == '/' ? (size_t)answer - 1 : sizeof here;
    if (before + 1 + length >= size) {
        out[0] = 0;
        return;
    }
    memmove(out + before + 1, out, length + 1);
    memcpy(out, here, before);
    out[before] = '/';
}

static int value_of(char c) {
    return c >= 'A' && c <= 'Z'   ? c - 'A'
           : c >= 'a' && c <= 'z' ? c - 'a' + 26
           : c >= '0' && c <= '9' ? c - '0' + 52
           : c == '+'             ? 62
           : c == '/'             ? 63
                                  : -1;
}

size_t overlap_decode_base64(const char *text, size_t length, uint8_t *out) {
    size_t at = 0;
    if (length % 4 != 0)
        return SIZE_MAX;
    for (size_t i = 0; i < length; i += 4) {
        int padding = i + 4 == length ? (text[i + 3] == '=') + (text[i + 2] == '=' && text[i + 3] == '=') : 0;
        uint32_t bits = 0;
        for (int k = 0; k < 4; k++) {
            int value = k >= 4 - padding ? 0 : value_of(text[i + (size_t)k]);
            if (value < 0)
                return SIZE_MAX;
            bits = bits << 6 | (uint32_t)value;
        }
        for (int k = 0; k < 3 - padding; k++)
            out[at++] = (uint8_t)(bits >> (16 - 8 * k));
    }
    return at;
}

/* Copies what must outlive the environment. A table that is too long is cut, and will be found broken. */
static void copy(const struct variables *found) {
    /* Room for the policies that are shipped; a longer one takes a mapping, for which there may be no memory. */
    static char text[8192] __attribute__((aligned(16)));
    enum { MOST = OVERLAP_TABLE_MAX_SIZE / 3 * 4 + 8 };
    const char *const end = memchr(found->table, 0, MOST);
    const size_t length = end ? (size_t)(end - found->table) : MOST;
    void *const mapped =
        length > sizeof text ? kernel_mmap(length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1) : NULL;
    overlap_start.text = mapped ? mapped : text;
    overlap_start.length = mapped || length <= sizeof text ? length : sizeof text;
    memcpy(overlap_start.text, found->table, overlap_start.length);
    find_directory(found->report ? found->report : "", overlap_start.directory, sizeof overlap_start.directory);
    int64_t launcher = number(found->launcher_pid);
    overlap_start.settings = (struct overlap_settings){
        .directory = overlap_start.directory,
        .quiet = found->quiet && strcmp(found->quiet, "1") == 0,
        .launcher = launcher > 0 ? (uint32_t)launcher : 0,
    };
}

static void read_environment(void) {
    struct variables found = {0};
    read_variables(&found);
    if (!found.table || (found.run && strcmp(found.run, "off") == 0))
        return;
    copy(&found);
    overlap_start.pid = overlap_pid();
    overlap_log_start();
}

bool overlap_is_set_up(void) {
    /* The environment may be there late, and gone early (clearenv). */
    bool readable = __atomic_load_n(&environment_read, __ATOMIC_ACQUIRE) != OVERLAP_FRESH || (&__environ && __environ);
    return readable && overlap_once(&environment_read, read_environment) && overlap_start.text;
}

bool overlap_is_off(void) {
    return !overlap_is_set_up() && __atomic_load_n(&environment_read, __ATOMIC_ACQUIRE) == OVERLAP_DONE;
}
