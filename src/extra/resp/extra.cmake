tnet_extra(resp DEPS train dict KITS dict/dictfile dict/dictrows
  ROWS "train/config/export_files.def: TN_EXPORT_FILE(resp)")
