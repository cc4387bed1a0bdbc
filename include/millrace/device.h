// Devices: what programs run on, and where their arrays lie.
//
// "cpu" and "ref" (every operator computed plainly) are there; a program may add others, which are CPU
// threads of their own so far:
//
//   add_device({.name = "background", .target = "cpu", .threads = 1});
//   Program program = Program::compile(graph, {.target = "background"});
//   program.bind_input(0, to_device(x, "background"));
//
// A device is a target (its kernels), what kernels run on (DeviceContext), and memory.
#pragma once

#include <string>
#include <vector>

#include <millrace/array.h>

namespace millrace {

class ThreadPool;  // of the library

/// What the kernels of a device are run with: of a CPU its threads. (The queue of a device that has one has
/// its place here.)
class DeviceContext {
 public:
  DeviceContext(ThreadPool& threads) : threads_(&threads) {}  // NOLINT: a CPU is its threads
  ThreadPool& threads() const { return *threads_; }

 private:
  ThreadPool* threads_;
};

struct DeviceOptions {
  std::string name;
  std::string target = "cpu";  // whose kernels it runs: "cpu" or "ref"
  int threads = 0;             // a pool of its own; 0: it shares that of "cpu"
};

/// For the rest of the process. InputError when the name is taken or none, or there is no such target.
void add_device(const DeviceOptions& options);
/// Their names.
std::vector<std::string> devices();

/// The device whose memory an array lies in. What no device was asked for lies in the host's, which is that
/// of "cpu" and "ref" (here it is "cpu"), and which all devices read so far.
std::string device_of(const Array& array);
/// The same elements in a device's memory: the array itself where they lie there. InputError when there is no
/// such device.
Array to_device(const Array& array, const std::string& device);

}  // namespace millrace
