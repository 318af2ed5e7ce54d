/* Preloaded: adds a byte to the file COUNTED for every program that is started. */
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

__attribute__((constructor)) static void count(void) {
    const char *path = getenv("COUNTED");
    const int file = path ? open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600) : -1;
    if (file >= 0 && write(file, ".", 1) == 1)
        close(file);
}
