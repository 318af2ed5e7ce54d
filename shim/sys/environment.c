/* What the launcher says to this process, by its environment.
 *
 * Every process of a job passes here, most of which never touch a GPU. So the constructor only looks for OVERLAP_TABLE;
 * where it is set, the variables are copied, because programs overwrite their environment. Everything else waits until
 * a driver is used (vendor/common/armed.c). Code of the program may call us before the constructor has run:
 * overlap_is_set_up() does its work then.
 *
 * Strings are compared and copied by hand here: the first call of each function of libc costs a look-up by its name,
 * which is a microsecond, and more than the work.
 */
#include <string.h>
#include <sys/mman.h>

#include "kernel.h"

extern char **__environ __attribute__((weak)); /* a name that no program may define (ISO C 7.1.3) */

OVERLAP_STARTUP_DATA static uint32_t environment_read = OVERLAP_FRESH;

struct variables {
#define ENV(field, name, meaning) const char *field;
#include "env.def"
#undef ENV
};

/* Returns the text that follows `beginning`. NULL: the text begins otherwise. */
OVERLAP_STARTUP static const char *after(const char *text, const char *beginning) {
    while (*beginning && *text == *beginning)
        text++, beginning++;
    return *beginning ? NULL : text;
}

OVERLAP_STARTUP static bool is(const char *text, const char *other) {
    const char *rest = text ? after(text, other) : NULL;
    return rest && !*rest;
}

OVERLAP_STARTUP static void read_variables(struct variables *found) {
    static const struct {
        char name[24];
        uint32_t offset;
    } names[] = {
#define ENV(field, name, meaning) {name "=", offsetof(struct variables, field)},
#include "env.def"
#undef ENV
    };
    for (char **entry = __environ; *entry; entry++) {
        if (!after(*entry, "OVERLAP_")) /* in most processes this is all that happens */
            continue;
        for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
            const char *value = after(*entry, names[i].name);
            if (value)
                *(const char **)((char *)found + names[i].offset) = value;
        }
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
OVERLAP_STARTUP static int64_t number(const char *text) {
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
OVERLAP_STARTUP static void decode_path(const char *text, char *out, size_t size) {
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
OVERLAP_STARTUP static void find_directory(const char *text, char *out, size_t size) {
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

/* As strnlen(3) and memcpy(3). */
OVERLAP_STARTUP static size_t length_of(const char *text, size_t most) {
    /* Eight bytes at a time from the first aligned address on: an aligned word does not reach into another page. */
    const uint64_t low = UINT64_C(0x0101010101010101), high = low << 7;
    size_t length = 0;
    while (length < most && ((uintptr_t)(text + length) & 7) && text[length])
        length++;
    while (length < most && !((uintptr_t)(text + length) & 7)) {
        const uint64_t word = *(const uint64_t __attribute__((may_alias)) *)(const void *)(text + length);
        if ((word - low) & ~word & high)
            break;
        length += 8;
    }
    while (length < most && text[length])
        length++;
    return length < most ? length : most;
}
OVERLAP_STARTUP static void copy_bytes(char *to, const char *from, size_t size) {
#ifdef __x86_64__
    size_t words = size / 8, rest = size % 8;
    __asm__ volatile("rep movsq" : "+D"(to), "+S"(from), "+c"(words) : : "memory");
    __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(rest) : : "memory");
#else
    for (size_t i = 0; i < size; i++)
        to[i] = from[i];
#endif
}

/* Copies what must outlive the environment. A table that is too long is cut, and will be found broken. */
OVERLAP_STARTUP static void copy(const struct variables *found) {
    /* Room for the policies that are shipped; a longer one takes a mapping, for which there may be no memory. */
    static char text[8192] __attribute__((aligned(16)));
    const size_t length = length_of(found->table, OVERLAP_TABLE_MAX_SIZE / 3 * 4 + 8);
    void *const mapped =
        length > sizeof text ? kernel_mmap(length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1) : NULL;
    overlap_start.text = mapped ? mapped : text;
    overlap_start.length = mapped || length <= sizeof text ? length : sizeof text;
    copy_bytes(overlap_start.text, found->table, overlap_start.length);
    find_directory(found->report ? found->report : "", overlap_start.directory, sizeof overlap_start.directory);
    decode_path(found->run_id ? found->run_id : "", overlap_start.run, sizeof overlap_start.run);
    int64_t launcher = number(found->launcher_pid);
    overlap_start.settings = (struct overlap_settings){
        .directory = overlap_start.directory,
        .run = overlap_start.run,
        .quiet = is(found->quiet, "1"),
        .launcher = launcher > 0 ? (uint32_t)launcher : 0,
    };
}

OVERLAP_STARTUP static void read_environment(void) {
    struct variables found = {0};
    read_variables(&found);
    if (!found.table || is(found.run, "off"))
        return;
    copy(&found);
    overlap_start.pid = overlap_pid();
    overlap_log_start();
}

OVERLAP_STARTUP bool overlap_is_set_up(void) {
    /* The environment may be there late, and gone early (clearenv). */
    bool readable = __atomic_load_n(&environment_read, __ATOMIC_ACQUIRE) != OVERLAP_FRESH || (&__environ && __environ);
    return readable && overlap_once(&environment_read, read_environment) && overlap_start.text;
}

bool overlap_is_off(void) {
    return !overlap_is_set_up() && __atomic_load_n(&environment_read, __ATOMIC_ACQUIRE) == OVERLAP_DONE;
}
