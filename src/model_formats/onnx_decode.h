// ONNX models that tell the next token of a text, for a decoder.
#pragma once

#include <filesystem>

#include <millrace/decoder.h>

namespace millrace {

/// As ModelFormat::decode. The inputs are told by their names (onnx/models/texts.h): tokens [batch, length],
/// maybe a mask, types and places; keys and values of tokens before ("past…") are left empty. The length is
/// the model's if that is a number, else the options' `longest`, else the most that the model takes, up to
/// 1,024.
DecodeModel decode_onnx(const std::filesystem::path& path, const DecoderOptions& options);

}  // namespace millrace
