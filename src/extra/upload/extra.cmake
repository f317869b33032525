tnet_extra(upload DEPS train serve dict io ROWS "train/export/uploads.def: TN_UPLOAD(upload)")
