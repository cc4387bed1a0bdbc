#include "base/memory_nodes.h"

#include <algorithm>
#include <fstream>
#include <hwloc.h>
#include <iterator>
#include <sstream>
#include <unistd.h>
#include <vector>

#include "base/format.h"

namespace millrace {
namespace {

std::string contents(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// The number after a word of "word number" lines, 0 when it is not there.
int64_t counted(const std::string& lines, const std::string& word) {
  std::istringstream from(lines);
  int64_t count = 0;
  for (std::string name; from >> name >> count;)
    if (name == word) return count;
  return 0;
}

}  // namespace

int64_t cgroup_memory_left(const std::string& root, const std::string& membership) {
  std::istringstream lines(contents(membership));
  int64_t least = -1;
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("0::")) continue;
    for (std::string group = line.substr(3);; group = group.substr(0, group.rfind('/'))) {
      const std::string folder = root + group;
      int64_t most = 0, used = 0;
      if (std::istringstream(contents(folder + "/memory.max")) >> most &&
          std::istringstream(contents(folder + "/memory.current")) >> used) {
        const std::string stat = contents(folder + "/memory.stat");
        used -= counted(stat, "inactive_file") + counted(stat, "active_file");
        least = least < 0 ? most - used : std::min(least, most - used);
      }
      if (group.find('/') == std::string::npos) break;
    }
  }
  return least;
}

struct MemoryNodes::State {
  hwloc_topology_t topology = nullptr;
  std::vector<hwloc_obj_t> nodes;
  std::vector<int> cpus;  // of each node
  bool real = false;

  void load() {
    hwloc_topology_load(topology);
    for (hwloc_obj_t node = nullptr;
         (node = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_NUMANODE, node)) != nullptr;)
      if (const int count = hwloc_bitmap_weight(node->cpuset); count > 0) {
        nodes.push_back(node);
        cpus.push_back(count);
      }
  }
  ~State() {
    if (topology) hwloc_topology_destroy(topology);
  }
};

MemoryNodes::MemoryNodes() : state_(std::make_unique<State>()) {
  // "0" is one node; looking at everything takes hwloc some milliseconds.
  if (contents("/sys/devices/system/node/online").find_first_of(",-") == std::string::npos) return;
  hwloc_topology_init(&state_->topology);
  // Of the CPUs that taskset leaves, or settling would give the others back.
  hwloc_topology_set_flags(state_->topology, HWLOC_TOPOLOGY_FLAG_RESTRICT_TO_CPUBINDING);
  state_->real = true;
  state_->load();
}

MemoryNodes::MemoryNodes(const std::string& synthetic) : state_(std::make_unique<State>()) {
  hwloc_topology_init(&state_->topology);
  if (hwloc_topology_set_synthetic(state_->topology, synthetic.c_str()) != 0)
    fail<InputError>("hwloc knows no machine '{}'", synthetic);
  state_->load();
}

MemoryNodes::~MemoryNodes() = default;

const MemoryNodes& MemoryNodes::here() {
  // Never destroyed: the threads of pools that live as long as the process ask to the end.
  static const MemoryNodes& nodes = *new MemoryNodes;
  return nodes;
}

int MemoryNodes::count() const { return std::max(1, static_cast<int>(state_->nodes.size())); }

int MemoryNodes::node_of(int thread, int threads) const {
  int64_t all = 0, before = 0;
  for (const int cpus : state_->cpus) all += cpus;
  for (size_t node = 0; node < state_->cpus.size(); ++node) {
    before += state_->cpus[node];
    if (int64_t{thread} * all < before * threads) return static_cast<int>(node);
  }
  return 0;
}

int MemoryNodes::node_in_turn(int thread) const {
  const std::vector<int>& cpus = state_->cpus;
  if (cpus.size() < 2) return 0;
  // Each thread goes to the node that has the fewest for its CPUs.
  std::vector<int64_t> taken(cpus.size(), 0);
  size_t node = 0;
  for (int t = 0; t <= thread; ++t) {
    node = 0;
    for (size_t n = 1; n < cpus.size(); ++n)
      if (taken[n] * cpus[node] < taken[node] * cpus[n]) node = n;
    ++taken[node];
  }
  return static_cast<int>(node);
}

void MemoryNodes::settle(int thread, int threads) const {
  if (count() > 1 && state_->real) settle_on(node_of(thread, threads));
}

void MemoryNodes::settle_in_turn(int thread) const {
  if (count() > 1 && state_->real) settle_on(node_in_turn(thread));
}

void MemoryNodes::settle_on(int number) const {
  const hwloc_obj_t node = state_->nodes[number];
  // Neither is strict: the scheduler's and the allocator's way out stays open.
  hwloc_set_cpubind(state_->topology, node->cpuset, HWLOC_CPUBIND_THREAD);
  hwloc_set_membind(state_->topology, node->nodeset, HWLOC_MEMBIND_BIND,
                    HWLOC_MEMBIND_THREAD | HWLOC_MEMBIND_BYNODESET);
}

int64_t machine_memory() {
  return static_cast<int64_t>(::sysconf(_SC_PHYS_PAGES)) * static_cast<int64_t>(::sysconf(_SC_PAGESIZE));
}

namespace {

int64_t free_memory(const std::string& meminfo, int64_t cgroup_left) {
  int64_t free = -1;
  if (const size_t at = meminfo.find("MemAvailable:"); at != std::string::npos)
    free = std::atoll(meminfo.c_str() + at + 13) * 1024;
  if (cgroup_left >= 0) free = free < 0 ? cgroup_left : std::min(free, cgroup_left);
  return free;
}

}  // namespace

int64_t free_memory() {
  return free_memory(contents("/proc/meminfo"), cgroup_memory_left("/sys/fs/cgroup", "/proc/self/cgroup"));
}

std::string memory_warning(int64_t bytes) {
  return memory_warning(bytes, contents("/proc/meminfo"), contents("/proc/sys/vm/zone_reclaim_mode"),
                        MemoryNodes::here().count(),
                        cgroup_memory_left("/sys/fs/cgroup", "/proc/self/cgroup"));
}

std::string memory_warning(int64_t bytes, const std::string& meminfo, const std::string& reclaim_mode,
                           int nodes, int64_t cgroup_left) {
  const int64_t free = free_memory(meminfo, cgroup_left);
  if (free >= 0 && bytes > free)
    return fmt::format(
        "{:.1f} GB are needed, but {:.1f} GB are free: the machine will swap, or end the process; a smaller "
        "batch, precision \"bf16\" or train.memory need less",
        static_cast<double>(bytes) / 1e9, static_cast<double>(free) / 1e9);
  // Bit 1: reclaim before taking another node's memory; 4: by swapping.
  if (nodes > 1 && (std::atoi(reclaim_mode.c_str()) & 4) != 0)
    return "vm.zone_reclaim_mode makes the kernel swap rather than use another node's memory; `sysctl "
           "vm.zone_reclaim_mode=0` ends that";
  return "";
}

}  // namespace millrace
