/* Records of the native dialect, read without a Python object for each of their fields.
 *
 * What is not plain is left to the Python of `dialects.native`, which reads all that is read here, too.
 */
#include "entry.h"

enum { MOST_DIGITS = 18 };

typedef struct {
    State *state;
    long long implied_delay_ms, last_timestamp_ms, max_delay_ms;
    PyObject *note;
} Rules;

typedef struct {
    PyObject *headers, *timestamp, *offset, *key, *value;
} Parts;

static int is_bytes_or_none(PyObject *object) { return object == Py_None || PyBytes_CheckExact(object); }

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
    return PyUnicode_CheckExact(name) && PyUnicode_IS_COMPACT_ASCII(name) && !has_zeros(name_of(pair));
}

/* The place of the control header, and the size of all headers; 0 if Python has to look at the headers. */
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
        *size += header_size(name, PyTuple_GET_ITEM(pair, 1));
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
static int ask_for_parts(const State *state, PyObject *message, Parts *parts) {
    return (parts->timestamp = PyObject_CallMethodNoArgs(message, state->name_timestamp)) != NULL &&
           (parts->offset = PyObject_CallMethodNoArgs(message, state->name_offset)) != NULL &&
           (parts->key = PyObject_CallMethodNoArgs(message, state->name_key)) != NULL &&
           (parts->value = PyObject_CallMethodNoArgs(message, state->name_value)) != NULL;
}

/* The schedule that a record is; NULL if Python has to read it, or with an error. */
static PyObject *schedule_of(PyObject *message, Parts *parts, const Rules *rules) {
    if (!ask_for_parts(rules->state, message, parts)) return NULL;
    /* From here to the entry nothing of Python runs, which might change the list of headers. */
    if (parts->headers != Py_None && !PyList_CheckExact(parts->headers)) return NULL;
    Py_ssize_t count = parts->headers == Py_None ? 0 : PyList_GET_SIZE(parts->headers), control;
    size_t size = 0;
    int resembling;
    if (count > MOST_HEADERS || !look_at_headers(parts->headers, count, &control, &size, &resembling)) return NULL;
    long long timestamp_ms = timestamp_ms_of(parts, rules), offset;
    if (timestamp_ms < 0) return NULL;
    long long due_ms = due_ms_of(parts, timestamp_ms, control, rules);
    if (due_ms < 0 || !is_number(parts->offset, &offset)) return NULL;
    if (!is_bytes_or_none(parts->key) || !is_bytes_or_none(parts->value)) return NULL;
    Fields fields = {
        .due_ms = due_ms, .offset = offset, .control = control, .timestamp_ms = timestamp_ms,
        .key = parts->key, .value = parts->value, .headers = parts->headers, .id = Py_None, .target = Py_None,
        .flags = HAS_TIMESTAMP,
    };
    PyObject *schedule = make_schedule(rules->state, &fields, size, 1);
    if (schedule != NULL && resembling && control == NO_CONTROL && rules->note != Py_None) {
        PyObject *noted = PyObject_CallOneArg(rules->note, parts->headers);
        if (noted == NULL) Py_CLEAR(schedule);
        Py_XDECREF(noted);
    }
    return schedule;
}

static PyObject *read_message(PyObject *message, PyObject *careful, const Rules *rules) {
    Parts parts = {NULL, NULL, NULL, NULL, NULL};
    PyObject *command = NULL;
    if ((parts.headers = PyObject_CallMethodNoArgs(message, rules->state->name_headers)) != NULL)
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

PyObject *read_messages(PyObject *module, PyObject *arguments) {
    PyObject *messages, *careful;
    Rules rules = {.state = state_of(module)};
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
