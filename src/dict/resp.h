/* resp.h - a dictionary as commands for Redis, in its own protocol (RESP): dict.resp.
 *
 *     SET tnet:00010203:user:1 <value>     a row: prefix, group, sign in decimal
 *     SET tnet:00010203:<8 bytes> <value>  or prefix and table key, little-endian, whatever bytes
 *     SET tnet:00010203:meta <JSON>        how keys are made, and rows of a table read
 *     SET tnet:current tnet:00010203       last, so that readers switch at once
 *
 * A value is one byte, the number of its table, and the row as it is. A word follows its length:
 * "*3\r\n$3\r\nSET\r\n$20\r\ntnet:00010203:user:1\r\n$13\r\n..\r\n".
 * `redis-cli --pipe` sends the file as it is. Any thread, one call at a time for a dictionary that
 * is verified lazily.
 */
#pragma once

#include "base/core/text.h"
#include "dict/dict.h"

enum { TN_RESP_TABLES_MAX = 256, TN_RESP_PIECE = 1 << 16 };

/* Kinds of keys, in the order of the words of export.redis_keys. */
typedef enum tn_resp_keys { TN_RESP_TEXT, TN_RESP_KEY8 } tn_resp_keys;

/* Takes some whole commands. */
typedef tn_status tn_resp_put(void *arg, const tn_text *bytes, tn_error *err);

/* Makes the commands of all rows, then that of the description. TN_E_CKPT: it is a delta, or
 * damaged; TN_E_CONFIG: it does not store groups, which keys of text name; TN_E_LIMIT: more than
 * TN_RESP_TABLES_MAX tables. */
tn_status tn_resp_rows(const tn_dict *d, tn_resp_keys keys, tn_resp_put *put, void *arg,
                       tn_error *err) TN_MUST_USE;

/* Appends the command that lets readers switch to this model. */
void tn_resp_current(const tn_dict *d, tn_text *out);
