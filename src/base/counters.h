// The CPU's own counters, where the kernel hands them out.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace millrace {

/// One event, as perf_event_open takes it.
struct CounterEvent {
  std::string name;
  uint32_t type = 0;
  uint64_t config = 0;
};

/// "cycles", "instructions" and "cache misses" of the last level, in user space.
std::vector<CounterEvent> hardware_events();

/// Counts events over all threads that the process has when it is made. Virtual machines and containers often
/// have no such counters: then none of the events is there, and nothing else happens.
class Counters {
 public:
  explicit Counters(const std::vector<CounterEvent>& events = hardware_events());
  ~Counters();
  Counters(const Counters&) = delete;
  Counters& operator=(const Counters&) = delete;

  /// Those events that are counted.
  const std::vector<std::string>& names() const { return names_; }
  /// Their counts since the object was made, of all threads together.
  std::vector<double> read() const;

 private:
  std::vector<std::string> names_;
  std::vector<std::vector<int>> files_;  // event → thread
};

}  // namespace millrace
