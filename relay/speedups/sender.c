/* Produces schedules through a producer of the Kafka client, without a Python object for any part of them.
 *
 * librdkafka loads this same file as a plugin when a producer is made (`plugin.library.paths`), calls `conf_init`, and
 * then `on_new` with the producer that it made: so nothing of the client's objects is looked into. What cannot be
 * delivered later on is told to `on_acknowledgement`, as these records have no delivery report in Python.
 */
#define _GNU_SOURCE
#include "entry.h"
#include "librdkafka.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>

enum { FAILURES_KEPT = 64, TOPIC_BYTES = 256, LARGEST_RECEIPT = 512, MOST_NUMBER_BYTES = 20, RECEIPT_NAME_BYTES = 32 };

#define DECLARE(returned, name, parameters) static returned(*name) parameters;
LIBRDKAFKA(DECLARE)

static int find_library(struct dl_phdr_info *info, size_t Py_UNUSED(size), void *path) {
    if (info->dlpi_name == NULL || strstr(info->dlpi_name, "librdkafka") == NULL) return 0;
    return snprintf(path, PATH_MAX, "%s", info->dlpi_name) < PATH_MAX;
}

/* Find the functions of the librdkafka that is loaded; 0 if there is none, or it lacks one. */
static int find_functions(void) {
    char path[PATH_MAX];
    /* Opened afterwards: the loader's locks are held meanwhile, in another order than `dlopen` takes them. */
    void *library = dl_iterate_phdr(find_library, path) ? dlopen(path, RTLD_NOW | RTLD_NOLOAD) : NULL;
    if (library == NULL) return 0;
#define FIND(returned, name, parameters)                                                                               \
    if ((*(void **)&name = dlsym(library, #name)) == NULL) return 0;
    LIBRDKAFKA(FIND)
    return 1;
}

/* -- the link to a producer, which librdkafka's threads and Python's share */

typedef struct {
    rd_kafka_resp_err_t error;
    int32_t partition;
    int64_t sender; /* the source partition, by the receipt; -1 if it has none */
    char topic[TOPIC_BYTES];
} Failure;

typedef struct Link {
    struct Link *next;
    uintptr_t number;
    rd_kafka_t *producer; /* NULL once it is destroyed; who changes it holds both locks */
    int is_taken;         /* by a `Sender`, or by `latest` until one is made */
    int failures;
    Failure failed[FAILURES_KEPT];
    char receipt[RECEIPT_NAME_BYTES]; /* the name of the header */
    pthread_mutex_t in_use;           /* held by whoever produces, or destroys the producer */
} Link;

/* librdkafka is given the number of a link, which no other ever has, and never the link itself: threads of a producer
 * give records up after it has said that it is destroyed, and do not say when they are done.
 */
static pthread_mutex_t all_links = PTHREAD_MUTEX_INITIALIZER; /* whoever needs `in_use`, too, takes that first */
static Link *links;
static uintptr_t last_number;

/* Of each thread, the link of the producer that it made last, until a `Sender` takes it or the thread ends. */
static pthread_key_t latest;
static int has_latest;
static _Thread_local int producing;

/* The link of this number, if there is one; `all_links` is held. */
static Link *link_of(const void *number) {
    Link *link = links;
    while (link != NULL && link->number != (uintptr_t)number) link = link->next;
    return link;
}

/* Free a link that neither a producer nor a `Sender` has any more; `all_links` is held. */
static void free_unless_used(Link *link) {
    if (link->producer != NULL || link->is_taken) return;
    Link **place = &links;
    while (*place != link) place = &(*place)->next;
    *place = link->next;
    pthread_mutex_destroy(&link->in_use);
    free(link);
}

static void let_go(Link *link) {
    pthread_mutex_lock(&all_links);
    link->is_taken = 0;
    free_unless_used(link);
    pthread_mutex_unlock(&all_links);
}

/* Free the link of a producer that is not made after all; nobody else has met it. */
static void forget(Link *link) {
    pthread_mutex_lock(&all_links);
    link->producer = NULL;
    link->is_taken = 0;
    free_unless_used(link);
    pthread_mutex_unlock(&all_links);
}

static void let_go_at_the_end(void *link) { let_go(link); }

__attribute__((constructor)) static void make_latest(void) { has_latest = !pthread_key_create(&latest, let_go_at_the_end); }

/* The second part of the receipt, `due:partition:offset:...`, if it is the number of a partition. */
static int64_t sender_of(const rd_kafka_message_t *message, const char *name) {
    rd_kafka_headers_t *headers = NULL;
    const void *value = NULL;
    size_t size = 0, at = 0;
    if (rd_kafka_message_headers(message, &headers) != RD_KAFKA_RESP_ERR_NO_ERROR ||
        rd_kafka_header_get_last(headers, name, &value, &size) != RD_KAFKA_RESP_ERR_NO_ERROR || value == NULL)
        return -1;
    const char *text = value;
    while (at < size && text[at] != ':') at++;
    int64_t sender = 0;
    size_t first = ++at;
    for (; at < size && text[at] >= '0' && text[at] <= '9' && sender <= INT32_MAX; at++)
        sender = 10 * sender + (text[at] - '0');
    return at < size && at > first && text[at] == ':' && sender <= INT32_MAX ? sender : -1;
}

static int same(const Failure *a, const Failure *b) {
    return a->error == b->error && a->partition == b->partition && a->sender == b->sender &&
           strcmp(a->topic, b->topic) == 0;
}

static rd_kafka_resp_err_t on_acknowledgement(rd_kafka_t *producer, rd_kafka_message_t *message, void *opaque) {
    (void)producer;
    if (message->err == RD_KAFKA_RESP_ERR_NO_ERROR) return RD_KAFKA_RESP_ERR_NO_ERROR;
    /* A record with a report of its own is Python's; who is producing just now is told by the call. */
    if (message->_private != NULL || producing) return RD_KAFKA_RESP_ERR_NO_ERROR;
    Failure failure = {message->err, message->partition, -1, {0}};
    strncpy(failure.topic, rd_kafka_topic_name(message->rkt), TOPIC_BYTES - 1);
    pthread_mutex_lock(&all_links);
    Link *link = link_of(opaque);
    if (link != NULL) {
        failure.sender = sender_of(message, link->receipt);
        int place = 0;
        while (place < link->failures && !same(&link->failed[place], &failure)) place++;
        /* Each is told once. Those beyond what is kept change little: one alone has the tick given up. */
        if (place == link->failures && place < FAILURES_KEPT) link->failed[link->failures++] = failure;
    }
    pthread_mutex_unlock(&all_links);
    return RD_KAFKA_RESP_ERR_NO_ERROR;
}

static rd_kafka_resp_err_t on_destroy(rd_kafka_t *producer, void *opaque) {
    (void)producer;
    pthread_mutex_lock(&all_links);
    Link *link = link_of(opaque);
    pthread_mutex_unlock(&all_links);
    if (link == NULL || link->producer == NULL) return RD_KAFKA_RESP_ERR_NO_ERROR;
    pthread_mutex_lock(&link->in_use);
    pthread_mutex_lock(&all_links);
    link->producer = NULL;
    pthread_mutex_unlock(&link->in_use);
    free_unless_used(link);
    pthread_mutex_unlock(&all_links);
    return RD_KAFKA_RESP_ERR_NO_ERROR;
}

static rd_kafka_resp_err_t on_new(rd_kafka_t *producer, const rd_kafka_conf_t *conf, void *opaque, char *error, size_t size) {
    (void)conf, (void)opaque, (void)error, (void)size;
    /* First of all: librdkafka makes the producer even if this fails, and that shall not get the link of another one. */
    Link *former = has_latest ? pthread_getspecific(latest) : NULL;
    if (former != NULL) {
        (void)pthread_setspecific(latest, NULL);
        let_go(former);
    }
    Link *link = has_latest ? calloc(1, sizeof *link) : NULL;
    if (link == NULL) return RD_KAFKA_RESP_ERR__FAIL;
    pthread_mutex_init(&link->in_use, NULL);
    link->producer = producer;
    link->is_taken = 1;
    pthread_mutex_lock(&all_links);
    link->number = ++last_number;
    link->next = links;
    links = link;
    pthread_mutex_unlock(&all_links);
    void *number = (void *)link->number;
    if (rd_kafka_interceptor_add_on_destroy(producer, "delaytopic", on_destroy, number) != RD_KAFKA_RESP_ERR_NO_ERROR ||
        rd_kafka_interceptor_add_on_acknowledgement(producer, "delaytopic", on_acknowledgement, number) !=
            RD_KAFKA_RESP_ERR_NO_ERROR ||
        pthread_setspecific(latest, link) != 0) {
        forget(link);
        return RD_KAFKA_RESP_ERR__FAIL;
    }
    return RD_KAFKA_RESP_ERR_NO_ERROR;
}

/* What librdkafka looks for in a plugin. */
__attribute__((visibility("default"))) rd_kafka_resp_err_t conf_init(rd_kafka_conf_t *conf, void **opaque, char *error,
                                                                    size_t size) {
    (void)opaque;
    if (find_functions()) return rd_kafka_conf_interceptor_add_on_new(conf, "delaytopic", on_new, NULL);
    snprintf(error, size, "this librdkafka lacks a function that delaytopic needs");
    return RD_KAFKA_RESP_ERR__FAIL;
}

/* -- the type */

typedef struct {
    PyObject_HEAD
    Link *link;
} Sender;

static PyObject *sender_new(PyTypeObject *type, PyObject *Py_UNUSED(arguments), PyObject *Py_UNUSED(keywords)) {
    Link *link = has_latest ? pthread_getspecific(latest) : NULL;
    if (link == NULL) {
        PyErr_SetString(PyExc_RuntimeError, "this thread has made no producer with this plugin, or its Sender is made");
        return NULL;
    }
    Sender *sender = (Sender *)type->tp_alloc(type, 0);
    if (sender == NULL) return NULL;
    sender->link = link;
    (void)pthread_setspecific(latest, NULL);
    return (PyObject *)sender;
}

static void sender_dealloc(PyObject *self) {
    if (((Sender *)self)->link != NULL) let_go(((Sender *)self)->link);
    PyTypeObject *type = Py_TYPE(self);
    type->tp_free(self);
    Py_DECREF(type);
}

static size_t write_number(char *p, int64_t n) {
    char digits[MOST_NUMBER_BYTES];
    size_t length = 0, sign = n < 0;
    uint64_t rest = sign ? -(uint64_t)n : (uint64_t)n;
    do digits[length++] = (char)('0' + rest % 10);
    while (rest /= 10);
    if (sign) *p++ = '-';
    for (size_t i = 0; i < length; i++) p[i] = digits[length - 1 - i];
    return length + sign;
}

typedef struct {
    const char *name, *between, *after;
    Py_ssize_t name_size, between_size, after_size;
} Receipt;

static size_t write_receipt(char *p, const Receipt *receipt, const Schedule *schedule) {
    size_t length = write_number(p, schedule->due_ms);
    memcpy(p + length, receipt->between, (size_t)receipt->between_size);
    length += (size_t)receipt->between_size;
    length += write_number(p + length, schedule->offset);
    if (schedule->flags & HAS_TIMESTAMP) {
        p[length++] = '@';
        length += write_number(p + length, tail_of(schedule).timestamp_ms);
    }
    memcpy(p + length, receipt->after, (size_t)receipt->after_size);
    return length + (size_t)receipt->after_size;
}

/* The record's headers but for the control header, and the receipt. */
static rd_kafka_headers_t *headers_of(Record *record, const Receipt *receipt, const Schedule *schedule) {
    char text[LARGEST_RECEIPT];
    rd_kafka_headers_t *headers = rd_kafka_headers_new((size_t)(record->headers < 0 ? 0 : record->headers) + 1);
    int64_t control = tail_of(schedule).control;
    for (int64_t i = 0; i < record->headers; i++) {
        Header header = next_header(&record->at_headers);
        if (i != control)
            rd_kafka_header_add(headers, (const char *)header.name.data, header.name.size, header.value.data,
                                header.value.size < 0 ? 0 : header.value.size);
    }
    rd_kafka_header_add(headers, receipt->name, receipt->name_size, text,
                        (ssize_t)write_receipt(text, receipt, schedule));
    return headers;
}

static size_t size_or_none(Run run) { return run.size < 0 ? 0 : (size_t)run.size; }

static rd_kafka_resp_err_t produce_one(rd_kafka_t *producer, rd_kafka_topic_t *topic, int partition,
                                       const Receipt *receipt, const Schedule *schedule) {
    Record record = record_of(schedule);
    rd_kafka_headers_t *headers = headers_of(&record, receipt, schedule);
    rd_kafka_resp_err_t error = rd_kafka_producev(
        producer, RD_KAFKA_VTYPE_RKT, topic, RD_KAFKA_VTYPE_PARTITION, (int32_t)partition, RD_KAFKA_VTYPE_MSGFLAGS,
        RD_KAFKA_MSG_F_COPY, RD_KAFKA_VTYPE_KEY, record.key.data, size_or_none(record.key), RD_KAFKA_VTYPE_VALUE,
        record.value.data, size_or_none(record.value), RD_KAFKA_VTYPE_HEADERS, headers, RD_KAFKA_VTYPE_END);
    /* The client owns them once it has taken the record. */
    if (error != RD_KAFKA_RESP_ERR_NO_ERROR) rd_kafka_headers_destroy(headers);
    return error;
}

static int all_plain(PyObject *schedules, PyTypeObject *type) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(schedules); i++) {
        PyObject *schedule = PyTuple_GET_ITEM(schedules, i);
        if (!Py_IS_TYPE(schedule, type) || !(((Schedule *)schedule)->flags & IS_PLAIN)) return 0;
    }
    return 1;
}

/* Produce from a place on; the place of the first that the client did not take, -1 if there is no producer any more.
 * Nothing of Python is touched: the schedules do not change, and whoever calls this holds them.
 */
static Py_ssize_t produce_all(Link *link, const char *name, int partition, PyObject *schedules, Py_ssize_t place,
                              const Receipt *receipt) {
    pthread_mutex_lock(&link->in_use);
    rd_kafka_topic_t *topic = link->producer != NULL ? rd_kafka_topic_new(link->producer, name, NULL) : NULL;
    if (link->producer == NULL) place = -1;
    if (topic != NULL) {
        pthread_mutex_lock(&all_links);
        snprintf(link->receipt, RECEIPT_NAME_BYTES, "%s", receipt->name);
        pthread_mutex_unlock(&all_links);
        producing = 1;
        while (place < PyTuple_GET_SIZE(schedules) &&
               produce_one(link->producer, topic, partition, receipt, (Schedule *)PyTuple_GET_ITEM(schedules, place)) ==
                   RD_KAFKA_RESP_ERR_NO_ERROR)
            place++;
        producing = 0;
        rd_kafka_topic_destroy(topic);
    }
    pthread_mutex_unlock(&link->in_use);
    return place;
}

static PyObject *sender_produce(PyObject *self, PyTypeObject *defining_class, PyObject *const *given, Py_ssize_t count,
                                PyObject *names) {
    State *state = PyType_GetModuleState(defining_class);
    Link *link = ((Sender *)self)->link;
    const char *name;
    int partition;
    PyObject *schedules, *arguments = NULL, *result = NULL;
    Py_ssize_t place;
    Receipt receipt;
    if (names != NULL || (arguments = PyTuple_New(count)) == NULL) {
        if (!PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "produce() takes no arguments by name");
        return NULL;
    }
    for (Py_ssize_t i = 0; i < count; i++) PyTuple_SET_ITEM(arguments, i, Py_NewRef(given[i]));
    if (PyArg_ParseTuple(arguments, "siOns#y#y#", &name, &partition, &schedules, &place, &receipt.name,
                         &receipt.name_size, &receipt.between, &receipt.between_size, &receipt.after,
                         &receipt.after_size) &&
        (schedules = PySequence_Tuple(schedules)) != NULL) {
        if (place < 0 || !all_plain(schedules, state->schedule_type) || receipt.name_size >= RECEIPT_NAME_BYTES ||
            receipt.between_size + receipt.after_size > LARGEST_RECEIPT - 3 * MOST_NUMBER_BYTES - 1)
            PyErr_SetString(PyExc_ValueError, "a receipt is too long, or something is no plain schedule");
        else {
            Py_BEGIN_ALLOW_THREADS
            place = produce_all(link, name, partition, schedules, place, &receipt);
            Py_END_ALLOW_THREADS
            if (place < 0) PyErr_SetString(PyExc_ValueError, "the producer is gone");
            else result = PyLong_FromSsize_t(place);
        }
        Py_DECREF(schedules);
    }
    Py_DECREF(arguments);
    return result;
}

static PyObject *sender_failures(PyObject *self, PyObject *Py_UNUSED(nothing)) {
    Link *link = ((Sender *)self)->link;
    Failure failed[FAILURES_KEPT];
    /* No Python object is made under the lock: the collector may run then, destroy a producer, and wait for its threads. */
    pthread_mutex_lock(&all_links);
    int failures = link->failures;
    memcpy(failed, link->failed, (size_t)failures * sizeof *failed);
    link->failures = 0;
    pthread_mutex_unlock(&all_links);
    PyObject *list = PyList_New(failures);
    for (int i = 0; list != NULL && i < failures; i++) {
        PyObject *pair = Py_BuildValue("(isiL)", (int)failed[i].error, failed[i].topic, (int)failed[i].partition,
                                       (long long)failed[i].sender);
        if (pair == NULL) Py_CLEAR(list);
        else PyList_SET_ITEM(list, i, pair);
    }
    return list;
}

static PyMethodDef sender_methods[] = {
    {"produce", (PyCFunction)(void (*)(void))sender_produce, METH_METHOD | METH_FASTCALL | METH_KEYWORDS,
     "Produce plain schedules from a place on: produce(topic, partition, schedules, place, receipt, between, after). "
     "Returns the place of the first that the client did not take, or the number of schedules. A receipt is the due time, "
     "`between`, the offset, `@` and the timestamp if there is one, and `after`. Other threads run meanwhile."},
    {"failures", sender_failures, METH_NOARGS,
     "Take the failures since the last call, each once: the client's error code, topic, partition and source partition."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot sender_slots[] = {
    {Py_tp_doc, "Sends through the producer that this thread has just made with this file as a plugin."},
    {Py_tp_new, sender_new},
    {Py_tp_dealloc, sender_dealloc},
    {Py_tp_methods, sender_methods},
    {0, NULL},
};

PyType_Spec sender_spec = {
    .name = "delaytopic_relay._speedups.Sender",
    .basicsize = sizeof(Sender),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = sender_slots,
};
