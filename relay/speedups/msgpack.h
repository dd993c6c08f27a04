/* As much of msgpack as an entry of a segment has: integers, nil, bytes, texts and arrays.
 *
 * Sizes and writers agree with each other, and with msgspec: the same values give the same bytes. Readers stay within
 * their bounds whatever stands there, and return 0 for anything else than what they read.
 */
#ifndef DELAYTOPIC_MSGPACK_H
#define DELAYTOPIC_MSGPACK_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { NIL = 0xc0, BYTES = 0xc4, UNSIGNED = 0xcc, SIGNED = 0xd0, TEXT = 0xd9, ARRAY = 0xdc };
enum { SHORT_TEXT = 0xa0, SHORT_ARRAY = 0x90 };

/* -- writing */

static inline size_t int_size(int64_t n) {
    if (n >= 0) return n < 0x80 ? 1 : n < 0x100 ? 2 : n < 0x10000 ? 3 : n < 0x100000000LL ? 5 : 9;
    return n >= -32 ? 1 : n >= -0x80 ? 2 : n >= -0x8000 ? 3 : n >= -0x80000000LL ? 5 : 9;
}

static inline size_t run_size(size_t n) { return (n < 0x100 ? 2 : n < 0x10000 ? 3 : 5) + n; }
static inline size_t text_size(size_t n) { return n < 32 ? 1 + n : run_size(n); }
static inline size_t array_size(size_t n) { return n < 16 ? 1 : n < 0x10000 ? 3 : 5; }

static inline uint8_t *put_number(uint8_t *p, uint64_t n, int bytes) {
    while (bytes--) *p++ = (uint8_t)(n >> (8 * bytes));
    return p;
}

static inline uint8_t *put_int(uint8_t *p, int64_t n) {
    size_t size = int_size(n);
    if (size == 1) {
        *p = (uint8_t)n;
        return p + 1;
    }
    int step = size == 2 ? 0 : size == 3 ? 1 : size == 5 ? 2 : 3;
    *p++ = (uint8_t)((n >= 0 ? UNSIGNED : SIGNED) + step);
    return put_number(p, (uint64_t)n, 1 << step);
}

static inline uint8_t *put_run(uint8_t *p, uint8_t kind, const void *data, size_t n) {
    int step = n < 0x100 ? 0 : n < 0x10000 ? 1 : 2;
    *p++ = (uint8_t)(kind + step);
    p = put_number(p, n, 1 << step);
    memcpy(p, data, n);
    return p + n;
}

static inline uint8_t *put_nil(uint8_t *p) {
    *p = NIL;
    return p + 1;
}

static inline uint8_t *put_text(uint8_t *p, const void *data, size_t n) {
    if (n >= 32) return put_run(p, TEXT, data, n);
    *p++ = (uint8_t)(SHORT_TEXT | n);
    memcpy(p, data, n);
    return p + n;
}

static inline uint8_t *put_array(uint8_t *p, size_t n) {
    if (n < 16) {
        *p = (uint8_t)(SHORT_ARRAY | n);
        return p + 1;
    }
    *p++ = n < 0x10000 ? ARRAY : ARRAY + 1;
    return put_number(p, n, n < 0x10000 ? 2 : 4);
}

/* -- reading */

typedef struct {
    const uint8_t *at, *end;
} Reader;

/* Bytes somewhere else; `size` is -1 for nil. */
typedef struct {
    const uint8_t *data;
    ptrdiff_t size;
} Run;

static inline int get_byte(Reader *r, uint8_t *byte) {
    if (r->at == r->end) return 0;
    *byte = *r->at++;
    return 1;
}

static inline int get_number(Reader *r, int bytes, uint64_t *n) {
    if (r->end - r->at < bytes) return 0;
    for (*n = 0; bytes--;) *n = *n << 8 | *r->at++;
    return 1;
}

static inline int get_int(Reader *r, int64_t *n) {
    uint8_t kind;
    uint64_t raw;
    if (!get_byte(r, &kind)) return 0;
    if (kind < 0x80 || kind >= 0xe0) {
        *n = (int8_t)kind;
        return 1;
    }
    if (kind >= UNSIGNED && kind < UNSIGNED + 4) {
        if (!get_number(r, 1 << (kind - UNSIGNED), &raw) || raw > INT64_MAX) return 0;
        *n = (int64_t)raw;
        return 1;
    }
    if (kind < SIGNED || kind >= SIGNED + 4 || !get_number(r, 1 << (kind - SIGNED), &raw)) return 0;
    *n = kind == SIGNED       ? (int8_t)raw
         : kind == SIGNED + 1 ? (int16_t)raw
         : kind == SIGNED + 2 ? (int32_t)raw
                              : (int64_t)raw;
    return 1;
}

static inline int get_data(Reader *r, uint64_t size, Run *run) {
    if ((uint64_t)(r->end - r->at) < size) return 0;
    *run = (Run){r->at, (ptrdiff_t)size};
    r->at += size;
    return 1;
}

/* The rest of a run whose first byte was `byte`, if it is of this kind. */
static inline int get_run(Reader *r, uint8_t byte, uint8_t kind, Run *run) {
    uint64_t size;
    return byte >= kind && byte < kind + 3 && get_number(r, 1 << (byte - kind), &size) && get_data(r, size, run);
}

static inline int get_bytes_or_nil(Reader *r, Run *run) {
    uint8_t byte;
    if (!get_byte(r, &byte)) return 0;
    if (byte != NIL) return get_run(r, byte, BYTES, run);
    *run = (Run){NULL, -1};
    return 1;
}

static inline int get_text(Reader *r, Run *run) {
    uint8_t byte;
    if (!get_byte(r, &byte)) return 0;
    if ((byte & 0xe0) == SHORT_TEXT) return get_data(r, byte & 31, run);
    return get_run(r, byte, TEXT, run);
}

/* The number of items, -1 for nil. */
static inline int get_array_or_nil(Reader *r, int64_t *items) {
    uint8_t byte;
    uint64_t n;
    if (!get_byte(r, &byte)) return 0;
    if (byte == NIL || (byte & 0xf0) == SHORT_ARRAY) {
        *items = byte == NIL ? -1 : byte & 15;
        return 1;
    }
    if ((byte != ARRAY && byte != ARRAY + 1) || !get_number(r, byte == ARRAY ? 2 : 4, &n)) return 0;
    *items = (int64_t)n;
    return 1;
}

#endif
