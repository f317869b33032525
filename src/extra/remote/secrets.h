/* secrets.h - keys, tokens and places of stores, from where they are kept.
 *
 *     aws_access_key_id aws_secret_access_key aws_session_token    s3 and gs, together from the ..
 *     region endpoint_url addressing_style                         .. first place that has the key
 *     azure_sas                                                    abfs: "sv=..&sig=.."
 *     webhdfs_user webhdfs_delegation                              user.name, delegation
 *     webhdfs_kerberos                                             true: a ticket, and no user.name
 *     http_header HOST                                             "Authorization: Bearer .."
 *     http_header                                                  the same, of the only host
 *
 * Places, in this order: the file of data.secrets, which nobody else may read (mode 0600); the
 * environment (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN, AWS_REGION or
 * AWS_DEFAULT_REGION, AWS_ENDPOINT_URL_S3 or AWS_ENDPOINT_URL, AZURE_STORAGE_SAS_TOKEN,
 * HADOOP_USER_NAME); ~/.aws/credentials, or the file of AWS_SHARED_CREDENTIALS_FILE. Files are
 * sections of "name = value" lines; AWS_PROFILE names the section, `default` without it,
 * which lines in front of the first head are of.
 *
 * Tokens expire while a run lasts, and whoever renews them writes the files anew:
 * tn_secrets_refresh reads them again. Any thread.
 */
#pragma once

#include "base/core/bytes.h"
#include "base/core/error.h"
#include "base/core/text.h"

typedef enum tn_secret {
    TN_SECRET_KEY, /* the first three belong together */
    TN_SECRET_SECRET,
    TN_SECRET_TOKEN,
    TN_SECRET_REGION,
    TN_SECRET_ENDPOINT,
    TN_SECRET_STYLE,
    TN_SECRET_SAS,
    TN_SECRET_HDFS_USER,
    TN_SECRET_HDFS_DELEGATION,
    TN_SECRET_HDFS_KERBEROS, /* true or false */
    TN_SECRET_HTTP_HEADER,
    TN_SECRETS
} tn_secret;

typedef struct tn_secrets tn_secrets;
typedef struct tn_uri tn_uri; /* uri.h */

/* Reads the secrets. `file` may be NULL, and must outlive them. TN_E_CONFIG: it is missing, others
 * may read it, or a value that must be true or false is neither. */
tn_status tn_secrets_open(tn_secrets **out, const char *file, tn_error *err) TN_MUST_USE;
void tn_secrets_close(tn_secrets *s); /* NULL is fine */

/* Appends a value. Returns false, and appends nothing, when there is none. */
bool tn_secrets_add(tn_secrets *s, tn_secret which, tn_text *out);

/* Appends the header of a host, HOST:PORT as in its URI; that without a host for the one that was
 * admitted. */
bool tn_secrets_add_header(tn_secrets *s, tn_bytes host, tn_text *out);
/* Admits a URI of http(s) that is about to be read. TN_E_CONFIG: a header without a host would go
 * to a second one. */
tn_status tn_secrets_admit(tn_secrets *s, const tn_uri *uri, tn_error *err) TN_MUST_USE;

bool tn_secrets_is_true(tn_secrets *s, tn_secret which);

/* Returns how often they have changed; goes with what was built of them. */
uint32_t tn_secrets_version(tn_secrets *s);
/* Reads the files once more. Returns whether anything differs from version `since`. */
bool tn_secrets_refresh(tn_secrets *s, uint32_t since);

/* Finds the value of a name in a section of such a file. Returns false when there is none. A pure
 * function. */
bool tn_secrets_find(tn_bytes file, const char *section, const char *name, tn_bytes *out);
