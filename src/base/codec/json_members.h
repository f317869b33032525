/* json_members.h - reading the members of a JSON object in a row and checking once.
 *
 *     tn_members r = {.arena = arena};
 *     out->step = tn_member_u64(&r, top, "step", UINT64_MAX);
 *     out->name = tn_member_str(&r, top, "name");
 *     if (r.wrong != NULL) ...                     the first member that is missing or wrong
 *
 * A wrong member yields 0, "" or an empty list, so that what follows is harmless; nothing may be
 * used as a size or an index before the check. Objects may be NULL or of another kind.
 */
#ifndef TN_BASE_JSON_MEMBERS_H
#define TN_BASE_JSON_MEMBERS_H

#include "base/codec/json.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct tn_members {
    tn_arena *arena;   /* for the lists that callers make; may be NULL */
    const char *wrong; /* lent by the callers' literals or by the tree */
} tn_members;

/* For checks of the caller's own. */
void tn_member_spoil(tn_members *r, const char *member);

uint64_t tn_member_u64(tn_members *r, const tn_json *object, const char *key, uint64_t max);
uint32_t tn_member_u32(tn_members *r, const tn_json *object, const char *key, uint32_t max);
uint64_t tn_member_hex(tn_members *r, const tn_json *object, const char *key); /* 16 digits */
uint32_t tn_member_crc(tn_members *r, const tn_json *object, const char *key); /* 8 digits */
double tn_member_f64(tn_members *r, const tn_json *object, const char *key);
bool tn_member_bool(tn_members *r, const tn_json *object, const char *key);
const char *tn_member_str(tn_members *r, const tn_json *object, const char *key);
const char *tn_member_sha(tn_members *r, const tn_json *object, const char *key); /* 64 digits */

/* A list or an object of at most `max` items; never NULL. */
const tn_json *tn_member_list(tn_members *r, const tn_json *object, const char *key, uint32_t max);
const tn_json *tn_member_object(tn_members *r, const tn_json *object, const char *key,
                                uint32_t max);

/* Item i of a short list; NULL when there is none, or no list. */
const tn_json *tn_json_item(const tn_json *list, uint32_t i);

#endif
