/* treeprint.c - a tree as YAML that reads back equal.
 *
 * A text is written plain when no reader could take it for anything else, in
 * double quotes otherwise; single quotes and block scalars are never needed.
 */
#include "config/tree.h"

#include <string.h>

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* Indicators that mean nothing inside a plain text, even in flow style. ':' and '#' need a blank
 * beside them to mean something; they are left to the quotes when they stand at an edge. */
static bool is_plain(const char *text)
{
    size_t size = strlen(text);
    char first = text[0];
    bool starts = is_word(first) || strchr("/.+$(;^\\", first) != NULL ||
                  (first == '-' && (is_word(text[1]) || text[1] == '.'));
    if (size == 0 || !starts || strncmp(text, "...", 3) == 0) {
        return false;
    }
    for (size_t i = 1; i < size; i++) {
        if (!is_word(text[i]) && strchr("-/.+$()*=%@;^~!<>|&\\", text[i]) == NULL) {
            bool next = is_word(text[i + 1]) || (text[i] == ':' && text[i + 1] == '/');
            if (!next || (text[i] != ':' && text[i] != ' ')) {
                return false;
            }
        }
    }
    return true;
}

/* The characters beyond ASCII that YAML takes for line breaks, or drops: U+0085, U+2028, U+2029,
 * U+FEFF. Returns how many bytes were written as an escape, 0 for any other character. */
static size_t escape_wide(tn_text *out, const char *at)
{
    static const struct {
        const char *bytes;
        const char *escape;
    } wide[] = {
        {"\xC2\x85", "\\N"},
        {"\xE2\x80\xA8", "\\L"},
        {"\xE2\x80\xA9", "\\P"},
        {"\xEF\xBB\xBF", "\\uFEFF"},
    };
    for (size_t i = 0; i < sizeof wide / sizeof *wide; i++) {
        size_t size = strlen(wide[i].bytes);
        if (strncmp(at, wide[i].bytes, size) == 0) {
            tn_text_adds(out, wide[i].escape);
            return size;
        }
    }
    return 0;
}

static void print_quoted(tn_text *out, const char *text)
{
    tn_text_addc(out, '"');
    while (*text != '\0') {
        size_t taken = escape_wide(out, text);
        if (taken != 0) {
            text += taken;
            continue;
        }
        unsigned char c = (unsigned char)*text++;
        if (c == '"' || c == '\\') {
            tn_text_addc(out, '\\');
            tn_text_addc(out, (char)c);
        } else if (c == '\n') {
            tn_text_adds(out, "\\n");
        } else if (c == '\t') {
            tn_text_adds(out, "\\t");
        } else if (c < 0x20 || c == 0x7F) {
            tn_text_addf(out, "\\x%02X", c);
        } else {
            tn_text_addc(out, (char)c);
        }
    }
    tn_text_addc(out, '"');
}

void tn_tree_print_scalar(tn_text *out, const char *text)
{
    if (is_plain(text)) {
        tn_text_adds(out, text);
    } else {
        print_quoted(out, text);
    }
}

/* A text in quotes where the bare word would mean something. */
static bool needs_its_quotes(const tn_tree *scalar)
{
    return scalar->quoted && strcmp(scalar->text, "none") == 0;
}

void tn_tree_print_flow(tn_text *out, const tn_tree *tree)
{
    if (tree->kind == TN_TREE_NULL) {
        tn_text_addc(out, '~');
        return;
    }
    if (tree->kind == TN_TREE_SCALAR && needs_its_quotes(tree)) {
        print_quoted(out, tree->text);
        return;
    }
    if (tree->kind == TN_TREE_SCALAR) {
        tn_tree_print_scalar(out, tree->text);
        return;
    }
    bool map = tree->kind == TN_TREE_MAP;
    tn_text_addc(out, map ? '{' : '[');
    for (const tn_tree *item = tree->first; item != NULL; item = item->next) {
        if (map) {
            tn_tree_print_scalar(out, item->key);
            tn_text_adds(out, ": ");
        }
        tn_tree_print_flow(out, item);
        tn_text_adds(out, item->next != NULL ? ", " : "");
    }
    tn_text_addc(out, map ? '}' : ']');
}

static bool has_depth(const tn_tree *list)
{
    for (const tn_tree *item = list->first; item != NULL; item = item->next) {
        if (item->kind == TN_TREE_LIST || item->kind == TN_TREE_MAP) {
            return true;
        }
    }
    return false;
}

static bool is_block(const tn_tree *tree, uint32_t flow_depth)
{
    return flow_depth > 0 && tree->first != NULL &&
           (tree->kind == TN_TREE_MAP || (tree->kind == TN_TREE_LIST && has_depth(tree)));
}

static void print_indent(tn_text *out, uint32_t indent)
{
    for (uint32_t i = 0; i < indent; i++) {
        tn_text_addc(out, ' ');
    }
}

void tn_tree_print(tn_text *out, const tn_tree *tree, uint32_t indent, uint32_t flow_depth)
{
    if (!is_block(tree, flow_depth)) {
        print_indent(out, indent);
        tn_tree_print_flow(out, tree);
        tn_text_addc(out, '\n');
        return;
    }
    for (const tn_tree *item = tree->first; item != NULL; item = item->next) {
        print_indent(out, indent);
        if (tree->kind == TN_TREE_LIST) {
            /* The items of a list are lines: a list of slots reads best as a table. */
            tn_text_adds(out, "- ");
            tn_tree_print_flow(out, item);
            tn_text_addc(out, '\n');
            continue;
        }
        tn_tree_print_scalar(out, item->key);
        if (is_block(item, flow_depth - 1)) {
            tn_text_adds(out, ":\n");
            tn_tree_print(out, item, indent + 2, flow_depth - 1);
        } else {
            tn_text_adds(out, ": ");
            tn_tree_print_flow(out, item);
            tn_text_addc(out, '\n');
        }
    }
}
