#include "session/format.h"

#include "base/format.h"
#include "base/words.h"

namespace millrace {

#include "generated/model_formats.inc"

Registry<ModelFormat>& model_formats() {
  static Registry<ModelFormat> kinds("model format", {MILLRACE_FOUND_MODEL_FORMATS});
  return kinds;
}

const ModelFormat* model_format_of(const std::filesystem::path& path) {
  for (const ModelFormat* format : model_formats().all())
    if (format->recognise(path)) return format;
  if (!std::filesystem::exists(path)) fail<InputError>("{}: there is no such file or folder", path.string());
  return nullptr;
}

SessionModel load_session_model(const std::filesystem::path& path, std::string* doc) {
  if (const ModelFormat* const format = model_format_of(path)) {
    if (doc) *doc = format->doc;
    return format->load(path);
  }
  std::string known;
  for (const ModelFormat* format : model_formats().all()) known += (known.empty() ? "" : ", ") + format->doc;
  const bool named = has_ending(path.string(), {".onnx", ".mill"});
  fail<InputError>("{}: is no model that can be loaded ({}){}", path.string(), known,
                   named ? "; it is called like one: is it damaged, or cut short?" : "");
}

Session Session::load(const std::filesystem::path& path, const SessionOptions& options) {
  return Session(load_session_model(path), options);
}

}  // namespace millrace
