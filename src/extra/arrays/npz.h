/* npz.h - arrays for NumPy: one `.npy` each, stored in a ZIP.
 *
 *     tn_npz_create(&z, "fetch.npz", err);
 *     tn_npz_add(z, &(tn_npy){.name = "deep.1", .type = "<f4", .item_bytes = 4, .rank = 2,
 *                             .shape = {n, 64}}, v, err);
 *     tn_npz_commit(z, err);                                fsynced; frees z either way
 *
 *     npy    93 4e 55 4d 50 59 01 00 | u16 length | {'descr': '<f4', 'fortran_order': False,
 *            'shape': (1, 2), } blanks \n | row-major data        10 + length is a multiple of 64
 *
 * ZIP64 beyond 4 GiB or 65535 arrays. No time and no order of its own: one content, one file.
 * Reading finds one matrix of floats: tn_npz_find.
 */
#pragma once

#include "base/core/error.h"
#include "base/core/text.h"

#include <stdint.h>

enum { TN_NPY_RANK_MAX = 4, TN_NPY_NAME_MAX = 255 };

typedef struct tn_map tn_map; /* base/file/file.h */

typedef struct tn_npy {
    const char *name; /* 1 to 255 bytes, without ".npy" */
    const char *type; /* "<f4" "<u4" "<u8" "|u1" "|S12": items of as many bytes as it says */
    uint32_t item_bytes;
    uint32_t rank; /* 1 .. 4 */
    uint64_t shape[TN_NPY_RANK_MAX];
} tn_npy;

/* Appends the bytes of a .npy before its data. */
void tn_npy_head(tn_text *out, const tn_npy *array);

typedef struct tn_npz tn_npz;

/* Opens an output (base/file/output_file.h), which appears when it is committed. */
tn_status tn_npz_create(tn_npz **out, const char *path, tn_error *err) TN_MUST_USE;
/* Adds an array; `data` has as many bytes as shape and type say. No two arrays share a name. */
tn_status tn_npz_add(tn_npz *z, const tn_npy *array, const void *data, tn_error *err) TN_MUST_USE;
tn_status tn_npz_commit(tn_npz *z, tn_error *err) TN_MUST_USE;
void tn_npz_abandon(tn_npz *z); /* removes the file; NULL is fine */

/* A matrix of floats in such a file. */
typedef struct tn_npz_matrix {
    uint64_t rows, cols;
    const char *data; /* rows * cols floats, row-major, at any address; lent by the file */
} tn_npz_matrix;

/* Finds the array called `name`: [rows x cols] of float32, stored, its CRC right. Files of
 * numpy.savez are read, too. `what` names the file in messages. TN_E_DATA: there is no such array,
 * or the file is damaged. */
tn_status tn_npz_find(const tn_map *file, const char *what, const char *name, tn_npz_matrix *out,
                      tn_error *err) TN_MUST_USE;
