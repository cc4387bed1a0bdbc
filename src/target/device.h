// Devices as the runtime sees them (millrace/device.h).
#pragma once

#include <string>

#include <millrace/device.h>

#include "base/registry.h"
#include "base/thread_pool.h"
#include "target/provider.h"

namespace millrace {

/// A back end. Each is a file below src/backend with MILLRACE_TARGET(name){…} in namespace millrace.
struct TargetKind {
  std::string name, doc;
  /// With the providers that there are now. What was given once stays.
  const Target& (*now)() = nullptr;
};

#define MILLRACE_TARGET(NAME)            \
  extern const TargetKind target_##NAME; \
  const TargetKind target_##NAME

struct Device {
  std::string name;
  const TargetKind* kind = nullptr;
  ThreadPool* own_threads = nullptr;  // for the rest of the process; null: the process's pool
  bool own_memory = false;            // else its arrays are any of the host's

  const Target& target() const { return kind->now(); }
  /// For what is compiled or made now.
  DeviceContext context() const { return own_threads ? *own_threads : ThreadPool::global(); }
  /// An array in its memory, full of zeros.
  Array allocate(const Type& type) const;
  /// Whether its programs may read and write where an array lies: its own memory and the host's.
  bool reads(const Array& array) const;
  /// TypeError when it does not; `input`: the name of what a program is given.
  void require_readable(const Array& array, std::string_view input) const;
};

/// InputError names those that there are.
const Device& device_named(const std::string& name);

}  // namespace millrace
