// Weights in files of the safetensors format, which PyTorch's programs read and write too.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <millrace/array.h>
#include <millrace/nn.h>

namespace millrace::track {

using NamedArrays = std::vector<std::pair<std::string, Array>>;
using Metadata = std::map<std::string, std::string>;

/// Writes tensors and metadata in one atomic step (the old file stays when it fails; IoError). Adds the
/// metadata key "millrace.crc32c", the checksum of header and data. Names must differ; "__metadata__" is no
/// name (InternalError).
void write_safetensors(const std::filesystem::path& path, const NamedArrays& tensors,
                       const Metadata& metadata = {});
/// All tensors of a file, in the order in which they lie there. IoError when it is missing or cut off,
/// InputError when it is no safetensors file, has a dtype that Millrace does not store, or its checksum does
/// not fit.
NamedArrays read_safetensors(const std::filesystem::path& path);

}  // namespace millrace::track

namespace millrace::nn {

/// Parameters and buffers under their full names. InputError when one has no value yet (Module::initialise);
/// IoError.
void save_weights(Module& model, const std::filesystem::path& path);
/// Takes parameters and buffers from a file, converted to the model's dtypes: nothing is changed unless all
/// fit. Steps that were compiled for the model go on with them. InputError names what the file or the model
/// lacks, or what has another shape; else as read_safetensors().
void load_weights(Module& model, const std::filesystem::path& path);

}  // namespace millrace::nn
