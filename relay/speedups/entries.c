/* Schedules that are the bytes of their entries, and what is done with many of them at once.
 *
 * Everything here gives what the Python of `core._pyentries` gives.
 */
#include "entry.h"

#include <stddef.h>
#include <structmember.h>

static const char *const field_names[FIELDS] = {"due_ms", "offset", "key",        "value",        "headers", "control",
                                                "id",     "target", "expires_ms", "timestamp_ms", "rank"};

static Schedule *new_schedule(State *state, int64_t due_ms, int64_t offset, size_t tail, int flags, size_t size) {
    if (size > UINT32_MAX) {
        PyErr_SetString(PyExc_ValueError, "an entry takes four gigabytes or more");
        return NULL;
    }
    Schedule *schedule = PyObject_NewVar(Schedule, state->schedule_type, (Py_ssize_t)size);
    if (schedule == NULL) return NULL;
    schedule->due_ms = due_ms;
    schedule->offset = offset;
    schedule->tail = (uint32_t)tail;
    schedule->flags = (uint8_t)flags;
    return schedule;
}

static void schedule_dealloc(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    PyObject_Free(self);
    Py_DECREF(type);
}

/* -- made of fields */

static uint8_t *put_bytes_or_none(uint8_t *p, PyObject *bytes) {
    if (bytes == Py_None) return put_nil(p);
    return put_run(p, BYTES, PyBytes_AS_STRING(bytes), (size_t)PyBytes_GET_SIZE(bytes));
}

static size_t int_or_none_size(int64_t n, int flags, int flag) { return flags & flag ? int_size(n) : 1; }

static uint8_t *put_int_or_none(uint8_t *p, int64_t n, int flags, int flag) {
    return flags & flag ? put_int(p, n) : put_nil(p);
}

/* A text in UTF-8, which the object keeps; without data, and with an error, if it has none. */
static Run run_of(PyObject *text) {
    if (PyUnicode_IS_COMPACT_ASCII(text)) return (Run){PyUnicode_1BYTE_DATA(text), PyUnicode_GET_LENGTH(text)};
    Py_ssize_t size = 0;
    const char *data = PyUnicode_AsUTF8AndSize(text, &size);
    return (Run){(const uint8_t *)data, size};
}

static int check_bytes_or_none(PyObject *object, const char *what) {
    if (object == Py_None || PyBytes_CheckExact(object)) return 1;
    PyErr_Format(PyExc_TypeError, "the %s of a schedule is bytes or None, not %s", what, Py_TYPE(object)->tp_name);
    return 0;
}

/* The size of all headers; -1 with an error. `plain` gets 0 if one of the names is not. */
static Py_ssize_t headers_size(PyObject *headers, int *plain) {
    Py_ssize_t total = 0;
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(headers); i++) {
        PyObject *pair = PySequence_Fast_GET_ITEM(headers, i);
        if (!PyTuple_Check(pair) || PyTuple_GET_SIZE(pair) != 2 || !PyUnicode_Check(PyTuple_GET_ITEM(pair, 0))) {
            PyErr_Format(PyExc_TypeError, "a header is a pair of a text, and bytes or None, not %s", Py_TYPE(pair)->tp_name);
            return -1;
        }
        Run name = run_of(PyTuple_GET_ITEM(pair, 0));
        if (name.data == NULL || !check_bytes_or_none(PyTuple_GET_ITEM(pair, 1), "headers")) return -1;
        *plain &= look_at_text(name) == PLAIN_TEXT;
        total += (Py_ssize_t)header_size(name, PyTuple_GET_ITEM(pair, 1));
    }
    return total;
}

static uint8_t *put_headers(uint8_t *p, PyObject *headers) {
    if (headers == Py_None) return put_nil(p);
    Py_ssize_t count = PySequence_Fast_GET_SIZE(headers);
    p = put_array(p, (size_t)count);
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *pair = PySequence_Fast_GET_ITEM(headers, i);
        Run name = run_of(PyTuple_GET_ITEM(pair, 0));
        p = put_text(put_array(p, 2), name.data, (size_t)name.size);
        p = put_bytes_or_none(p, PyTuple_GET_ITEM(pair, 1));
    }
    return p;
}

/* Make a schedule whose headers take so many bytes, and have plain names or not. */
PyObject *make_schedule(State *state, const Fields *f, size_t headers_size, int plain) {
    Py_ssize_t count = f->headers == Py_None ? 0 : PySequence_Fast_GET_SIZE(f->headers);
    size_t headers = f->headers == Py_None ? 1 : array_size((size_t)count) + headers_size;
    Run target = {NULL, -1};
    if (f->flags & HAS_TARGET && (target = run_of(f->target)).data == NULL) return NULL;
    plain = plain && f->control >= NO_CONTROL && f->control < count && !(f->flags & (HAS_TARGET | HAS_EXPIRES));
    size_t tail = 1 + int_size(f->due_ms) + int_size(f->offset) + bytes_or_none_size(f->key) +
                  bytes_or_none_size(f->value) + headers;
    size_t size = tail + int_size(f->control) + bytes_or_none_size(f->id) +
                  (target.size < 0 ? 1 : text_size((size_t)target.size)) +
                  int_or_none_size(f->expires_ms, f->flags, HAS_EXPIRES) +
                  int_or_none_size(f->timestamp_ms, f->flags, HAS_TIMESTAMP) +
                  int_or_none_size(f->rank, f->flags, HAS_RANK);
    Schedule *schedule = new_schedule(state, f->due_ms, f->offset, tail, f->flags | (plain ? IS_PLAIN : 0), size);
    if (schedule == NULL) return NULL;
    uint8_t *p = put_array(schedule->data, FIELDS);
    p = put_int(put_int(p, f->due_ms), f->offset);
    p = put_bytes_or_none(put_bytes_or_none(p, f->key), f->value);
    p = put_int(put_headers(p, f->headers), f->control);
    p = put_bytes_or_none(p, f->id);
    p = target.size < 0 ? put_nil(p) : put_text(p, target.data, (size_t)target.size);
    p = put_int_or_none(p, f->expires_ms, f->flags, HAS_EXPIRES);
    p = put_int_or_none(p, f->timestamp_ms, f->flags, HAS_TIMESTAMP);
    put_int_or_none(p, f->rank, f->flags, HAS_RANK);
    return (PyObject *)schedule;
}

static int take_int(PyObject *object, int64_t *n) {
    *n = PyLong_AsLongLong(object);
    return *n != -1 || !PyErr_Occurred();
}

static int take_int_or_none(PyObject *object, int64_t *n, int flag, int *flags) {
    if (object == Py_None) return 1;
    *flags |= flag;
    return take_int(object, n);
}

static int take_fields(PyObject *const *given, Fields *f) {
    f->key = given[2], f->value = given[3], f->headers = given[4], f->id = given[6], f->target = given[7];
    if (!take_int(given[0], &f->due_ms) || !take_int(given[1], &f->offset) || !take_int(given[5], &f->control)) return 0;
    if (!check_bytes_or_none(f->key, "key") || !check_bytes_or_none(f->value, "value") ||
        !check_bytes_or_none(f->id, "id"))
        return 0;
    if (f->headers != Py_None && !PyList_CheckExact(f->headers) && !PyTuple_CheckExact(f->headers)) {
        PyErr_Format(PyExc_TypeError, "the headers of a schedule are a list or None, not %s", Py_TYPE(f->headers)->tp_name);
        return 0;
    }
    if (f->target != Py_None && !PyUnicode_Check(f->target)) {
        PyErr_Format(PyExc_TypeError, "the target of a schedule is a text or None, not %s", Py_TYPE(f->target)->tp_name);
        return 0;
    }
    if (f->id != Py_None) f->flags |= HAS_ID;
    if (f->target != Py_None) f->flags |= HAS_TARGET;
    return take_int_or_none(given[8], &f->expires_ms, HAS_EXPIRES, &f->flags) &&
           take_int_or_none(given[9], &f->timestamp_ms, HAS_TIMESTAMP, &f->flags) &&
           take_int_or_none(given[10], &f->rank, HAS_RANK, &f->flags);
}

/* The place of a field by its name; FIELDS if none has it, -1 with an error. */
static int place_of(const State *state, PyObject *name) {
    for (int i = 0; i < FIELDS; i++)
        if (name == state->field_names[i]) return i;
    for (int i = 0; i < FIELDS; i++) {
        int same = PyUnicode_Compare(name, state->field_names[i]);
        if (same == -1 && PyErr_Occurred()) return -1;
        if (same == 0) return i;
    }
    return FIELDS;
}

static PyObject *schedule_vectorcall(PyObject *type, PyObject *const *arguments, size_t flagged, PyObject *names) {
    State *state = PyType_GetModuleState((PyTypeObject *)type);
    Py_ssize_t count = PyVectorcall_NARGS(flagged), named = names == NULL ? 0 : PyTuple_GET_SIZE(names);
    PyObject *given[FIELDS] = {NULL};
    if (count > FIELDS) {
        PyErr_Format(PyExc_TypeError, "a schedule has %d fields, not %zd", FIELDS, count);
        return NULL;
    }
    for (Py_ssize_t i = 0; i < count; i++) given[i] = arguments[i];
    for (Py_ssize_t i = 0; i < named; i++) {
        int place = place_of(state, PyTuple_GET_ITEM(names, i));
        if (place < 0) return NULL;
        if (place == FIELDS || given[place] != NULL) {
            PyErr_Format(PyExc_TypeError, "a schedule has no field %R, or it is given twice", PyTuple_GET_ITEM(names, i));
            return NULL;
        }
        given[place] = arguments[count + i];
    }
    for (int i = 0; i < LEAST_FIELDS; i++)
        if (given[i] == NULL) {
            PyErr_Format(PyExc_TypeError, "a schedule needs the field %s", field_names[i]);
            return NULL;
        }
    PyObject *no_control = NULL;
    if (given[5] == NULL && (given[5] = no_control = PyLong_FromLong(NO_CONTROL)) == NULL) return NULL;
    for (int i = LEAST_FIELDS; i < FIELDS; i++)
        if (given[i] == NULL) given[i] = Py_None;
    Fields fields = {0};
    PyObject *made = NULL;
    if (take_fields(given, &fields)) {
        int plain = 1;
        Py_ssize_t size = fields.headers == Py_None ? 0 : headers_size(fields.headers, &plain);
        if (size >= 0) made = make_schedule(state, &fields, (size_t)size, plain);
    }
    Py_XDECREF(no_control);
    return made;
}

/* -- asked for its fields */

static PyObject *bytes_or_none(Run run) {
    if (run.size < 0) Py_RETURN_NONE;
    return PyBytes_FromStringAndSize((const char *)run.data, run.size);
}

static PyObject *text_of(Run run) { return PyUnicode_DecodeUTF8((const char *)run.data, run.size, NULL); }

static int has(PyObject *self, int flag) { return ((Schedule *)self)->flags & flag; }

static PyObject *schedule_key(PyObject *self, void *Py_UNUSED(closure)) {
    return bytes_or_none(record_of((Schedule *)self).key);
}

static PyObject *schedule_value(PyObject *self, void *Py_UNUSED(closure)) {
    return bytes_or_none(record_of((Schedule *)self).value);
}

static PyObject *pair_of(Header header) {
    PyObject *name = text_of(header.name), *value = name != NULL ? bytes_or_none(header.value) : NULL;
    PyObject *pair = value != NULL ? PyTuple_Pack(2, name, value) : NULL;
    Py_XDECREF(name);
    Py_XDECREF(value);
    return pair;
}

static PyObject *schedule_headers(PyObject *self, void *Py_UNUSED(closure)) {
    Record record = record_of((Schedule *)self);
    if (record.headers < 0) Py_RETURN_NONE;
    PyObject *list = PyList_New((Py_ssize_t)record.headers);
    for (Py_ssize_t i = 0; list != NULL && i < record.headers; i++) {
        PyObject *pair = pair_of(next_header(&record.at_headers));
        if (pair == NULL) Py_CLEAR(list);
        else PyList_SET_ITEM(list, i, pair);
    }
    return list;
}

static PyObject *schedule_control(PyObject *self, void *Py_UNUSED(closure)) {
    return PyLong_FromLongLong(tail_of((Schedule *)self).control);
}

static PyObject *schedule_id(PyObject *self, void *Py_UNUSED(closure)) {
    if (!has(self, HAS_ID)) Py_RETURN_NONE;
    return bytes_or_none(tail_of((Schedule *)self).id);
}

static PyObject *schedule_target(PyObject *self, void *Py_UNUSED(closure)) {
    if (!has(self, HAS_TARGET)) Py_RETURN_NONE;
    return text_of(tail_of((Schedule *)self).target);
}

static PyObject *schedule_expires(PyObject *self, void *Py_UNUSED(closure)) {
    if (!has(self, HAS_EXPIRES)) Py_RETURN_NONE;
    return PyLong_FromLongLong(tail_of((Schedule *)self).expires_ms);
}

static PyObject *schedule_timestamp(PyObject *self, void *Py_UNUSED(closure)) {
    if (!has(self, HAS_TIMESTAMP)) Py_RETURN_NONE;
    return PyLong_FromLongLong(tail_of((Schedule *)self).timestamp_ms);
}

static PyObject *schedule_rank(PyObject *self, void *Py_UNUSED(closure)) {
    if (!has(self, HAS_RANK)) Py_RETURN_NONE;
    return PyLong_FromLongLong(tail_of((Schedule *)self).rank);
}

static PyObject *schedule_plain(PyObject *self, void *Py_UNUSED(closure)) {
    return PyBool_FromLong(has(self, IS_PLAIN));
}

static PyGetSetDef schedule_getters[] = {
    {"key", schedule_key, NULL, "The record's key.", NULL},
    {"value", schedule_value, NULL, "The record's value.", NULL},
    {"headers", schedule_headers, NULL, "All headers in their order, in a list of the caller's own.", NULL},
    {"control", schedule_control, NULL, "The place of the only control header, or a number below zero.", NULL},
    {"id", schedule_id, NULL, "The id, or None.", NULL},
    {"target", schedule_target, NULL, "The topic that it asks for, or None.", NULL},
    {"expires_ms", schedule_expires, NULL, "The last instant at which delivery is of use, or None.", NULL},
    {"timestamp_ms", schedule_timestamp, NULL, "The record's own timestamp, or None.", NULL},
    {"rank", schedule_rank, NULL, "The offset that it counts as among the commands of its id, or None.", NULL},
    {"plain", schedule_plain, NULL, "Whether its record leaves as it came, but for a control header.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMemberDef schedule_members[] = {
    {"due_ms", T_LONGLONG, offsetof(Schedule, due_ms), READONLY, "The due time."},
    {"offset", T_LONGLONG, offsetof(Schedule, offset), READONLY, "The source offset."},
    {NULL, 0, 0, 0, NULL},
};

/* 1 if each field of one is that of the other, -1 with an error. */
static int same_fields(PyObject *a, PyObject *b) {
    int same = 1;
    for (int i = 0; same == 1 && i < FIELDS; i++) {
        PyObject *of_a = PyObject_GetAttrString(a, field_names[i]);
        PyObject *of_b = of_a != NULL ? PyObject_GetAttrString(b, field_names[i]) : NULL;
        same = of_b != NULL ? PyObject_RichCompareBool(of_a, of_b, Py_EQ) : -1;
        Py_XDECREF(of_a);
        Py_XDECREF(of_b);
    }
    return same;
}

static PyObject *schedule_compare(PyObject *a, PyObject *b, int operation) {
    if ((operation != Py_EQ && operation != Py_NE) || !Py_IS_TYPE(b, Py_TYPE(a))) Py_RETURN_NOTIMPLEMENTED;
    /* The same bytes are the same fields. Others may be, too: who else writes segments may write numbers longer. */
    int same = Py_SIZE(a) == Py_SIZE(b) && !memcmp(((Schedule *)a)->data, ((Schedule *)b)->data, (size_t)Py_SIZE(a));
    if (!same && (same = same_fields(a, b)) < 0) return NULL;
    return PyBool_FromLong(same == (operation == Py_EQ));
}

static PyObject *schedule_repr(PyObject *self) {
    PyObject *parts = PyList_New(0), *joined = NULL, *comma = NULL, *shown = NULL;
    for (int i = 0; parts != NULL && i < FIELDS; i++) {
        PyObject *value = PyObject_GetAttrString(self, field_names[i]);
        PyObject *part = value != NULL ? PyUnicode_FromFormat("%s=%R", field_names[i], value) : NULL;
        if (part == NULL || PyList_Append(parts, part) < 0) Py_CLEAR(parts);
        Py_XDECREF(part);
        Py_XDECREF(value);
    }
    if (parts != NULL && (comma = PyUnicode_FromString(", ")) != NULL && (joined = PyUnicode_Join(comma, parts)) != NULL)
        shown = PyUnicode_FromFormat("Schedule(%U)", joined);
    Py_XDECREF(parts);
    Py_XDECREF(comma);
    Py_XDECREF(joined);
    return shown;
}

static PyType_Slot schedule_slots[] = {
    {Py_tp_doc, "One record to deliver at its due time, in the bytes of a segment's entry: `core._pyentries` has more."},
    {Py_tp_dealloc, schedule_dealloc},
    {Py_tp_getset, schedule_getters},
    {Py_tp_members, schedule_members},
    {Py_tp_richcompare, schedule_compare},
    {Py_tp_hash, PyObject_HashNotImplemented},
    {Py_tp_repr, schedule_repr},
    {0, NULL},
};

/* It is made by a vectorcall alone, so that there is none without an entry. */
static PyType_Spec schedule_spec = {
    .name = "delaytopic_relay._speedups.Schedule",
    .basicsize = offsetof(Schedule, data),
    .itemsize = 1,
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = schedule_slots,
};

/* -- many at once */

/* A list or tuple of schedules, which nothing of Python changes while it is looked through; NULL with an error. */
static PyObject *all_schedules(PyObject *module, PyObject *schedules) {
    PyTypeObject *type = state_of(module)->schedule_type;
    PyObject *items = PySequence_Fast(schedules, "a sequence of schedules is needed");
    for (Py_ssize_t i = 0; items != NULL && i < PySequence_Fast_GET_SIZE(items); i++)
        if (!Py_IS_TYPE(PySequence_Fast_GET_ITEM(items, i), type)) {
            PyErr_Format(PyExc_TypeError, "%s is no schedule", Py_TYPE(PySequence_Fast_GET_ITEM(items, i))->tp_name);
            Py_CLEAR(items);
        }
    return items;
}

static PyObject *pack(PyObject *module, PyObject *schedules) {
    PyObject *items = all_schedules(module, schedules);
    if (items == NULL) return NULL;
    Schedule *const *all = (Schedule *const *)PySequence_Fast_ITEMS(items);
    Py_ssize_t count = PySequence_Fast_GET_SIZE(items);
    size_t size = array_size((size_t)count);
    for (Py_ssize_t i = 0; i < count; i++) size += (size_t)Py_SIZE(all[i]);
    PyObject *result = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)size);
    if (result != NULL) {
        uint8_t *p = put_array((uint8_t *)PyBytes_AS_STRING(result), (size_t)count);
        for (Py_ssize_t i = 0; i < count; p += Py_SIZE(all[i]), i++) memcpy(p, all[i]->data, (size_t)Py_SIZE(all[i]));
    }
    Py_DECREF(items);
    return result;
}

static PyObject *refuse(const char *what) {
    PyErr_SetString(PyExc_ValueError, what);
    return NULL;
}

/* Whether a text is one; 0 with an error if it is not in UTF-8. */
static int check_text(Run text, int looked) {
    if (looked != NOT_ASCII) return 1;
    PyObject *decoded = text_of(text);
    Py_XDECREF(decoded);
    return decoded != NULL;
}

/* The next entry as a schedule; NULL with an error if none stands there. */
static PyObject *unpack_entry(State *state, Reader *r) {
    int64_t fields, due_ms, offset, count;
    int flags = 0, plain = 1;
    Run key, value;
    if (!get_array_or_nil(r, &fields) || fields < LEAST_FIELDS || fields > FIELDS)
        return refuse("an entry is an array of five to eleven fields");
    const uint8_t *start = r->at;
    if (!get_int(r, &due_ms) || !get_int(r, &offset)) return refuse("due time and offset of an entry are integers");
    if (!get_bytes_or_nil(r, &key) || !get_bytes_or_nil(r, &value)) return refuse("key and value of an entry are bytes");
    if (!get_array_or_nil(r, &count)) return refuse("the headers of an entry are an array");
    for (int64_t i = 0; i < count; i++) {
        Header header;
        if (!get_header(r, &header)) return refuse("a header of an entry is an array of a text, and bytes or nil");
        int looked = look_at_text(header.name);
        if (!check_text(header.name, looked)) return NULL;
        plain &= looked == PLAIN_TEXT;
    }
    const uint8_t *tail = r->at;
    Tail t;
    if (!get_tail(r, fields, &t, &flags)) return refuse("a field of an entry is of another type");
    if (!check_text(t.target, look_at_text(t.target))) return NULL;
    if (t.control < NO_CONTROL || t.control >= (count < 0 ? 0 : count) || flags & (HAS_TARGET | HAS_EXPIRES)) plain = 0;
    size_t size = (size_t)(r->at - start);
    Schedule *schedule = new_schedule(state, due_ms, offset, 1 + (size_t)(tail - start), flags | (plain ? IS_PLAIN : 0),
                                      1 + size + (size_t)(FIELDS - fields));
    if (schedule == NULL) return NULL;
    schedule->data[0] = SHORT_ARRAY | FIELDS;
    memcpy(schedule->data + 1, start, size);
    uint8_t *p = schedule->data + 1 + size;
    if (fields == LEAST_FIELDS) p = put_int(p, NO_CONTROL), fields++;
    for (; fields < FIELDS; fields++) p = put_nil(p);
    return (PyObject *)schedule;
}

static PyObject *unpack(PyObject *module, PyObject *data) {
    Py_buffer view;
    if (PyObject_GetBuffer(data, &view, PyBUF_SIMPLE) < 0) return NULL;
    Reader r = {view.buf, (const uint8_t *)view.buf + view.len};
    int64_t count;
    PyObject *list = NULL;
    /* An entry takes some bytes at least, so what claims more entries than bytes is not believed. */
    if (!get_array_or_nil(&r, &count) || count < 0 || count > view.len) refuse("entries are an array of them");
    else list = PyList_New((Py_ssize_t)count);
    for (Py_ssize_t i = 0; list != NULL && i < count; i++) {
        PyObject *schedule = unpack_entry(state_of(module), &r);
        if (schedule == NULL) Py_CLEAR(list);
        else PyList_SET_ITEM(list, i, schedule);
    }
    if (list != NULL && r.at != r.end) {
        Py_CLEAR(list);
        refuse("something stands behind the entries");
    }
    PyBuffer_Release(&view);
    return list;
}

static PyObject *unnamed(PyObject *module, PyObject *commands) {
    PyTypeObject *type = state_of(module)->schedule_type;
    PyObject *items = PySequence_Fast(commands, "a sequence of commands is needed");
    if (items == NULL) return NULL;
    int all = 1;
    for (Py_ssize_t i = 0; all && i < PySequence_Fast_GET_SIZE(items); i++) {
        PyObject *item = PySequence_Fast_GET_ITEM(items, i);
        all = Py_IS_TYPE(item, type) && !has(item, HAS_ID);
    }
    Py_DECREF(items);
    return PyBool_FromLong(all);
}

static PyObject *all_plain(PyObject *module, PyObject *schedules) {
    PyObject *items = all_schedules(module, schedules);
    if (items == NULL) return NULL;
    int all = 1;
    for (Py_ssize_t i = 0; all && i < PySequence_Fast_GET_SIZE(items); i++)
        all = has(PySequence_Fast_GET_ITEM(items, i), IS_PLAIN);
    Py_DECREF(items);
    return PyBool_FromLong(all);
}

/* A named tuple that is not filled yet; to make it of a plain one would take as long once more. */
static PyObject *new_tuple(PyTypeObject *type, Py_ssize_t count) {
    PyObject *tuple = type->tp_alloc(type, count);
#if PY_VERSION_HEX >= 0x030e0000
    if (tuple != NULL) ((PyTupleObject *)tuple)->ob_hash = -1; /* not known yet, as tuples have it from 3.14 on */
#endif
    return tuple;
}

/* A named tuple of integers. */
static PyObject *numbers(PyObject *type, const long long *values, Py_ssize_t count) {
    PyObject *tuple = new_tuple((PyTypeObject *)type, count);
    for (Py_ssize_t i = 0; tuple != NULL && i < count; i++) {
        PyObject *value = PyLong_FromLongLong(values[i]);
        if (value == NULL) Py_CLEAR(tuple);
        else PyTuple_SET_ITEM(tuple, i, value);
    }
    return tuple;
}

static PyObject *summary(PyObject *module, PyObject *schedules) {
    PyObject *items = all_schedules(module, schedules);
    if (items == NULL) return NULL;
    Schedule *const *all = (Schedule *const *)PySequence_Fast_ITEMS(items);
    Py_ssize_t count = PySequence_Fast_GET_SIZE(items);
    long long found[] = {INT64_MAX, INT64_MIN, INT64_MIN};
    for (Py_ssize_t i = 0; i < count; i++) {
        if (all[i]->due_ms < found[0]) found[0] = all[i]->due_ms;
        if (all[i]->due_ms > found[1]) found[1] = all[i]->due_ms;
        if (all[i]->offset > found[2]) found[2] = all[i]->offset;
    }
    Py_DECREF(items);
    return count ? numbers(state_of(module)->summary_type, found, 3) : refuse("no schedules have no summary");
}

static Py_ssize_t memory_of(const State *state, const Schedule *schedule) {
    return state->fixed_size + Py_SIZE(schedule) + (schedule->flags & HAS_ID ? state->id_size : 0);
}

static PyObject *size(PyObject *module, PyObject *schedule) {
    State *state = state_of(module);
    if (Py_IS_TYPE(schedule, state->schedule_type)) return PyLong_FromSsize_t(memory_of(state, (Schedule *)schedule));
    return PyErr_Format(PyExc_TypeError, "%s is no schedule", Py_TYPE(schedule)->tp_name);
}

static PyObject *sizes(PyObject *module, PyObject *schedules) {
    State *state = state_of(module);
    PyObject *items = all_schedules(module, schedules);
    if (items == NULL) return NULL;
    long long found[] = {0, 0};
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items); i++) {
        Py_ssize_t memory = memory_of(state, (Schedule *)PySequence_Fast_GET_ITEM(items, i));
        if (memory > found[0]) found[0] = memory;
        found[1] += memory;
    }
    Py_DECREF(items);
    return numbers(state->sizes_type, found, 2);
}

static PyObject *due_at(PyObject *module, PyObject *arguments) {
    State *state = state_of(module);
    PyObject *object;
    long long due_ms;
    if (!PyArg_ParseTuple(arguments, "O!L", state->schedule_type, &object, &due_ms)) return NULL;
    const Schedule *schedule = (const Schedule *)object;
    Reader r = {schedule->data + 1, schedule->data + Py_SIZE(schedule)};
    int64_t former_ms;
    (void)get_int(&r, &former_ms);
    size_t rest = (size_t)(r.end - r.at), before = 1 + int_size(due_ms);
    size_t tail = before + rest - ((size_t)Py_SIZE(schedule) - schedule->tail);
    Schedule *made = new_schedule(state, due_ms, schedule->offset, tail, schedule->flags, before + rest);
    if (made == NULL) return NULL;
    memcpy(put_int(put_array(made->data, FIELDS), due_ms), r.at, rest);
    return (PyObject *)made;
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

static PyObject *ordered(PyObject *module, PyObject *schedules) {
    PyObject *items = all_schedules(module, schedules);
    if (items == NULL) return NULL;
    Py_ssize_t count = PySequence_Fast_GET_SIZE(items), kept = 0;
    Keyed *sorted = PyMem_New(Keyed, count ? count : 1);
    if (sorted == NULL) {
        Py_DECREF(items);
        return PyErr_NoMemory();
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        Schedule *schedule = (Schedule *)PySequence_Fast_GET_ITEM(items, i);
        sorted[i] = (Keyed){schedule->due_ms, schedule->offset, Py_NewRef((PyObject *)schedule)};
    }
    qsort(sorted, (size_t)count, sizeof *sorted, by_key);
    for (Py_ssize_t i = 0; i < count; i++)
        if (i == 0 || by_key(&sorted[i], &sorted[kept - 1]) != 0) sorted[kept++] = sorted[i];
        else Py_DECREF(sorted[i].schedule);
    /* The collector may run here, and whatever it calls may empty the caller's list. */
    PyObject *list = PyList_New(kept);
    for (Py_ssize_t i = 0; i < kept; i++)
        if (list != NULL) PyList_SET_ITEM(list, i, sorted[i].schedule);
        else Py_DECREF(sorted[i].schedule);
    PyMem_Free(sorted);
    Py_DECREF(items);
    return list;
}

/* The schedules that are due in one span of time. */
typedef struct {
    PyObject *list; /* NULL until they are counted */
    int64_t number, lowest;
    Py_ssize_t count, filled, size;
} Span;

/* The spans, in the order in which they were met, and their places by their numbers. */
typedef struct {
    Span *spans;
    Py_ssize_t used;
    uint32_t *places; /* one more than the place of a span; 0 for none */
    size_t mask;
} Table;

static int64_t floored(int64_t n, int64_t width) { return n / width - (n % width < 0); }

/* The span of a number, a new one if need be. */
static Span *span_of(Table *table, int64_t number) {
    size_t at = (size_t)((uint64_t)number * 0x9e3779b97f4a7c15u >> 32) & table->mask;
    while (table->places[at] != 0 && table->spans[table->places[at] - 1].number != number) at = (at + 1) & table->mask;
    if (table->places[at] == 0) {
        table->spans[table->used] = (Span){.number = number, .lowest = INT64_MAX};
        table->places[at] = (uint32_t)++table->used;
    }
    return &table->spans[table->places[at] - 1];
}

static int by_number(const void *left, const void *right) {
    const Span *a = left, *b = right;
    return (a->number > b->number) - (a->number < b->number);
}

/* Takes the references over; 0 with an error. */
static int fill_table(const State *state, Table *table, Schedule *const *all, Py_ssize_t count, int64_t width_ms) {
    for (Py_ssize_t i = 0; i < count; i++) {
        Span *span = span_of(table, floored(all[i]->due_ms, width_ms));
        span->count++;
        if (all[i]->offset < span->lowest) span->lowest = all[i]->offset;
        span->size += memory_of(state, all[i]);
    }
    for (Py_ssize_t i = 0; i < table->used; i++)
        if ((table->spans[i].list = PyList_New(table->spans[i].count)) == NULL) {
            for (Py_ssize_t held = 0; held < count; held++) Py_DECREF(all[held]);
            return 0;
        }
    for (Py_ssize_t i = 0; i < count; i++) {
        Span *span = span_of(table, floored(all[i]->due_ms, width_ms));
        PyList_SET_ITEM(span->list, span->filled++, (PyObject *)all[i]);
    }
    return 1;
}

/* One span as a named tuple; takes the list over. */
static PyObject *tuple_of(const State *state, Span *span, int64_t width_ms, int whole) {
    PyTypeObject *type = (PyTypeObject *)(whole ? state->span_type : state->group_type);
    PyObject *tuple = new_tuple(type, whole ? 4 : 2);
    if (tuple == NULL) return NULL;
    int64_t start_ms;
    /* The very first span of 64 bits begins before them. */
    if (__builtin_mul_overflow(span->number, width_ms, &start_ms)) start_ms = INT64_MIN;
    PyTuple_SET_ITEM(tuple, 0, PyLong_FromLongLong(start_ms));
    PyTuple_SET_ITEM(tuple, 1, span->list);
    span->list = NULL;
    if (whole) {
        PyTuple_SET_ITEM(tuple, 2, PyLong_FromSsize_t(span->size));
        PyTuple_SET_ITEM(tuple, 3, PyLong_FromLongLong(span->lowest));
    }
    if (PyErr_Occurred()) Py_CLEAR(tuple);
    return tuple;
}

/* All spans in the order of time; takes the lists over. */
static PyObject *tuples_of(const State *state, Table *table, int64_t width_ms, int whole) {
    qsort(table->spans, (size_t)table->used, sizeof *table->spans, by_number);
    PyObject *found = PyList_New(table->used);
    for (Py_ssize_t i = 0; found != NULL && i < table->used; i++) {
        PyObject *tuple = tuple_of(state, &table->spans[i], width_ms, whole);
        if (tuple == NULL) Py_CLEAR(found);
        else PyList_SET_ITEM(found, i, tuple);
    }
    return found;
}

static PyObject *spans_of(PyObject *module, PyObject *arguments, int whole) {
    PyObject *schedules, *found = NULL;
    long long width_ms;
    if (!PyArg_ParseTuple(arguments, "OL", &schedules, &width_ms)) return NULL;
    if (width_ms < 1) return PyErr_Format(PyExc_ValueError, "a span of %lld ms has no place for schedules", width_ms);
    PyObject *items = all_schedules(module, schedules);
    if (items == NULL) return NULL;
    Py_ssize_t count = PySequence_Fast_GET_SIZE(items);
    Table table = {.mask = 1};
    /* At most half full, however many spans there are. */
    while (table.mask < 2 * (size_t)count) table.mask = table.mask << 1 | 1;
    table.spans = PyMem_New(Span, count ? count : 1);
    table.places = PyMem_Calloc(table.mask + 1, sizeof *table.places);
    /* Held, as the collector may run where lists are made, and whatever it calls may empty the caller's. */
    Schedule **all = PyMem_New(Schedule *, count ? count : 1);
    if (table.spans == NULL || table.places == NULL || all == NULL || count >= UINT32_MAX) PyErr_NoMemory();
    else {
        for (Py_ssize_t i = 0; i < count; i++) all[i] = (Schedule *)Py_NewRef(PySequence_Fast_GET_ITEM(items, i));
        if (fill_table(state_of(module), &table, all, count, width_ms))
            found = tuples_of(state_of(module), &table, width_ms, whole);
    }
    PyMem_Free(all);
    for (Py_ssize_t i = 0; i < table.used; i++) Py_XDECREF(table.spans[i].list);
    PyMem_Free(table.spans);
    PyMem_Free(table.places);
    Py_DECREF(items);
    return found;
}

static PyObject *grouped(PyObject *module, PyObject *arguments) { return spans_of(module, arguments, 0); }

static PyObject *by_span(PyObject *module, PyObject *arguments) { return spans_of(module, arguments, 1); }

/* -- the module */

/* The beginning of a function's text, out of which Python reads how it is called. */
#define SIGNATURE(name, parameters) name "($module, " parameters ", /)\n--\n\n"

static PyMethodDef functions[] = {
    {"pack", pack, METH_O, SIGNATURE("pack", "schedules") "Pack schedules into the entries of a segment."},
    {"unpack", unpack, METH_O, SIGNATURE("unpack", "data") "Unpack the entries of a segment. Raises ValueError for anything else."},
    {"unnamed", unnamed, METH_O, SIGNATURE("unnamed", "commands") "Return whether all commands are schedules without an id."},
    {"all_plain", all_plain, METH_O, SIGNATURE("all_plain", "schedules") "Return whether all schedules are plain."},
    {"summary", summary, METH_O, SIGNATURE("summary", "schedules") "Return the first and the last due time of schedules, and their last offset."},
    {"size", size, METH_O, SIGNATURE("size", "schedule") "Return about how much memory a schedule takes; its entry is not longer."},
    {"sizes", sizes, METH_O, SIGNATURE("sizes", "schedules") "Return about how much memory the largest schedule takes, and all of them."},
    {"grouped", grouped, METH_VARARGS, SIGNATURE("grouped", "schedules, width_ms") "Group schedules by the span that they are due in."},
    {"by_span", by_span, METH_VARARGS,
     SIGNATURE("by_span", "schedules, width_ms") "Group schedules as `grouped` does, and look at those of each group."},
    {"ordered", ordered, METH_O, SIGNATURE("ordered", "schedules") "Return schedules by due time and offset, one for each such key."},
    {"due_at", due_at, METH_VARARGS, SIGNATURE("due_at", "schedule, due_ms") "Return the same schedule with another due time."},
    {"read", read_messages, METH_VARARGS,
     SIGNATURE("read", "messages, careful, implied_delay_ms, last_timestamp_ms, max_delay_ms, note")
     "Read messages by the rules of the native dialect. What is not plain is read by `careful`; `note` hears of headers that resemble control headers."},
    {NULL, NULL, 0, NULL},
};

static int add_named_tuples(State *state) {
    PyObject *in_python = PyImport_ImportModule("delaytopic_relay.core._pyentries");
    if (in_python == NULL) return -1;
    PyObject *id_size = NULL;
    int added = (state->summary_type = PyObject_GetAttrString(in_python, "Summary")) != NULL &&
                (state->sizes_type = PyObject_GetAttrString(in_python, "Sizes")) != NULL &&
                (state->group_type = PyObject_GetAttrString(in_python, "Group")) != NULL &&
                (state->span_type = PyObject_GetAttrString(in_python, "Span")) != NULL &&
                (id_size = PyObject_GetAttrString(in_python, "ID_BYTES")) != NULL &&
                (state->id_size = PyLong_AsSsize_t(id_size)) != -1;
    Py_XDECREF(id_size);
    Py_DECREF(in_python);
    return added ? 0 : -1;
}

static int intern_names(State *state) {
    for (int i = 0; i < FIELDS; i++)
        if ((state->field_names[i] = PyUnicode_InternFromString(field_names[i])) == NULL) return -1;
    return (state->name_headers = PyUnicode_InternFromString("headers")) &&
                   (state->name_key = PyUnicode_InternFromString("key")) &&
                   (state->name_timestamp = PyUnicode_InternFromString("timestamp")) &&
                   (state->name_offset = PyUnicode_InternFromString("offset")) &&
                   (state->name_value = PyUnicode_InternFromString("value"))
               ? 0
               : -1;
}

/* An object's head, and its place in a slot. */
enum { MEMORY_BESIDE_THE_ENTRY = 100 };

static int execute(PyObject *module) {
    State *state = state_of(module);
    state->fixed_size = MEMORY_BESIDE_THE_ENTRY;
    state->schedule_type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &schedule_spec, NULL);
    if (state->schedule_type == NULL) return -1;
    state->schedule_type->tp_vectorcall = schedule_vectorcall;
    if (PyModule_AddObjectRef(module, "Schedule", (PyObject *)state->schedule_type) < 0) return -1;
    PyObject *sender = PyType_FromModuleAndSpec(module, &sender_spec, NULL);
    int added = sender != NULL ? PyModule_AddObjectRef(module, "Sender", sender) : -1;
    Py_XDECREF(sender);
    return added < 0 || intern_names(state) < 0 ? -1 : add_named_tuples(state);
}

static int module_traverse(PyObject *module, visitproc visit, void *arg) {
    State *state = state_of(module);
    Py_VISIT(state->schedule_type);
    Py_VISIT(state->summary_type);
    Py_VISIT(state->sizes_type);
    Py_VISIT(state->group_type);
    Py_VISIT(state->span_type);
    return 0;
}

static int module_clear(PyObject *module) {
    State *state = state_of(module);
    Py_CLEAR(state->schedule_type);
    Py_CLEAR(state->summary_type);
    Py_CLEAR(state->sizes_type);
    Py_CLEAR(state->group_type);
    Py_CLEAR(state->span_type);
    Py_CLEAR(state->name_headers);
    Py_CLEAR(state->name_timestamp);
    Py_CLEAR(state->name_offset);
    Py_CLEAR(state->name_key);
    Py_CLEAR(state->name_value);
    for (int i = 0; i < FIELDS; i++) Py_CLEAR(state->field_names[i]);
    return 0;
}

static void module_free(void *module) { module_clear(module); }

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, execute},
#ifdef Py_MOD_MULTIPLE_INTERPRETERS_NOT_SUPPORTED
    /* A producer's plugin is one for the whole process. */
    {Py_mod_multiple_interpreters, Py_MOD_MULTIPLE_INTERPRETERS_NOT_SUPPORTED},
#endif
    {0, NULL},
};

PyModuleDef speedups_module = {
    PyModuleDef_HEAD_INIT,
    .m_name = "_speedups",
    .m_doc = "Schedules in C, see `delaytopic_relay.core.entries`.",
    .m_size = sizeof(State),
    .m_methods = functions,
    .m_slots = slots,
    .m_traverse = module_traverse,
    .m_clear = module_clear,
    .m_free = module_free,
};

PyMODINIT_FUNC PyInit__speedups(void) { return PyModuleDef_Init(&speedups_module); }
