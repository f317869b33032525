/* token_vectors.h - tokens of a record side by side, so that vectors make signs and keys of all at
 * once.
 *
 *              i = 0         1          2
 *     token    "12"        ""        "68fd1e64"
 *     low      000000 1 2  00000000  68fd1e64       the eight bytes that end where it ends
 *     size     2           0         8
 *     sign     12          ?         0x68fd1e64
 *     bad      0           not 0     0              it is no such token: left to the slow path
 *
 * Words of decimal digits hold 0 .. 9 with zeros in front; `high` and `highest` are those in front
 * of `low`. Room is kept from record to record.
 */
#pragma once

#include "base/core/bytes.h"

enum {
    TN_TOKEN_VECTORS_WORD = 8,
    TN_TOKEN_VECTORS_REACH = 24 /* bytes in front of a token's end */
};

typedef struct tn_token_vectors {
    uint64_t *low, *high, *highest, *size, *sign, *bad; /* in one block of memory */
    uint64_t *salt;                                     /* for tn_token_vectors_keys_each */
    uint64_t *tag;                                      /* free for the parser */
    uint32_t room;
} tn_token_vectors;

/* Room for `n` tokens, whose contents are lost when it grows; false: no memory. */
bool tn_token_vectors_reserve(tn_token_vectors *lanes, uint32_t n);
void tn_token_vectors_done(tn_token_vectors *lanes);

/* The beginning of a text with TN_TOKEN_VECTORS_REACH bytes in front of it that may be read. */
typedef struct tn_token_vectors_text {
    const char *from[2]; /* base of places below TN_TOKEN_VECTORS_REACH, and of others */
    char front[2 * TN_TOKEN_VECTORS_REACH];
} tn_token_vectors_text; /* points into itself */

void tn_token_vectors_begin(tn_token_vectors_text *out, const char *text, size_t size);

/* Returns the address from which the token that ends at byte `end` may be read backwards. */
static inline const char *tn_token_vectors_end(const tn_token_vectors_text *t, size_t end)
{
    return t->from[end >= TN_TOKEN_VECTORS_REACH] + end; /* no branch: it would be guessed wrong */
}

extern const uint64_t
    tn_token_vectors_mask[TN_TOKEN_VECTORS_WORD + 1]; /* the last n bytes of a word */

/* Leaves the digits in `low`, which held text: 0 .. 9, and zeros in front of the token. Whether
 * some token reaches beyond `low`. */
bool tn_token_vectors_digits(const tn_token_vectors *lanes, uint32_t first, uint32_t n);

/* The digits of a token that lie in the word that ends at `end`: the last `n` of it. */
static inline uint64_t tn_token_vectors_digits_at(const char *end, uint64_t n)
{
    uint64_t zeros = UINT64_C(0x3030303030303030);
    return (tn_load_u64(end - TN_TOKEN_VECTORS_WORD) ^ zeros) &
           tn_token_vectors_mask[n < TN_TOKEN_VECTORS_WORD ? n : TN_TOKEN_VECTORS_WORD];
}

/* The words in front of `low`, of a token whose size is set. */
static inline void tn_token_vectors_set_high(const tn_token_vectors *lanes, uint32_t i,
                                             const char *end)
{
    uint64_t size = lanes->size[i];
    lanes->high[i] = tn_token_vectors_digits_at(end - 8, size > 8 ? size - 8 : 0);
    lanes->highest[i] = tn_token_vectors_digits_at(end - 16, size > 16 ? size - 16 : 0);
}

/* Make signs of tokens first .. first + n - 1: of eight hex digits (`low` as in the text), of one
 * to eight decimal digits, of one to 19 of them, with `high` and `highest`. */
void tn_token_vectors_hex(const tn_token_vectors *lanes, uint32_t first, uint32_t n);
void tn_token_vectors_short(const tn_token_vectors *lanes, uint32_t first, uint32_t n);
void tn_token_vectors_long(const tn_token_vectors *lanes, uint32_t first, uint32_t n);

/* Signs of varints: `low` is the first eight bytes without those of other numbers, `high` what the
 * others are worth. */
void tn_token_vectors_varints(const tn_token_vectors *lanes, uint32_t n);

/* sign becomes the key: of one group, or each of its own. */
void tn_token_vectors_keys(const tn_token_vectors *lanes, uint32_t n, uint64_t salt);
void tn_token_vectors_keys_each(const tn_token_vectors *lanes, uint32_t n, const uint64_t *salt);
/* The same, with the keys elsewhere. */
void tn_token_vectors_keys_to(const tn_token_vectors *lanes, uint32_t n, const uint64_t *salt,
                              uint64_t *out);

/* The signs of the tokens whose bits are set, of 64 at most: a mask of those from 2^32 on, then the
 * low 32 bits of each. False: one is above 2^33. */
bool tn_token_vectors_narrow(const tn_token_vectors *lanes, uint32_t n, uint64_t there,
                             uint64_t *out);

/* Whether some token is bad, empty ones aside. */
bool tn_token_vectors_some_bad(const tn_token_vectors *lanes, uint32_t n);

/* Bits of the tokens that are not empty, of 64 at most; *bad: of those that are bad as well. */
uint64_t tn_token_vectors_there(const tn_token_vectors *lanes, uint32_t n, uint64_t *bad);
