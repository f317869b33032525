tnet_extra(compare DEPS train metrics KITS train/resultkit ROWS "train/job/compare_kinds.def: TN_COMPARE_KIND(compare)")
