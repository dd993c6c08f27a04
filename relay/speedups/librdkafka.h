/* The part of librdkafka's public interface that `sender.c` calls, which has been the same since its version 1.2.
 *
 * The library itself is the one that the Kafka client of Python brings, found when a producer is made: nothing is linked,
 * and nothing of librdkafka has to be installed to compile this.
 */
#ifndef DELAYTOPIC_LIBRDKAFKA_H
#define DELAYTOPIC_LIBRDKAFKA_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct rd_kafka_s rd_kafka_t;
typedef struct rd_kafka_conf_s rd_kafka_conf_t;
typedef struct rd_kafka_topic_s rd_kafka_topic_t;
typedef struct rd_kafka_topic_conf_s rd_kafka_topic_conf_t;
typedef struct rd_kafka_headers_s rd_kafka_headers_t;
typedef int rd_kafka_resp_err_t;

/* The beginning of a message that is reported on. */
typedef struct {
    rd_kafka_resp_err_t err;
    rd_kafka_topic_t *rkt;
    int32_t partition;
    void *payload;
    size_t len;
    void *key;
    size_t key_len;
    int64_t offset;
    void *_private;
} rd_kafka_message_t;

enum {
    RD_KAFKA_RESP_ERR__FAIL = -196,
    RD_KAFKA_RESP_ERR_NO_ERROR = 0,
};
enum { RD_KAFKA_MSG_F_COPY = 2 };

/* The kinds of what `rd_kafka_producev` is given. */
enum {
    RD_KAFKA_VTYPE_END = 0,
    RD_KAFKA_VTYPE_RKT = 2,
    RD_KAFKA_VTYPE_PARTITION = 3,
    RD_KAFKA_VTYPE_VALUE = 4,
    RD_KAFKA_VTYPE_KEY = 5,
    RD_KAFKA_VTYPE_MSGFLAGS = 7,
    RD_KAFKA_VTYPE_HEADERS = 10,
};

typedef rd_kafka_resp_err_t on_new_t(rd_kafka_t *, const rd_kafka_conf_t *, void *opaque, char *error, size_t size);
typedef rd_kafka_resp_err_t on_acknowledgement_t(rd_kafka_t *, rd_kafka_message_t *, void *opaque);
typedef rd_kafka_resp_err_t on_destroy_t(rd_kafka_t *, void *opaque);

/* Each function by its return type, name and parameters. */
#define LIBRDKAFKA(F)                                                                                                  \
    F(rd_kafka_resp_err_t, rd_kafka_producev, (rd_kafka_t *, ...))                                                     \
    F(rd_kafka_headers_t *, rd_kafka_headers_new, (size_t))                                                            \
    F(void, rd_kafka_headers_destroy, (rd_kafka_headers_t *))                                                          \
    F(rd_kafka_resp_err_t, rd_kafka_header_add, (rd_kafka_headers_t *, const char *, ssize_t, const void *, ssize_t))  \
    F(rd_kafka_resp_err_t, rd_kafka_message_headers, (const rd_kafka_message_t *, rd_kafka_headers_t **))              \
    F(rd_kafka_resp_err_t, rd_kafka_header_get_last,                                                                   \
      (const rd_kafka_headers_t *, const char *, const void **, size_t *))                                             \
    F(rd_kafka_topic_t *, rd_kafka_topic_new, (rd_kafka_t *, const char *, rd_kafka_topic_conf_t *))                   \
    F(void, rd_kafka_topic_destroy, (rd_kafka_topic_t *))                                                              \
    F(const char *, rd_kafka_topic_name, (const rd_kafka_topic_t *))                                                   \
    F(rd_kafka_resp_err_t, rd_kafka_conf_interceptor_add_on_new,                                                       \
      (rd_kafka_conf_t *, const char *, on_new_t *, void *))                                                           \
    F(rd_kafka_resp_err_t, rd_kafka_interceptor_add_on_acknowledgement,                                                \
      (rd_kafka_t *, const char *, on_acknowledgement_t *, void *))                                                    \
    F(rd_kafka_resp_err_t, rd_kafka_interceptor_add_on_destroy,                                                        \
      (rd_kafka_t *, const char *, on_destroy_t *, void *))

#endif
