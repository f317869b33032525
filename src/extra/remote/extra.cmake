tnet_extra(remote DEPS io KITS io/setup HEADERS curl/curl.h ROWS "io/source/remotes.def: TN_REMOTE_KIND(http)")
