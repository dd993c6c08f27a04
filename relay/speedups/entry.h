/* An entry of a segment, and the Python object that holds one.
 *
 * An entry is the array of the fields of `core._pyentries.Schedule`, in their order. Each that is held here has all of
 * them, and was checked when it was read or made: what looks at it later on finds what it looks for.
 */
#ifndef DELAYTOPIC_ENTRY_H
#define DELAYTOPIC_ENTRY_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#ifdef Py_GIL_DISABLED
#error "free-threaded Python is not supported: run the relay without its speedups, or with the usual Python"
#endif

#include "msgpack.h"

enum { FIELDS = 11, LEAST_FIELDS = 5, MOST_HEADERS = 256, NO_CONTROL = -1 };

/* Which of the fields that may be None are there, and whether the record leaves as it came. */
enum { HAS_ID = 1, HAS_TARGET = 2, HAS_EXPIRES = 4, HAS_TIMESTAMP = 8, HAS_RANK = 16, IS_PLAIN = 32 };

/* `Schedule` in Python. `data` is the entry; what is asked for more than once stands in front of it. */
typedef struct {
    PyObject_VAR_HEAD
    int64_t due_ms, offset;
    uint32_t tail; /* where in the entry the headers end, and `control` follows */
    uint8_t flags;
    uint8_t data[];
} Schedule;

/* The fields of an entry up to its headers, of which there are `headers`: -1 for none at all. */
typedef struct {
    Run key, value;
    int64_t headers;
    Reader at_headers;
} Record;

/* The fields behind the headers. */
typedef struct {
    int64_t control, expires_ms, timestamp_ms, rank;
    Run id, target;
} Tail;

typedef struct {
    Run name, value;
} Header;

static inline int get_header(Reader *r, Header *header) {
    int64_t items;
    return get_array_or_nil(r, &items) && items == 2 && get_text(r, &header->name) && get_bytes_or_nil(r, &header->value);
}

/* How a text has to be looked at: decoded, with care, or not at all. */
enum { NOT_ASCII = 0, HAS_ZEROS = 1, PLAIN_TEXT = 2 };

/* Of a name with a zero byte the client would cut that off, or refuse it. */
static inline int has_zeros(Run text) { return text.size > 0 && memchr(text.data, 0, (size_t)text.size) != NULL; }

/* Eight bytes at a time, as there are names in every record. */
static inline int look_at_text(Run text) {
    uint64_t high = 0, word;
    ptrdiff_t i = 0;
    for (; i + 8 <= text.size; i += 8) memcpy(&word, text.data + i, 8), high |= word;
    for (; i < text.size; i++) high |= text.data[i];
    return high & 0x8080808080808080u ? NOT_ASCII : has_zeros(text) ? HAS_ZEROS : PLAIN_TEXT;
}

static inline int is_nil(const Reader *r) { return r->at != r->end && *r->at == NIL; }

/* A number if there is one, and the flag that says so. */
static inline int get_int_or_nil(Reader *r, int64_t *n, int flag, int *flags) {
    *n = 0;
    if (is_nil(r)) {
        r->at++;
        return 1;
    }
    *flags |= flag;
    return get_int(r, n);
}

static inline int get_text_or_nil(Reader *r, Run *text, int flag, int *flags) {
    *text = (Run){NULL, -1};
    if (is_nil(r)) {
        r->at++;
        return 1;
    }
    *flags |= flag;
    return get_text(r, text);
}

/* As many of the fields behind the headers as there are; those that are not there are None. */
static inline int get_tail(Reader *r, int64_t fields, Tail *t, int *flags) {
    *t = (Tail){.control = NO_CONTROL, .id = {NULL, -1}, .target = {NULL, -1}};
    if (fields > 5 && !get_int(r, &t->control)) return 0;
    if (fields > 6 && !get_bytes_or_nil(r, &t->id)) return 0;
    if (t->id.size >= 0) *flags |= HAS_ID;
    if (fields > 7 && !get_text_or_nil(r, &t->target, HAS_TARGET, flags)) return 0;
    if (fields > 8 && !get_int_or_nil(r, &t->expires_ms, HAS_EXPIRES, flags)) return 0;
    if (fields > 9 && !get_int_or_nil(r, &t->timestamp_ms, HAS_TIMESTAMP, flags)) return 0;
    return fields <= 10 || get_int_or_nil(r, &t->rank, HAS_RANK, flags);
}

static inline Record record_of(const Schedule *schedule) {
    Reader r = {schedule->data + 1, schedule->data + schedule->tail};
    Record record = {.headers = -1};
    int64_t skipped;
    (void)(get_int(&r, &skipped) && get_int(&r, &skipped) && get_bytes_or_nil(&r, &record.key) &&
           get_bytes_or_nil(&r, &record.value) && get_array_or_nil(&r, &record.headers));
    record.at_headers = r;
    return record;
}

static inline Tail tail_of(const Schedule *schedule) {
    Reader r = {schedule->data + schedule->tail, schedule->data + Py_SIZE(schedule)};
    Tail tail;
    int flags = 0;
    (void)get_tail(&r, FIELDS, &tail, &flags);
    return tail;
}

/* The next of an entry's headers: there is one for each that it counts. */
static inline Header next_header(Reader *r) {
    Header header = {{0}, {0}};
    (void)get_header(r, &header);
    return header;
}

/* What the module has of its own; another interpreter would have another. */
typedef struct {
    PyTypeObject *schedule_type;
    PyObject *summary_type, *sizes_type, *group_type, *span_type;
    PyObject *name_headers, *name_timestamp, *name_offset, *name_key, *name_value;
    PyObject *field_names[FIELDS];
    Py_ssize_t fixed_size, id_size;
} State;

extern PyModuleDef speedups_module;

static inline State *state_of(PyObject *module) { return PyModule_GetState(module); }

/* What a schedule is made of. Borrowed. */
typedef struct {
    int64_t due_ms, offset, control, expires_ms, timestamp_ms, rank;
    PyObject *key, *value, *headers, *id, *target; /* `headers` is a list or tuple, or None */
    int flags;
} Fields;

PyObject *make_schedule(State *state, const Fields *fields, size_t headers_size, int plain);

static inline size_t bytes_or_none_size(PyObject *bytes) {
    return bytes == Py_None ? 1 : run_size((size_t)PyBytes_GET_SIZE(bytes));
}

/* The size of a header: its array, name and value. */
static inline size_t header_size(Run name, PyObject *value) {
    return 1 + text_size((size_t)name.size) + bytes_or_none_size(value);
}

PyObject *read_messages(PyObject *module, PyObject *arguments);
extern PyType_Spec sender_spec;

#endif
