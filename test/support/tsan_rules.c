/* tsan_rules.c - what ThreadSanitizer is told about libraries that it cannot see into.
 *
 * libzmq is not instrumented: its atomics and the order that they make are invisible, and what it
 * copies and frees inside looks like races. Only calls from within it, and from the C++ library on
 * its behalf, are left out; our own accesses are watched as everywhere. libpgm, which libzmq begins
 * and ends, has a lock of its own. A socket that libzmq has closed may have given its number to a
 * file of another thread: that is no race for one who asks the kernel what the number means.
 */
#if defined(__SANITIZE_THREAD__)
#define TN_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define TN_TSAN 1
#endif
#endif

/* Called by the sanitizer's run time; nobody calls it elsewhere. */
const char *__tsan_default_suppressions(void); // NOLINT: the run time's name

#if defined(TN_TSAN)
const char *__tsan_default_suppressions(void) // NOLINT: as above
{
    return "called_from_lib:libzmq.so.5\n"
           "called_from_lib:libsodium.so.23\n"
           "called_from_lib:libpgm-5.3.so.0\n"
           "race:find_inode_of_socket\n"
           "race:libzmq.so.5\n"
           "race:libstdc++.so.6\n";
}
#endif
