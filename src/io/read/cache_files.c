/* cache_files.c - which cache belongs to which data, and caches in the place of the files they were
 * made of: sources, parts, blocks.
 *
 * The shape is everything that decides what a record becomes, as text, one line per fact. Writers
 * that were killed leave files in a folder of caches:
 *
 *     0123456789abcdef.tnb.fedcba9876543210.tmp
 */

#include "base/core/alloc.h"
#include "base/core/arena.h"
#include "base/file/file.h"
#include "base/file/output_file.h"
#include "base/math/crc32c.h"
#include "config/tree.h"
#include "io/read/cache.h"
#include "io/schema/dataopts.h"
#include "io/schema/schema.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* Rises whenever the same text begins to make other rows. */
enum { ROWS_VERSION = 1 };

enum { HEX = 16 };

/* A part of the fileset. */
typedef struct placed_part {
    const tn_cache *cache;
    const tn_cache_part *part;
} placed_part;

struct tn_cache_set {
    uint32_t n;
    tn_cache **cache;
    uint32_t n_parts;
    placed_part *part;
};

static void add_name(tn_text *out, const char *key, const char *name)
{
    if (name != NULL) {
        tn_text_addf(out, " %s ", key);
        tn_tree_print_scalar(out, name);
    }
}

static void add_names(tn_text *out, const char *key, const tn_strs *names)
{
    tn_text_addf(out, "%s", key);
    for (uint32_t i = 0; i < names->n; i++) {
        add_name(out, i > 0 ? "," : ":", names->item[i]);
    }
    tn_text_addc(out, '\n');
}

static void add_label(const tn_label_rule *label, tn_text *out)
{
    tn_text_adds(out, "label:");
    add_name(out, "column", label->none ? NULL : label->column);
    if (label->target != TN_TARGET_CLICK) {
        tn_text_addf(out, " target %s", tn_target_words[label->target]);
    }
    if (!isnan(label->threshold)) {
        tn_text_addf(out, " threshold %a", label->threshold);
    }
    for (uint32_t i = 0; i < label->n_values; i++) {
        add_name(out, "value", label->text[i]);
        tn_text_addf(out, " %a", (double)label->value[i]);
    }
    tn_text_addc(out, '\n');
}

static void add_data(const tn_schema *s, tn_text *out)
{
    const tn_data_opts *d = s->data;
    tn_text_addf(out, "format: %s\n", d->format);
    tn_text_addf(out, "compression: %u\n", d->compression);
    tn_text_addf(out, "index_base: %u\n", s->index_base);
    tn_text_adds(out, "columns of a row:");
    add_name(out, "weight", d->weight);
    add_name(out, "group", d->group);
    add_name(out, "record_id", d->record_id);
    tn_text_addf(out, "\ndelimiter: %u\nheader: %d\nquote: %u\ntrim: %d\nshort_rows: %u\n",
                 (unsigned)(unsigned char)s->delimiter, s->header, s->quote, d->trim,
                 d->short_rows);
    add_names(out, "columns", &d->columns);
    add_names(out, "null", &d->null);
    tn_text_adds(out, "comment:");
    add_name(out, "begins with", d->comment);
    tn_text_addf(out, "\nunknown_field: %u\nrow_norm: %d\nrecord_bytes_max: %" PRIu64 "\n",
                 d->unknown_field, d->row_norm, d->record_bytes_max);
}

static void add_transform(const tn_transform *t, tn_text *out)
{
    tn_text_addf(out, " transform %d %a %a %" PRIu64, (int)t->kind, t->a, t->b, t->freeze_rows);
    for (uint32_t i = 0; i < t->n_bounds; i++) {
        tn_text_addf(out, " %a", t->bound[i]);
    }
}

static void add_slot(const tn_slot_spec *spec, tn_text *out)
{
    /* io/read/schema_inference.c reads this line again. */
    tn_text_addf(out, "slot %s: field %u", spec->name, spec->field);
    add_name(out, "column", spec->column);
    add_name(out, "share", spec->opts->share);
    add_name(out, "values", spec->values);
    tn_text_addf(out, " type %d as %d list %u range %" PRIu64 " %" PRIu64, (int)spec->type,
                 (int)spec->as, (unsigned)(unsigned char)spec->list, spec->range_from,
                 spec->range_to);
    tn_text_addf(out, " max_len %u keep_last %d absent %d %a duplicates %u", spec->max_len,
                 spec->keep_last, spec->absent_key, (double)spec->absent, spec->duplicates);
    tn_text_addf(out, " drop_zero %d non_finite_absent %d", spec->drop_zero,
                 spec->non_finite_absent);
    add_transform(&spec->transform, out);
    tn_text_adds(out, spec->step_concat ? " step_pool concat" : "");
    const bool exact = spec->type == TN_SIGN_FLOAT && tn_spec_is_number(spec);
    tn_text_adds(out, exact ? " as a double" : ""); /* it was rounded to a float32 .. */
    tn_text_adds(out, spec->list != 0 ? " items with text" : ""); /* .. and "" was one */
    tn_text_addc(out, '\n');
}

void tn_cache_shape(const tn_schema *schema, tn_text *out)
{
    tn_text_addf(out, "rows: %d\n", ROWS_VERSION);
    add_data(schema, out);
    add_label(schema->label, out);
    for (uint32_t i = 0; i < schema->n_specs; i++) {
        add_slot(&schema->spec[i], out);
    }
}

/* As reader_cache.c names a cache. */
static bool is_unfinished(const char *name)
{
    char cache[HEX + sizeof ".tnb"];
    if (strspn(name, "0123456789abcdef") != HEX || strncmp(name + HEX, ".tnb", 4) != 0) {
        return false;
    }
    memcpy(cache, name, sizeof cache - 1);
    cache[sizeof cache - 1] = '\0';
    return tn_is_unfinished(name, cache);
}

void tn_cache_sweep(const char *folder)
{
    tn_text names = {0};
    uint32_t n = 0;
    if (tn_dir_list(folder, &names, &n, NULL) != TN_OK) {
        n = 0;
    }
    const char *name = tn_text_str(&names);
    for (uint32_t i = 0; i < n; i++, name += strlen(name) + 1) {
        char path[TN_PATH_SIZE];
        if (is_unfinished(name) && tn_path_join(folder, name, path, NULL) == TN_OK) {
            tn_unfinished_remove(path);
        }
    }
    tn_text_done(&names);
}

void tn_cache_set_free(tn_cache_set *set)
{
    if (set == NULL) {
        return;
    }
    for (uint32_t i = 0; set->cache != NULL && i < set->n; i++) {
        tn_cache_close(set->cache[i]);
    }
    tn_free(set->cache);
    tn_free(set->part);
    tn_free(set);
}

/* All of them are caches, or none is. */
static tn_status are_caches(const tn_fileset *files, bool *are, tn_error *err)
{
    uint32_t n = 0;
    const tn_file_entry *other = NULL;
    for (uint32_t i = 0; i < files->n; i++) {
        bool is = tn_cache_is_named(files->file[i].path);
        n += is;
        other = is ? other : &files->file[i];
    }
    if (n > 0 && n < files->n) {
        TN_ASSERT(other != NULL);
        return tn_fail(err, TN_E_DATA,
                       "'%s' stands among binary caches (.tnb)\nhint: read either caches or data",
                       other->path);
    }
    *are = n > 0;
    return TN_OK;
}

static tn_status open_all(tn_cache_set *set, const tn_fileset *files, const tn_schema *schema,
                          tn_error *err)
{
    set->cache = tn_try_alloc(files->n, sizeof(void *), "binary caches", err);
    if (set->cache == NULL) {
        return TN_E_MEMORY;
    }
    uint64_t parts = 0;
    while (set->n < files->n) {
        tn_cache **cache = &set->cache[set->n];
        TN_TRY(tn_cache_open(cache, files->file[set->n].path, err));
        set->n++;
        parts += (*cache)->n_parts;
        if (parts > UINT32_MAX - 1) {
            return tn_fail(err, TN_E_LIMIT, "the caches have more than %u parts", UINT32_MAX - 1);
        }
        if (schema->columns != NULL) { /* else its slots are still to be found, in here */
            TN_TRY(tn_cache_check(*cache, schema, err));
        }
    }
    set->n_parts = (uint32_t)parts;
    return TN_ALLOC(set->part, (size_t)parts + 1, "binary caches", err);
}

/* The files are those the caches were made of. */
static tn_status put_in_place(tn_fileset *files, tn_cache_set *set, tn_error *err)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < set->n; i++) {
        n += set->cache[i]->n_sources;
    }
    if (n > UINT32_MAX - 1) {
        return tn_fail(err, TN_E_LIMIT, "the caches have more than %u sources", UINT32_MAX - 1);
    }
    const size_t bytes =
        (n + 1) * sizeof(tn_file_entry) + ((size_t)set->n_parts + 1) * sizeof(tn_part_info) + 16;
    TN_TRY(tn_arena_reserve(files->arena, bytes, "parts of caches", err));
    tn_file_entry *file = TN_NEW_ARRAY(files->arena, tn_file_entry, n + 1);
    tn_part_info *part = TN_NEW_ARRAY(files->arena, tn_part_info, (size_t)set->n_parts + 1);
    uint32_t f = 0;
    uint32_t p = 0;
    bool known = true;
    files->bytes = 0;
    for (uint32_t i = 0; i < set->n; i++) {
        const tn_cache *cache = set->cache[i];
        for (uint32_t k = 0; k < cache->n_parts; k++, p++) {
            set->part[p] = (placed_part){cache, &cache->part[k]};
            part[p] = cache->part[k].info;
            part[p].source += f;
        }
        for (uint32_t k = 0; k < cache->n_sources; k++, f++) {
            file[f] = cache->source[k].file;
            known = known && file[f].size != UINT64_MAX;
            files->bytes += known ? file[f].size : 0;
        }
    }
    files->bytes = known ? files->bytes : 0;
    files->n = f;
    files->file = file;
    files->n_parts = p;
    files->part = part;
    files->caches = set;
    return TN_OK;
}

tn_status tn_cache_set_open(tn_fileset *files, const tn_schema *schema, tn_error *err)
{
    bool are = false;
    TN_TRY(are_caches(files, &are, err));
    if (!are) {
        return TN_OK;
    }
    tn_cache_set *set = NULL;
    TN_TRY(TN_ALLOC(set, 1, "binary caches", err));
    tn_status status = open_all(set, files, schema, err);
    if (status == TN_OK) {
        status = put_in_place(files, set, err);
    }
    if (status != TN_OK) {
        tn_cache_set_free(set);
    }
    return status;
}

const char *tn_cache_set_shape(const tn_cache_set *set)
{
    return set->cache[0]->shape;
}

/* The bytes are those that were written. */
static tn_status check_block(const tn_cache *cache, uint64_t at, tn_bytes block, tn_error *err)
{
    enum { AFTER_CRC = sizeof(uint32_t) };
    TN_ASSERT(block.size >= TN_CACHE_BLOCK);
    uint32_t crc = tn_load_u32(block.data);
    uint32_t computed = tn_crc32c(0, block.data + AFTER_CRC, block.size - AFTER_CRC);
    return crc == computed
               ? TN_OK
               : tn_fail(err, TN_E_DATA, "%s:@%llu: damaged block (crc %08x, computed %08x)",
                         cache->path, (unsigned long long)at, crc, computed);
}

void tn_cache_set_next(const tn_cache_set *set, uint32_t part, tn_cache_cursor *at, tn_block *block)
{
    TN_ASSERT(part < set->n_parts);
    const tn_cache *cache = set->part[part].cache;
    const tn_cache_part *p = set->part[part].part;
    TN_ASSERT(at->n < p->n_blocks);
    at->at = at->n == 0 ? p->at : at->at;
    uint32_t size = cache->block_bytes[p->first_block + at->n];
    tn_text_clear(&block->bytes);
    char *to = tn_text_grow(&block->bytes, size);
    block->offset = at->at;
    block->cache = cache->path;
    block->last = true; /* unless it goes well */
    block->fault = tn_text_check(&block->bytes, "a block of a binary cache", &block->err);
    if (block->fault == TN_OK) {
        block->fault = tn_infile_read(cache->file, at->at, to, size, &block->err);
    }
    if (block->fault == TN_OK) {
        block->fault = check_block(cache, at->at, (tn_bytes){to, size, false}, &block->err);
    }
    if (block->fault != TN_OK) {
        return;
    }
    at->at += size;
    at->n++;
    block->last = at->n == p->n_blocks;
}
