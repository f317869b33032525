/* test_sequences.c - the section `sequences`: what slots get of it, and what is wrong with one. */
#include "config/tree.h"
#include "support/test.h"
#include "train/config/sequences.h"

#include "base/core/arena.h"
#include "config/diag.h"

typedef struct fixture {
    tn_arena *arena;
    tn_diag diag;
} fixture;

SET_UP
{
    static fixture f;
    f = (fixture){.arena = tn_arena_new(1 << 14)};
    *state = &f;
}

TEAR_DOWN
{
    fixture *f = *state;
    tn_diag_done(&f->diag);
    tn_arena_free(f->arena);
}

static const tn_tree *apply(fixture *f, const char *text)
{
    const tn_binder b = {.arena = f->arena, .diag = &f->diag};
    tn_diag_done(&f->diag);
    return tn_sequences_apply(tn_tree_read_flow(f->arena, text, "t"), &b);
}

static void assert_applies(fixture *f, const char *text, const char *slots)
{
    tn_text out CLEANUP(tn_text_done) = {0};
    const tn_tree *tree = apply(f, text);
    fail_if(tree == NULL, "%s", tn_text_str(&f->diag.text));
    tn_tree_print_flow(&out, tn_tree_get(tree, "slots"));
    assert_string_equal(tn_text_str(&out), slots);
}

static void assert_refused(fixture *f, const char *text, const char *fault)
{
    fail_if(apply(f, text) != NULL, "%s", text);
    fail_if(strstr(tn_text_str(&f->diag.text), fault) == NULL, "%s: %s", text,
            tn_text_str(&f->diag.text));
}

#define SLOTS "slots: [item, {name: a}, {name: b, dim: 4}, c], "
#define MORE "max_len: 50, keep: last, uneven: error}"

TEST_ON(fixture *f, slots_of_a_sequence_get_its_options)
{
    assert_applies(f, "{" SLOTS "sequences: {s: {slots: [a, b], target: [item]}}}",
                   "[{name: item}, {name: a, sequence: s, " MORE
                   ", {name: b, dim: 4, sequence: s, " MORE ", {name: c}]");
    assert_applies(f,
                   "{" SLOTS "sequences: {s: {slots: [c], max_len: 7, keep: first, uneven: cut}}}",
                   "[{name: item}, {name: a}, {name: b, dim: 4}, {name: c, sequence: s, max_len: "
                   "7, keep: first, uneven: cut}]");
}

TEST_ON(fixture *f, without_sequences_nothing_changes)
{
    assert_applies(f, "{slots: [item, {name: a}]}", "[item, {name: a}]");
    assert_applies(f, "{slots: [item], sequences: ~}", "[item]");
}

/* As a printed configuration has them. */
TEST_ON(fixture *f, slots_may_say_what_their_sequence_says)
{
    assert_applies(f,
                   "{slots: [{name: a, sequence: s, max_len: 50, keep: last}], sequences: {s: "
                   "{slots: [a]}}}",
                   "[{name: a, sequence: s, " MORE "]");
}

TEST_ON(fixture *f, a_wrong_sequence_is_refused_in_a_sentence)
{
    static const char *const wrong[][2] = {
        {"[a]", "'sequences' is a map of names"},
        {"{s: [a]}", "sequence 's' is a map"},
        {"{s: {}}", "sequence 's' needs 'slots'"},
        {"{s: {slots: [a, d]}}", "sequence 's' names slot 'd', which 'slots' has not"},
        {"{s: {slots: [a, itme], target: [item]}}", "did you mean 'item'?"},
        {"{s: {slots: [a], target: [itm]}}", "names slot 'itm', which 'slots' has not"},
        {"{s: {slots: [a, a]}}", "sequence 's' names slot 'a' twice"},
        {"{s: {slots: [a]}, t: {slots: [b, a]}}", "slot 'a' is in sequence 's' and in 't'"},
        {"{s: {slots: [a], target: [item, c]}}", "has 2 targets for 1 slots: they are paired"},
        {"{s: {slots: [a], max_len: 0}}", "max_len"},
        {"{s: {slots: [a], max_len: 5000}}", "max_len"},
        {"{s: {slots: [a], keep: middle}}", "keep"},
        {"{s: {slots: [a], uneven: pad}}", "uneven"},
        {"{s: {slots: [a], maxlen: 5}}", "did you mean 'max_len'?"},
        {"{'a.b': {slots: [a]}}", "without dots and spaces"},
    };
    for (uint32_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        char text[300];
        (void)snprintf(text, sizeof text, "{" SLOTS "sequences: %s}", wrong[i][0]);
        assert_refused(f, text, wrong[i][1]);
    }
    assert_refused(f, "{slots: [{name: a, max_len: 20}], sequences: {s: {slots: [a]}}}",
                   "'max_len' of a slot of sequence 's' is 50");
    assert_refused(f, "{sequences: {s: {slots: [a]}}}", "names slot 'a', which 'slots' has not");
    assert_refused(f, "{slots: [{name: a, sequence: s}]}",
                   "'sequence' is of slots that 'sequences' names");
    assert_refused(f, "{slots: [a, {name: b, uneven: cut}], sequences: {s: {slots: [a]}}}",
                   "'uneven' is of slots that 'sequences' names");
}
