/* An entry of a segment, and the Python object that holds one.
 *
 * An entry is the array of the fields of `core.commands.Schedule`, in their order. Packed is what has no id, target,
 * expiry or rank, at most one control header, no timestamp below zero, and names of headers in ASCII.
 */
#ifndef DELAYTOPIC_ENTRY_H
#define DELAYTOPIC_ENTRY_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "msgpack.h"

enum { FIELDS = 11, MOST_HEADERS = 256, NO_CONTROL = -1, NO_TIMESTAMP = -1 };
enum { EMPTY_FIELDS = 3 /* id, target and expiry, in front of the timestamp; behind it is the rank */ };

/* `Packed` in Python. `data` is the entry; numbers are repeated, as they are asked for more than once. */
typedef struct {
    PyObject_VAR_HEAD
    int64_t due_ms, offset, timestamp_ms;
    int32_t control;
    uint8_t data[];
} Packed;

typedef struct {
    int64_t due_ms, offset, control, headers, timestamp_ms;
    Run key, value;
    Reader at_headers;
} Entry;

typedef struct {
    Run name, value;
} Header;

static inline int get_header(Reader *r, Header *header) {
    uint8_t byte;
    return get_byte(r, &byte) && byte == (SHORT_ARRAY | 2) && get_text(r, &header->name) &&
           get_bytes_or_nil(r, &header->value);
}

/* Client and Python would cut a name with a zero byte off, or refuse it. */
static inline int is_plain_name(Run name) {
    for (ptrdiff_t i = 0; i < name.size; i++)
        if (name.data[i] == 0 || name.data[i] >= 0x80) return 0;
    return 1;
}

static inline int get_nils(Reader *r, int count) {
    uint8_t byte;
    while (count--)
        if (!get_byte(r, &byte) || byte != NIL) return 0;
    return 1;
}

/* A timestamp, or NO_TIMESTAMP for nil. */
static inline int get_timestamp(Reader *r, int64_t *timestamp_ms) {
    *timestamp_ms = NO_TIMESTAMP;
    if (r->at != r->end && *r->at == NIL) return get_nils(r, 1);
    return get_int(r, timestamp_ms) && *timestamp_ms >= 0;
}

/* Read an entry, and leave the reader behind it; 0 if none stands there that can stay packed. */
static inline int get_entry(Reader *r, Entry *e) {
    uint8_t byte;
    if (!get_byte(r, &byte) || byte != (SHORT_ARRAY | FIELDS)) return 0;
    if (!get_int(r, &e->due_ms) || !get_int(r, &e->offset)) return 0;
    if (!get_bytes_or_nil(r, &e->key) || !get_bytes_or_nil(r, &e->value)) return 0;
    if (!get_array_or_nil(r, &e->headers) || e->headers > MOST_HEADERS) return 0;
    e->at_headers = *r;
    for (int64_t i = 0; i < e->headers; i++) {
        Header header;
        if (!get_header(r, &header) || !is_plain_name(header.name)) return 0;
    }
    if (!get_int(r, &e->control) || e->control < NO_CONTROL) return 0;
    if (e->control != NO_CONTROL && e->control >= e->headers) return 0;
    return get_nils(r, EMPTY_FIELDS) && get_timestamp(r, &e->timestamp_ms) && get_nils(r, 1);
}

/* What was written here, or looked at before it became a `Packed`, is an entry. */
static inline Entry entry_of(const Packed *packed) {
    Reader r = {packed->data, packed->data + Py_SIZE(packed)};
    Entry e = {0};
    (void)get_entry(&r, &e);
    return e;
}

/* The next of an entry's headers: there is one for each that it counts. */
static inline Header next_header(Reader *r) {
    Header header = {{0}, {0}};
    (void)get_header(r, &header);
    return header;
}

extern PyTypeObject PackedType;
extern PyTypeObject SenderType;

#endif
