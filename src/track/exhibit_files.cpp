#include "track/exhibit_files.h"

#include "base/file.h"
#include "base/format.h"

namespace millrace::track {

void ExhibitFiles::show(const Exhibit& exhibit, int64_t step, double /*time*/) {
  if (exhibit.file.empty()) return;
  newest_[exhibit.file] =
      exhibit.picture ? exhibit.picture->png : fmt::format("Step {}\n\n{}", step, exhibit.text);
}

void ExhibitFiles::flush() {
  // Taken first: a disk that was full once must not stop what comes later.
  for (const auto& [file, content] : std::exchange(newest_, {})) write_file(folder_ / file, content);
}

}  // namespace millrace::track
