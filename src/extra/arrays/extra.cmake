tnet_extra(arrays DEPS train
  ROWS "train/eval/fetch_kinds.def: TN_FETCH_KIND(npz)" "train/eval/feed_kinds.def: TN_FEED_KIND(npz)")
