/* wire.c - see wire.h. */
#include "wire.h"

#include "base/math/key.h"
#include "support/test.h"

const char wire_golden_noted[] =
    "544e463101000e00887766554433221100ffeeddccbbaa9908070605040302010900000000000000"
    "00000000000000000200000000000000000000000000000000000000000000000000000019037baf";
const char wire_golden_pull[] =
    "544e463101000502887766554433221100ffeeddccbbaa9908070605040302010700000000000000"
    "2900000000000000020000000300000005000000000000002f0000000000000000000000c4b909be"
    "0200000000000000000000000000f83f030101010000000001000000000000400000004223010001"
    "00000200000100";
const char wire_golden_push[] =
    "544e463101000802887766554433221100ffeeddccbbaa9908070605040302010800000000000000"
    "29000000000000000200000003000000050000000200000032000000000000000000000005aba78d"
    "0700000000000000000000000000e03f204e000000000000000000000000e63f003f80beab3e0000"
    "80bf0000803f000000c0";
const char wire_golden_rows[] =
    "544e463101000711887766554433221100ffeeddccbbaa9908070605040302010000000000000000"
    "0500000000000000020000000200000003000000000000001f0000000000000000000000828b5b97"
    "000000000000000000000000000000000000000000000000003c00c0662e01";
const char wire_golden_beat[] =
    "544e463101000300887766554433221100ffeeddccbbaa9908070605040302010000000000000000"
    "2900000000000000020000000000000000000000000000001e0000000000000000000000a17fb19b"
    "0801108008380141000000000000f83f520303ac025a0200026203e80700";

static const uint32_t owned_from[WIRE_PEERS + 1] = {0, 256, 256, 700, TN_PARTITIONS};
const tn_owners wire_owners = {WIRE_PEERS, TN_PARTITIONS, owned_from};

const tn_frame wire_sender = {
    .rank = 2,
    .job = UINT64_C(0x1122334455667788),
    .session = UINT64_C(0x99aabbccddeeff00),
    .incarnation = UINT64_C(0x0102030405060708),
};

const tn_frame_limits wire_limits = {
    .job = UINT64_C(0x1122334455667788),
    .session = UINT64_C(0x99aabbccddeeff00),
    .bytes_max = 64 << 20,
    .peers = WIRE_PEERS,
    .count_max = {1 << 20, 1 << 24, 1 << 24},
};

uint32_t wire_width(uint32_t group)
{
    return group == WIRE_GROUPS - 1 ? WIRE_WIDE : 2 - group % 2;
}

const tn_layout *wire_layout(void)
{
    static const tn_record record[3] = {{.width = 2}, {.width = 1}, {.width = WIRE_WIDE}};
    static tn_share_group group[WIRE_GROUPS];
    static const tn_layout layout = {WIRE_GROUPS, group, 3, record};
    for (uint32_t g = 0; g < WIRE_GROUPS; g++) {
        group[g].record = g == WIRE_GROUPS - 1 ? 2 : g % 2;
    }
    return &layout;
}

kit_keys *wire_keys(tn_arena *arena, const wire_opts *opts)
{
    uint64_t *key = TN_NEW_ARRAY(arena, uint64_t, opts->n + 1);
    uint16_t *group = TN_NEW_ARRAY(arena, uint16_t, opts->n + 1);
    for (uint32_t i = 0; i < opts->n; i++) {
        key[i] = tn_mix(opts->seed + i); /* a bijection: no two are equal */
        group[i] = (uint16_t)(tn_mix(~opts->seed + i) % opts->n_groups);
    }
    kit_keys *k = kit_keys_new(arena, wire_layout(), key, group, opts->n);
    k->set.owners = &wire_owners;
    for (uint32_t i = 0; i < opts->n; i++) {
        uint64_t draw = tn_mix(opts->seed * 3 + i);
        k->show[i] = 1 + (uint32_t)(draw >> 32) % opts->shows;
        k->click[i] = (uint32_t)draw % (k->show[i] + 1);
    }
    return k;
}

tn_key_order wire_all(tn_arena *arena, const tn_keyset *keys)
{
    uint32_t *index = TN_NEW_ARRAY(arena, uint32_t, keys->n + 1);
    for (uint32_t i = 0; i < keys->n; i++) {
        index[i] = i;
    }
    return (tn_key_order){keys->n, index};
}

tn_key_order wire_order(tn_arena *arena, const tn_keyset *keys, uint32_t peer)
{
    tn_key_place *scratch = TN_NEW_ARRAY(arena, tn_key_place, 2 * keys->n + 1);
    uint32_t *index = TN_NEW_ARRAY(arena, uint32_t, keys->n + 1);
    return tn_keyblock_sort(keys, peer, scratch, index);
}

void wire_equals(const char *bytes, size_t size, const char *hex)
{
    assert_int_equal(strlen(hex), 2 * size);
    for (size_t i = 0; i < size; i++) {
        char two[3];
        (void)snprintf(two, sizeof two, "%02x", (unsigned)(unsigned char)bytes[i]);
        fail_if(memcmp(two, hex + 2 * i, 2) != 0, "byte %zu is %s, not %.2s", i, two, hex + 2 * i);
    }
}

static unsigned digit(char c)
{
    return (unsigned)(c <= '9' ? c - '0' : c - 'a' + 10);
}

size_t wire_golden(const char *hex, char *out)
{
    size_t size = strlen(hex) / 2;
    for (size_t i = 0; i < size; i++) {
        out[i] = (char)(digit(hex[2 * i]) << 4 | digit(hex[2 * i + 1]));
    }
    return size;
}
