/* resp.h - a dictionary as commands for Redis, in its own protocol (RESP): dict.resp.
 *
 *     SET tnet:00010203:user:1 <value>     per row: prefix, group, sign in decimal; the value is
 * one byte, the number of its table, and the row as it is SET tnet:00010203:meta <JSON>        how
 * rows of a table are read SET tnet:current tnet:00010203       last, so that readers switch at
 * once
 *
 * A command of three words is "*3\r\n$3\r\nSET\r\n$20\r\ntnet:00010203:user:1\r\n$13\r\n..\r\n".
 * Any thread, one call at a time for a dictionary that is verified lazily.
 */
#ifndef TN_IO_RESP_H
#define TN_IO_RESP_H

#include "base/core/text.h"
#include "io/dict/dict.h"

enum { TN_RESP_TABLES_MAX = 256, TN_RESP_PIECE = 1 << 16 };

/* Takes some whole commands. */
typedef tn_status tn_resp_put(void *arg, const tn_text *bytes, uint64_t commands, tn_error *err);

/* All rows, then the description. TN_E_CKPT: it is a delta, or damaged; TN_E_CONFIG: it does not
 * store groups; TN_E_LIMIT: more than TN_RESP_TABLES_MAX tables. */
tn_status tn_resp_rows(const tn_dict *d, tn_resp_put *put, void *arg, tn_error *err) TN_MUST_USE;

/* The command that lets readers switch to this model, appended. */
void tn_resp_current(const tn_dict *d, tn_text *out);

/* A command of n words, appended. */
typedef struct tn_resp_word {
    const char *data;
    size_t size;
} tn_resp_word;
void tn_resp_command(tn_text *out, uint32_t n, const tn_resp_word *word);

#endif
