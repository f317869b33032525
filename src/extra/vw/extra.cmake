tnet_extra(vw DEPS io KITS io/setup io/datasets
  ROWS "io/format/formats.def: TN_FORMAT(vw)" "io/write/write_kinds.def: TN_WRITE_KIND(vw)")
