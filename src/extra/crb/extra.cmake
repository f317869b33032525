tnet_extra(crb DEPS io KITS io/setup
  ROWS "io/format/formats.def: TN_FORMAT(crb)" "io/write/write_kinds.def: TN_WRITE_KIND(crb)")
