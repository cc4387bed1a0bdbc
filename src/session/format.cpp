#include "session/format.h"

#include "base/format.h"

namespace millrace {

#define KIND(NAME) extern const ModelFormat NAME##_model_format;
#include "generated/model_formats.inc"
#undef KIND

Registry<ModelFormat>& model_formats() {
#define KIND(NAME) &NAME##_model_format,
  static Registry<ModelFormat> kinds("model format", {
#include "generated/model_formats.inc"
                                                     });
#undef KIND
  return kinds;
}

SessionModel load_session_model(const std::filesystem::path& path, std::string* doc) {
  std::string known;
  for (const ModelFormat* format : model_formats().all()) {
    if (format->recognise(path)) {
      if (doc) *doc = format->doc;
      return format->load(path);
    }
    known += (known.empty() ? "" : ", ") + format->doc;
  }
  if (!std::filesystem::exists(path)) fail<InputError>("{}: there is no such file or folder", path.string());
  fail<InputError>("{}: is no model that can be loaded ({})", path.string(), known);
}

Session Session::load(const std::filesystem::path& path, const SessionOptions& options) {
  return Session(load_session_model(path), options);
}

}  // namespace millrace
