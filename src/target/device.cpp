#include "target/device.h"

#include <atomic>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "base/format.h"
#include "base/parallel_copy.h"

namespace millrace {

#include "generated/targets.inc"

namespace {

/// Where arrays lie that no device has allocated.
constexpr const char* kHost = "cpu";

/// A device for each target, and those that the program adds.
Registry<Device>& all_devices() {
  static Registry<Device>& all = *[] {
    // Devices stay for the rest of the process, as arrays may.
    std::vector<const Device*> devices;
    for (const TargetKind* kind : {MILLRACE_FOUND_TARGETS}) devices.push_back(new Device{kind->name, kind});
    return new Registry<Device>("device", devices);
  }();
  return all;
}

/// Which device's memory begins where.
struct Places {
  std::atomic<size_t> count{0};
  std::mutex mutex;
  std::map<const void*, const Device*> begins;
};
Places& places() {
  static Places& all = *new Places;
  return all;
}

/// Null: the host's.
const Device* place_of(const Array& array) {
  if (places().count == 0) return nullptr;
  const std::lock_guard lock(places().mutex);
  const auto found = places().begins.find(array.data());
  return found == places().begins.end() ? nullptr : found->second;
}

}  // namespace

const Device& device_named(const std::string& name) { return all_devices().at(name); }

Array Device::allocate(const Type& type) const {
  if (!own_memory) return Array(type);
  auto* const memory = new Array(type);
  {
    const std::lock_guard lock(places().mutex);
    places().begins[memory->data()] = this;
    places().count = places().begins.size();
  }
  return {type, memory->data(), std::shared_ptr<void>(memory, [](void* owned) {
            auto* const array = static_cast<Array*>(owned);
            {
              const std::lock_guard lock(places().mutex);
              places().begins.erase(array->data());
              places().count = places().begins.size();
            }
            delete array;
          })};
}

bool Device::reads(const Array& array) const {
  const Device* const place = place_of(array);
  return !place || place == this;
}

void add_device(const DeviceOptions& options) {
  const TargetKind* kind = nullptr;
  for (const Device* device : all_devices().all())
    if (device->name == options.target && device->kind->name == options.target) kind = device->kind;
  if (!kind)
    fail<InputError>("the device '{}' is of the target '{}', but there is none", options.name,
                     options.target);
  if (options.threads < 0) fail<InputError>("the device '{}' has {} threads", options.name, options.threads);
  // Before threads are started.
  if (all_devices().find(options.name)) fail<InputError>("there is a device '{}' already", options.name);
  // Its threads stay, asleep, as programs may run on them for as long as the process lives.
  (void)all_devices().add(
      {options.name, kind, options.threads > 0 ? new ThreadPool(options.threads) : nullptr, true});
}

std::vector<std::string> devices() { return all_devices().names(); }

std::string device_of(const Array& array) {
  const Device* const device = place_of(array);
  return device ? device->name : kHost;
}

void Device::require_readable(const Array& array, std::string_view input) const {
  if (!reads(array))
    fail<TypeError>("input '{0}' lies on '{1}', and the program runs on '{2}': to_device(array, \"{2}\")",
                    input, device_of(array), name);
}

Array to_device(const Array& array, const std::string& device) {
  const Device& to = device_named(device);
  if (array.empty()) return array;
  if (place_of(array) == (to.own_memory ? &to : nullptr)) return array;
  Array moved = to.allocate(array.type());
  copy_in_parts(to.context().threads(), moved.data(), array.data(), static_cast<size_t>(array.bytes()));
  return moved;
}

}  // namespace millrace
