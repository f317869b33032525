tnet_extra(jsonl DEPS io KITS io/setup io/datasets
  ROWS "io/format/formats.def: TN_FORMAT(jsonl)" "io/write/write_kinds.def: TN_WRITE_KIND(jsonl)")
