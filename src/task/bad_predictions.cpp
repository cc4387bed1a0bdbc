#include "task/bad_predictions.h"

#include <filesystem>

#include "base/file.h"
#include "base/format.h"
#include "task/json_text.h"

namespace millrace::task {

void BadPredictions::add(int64_t sample, const std::string& name, const std::string& place,
                         const std::string& why) {
  ++count_;
  if (first_.size() < 10) first_.push_back(why.starts_with(place) ? why : fmt::format("{}: {}", place, why));
  lines_ += fmt::format("{{\"sample\": {}, \"input\": {}, \"why\": {}}}\n", sample, json_string(name),
                        json_string(why));
}

std::string BadPredictions::write(const std::string& out, bool force) const {
  const std::string file = out + ".bad.jsonl";
  std::error_code ignored;
  if (count_ > 0) {
    write_file(file, lines_);
    return file;
  }
  if (force) std::filesystem::remove(file, ignored);
  return "";
}

}  // namespace millrace::task
