/* host.h - what machine this is, for summaries and checkpoints. */
#pragma once

#include <stdint.h>

typedef struct tn_compute_opts tn_compute_opts; /* train/config/run.h */

const char *tn_host_cpu(void); /* level of the instruction set: "x86-64-v4" */
enum { TN_HOST_BLAS_SIZE = 144 };
/* Names the matrix library that these options choose, and how it is used. */
void tn_host_blas(const tn_compute_opts *opts, char out[TN_HOST_BLAS_SIZE]);
uint64_t tn_host_peak_rss(void); /* resident bytes of this process, at most so far */
