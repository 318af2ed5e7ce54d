/* unpack_check zstd|lz4 FILE BYTES: what the runtime makes of packed data, on standard output; 1 if it is broken. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../../tools/simgpu/runtime/unpack.h"

int main(int count, char **words) {
    enum { MOST = 16 << 20 };
    FILE *file = count == 4 ? fopen(words[2], "rb") : NULL;
    uint8_t *in = malloc(MOST);
    if (!file || !in)
        return 2;
    size_t bytes = fread(in, 1, MOST, file), room = strtoul(words[3], NULL, 10);
    fclose(file);
    uint8_t *out = malloc(room + 1), *exact = malloc(bytes + 1); /* so that a sanitizer sees a read behind the end */
    if (!out || !exact)
        return 2;
    memcpy(exact + 1, in, bytes);
    int good = words[1][0] == 'z' ? rt_zstd(exact + 1, bytes, out, room) : rt_lz4(exact + 1, bytes, out, room);
    if (good)
        fwrite(out, 1, room, stdout);
    free(in);
    free(out);
    free(exact);
    return good ? 0 : 1;
}
