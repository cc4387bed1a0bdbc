// Model formats: what a session can be loaded from. Each of the library's is a file with
// MILLRACE_MODEL_FORMAT(name){…} in the folder that knows such files.
#pragma once

#include <filesystem>
#include <string>

#include <millrace/decoder.h>
#include <millrace/session.h>

#include "base/registry.h"

namespace millrace {

struct ModelFormat {
  std::string name;  // "run"
  std::string doc;   // what it is, for messages: "a run folder"
  /// Is it one? Looks at names and first bytes.
  bool (*recognise)(const std::filesystem::path& path) = nullptr;
  SessionModel (*load)(const std::filesystem::path& path) = nullptr;
  /// For a model that tells the next token, of the options' precision and, where it has none of its own,
  /// length; null where there are none such. InputError for another one.
  DecodeModel (*decode)(const std::filesystem::path& path, const DecoderOptions& options) = nullptr;
};

#define MILLRACE_MODEL_FORMAT(name)                         \
  extern const ::millrace::ModelFormat name##_model_format; \
  const ::millrace::ModelFormat name##_model_format

Registry<ModelFormat>& model_formats();

/// The format of a file or folder; null where it is none of them. InputError where there is nothing.
const ModelFormat* model_format_of(const std::filesystem::path& path);

/// What Session::load() makes a session of, and the format's word for it. The same errors.
SessionModel load_session_model(const std::filesystem::path& path, std::string* doc = nullptr);

}  // namespace millrace
