/* wire.h - peers, layouts and keysets for tests of messages, and their golden bytes. */
#pragma once

#include "cluster/wire/key_codec.h"
#include "ps/kit.h"

enum { WIRE_PEERS = 4, WIRE_GROUPS = 600, WIRE_WIDE = 2500 };

/* Peers own partitions 0 to 255, none, 256 to 699, 700 to 1023. */
extern const tn_owners wire_owners;

/* WIRE_GROUPS groups; the rows of group g have wire_width(g) floats: 2, 1, or, of the last group,
 * WIRE_WIDE. */
const tn_layout *wire_layout(void);
uint32_t wire_width(uint32_t group);

/* n different keys all over the key space of wire_owners. Groups below n_groups, shows up to
 * `shows`, clicks up to the shows. */
typedef struct wire_opts {
    uint64_t seed;
    uint32_t n, n_groups, shows;
} wire_opts;
kit_keys *wire_keys(tn_arena *arena, const wire_opts *opts);

/* All keys of a keyset, each in its place. */
tn_key_order wire_all(tn_arena *arena, const tn_keyset *keys);

/* The peer's keys in the order of messages. */
tn_key_order wire_order(tn_arena *arena, const tn_keyset *keys, uint32_t peer);

/* Compares bytes with hex digits. */
void wire_equals(const char *bytes, size_t size, const char *hex);

/* The messages of docs/formats.md section 10. */
extern const char wire_golden_noted[], wire_golden_pull[], wire_golden_push[], wire_golden_rows[],
    wire_golden_beat[];

/* Writes the bytes of a golden message, returns how many. */
size_t wire_golden(const char *hex, char *out);

/* What their sender and receiver agree on: frame with job, session, incarnation and rank. */
extern const tn_frame wire_sender;
extern const tn_frame_limits wire_limits;
