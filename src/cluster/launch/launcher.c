/* launcher.c - see launcher.h: what all launchers read and write with. */
#include "cluster/launch/launcher.h"

#include "base/core/number.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *tn_env(const tn_membership_in *in, const char *name)
{
    const char *value = in->get(in->ctx, name);
    return value != NULL && value[0] != '\0' ? value : NULL;
}

tn_status tn_env_u32(const tn_membership_in *in, const char *name, uint32_t limit, uint32_t *out,
                     tn_error *err)
{
    const char *text = tn_env(in, name);
    uint64_t value = 0;
    if (text == NULL) {
        return TN_OK;
    }
    if (tn_read_u64(text, strlen(text), &value) != TN_NUM_OK || value >= limit) {
        return tn_fail(err, TN_E_CONFIG, "%s is '%.64s', not a number of 0 to %u", name, text,
                       limit - 1);
    }
    *out = (uint32_t)value;
    return TN_OK;
}

const char *tn_arena_text(tn_arena *arena, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    int length = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    TN_ASSERT(length >= 0);
    char *out = tn_arena_alloc(arena, (size_t)length + 1, 1, 1);
    va_start(args, fmt);
    (void)vsnprintf(out, (size_t)length + 1, fmt, args);
    va_end(args);
    return out;
}
