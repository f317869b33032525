/* blockparse.c - a block of records to a block of rows. */
#include "io/read/blockparse.h"

#include "io/read/cache.h"
#include "io/read/line_numbers.h"
#include "io/rows/rows_parsing.h"
#include "io/schema/dataopts.h"

#include <string.h>

/* The line of record i, found only when a message needs it; 0: it cannot be. `*first` is that of
 * the first record, as far as it is known. */
static uint64_t line_of(const tn_block *block, const tn_schema *schema, const tn_fileset *files,
                        uint32_t i, uint64_t *first)
{
    uint64_t at = block->offset + block->record[0].at;
    if (*first == 0 && tn_line_numbers_before(files, block->file, at, first)) {
        ++*first;
    }
    if (*first == 0 || schema->quote != TN_QUOTE_MULTILINE) {
        return *first > 0 ? *first + i : 0;
    }
    const char *from = block->bytes.data + block->record[0].at;
    return *first + tn_line_numbers_count(from, block->record[i].at - block->record[0].at);
}

static void keep_message(tn_parsed *out, const tn_error *err, uint32_t messages_max)
{
    out->n_bad++;
    if (out->n_messages == messages_max) {
        return;
    }
    tn_text_add(&out->messages, err->text, strlen(err->text) + 1);
    out->fault = tn_text_check(&out->messages, "messages of records at fault", &out->err);
    out->n_messages += out->fault == TN_OK;
}

static void start(tn_parsed *out)
{
    tn_text_clear(&out->messages);
    out->records = 0;
    out->blank = 0;
    out->bytes = 0;
    out->n_bad = 0;
    out->n_messages = 0;
    out->fault = TN_OK;
    out->err.code = TN_OK;
    out->err.text[0] = '\0';
}

/* A block of a cache: nothing is parsed. */
static void unpack(const tn_block *block, tn_parsed *out)
{
    tn_bytes bytes = {tn_text_str(&block->bytes), block->bytes.size, false};
    out->fault = block->fault;
    out->err = block->err;
    if (out->fault == TN_OK) {
        out->fault = tn_cache_unpack(bytes, out, &out->err);
        if (out->fault != TN_OK) {
            tn_error_context(&out->err, "%s:@%llu", block->cache,
                             (unsigned long long)block->offset);
        }
    }
}

void tn_block_parse(const tn_block *block, const tn_schema *schema, const tn_fileset *files,
                    uint32_t messages_max, tn_parsed *out)
{
    const tn_format *format = tn_format_find(schema->data->format);
    tn_record_location place = {.source = files->file[block->file].path, .head = block->head};
    tn_rows *rows = out->rows;
    uint64_t line = block->line;
    start(out);
    tn_rows_clear(rows);
    if (block->cache != NULL) {
        unpack(block, out);
        return;
    }
    tn_rows_expect(rows, block->n_records);
    for (uint32_t i = 0; i < block->n_records && out->fault == TN_OK; i++) {
        tn_bytes record = {block->bytes.data + block->record[i].at, block->record[i].size, false};
        place.offset = block->offset + block->record[i].at;
        place.line = 0;
        tn_status status = format->parse(record, schema, &place, rows, NULL);
        if (status == TN_OK) {
            rows->row[rows->n - 1].at = place.offset;
            continue;
        }
        if (status == TN_END) {
            out->blank++;
            continue;
        }
        bool told = out->n_messages < messages_max;
        place.line = told && !format->binary ? line_of(block, schema, files, i, &line) : 0;
        status = format->parse(record, schema, &place, rows, &out->err);
        TN_ASSERT(status != TN_END);
        if (status == TN_OK) { /* memory was short the first time, and is not any more */
            rows->row[rows->n - 1].at = place.offset;
        } else if (status == TN_E_DATA) {
            keep_message(out, &out->err, messages_max);
        } else {
            out->fault = status;
        }
    }
    for (uint32_t i = 0; i < block->n_records; i++) {
        out->bytes += block->record[i].size;
    }
    out->records = block->n_records - out->blank;
    if (out->fault == TN_OK && block->damage) {
        out->records++;
        keep_message(out, &block->err, messages_max);
    } else if (out->fault == TN_OK && block->fault != TN_OK) {
        out->fault = block->fault;
        out->err = block->err;
    }
}

void tn_parsed_done(tn_parsed *parsed)
{
    tn_text_done(&parsed->messages);
}

const char *tn_parsed_message(const tn_parsed *parsed, uint32_t n)
{
    TN_ASSERT(n < parsed->n_messages);
    const char *at = parsed->messages.data;
    for (uint32_t i = 0; i < n; i++) {
        at += strlen(at) + 1;
    }
    return at;
}
