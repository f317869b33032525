/* oldlibc.c - what glibc has from 2.32 on, for a library that shall run with older ones.
 *
 * CMakeLists.txt compiles this file where the C library lacks these functions. The texts are
 * glibc's own in English: the lists that it had before it had the functions.
 */
#include <stddef.h>

extern const char *const sys_errlist[];
extern int sys_nerr;
extern const char *const sys_siglist[];

const char *strerrordesc_np(int error);
const char *strerrorname_np(int error);
const char *sigdescr_np(int signal);

/* Returns "No such file or directory", or NULL for a number that is no error. */
const char *strerrordesc_np(int error)
{
    return error >= 0 && error < sys_nerr ? sys_errlist[error] : NULL;
}

/* Returns NULL: the names, as "ENOENT", are wanted by failpoints of tests alone. */
const char *strerrorname_np(int error)
{
    (void)error;
    return NULL;
}

/* Returns "Killed", or NULL for a number that is no signal. */
const char *sigdescr_np(int signal)
{
    enum { SIGNALS = 32 };
    return signal > 0 && signal < SIGNALS ? sys_siglist[signal] : NULL;
}
