/* Zstandard's two codes: FSE (RFC 8878, 4.1) and Huffman (4.2). Every table and every read is checked: what is broken
 * is an answer of false or 0, never a read outside. */
#include <string.h>

#include "zstd.h"

int sim_high_bit(uint64_t value) {
    return 63 - __builtin_clzll(value);
}

/* The highest bit that is set in the last byte only marks the end. */
bool sim_bits_open(struct sim_bits *bits, const uint8_t *data, size_t bytes) {
    if (bytes == 0 || data[bytes - 1] == 0)
        return false;
    *bits = (struct sim_bits){data, bytes, (int64_t)(bytes - 1) * 8 + sim_high_bit(data[bytes - 1])};
    return true;
}

/* At most 32, so that a word holds them wherever they begin in a byte. */
static uint64_t bits_at(const uint8_t *data, size_t bytes, int64_t at, int count) {
    const size_t first = (size_t)at / 8;
    uint64_t word = 0;
    if (bytes - first >= sizeof word)
        memcpy(&word, data + first, sizeof word);
    else
        memcpy(&word, data + first, bytes - first);
    return word >> (at % 8) & ((UINT64_C(1) << count) - 1);
}

uint64_t sim_bits_take(struct sim_bits *bits, int count) {
    bits->left -= count;
    if (bits->left >= 0)
        return bits_at(bits->data, bits->bytes, bits->left, count);
    const int64_t missing = -bits->left;
    return missing >= count ? 0 : bits_at(bits->data, bits->bytes, 0, (int)(count - missing)) << missing;
}

bool sim_fse_build(struct sim_fse *table, const int16_t *frequency, int symbols, int log) {
    const int size = 1 << log, step = (size >> 1) + (size >> 3) + 3;
    uint16_t next[SYMBOLS] = {0};
    int high = size - 1, at = 0;
    for (int symbol = 0; symbol < symbols; symbol++)
        if (frequency[symbol] < 0) {
            table->symbol[high--] = (uint8_t)symbol;
            next[symbol] = 1;
        }
    for (int symbol = 0; symbol < symbols; symbol++) {
        if (frequency[symbol] <= 0)
            continue;
        next[symbol] = (uint16_t)frequency[symbol];
        for (int i = 0; i < frequency[symbol]; i++) {
            table->symbol[at] = (uint8_t)symbol;
            do
                at = (at + step) & (size - 1);
            while (at > high);
        }
    }
    if (at != 0)
        return false;
    for (int state = 0; state < size; state++) {
        const int number = next[table->symbol[state]]++, bits = log - sim_high_bit((uint64_t)number);
        table->bits[state] = (uint8_t)bits;
        table->base[state] = (uint16_t)((number << bits) - size);
    }
    table->log = log;
    return true;
}

/* A table's description, whose bits are read forwards; how many bytes it took, or 0. */
size_t sim_fse_read(struct sim_fse *table, const uint8_t *data, size_t bytes, int most_log, int most_symbols) {
    int16_t frequency[SYMBOLS] = {0};
    const int64_t end = (int64_t)bytes * 8;
    int64_t at = 4;
    int symbols = 0;
    if (bytes == 0)
        return 0;
    const int log = (data[0] & 15) + 5;
    if (log > most_log)
        return 0;
    for (int remaining = 1 << log; remaining > 0;) {
        const int count = sim_high_bit((uint64_t)remaining + 1) + 1;
        if (at + count - 1 > end || symbols >= most_symbols)
            return 0;
        const int read = at + count > end ? count - 1 : count; /* the last one may need a bit less */
        int value = (int)bits_at(data, bytes, at, read);
        const int low = (1 << (count - 1)) - 1, threshold = (1 << count) - 1 - (remaining + 1);
        at += count;
        if ((value & low) < threshold) {
            at--;
            value &= low;
        } else if (read < count)
            return 0;
        else if (value > low)
            value -= threshold;
        frequency[symbols++] = (int16_t)(value - 1);
        remaining -= value == 0 ? 1 : value - 1;
        for (int zeros = value == 1 ? 3 : 0; zeros == 3;) {
            if (at + 2 > end)
                return 0;
            zeros = (int)bits_at(data, bytes, at, 2);
            at += 2;
            symbols += zeros; /* they are zero already */
            if (symbols > most_symbols)
                return 0;
        }
        if (remaining < 0)
            return 0;
    }
    return sim_fse_build(table, frequency, symbols, log) ? (size_t)(at + 7) / 8 : 0;
}

static bool huffman_build(struct sim_huffman *table, uint8_t *weight, int symbols) {
    uint32_t sum = 0, start[16] = {0};
    for (int i = 0; i < symbols; i++) {
        if (weight[i] > 11)
            return false;
        sum += weight[i] ? 1u << (weight[i] - 1) : 0;
    }
    if (sum == 0 || symbols >= SYMBOLS)
        return false;
    const int log = sim_high_bit(sum) + 1;
    const uint32_t left = (1u << log) - sum;
    if (log > 11 || (left & (left - 1)) != 0)
        return false;
    weight[symbols++] = (uint8_t)(sim_high_bit(left) + 1); /* the last one is not written */
    /* Light weights come first, which are the long codes. */
    for (int i = 0; i < symbols; i++)
        if (weight[i])
            start[weight[i] + 1] += 1u << (weight[i] - 1);
    for (int i = 1; i < 16; i++)
        start[i] += start[i - 1];
    for (int i = 0; i < symbols; i++) {
        if (weight[i] == 0)
            continue;
        const uint32_t length = 1u << (weight[i] - 1);
        memset(table->symbol + start[weight[i]], i, length);
        memset(table->bits + start[weight[i]], log + 1 - weight[i], length);
        start[weight[i]] += length;
    }
    table->log = log;
    return true;
}

/* Weights that are packed by FSE: two states take turns, until there are no bits for the next one. */
static int packed_weights(uint8_t *weight, const uint8_t *data, size_t bytes) {
    struct sim_fse table;
    struct sim_bits bits;
    uint64_t state[2];
    int symbols = 0;
    const size_t used = sim_fse_read(&table, data, bytes, 6, SYMBOLS);
    if (used == 0 || used >= bytes || !sim_bits_open(&bits, data + used, bytes - used))
        return 0;
    state[0] = sim_bits_take(&bits, table.log);
    state[1] = sim_bits_take(&bits, table.log);
    if (bits.left < 0)
        return 0;
    for (int turn = 0; symbols < SYMBOLS - 2; turn ^= 1) {
        weight[symbols++] = table.symbol[state[turn]];
        state[turn] = table.base[state[turn]] + sim_bits_take(&bits, table.bits[state[turn]]);
        if (bits.left < 0) {
            weight[symbols++] = table.symbol[state[turn ^ 1]];
            return symbols;
        }
    }
    return 0;
}

/* A tree's description; how many bytes it took, or 0. */
size_t sim_huffman_read(struct sim_huffman *table, const uint8_t *data, size_t bytes) {
    uint8_t weight[SYMBOLS] = {0};
    if (bytes == 0)
        return 0;
    const int first = data[0];
    int symbols = first - 127;
    size_t used = (size_t)first;
    if (first >= 128) {
        used = (size_t)(symbols + 1) / 2;
        if (used >= bytes)
            return 0;
        for (int i = 0; i < symbols; i++)
            weight[i] = i % 2 ? data[1 + i / 2] & 15 : data[1 + i / 2] >> 4;
    } else if (used >= bytes || (symbols = packed_weights(weight, data + 1, used)) == 0)
        return 0;
    return huffman_build(table, weight, symbols) ? used + 1 : 0;
}

bool sim_huffman_decode(const struct sim_huffman *table, const uint8_t *data, size_t bytes, uint8_t *to, size_t room) {
    struct sim_bits bits;
    if (table->log == 0 || !sim_bits_open(&bits, data, bytes))
        return false;
    uint64_t state = sim_bits_take(&bits, table->log);
    for (size_t i = 0; i < room; i++) {
        const int count = table->bits[state];
        to[i] = table->symbol[state];
        state = ((state << count) + sim_bits_take(&bits, count)) & ((1u << table->log) - 1);
    }
    return bits.left == -table->log; /* all of them, and no more */
}
