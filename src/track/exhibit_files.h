// The newest of each text and picture that is shown, as files of the run folder.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <utility>

#include "track/record.h"

namespace millrace::track {

/// FOLDER/FILE of each exhibit that names one, replaced by the next. A text tells its step.
class ExhibitFiles final : public Sink {
 public:
  explicit ExhibitFiles(std::filesystem::path folder) : folder_(std::move(folder)) {}
  void write(const Record& /*record*/) override {}
  void show(const Exhibit& exhibit, int64_t step, double time) override;
  void flush() override;

 private:
  std::filesystem::path folder_;
  std::map<std::string, std::string> newest_;  // what files are to hold
};

}  // namespace millrace::track
