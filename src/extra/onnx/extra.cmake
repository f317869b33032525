tnet_extra(onnx DEPS train metrics nn KITS nn/gradcheck extra/onnxeval train/exportkit
  ROWS "train/config/export_files.def: TN_EXPORT_FILE(onnx)")
