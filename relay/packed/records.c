/* Records without a Python object for each of their fields: read from messages, packed into segments, unpacked.
 *
 * Everything here gives what the Python of `dialects.native` and `core.packed` gives, or leaves it to that.
 */
#include "entry.h"

#include <structmember.h>

enum { MOST_DIGITS = 18 };

static PyObject *name_headers, *name_timestamp, *name_offset, *name_key, *name_value;

/* -- the type */

static Packed *new_packed(int64_t due_ms, int64_t offset, int64_t timestamp_ms, int64_t control, size_t size) {
    Packed *packed = PyObject_NewVar(Packed, &PackedType, (Py_ssize_t)size);
    if (packed == NULL) return NULL;
    packed->due_ms = due_ms;
    packed->offset = offset;
    packed->timestamp_ms = timestamp_ms;
    packed->control = (int32_t)control;
    return packed;
}

static PyObject *bytes_or_none(Run run) {
    if (run.size < 0) Py_RETURN_NONE;
    return PyBytes_FromStringAndSize((const char *)run.data, run.size);
}

static PyObject *packed_key(PyObject *self, void *Py_UNUSED(closure)) {
    return bytes_or_none(entry_of((Packed *)self).key);
}

static PyObject *packed_value(PyObject *self, void *Py_UNUSED(closure)) {
    return bytes_or_none(entry_of((Packed *)self).value);
}

static PyObject *packed_headers(PyObject *self, void *Py_UNUSED(closure)) {
    Entry e = entry_of((Packed *)self);
    if (e.headers < 0) Py_RETURN_NONE;
    PyObject *list = PyList_New((Py_ssize_t)e.headers);
    for (Py_ssize_t i = 0; list != NULL && i < e.headers; i++) {
        Header header = next_header(&e.at_headers);
        PyObject *pair = Py_BuildValue("(s#N)", header.name.data, header.name.size, bytes_or_none(header.value));
        if (pair == NULL) Py_CLEAR(list);
        else PyList_SET_ITEM(list, i, pair);
    }
    return list;
}

static PyObject *packed_timestamp(PyObject *self, void *Py_UNUSED(closure)) {
    int64_t timestamp_ms = ((Packed *)self)->timestamp_ms;
    if (timestamp_ms == NO_TIMESTAMP) Py_RETURN_NONE;
    return PyLong_FromLongLong(timestamp_ms);
}

static const char *const fields[FIELDS] = {"due_ms", "offset", "key",        "value",        "headers", "control",
                                           "id",     "target", "expires_ms", "timestamp_ms", "rank"};

/* 1 if each field of one is that of the other, -1 with an error. */
static int same_fields(PyObject *a, PyObject *b) {
    int same = 1;
    for (int i = 0; same == 1 && i < FIELDS; i++) {
        PyObject *of_a = PyObject_GetAttrString(a, fields[i]), *of_b = of_a ? PyObject_GetAttrString(b, fields[i]) : NULL;
        same = of_b != NULL ? PyObject_RichCompareBool(of_a, of_b, Py_EQ) : -1;
        Py_XDECREF(of_a);
        Py_XDECREF(of_b);
    }
    return same;
}

/* A `Packed` equals the `Schedule` with the same fields. */
static PyObject *packed_compare(PyObject *a, PyObject *b, int operation) {
    if (operation != Py_EQ && operation != Py_NE) Py_RETURN_NOTIMPLEMENTED;
    int same;
    /* The same bytes are the same fields. Others may be, too: who else writes segments may write numbers longer. */
    if (Py_IS_TYPE(b, &PackedType) && Py_SIZE(a) == Py_SIZE(b) &&
        !memcmp(((Packed *)a)->data, ((Packed *)b)->data, (size_t)Py_SIZE(a)))
        same = 1;
    else
        same = same_fields(a, b);
    if (same < 0) {
        if (!PyErr_ExceptionMatches(PyExc_AttributeError)) return NULL;
        PyErr_Clear();
        Py_RETURN_NOTIMPLEMENTED;
    }
    return PyBool_FromLong(same == (operation == Py_EQ));
}

static PyObject *packed_repr(PyObject *self) {
    Packed *packed = (Packed *)self;
    return PyUnicode_FromFormat("<Packed offset=%lld due_ms=%lld, %zd bytes>", (long long)packed->offset,
                                (long long)packed->due_ms, Py_SIZE(packed));
}

static PyGetSetDef packed_getters[] = {
    {"key", packed_key, NULL, "The record's key.", NULL},
    {"value", packed_value, NULL, "The record's value.", NULL},
    {"headers", packed_headers, NULL, "All headers in their order, in a list of the caller's own.", NULL},
    {"timestamp_ms", packed_timestamp, NULL, "The record's own timestamp, or None.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMemberDef packed_members[] = {
    {"due_ms", T_LONGLONG, offsetof(Packed, due_ms), READONLY, "The due time."},
    {"offset", T_LONGLONG, offsetof(Packed, offset), READONLY, "The source offset."},
    {"control", T_INT, offsetof(Packed, control), READONLY, "The place of the only control header, or -1."},
    {"length", T_PYSSIZET, offsetof(PyVarObject, ob_size), READONLY, "The bytes of its entry in a segment."},
    {NULL, 0, 0, 0, NULL},
};

PyTypeObject PackedType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "delaytopic_relay._packed.Packed",
    .tp_doc = "A schedule in the bytes of a segment's entry; `id`, `target`, `expires_ms` and `rank` are None.",
    .tp_basicsize = offsetof(Packed, data),
    .tp_itemsize = 1,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_getset = packed_getters,
    .tp_members = packed_members,
    .tp_richcompare = packed_compare,
    .tp_hash = PyObject_HashNotImplemented,
    .tp_repr = packed_repr,
};

/* -- segments */

static PyObject *pack(PyObject *Py_UNUSED(self), PyObject *schedules) {
    PyObject *items = PySequence_Fast(schedules, "pack() takes a sequence of schedules");
    if (items == NULL) return NULL;
    Py_ssize_t count = PySequence_Fast_GET_SIZE(items);
    size_t size = array_size((size_t)count);
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *item = PySequence_Fast_GET_ITEM(items, i);
        if (!Py_IS_TYPE(item, &PackedType)) {
            Py_DECREF(items);
            Py_RETURN_NONE;
        }
        size += (size_t)Py_SIZE(item);
    }
    PyObject *result = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)size);
    if (result != NULL) {
        uint8_t *p = put_array((uint8_t *)PyBytes_AS_STRING(result), (size_t)count);
        for (Py_ssize_t i = 0; i < count; i++) {
            Packed *packed = (Packed *)PySequence_Fast_GET_ITEM(items, i);
            memcpy(p, packed->data, (size_t)Py_SIZE(packed));
            p += Py_SIZE(packed);
        }
    }
    Py_DECREF(items);
    return result;
}

/* A list of `count` entries and nothing behind them; None if something else stands there, NULL with an error. */
static PyObject *unpack_entries(Reader *r, Py_ssize_t count) {
    PyObject *list = PyList_New(count);
    for (Py_ssize_t i = 0; list != NULL && i < count; i++) {
        const uint8_t *start = r->at;
        Entry e;
        if (!get_entry(r, &e)) {
            Py_DECREF(list);
            Py_RETURN_NONE;
        }
        Packed *packed = new_packed(e.due_ms, e.offset, e.timestamp_ms, e.control, (size_t)(r->at - start));
        if (packed == NULL) {
            Py_CLEAR(list);
            break;
        }
        memcpy(packed->data, start, (size_t)(r->at - start));
        PyList_SET_ITEM(list, i, (PyObject *)packed);
    }
    if (list != NULL && r->at != r->end) {
        Py_DECREF(list);
        Py_RETURN_NONE;
    }
    return list;
}

static PyObject *unpack(PyObject *Py_UNUSED(self), PyObject *data) {
    Py_buffer view;
    if (PyObject_GetBuffer(data, &view, PyBUF_SIMPLE) < 0) return NULL;
    Reader r = {view.buf, (const uint8_t *)view.buf + view.len};
    int64_t count;
    PyObject *list;
    /* An entry takes a dozen bytes at least, so what claims more entries than bytes is not believed. */
    if (get_array_or_nil(&r, &count) && count >= 0 && count <= view.len) list = unpack_entries(&r, (Py_ssize_t)count);
    else list = Py_NewRef(Py_None);
    PyBuffer_Release(&view);
    return list;
}

/* -- many at once */

/* The items of a sequence if all of them are packed: NULL without an error if one is not. */
static PyObject *all_packed(PyObject *schedules) {
    PyObject *items = PySequence_Fast(schedules, "a sequence of schedules is needed");
    for (Py_ssize_t i = 0; items != NULL && i < PySequence_Fast_GET_SIZE(items); i++)
        if (!Py_IS_TYPE(PySequence_Fast_GET_ITEM(items, i), &PackedType)) Py_CLEAR(items);
    return items;
}

static PyObject *none_or_error(void) { return PyErr_Occurred() ? NULL : Py_NewRef(Py_None); }

static PyObject *summary(PyObject *Py_UNUSED(self), PyObject *schedules) {
    PyObject *items = all_packed(schedules);
    if (items == NULL || PySequence_Fast_GET_SIZE(items) == 0) {
        Py_XDECREF(items);
        return none_or_error();
    }
    int64_t first_ms = INT64_MAX, last_ms = INT64_MIN, last_offset = INT64_MIN;
    Py_ssize_t longest = 0, size = 0;
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items); i++) {
        Packed *packed = (Packed *)PySequence_Fast_GET_ITEM(items, i);
        if (packed->due_ms < first_ms) first_ms = packed->due_ms;
        if (packed->due_ms > last_ms) last_ms = packed->due_ms;
        if (packed->offset > last_offset) last_offset = packed->offset;
        if (Py_SIZE(packed) > longest) longest = Py_SIZE(packed);
        size += Py_SIZE(packed);
    }
    Py_DECREF(items);
    return Py_BuildValue("(LLLnn)", (long long)first_ms, (long long)last_ms, (long long)last_offset, longest, size);
}

/* A schedule beside its key: to look for it in each would be a cache miss for each comparison. */
typedef struct {
    int64_t due_ms, offset;
    PyObject *schedule;
} Keyed;

static int by_key(const void *left, const void *right) {
    const Keyed *a = left, *b = right;
    if (a->due_ms != b->due_ms) return a->due_ms < b->due_ms ? -1 : 1;
    return (a->offset > b->offset) - (a->offset < b->offset);
}

static PyObject *ordered(PyObject *Py_UNUSED(self), PyObject *schedules) {
    PyObject *items = all_packed(schedules);
    if (items == NULL) return none_or_error();
    Py_ssize_t count = PySequence_Fast_GET_SIZE(items), kept = 0;
    Keyed *sorted = PyMem_New(Keyed, count ? count : 1);
    if (sorted == NULL) {
        Py_DECREF(items);
        return PyErr_NoMemory();
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        Packed *packed = (Packed *)PySequence_Fast_GET_ITEM(items, i);
        sorted[i] = (Keyed){packed->due_ms, packed->offset, (PyObject *)packed};
    }
    qsort(sorted, (size_t)count, sizeof *sorted, by_key);
    for (Py_ssize_t i = 0; i < count; i++)
        if (i == 0 || by_key(&sorted[i], &sorted[kept - 1]) != 0) sorted[kept++] = sorted[i];
    PyObject *list = PyList_New(kept);
    for (Py_ssize_t i = 0; list != NULL && i < kept; i++) PyList_SET_ITEM(list, i, Py_NewRef(sorted[i].schedule));
    PyMem_Free(sorted);
    Py_DECREF(items);
    return list;
}

/* The schedules that are due in one span of time. */
typedef struct {
    PyObject *list;
    Py_ssize_t count, filled;
    size_t size;
    int64_t lowest;
} Span;

/* A place for each span from the first to the last is made: of what lies farther apart most would be empty. */
enum { MOST_SPANS = 1 << 13 };

static void count_in(Span *spans, int64_t first, Packed *const *all, Py_ssize_t count, int64_t width_ms) {
    for (Py_ssize_t i = 0; i < count; i++) {
        Span *span = &spans[all[i]->due_ms / width_ms - first];
        if (span->count++ == 0 || all[i]->offset < span->lowest) span->lowest = all[i]->offset;
        span->size += (size_t)Py_SIZE(all[i]);
    }
}

static int fill(Span *spans, int64_t first, Packed *const *all, Py_ssize_t count, int64_t width_ms) {
    for (Py_ssize_t i = 0; i < count; i++) {
        Span *span = &spans[all[i]->due_ms / width_ms - first];
        if (span->list == NULL && (span->list = PyList_New(span->count)) == NULL) return 0;
        PyList_SET_ITEM(span->list, span->filled++, Py_NewRef((PyObject *)all[i]));
    }
    return 1;
}

/* Those spans that have any, as tuples; takes the lists over. */
static PyObject *tuples_of(Span *spans, Py_ssize_t count, int64_t first, int64_t width_ms) {
    PyObject *found = PyList_New(0);
    for (Py_ssize_t i = 0; found != NULL && i < count; i++) {
        Span *span = &spans[i];
        if (span->count == 0) continue;
        PyObject *list = span->list;
        span->list = NULL;
        PyObject *tuple = Py_BuildValue("(LNnL)", (long long)((first + i) * width_ms), list, (Py_ssize_t)span->size,
                                        (long long)span->lowest);
        if (tuple == NULL || PyList_Append(found, tuple) < 0) Py_CLEAR(found);
        Py_XDECREF(tuple);
    }
    return found;
}

static PyObject *by_span(PyObject *Py_UNUSED(self), PyObject *arguments) {
    PyObject *schedules, *found = NULL;
    long long width_ms;
    if (!PyArg_ParseTuple(arguments, "OL", &schedules, &width_ms)) return NULL;
    PyObject *items = all_packed(schedules);
    if (items == NULL) return none_or_error();
    Packed *const *all = (Packed *const *)PySequence_Fast_ITEMS(items);
    Py_ssize_t count = PySequence_Fast_GET_SIZE(items);
    int64_t first_ms = count ? INT64_MAX : 0, last_ms = 0;
    for (Py_ssize_t i = 0; i < count; i++) {
        if (all[i]->due_ms < first_ms) first_ms = all[i]->due_ms;
        if (all[i]->due_ms > last_ms) last_ms = all[i]->due_ms;
    }
    if (width_ms < 1 || first_ms < 0 || last_ms / width_ms - first_ms / width_ms >= MOST_SPANS) {
        Py_DECREF(items);
        Py_RETURN_NONE;
    }
    int64_t first = first_ms / width_ms;
    Py_ssize_t many = (Py_ssize_t)(last_ms / width_ms - first + 1);
    Span *spans = PyMem_Calloc((size_t)many, sizeof *spans);
    if (spans == NULL) PyErr_NoMemory();
    else {
        count_in(spans, first, all, count, width_ms);
        if (fill(spans, first, all, count, width_ms)) found = tuples_of(spans, many, first, width_ms);
        for (Py_ssize_t i = 0; i < many; i++) Py_XDECREF(spans[i].list);
        PyMem_Free(spans);
    }
    Py_DECREF(items);
    return found;
}

/* -- reading messages */

typedef struct {
    long long implied_delay_ms, last_timestamp_ms, max_delay_ms;
    PyObject *note;
} Rules;

typedef struct {
    PyObject *headers, *timestamp, *offset, *key, *value;
} Parts;

static int is_bytes_or_none(PyObject *object) { return object == Py_None || PyBytes_CheckExact(object); }

static size_t bytes_or_none_size(PyObject *bytes) {
    return bytes == Py_None ? 1 : run_size((size_t)PyBytes_GET_SIZE(bytes));
}

static uint8_t *put_bytes_or_none(uint8_t *p, PyObject *bytes) {
    if (bytes == Py_None) return put_nil(p);
    return put_run(p, BYTES, PyBytes_AS_STRING(bytes), (size_t)PyBytes_GET_SIZE(bytes));
}

static Run name_of(PyObject *pair) {
    PyObject *name = PyTuple_GET_ITEM(pair, 0);
    return (Run){PyUnicode_1BYTE_DATA(name), PyUnicode_GET_LENGTH(name)};
}

static int is_named(Run name, const char *text) {
    return (size_t)name.size == strlen(text) && !memcmp(name.data, text, (size_t)name.size);
}

static int begins_with(Run name, const char *text) {
    return (size_t)name.size >= strlen(text) && !memcmp(name.data, text, strlen(text));
}

/* A pair of a name in ASCII and bytes, as nearly every header is. */
static int is_plain_header(PyObject *pair) {
    if (!PyTuple_CheckExact(pair) || PyTuple_GET_SIZE(pair) != 2 || !is_bytes_or_none(PyTuple_GET_ITEM(pair, 1))) return 0;
    PyObject *name = PyTuple_GET_ITEM(pair, 0);
    return PyUnicode_CheckExact(name) && PyUnicode_IS_COMPACT_ASCII(name) && is_plain_name(name_of(pair));
}

/* The place of the control header, and the size of all headers; 0 if Python has to look at them. */
static int look_at_headers(PyObject *headers, Py_ssize_t count, Py_ssize_t *control, size_t *size, int *resembling) {
    *control = NO_CONTROL;
    *resembling = 0;
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *pair = PyList_GET_ITEM(headers, i);
        if (!is_plain_header(pair)) return 0;
        Run name = name_of(pair);
        if (begins_with(name, "deliver-")) {
            if (*control != NO_CONTROL) return 0;
            *control = i;
        }
        uint8_t first = name.size ? name.data[0] | 0x20 : 0;
        *resembling |= first == 'd' || first == 'x';
        *size += 1 + text_size((size_t)name.size) + bytes_or_none_size(PyTuple_GET_ITEM(pair, 1));
    }
    return 1;
}

/* The due time that a header of digits states; -1 if Python has to read it. */
static long long stated_due_ms(PyObject *pair, long long timestamp_ms) {
    PyObject *text = PyTuple_GET_ITEM(pair, 1);
    if (text == Py_None || PyBytes_GET_SIZE(text) < 1 || PyBytes_GET_SIZE(text) > MOST_DIGITS) return -1;
    long long number = 0;
    for (const char *c = PyBytes_AS_STRING(text), *end = c + PyBytes_GET_SIZE(text); c < end; c++) {
        if (*c < '0' || *c > '9') return -1;
        number = number * 10 + (*c - '0');
    }
    if (is_named(name_of(pair), "deliver-at")) return number;
    return is_named(name_of(pair), "deliver-after") ? number + timestamp_ms : -1;
}

static PyObject *write_entry(const Parts *parts, int64_t due_ms, int64_t offset, int64_t timestamp_ms, Py_ssize_t control,
                             size_t size) {
    Py_ssize_t count = parts->headers == Py_None ? -1 : PyList_GET_SIZE(parts->headers);
    size += 1 + int_size(due_ms) + int_size(offset) + int_size(control) + EMPTY_FIELDS + int_size(timestamp_ms) + 1;
    size += bytes_or_none_size(parts->key) + bytes_or_none_size(parts->value);
    size += count < 0 ? 1 : array_size((size_t)count);
    Packed *packed = new_packed(due_ms, offset, timestamp_ms, control, size);
    if (packed == NULL) return NULL;
    uint8_t *p = put_array(packed->data, FIELDS);
    p = put_int(put_int(p, due_ms), offset);
    p = put_bytes_or_none(put_bytes_or_none(p, parts->key), parts->value);
    p = count < 0 ? put_nil(p) : put_array(p, (size_t)count);
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *pair = PyList_GET_ITEM(parts->headers, i);
        Run name = name_of(pair);
        p = put_text(put_array(p, 2), name.data, (size_t)name.size);
        p = put_bytes_or_none(p, PyTuple_GET_ITEM(pair, 1));
    }
    p = put_int(p, control);
    for (int i = 0; i < EMPTY_FIELDS; i++) p = put_nil(p);
    put_nil(put_int(p, timestamp_ms));
    return (PyObject *)packed;
}

/* A number that fits; 0 for whatever else, which Python has to look at. */
static int is_number(PyObject *object, long long *n) {
    int overflow;
    if (!PyLong_CheckExact(object)) return 0;
    *n = PyLong_AsLongLongAndOverflow(object, &overflow);
    return !overflow;
}

/* The timestamp, if it is within its bounds; -1 if Python has to tell. */
static long long timestamp_ms_of(const Parts *parts, const Rules *rules) {
    long long kind, timestamp_ms;
    if (!PyTuple_CheckExact(parts->timestamp) || PyTuple_GET_SIZE(parts->timestamp) != 2) return -1;
    if (!is_number(PyTuple_GET_ITEM(parts->timestamp, 0), &kind) || kind == 0) return -1;
    if (!is_number(PyTuple_GET_ITEM(parts->timestamp, 1), &timestamp_ms)) return -1;
    return timestamp_ms > rules->last_timestamp_ms ? -1 : timestamp_ms;
}

/* The due time by the headers and the timestamp; -1 if Python has to tell. */
static long long due_ms_of(const Parts *parts, long long timestamp_ms, Py_ssize_t control, const Rules *rules) {
    if (control == NO_CONTROL) return timestamp_ms + rules->implied_delay_ms;
    long long due_ms = stated_due_ms(PyList_GET_ITEM(parts->headers, control), timestamp_ms);
    return due_ms - timestamp_ms > rules->max_delay_ms ? -1 : due_ms;
}

/* All parts of a message but its headers; 0 with an error. */
static int ask_for_parts(PyObject *message, Parts *parts) {
    return (parts->timestamp = PyObject_CallMethodNoArgs(message, name_timestamp)) != NULL &&
           (parts->offset = PyObject_CallMethodNoArgs(message, name_offset)) != NULL &&
           (parts->key = PyObject_CallMethodNoArgs(message, name_key)) != NULL &&
           (parts->value = PyObject_CallMethodNoArgs(message, name_value)) != NULL;
}

/* The schedule that a record is; NULL if Python has to read it, or with an error. */
static PyObject *schedule_of(PyObject *message, Parts *parts, const Rules *rules) {
    if (!ask_for_parts(message, parts)) return NULL;
    /* From here to the entry nothing of Python runs, which might change the list of headers. */
    if (parts->headers != Py_None && !PyList_CheckExact(parts->headers)) return NULL;
    Py_ssize_t count = parts->headers == Py_None ? -1 : PyList_GET_SIZE(parts->headers), control;
    size_t size = 0;
    int resembling;
    if (count > MOST_HEADERS || !look_at_headers(parts->headers, count, &control, &size, &resembling)) return NULL;
    long long timestamp_ms = timestamp_ms_of(parts, rules), offset;
    if (timestamp_ms < 0) return NULL;
    long long due_ms = due_ms_of(parts, timestamp_ms, control, rules);
    if (due_ms < 0 || !is_number(parts->offset, &offset)) return NULL;
    if (!is_bytes_or_none(parts->key) || !is_bytes_or_none(parts->value)) return NULL;
    PyObject *packed = write_entry(parts, due_ms, offset, timestamp_ms, control, size);
    if (packed != NULL && resembling && control == NO_CONTROL && rules->note != Py_None) {
        PyObject *noted = PyObject_CallOneArg(rules->note, parts->headers);
        if (noted == NULL) Py_CLEAR(packed);
        Py_XDECREF(noted);
    }
    return packed;
}

static PyObject *read_message(PyObject *message, PyObject *careful, const Rules *rules) {
    Parts parts = {NULL, NULL, NULL, NULL, NULL};
    PyObject *command = NULL;
    if ((parts.headers = PyObject_CallMethodNoArgs(message, name_headers)) != NULL)
        command = schedule_of(message, &parts, rules);
    else if (PyErr_ExceptionMatches(PyExc_Exception))
        PyErr_Clear(); /* the careful way meets it again */
    Py_XDECREF(parts.headers);
    Py_XDECREF(parts.timestamp);
    Py_XDECREF(parts.offset);
    Py_XDECREF(parts.key);
    Py_XDECREF(parts.value);
    if (command == NULL && !PyErr_Occurred()) command = PyObject_CallOneArg(careful, message);
    return command;
}

static PyObject *read_all(PyObject *Py_UNUSED(self), PyObject *arguments) {
    PyObject *messages, *careful;
    Rules rules;
    if (!PyArg_ParseTuple(arguments, "OOLLLO", &messages, &careful, &rules.implied_delay_ms, &rules.last_timestamp_ms,
                          &rules.max_delay_ms, &rules.note))
        return NULL;
    /* Not the list itself: `careful` and `note` might change that. */
    PyObject *items = PySequence_Tuple(messages);
    if (items == NULL) return NULL;
    Py_ssize_t count = PyTuple_GET_SIZE(items);
    PyObject *commands = PyList_New(count);
    for (Py_ssize_t i = 0; commands != NULL && i < count; i++) {
        PyObject *command = read_message(PyTuple_GET_ITEM(items, i), careful, &rules);
        if (command == NULL) Py_CLEAR(commands);
        else PyList_SET_ITEM(commands, i, command);
    }
    Py_DECREF(items);
    return commands;
}

/* -- the module */

static PyMethodDef functions[] = {
    {"pack", pack, METH_O, "Pack schedules into the entries of a segment; None if one of them is no `Packed`."},
    {"unpack", unpack, METH_O, "Unpack the entries of a segment; None if one of them cannot stay packed."},
    {"summary", summary, METH_O,
     "Return the first and the last due time of schedules, their last offset, the length of the longest entry and of all; "
     "None if there are none, or one of them is no `Packed`."},
    {"by_span", by_span, METH_VARARGS,
     "Group schedules by the span of time that they are due in: by_span(schedules, width_ms). Return for each span its "
     "start, the schedules in their order, the length of their entries and their lowest offset; None if the spans are "
     "too many, or one schedule is no `Packed`."},
    {"ordered", ordered, METH_O,
     "Return schedules by due time and offset, one for each such key; None if one of them is no `Packed`."},
    {"read", read_all, METH_VARARGS,
     "Read messages by the rules of the native dialect: read(messages, careful, implied_delay_ms, last_timestamp_ms, "
     "max_delay_ms, note). What is not plain is read by `careful`; `note` hears of headers that resemble control headers."},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "_packed", "Records that stay packed, see `delaytopic_relay.core.packed`.", -1, functions,
    NULL, NULL, NULL, NULL,
};

static int prepare_names(void) {
    static const char *const absent[] = {"id", "target", "expires_ms", "rank"};
    for (size_t i = 0; i < sizeof absent / sizeof *absent; i++)
        if (PyDict_SetItemString(PackedType.tp_dict, absent[i], Py_None) < 0) return -1;
    PyType_Modified(&PackedType);
    return (name_headers = PyUnicode_InternFromString("headers")) && (name_key = PyUnicode_InternFromString("key")) &&
                   (name_timestamp = PyUnicode_InternFromString("timestamp")) &&
                   (name_offset = PyUnicode_InternFromString("offset")) &&
                   (name_value = PyUnicode_InternFromString("value"))
               ? 0
               : -1;
}

PyMODINIT_FUNC PyInit__packed(void) {
    if (PyType_Ready(&PackedType) < 0 || PyType_Ready(&SenderType) < 0 || prepare_names() < 0) return NULL;
    PyObject *made = PyModule_Create(&module);
    if (made == NULL) return NULL;
    if (PyModule_AddObjectRef(made, "Packed", (PyObject *)&PackedType) < 0 ||
        PyModule_AddObjectRef(made, "Sender", (PyObject *)&SenderType) < 0)
        Py_CLEAR(made);
    return made;
}
