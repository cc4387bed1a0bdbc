// Telling files of models by their content.
#pragma once

#include <filesystem>

namespace millrace {

/// Does the file hold an ONNX model, whoever wrote it? By the fields of its ModelProto; what is in the graph
/// is not looked at. IoError when it cannot be read.
bool is_onnx_file(const std::filesystem::path& path);

}  // namespace millrace
