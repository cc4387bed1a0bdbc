#include "trace/segment.h"

#include <algorithm>

#include "base/format.h"

namespace millrace::trace {

Segment* Segment::find(const std::string& value) {
  const auto it = std::find_if(next.begin(), next.end(), [&](const Next& n) { return n.value == value; });
  if (it == next.end()) return nullptr;
  std::rotate(next.begin(), it, it + 1);
  return next.front().segment.get();
}

Segment* Segment::add(const std::string& value, std::unique_ptr<Segment> segment, size_t capacity) {
  if (next.size() == capacity) next.pop_back();
  next.insert(next.begin(), Next{value, std::move(segment)});
  return next.front().segment.get();
}

void run(const Segment& segment, std::vector<Array>& slots) {
  slots.insert(slots.end(), segment.constants.begin(), segment.constants.end());
  if (!segment.executable) return;
  std::vector<Array> inputs;
  for (const int slot : segment.inputs) inputs.push_back(slots[slot]);
  for (Array& result : segment.executable->run(inputs)) slots.push_back(std::move(result));
}

std::string value_read(const Array& value, ReadKind kind) {
  switch (kind) {
    case ReadKind::truth:
      return value.at(0) != 0 ? "true" : "false";
    case ReadKind::number:
      return fmt::format("{}", value.at(0));
    case ReadKind::array:
      break;
  }
  return value.type().str() +
         std::string(static_cast<const char*>(value.data()), static_cast<size_t>(value.bytes()));
}

}  // namespace millrace::trace
