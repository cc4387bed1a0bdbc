#include "base/memory_nodes.h"

#include <doctest/doctest.h>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <millrace/error.h>

#include "support/temp_folder.h"

using namespace millrace;

TEST_CASE("threads are spread over memory nodes as these have CPUs, neighbours together") {
  const auto nodes_of = [](const MemoryNodes& machine, int threads) {
    std::vector<int> nodes;
    for (int t = 0; t < threads; ++t) nodes.push_back(machine.node_of(t, threads));
    return nodes;
  };
  const MemoryNodes two("numa:2 core:4 pu:1");
  CHECK(two.count() == 2);
  CHECK(nodes_of(two, 8) == std::vector{0, 0, 0, 0, 1, 1, 1, 1});
  CHECK(nodes_of(two, 2) == std::vector{0, 1});
  CHECK(nodes_of(two, 3) == std::vector{0, 0, 1});
  CHECK(nodes_of(two, 1) == std::vector{0});
  const MemoryNodes four("package:2 numa:2 core:2 pu:2");
  CHECK(four.count() == 4);
  CHECK(nodes_of(four, 4) == std::vector{0, 1, 2, 3});
  CHECK(nodes_of(four, 32).back() == 3);
  const auto in_turn = [](const MemoryNodes& machine, int threads) {
    std::vector<int> nodes;
    for (int t = 0; t < threads; ++t) nodes.push_back(machine.node_in_turn(t));
    return nodes;
  };
  CHECK(in_turn(two, 6) == std::vector{0, 1, 0, 1, 0, 1});
  CHECK(in_turn(four, 5) == std::vector{0, 1, 2, 3, 0});
  CHECK(MemoryNodes("numa:1 core:4 pu:1").node_in_turn(3) == 0);
  two.settle_in_turn(1);
  two.settle(1, 2);  // of a machine that is not here: nothing happens
  CHECK_THROWS_AS(MemoryNodes("a toaster"), InputError);
  CHECK(MemoryNodes::here().count() >= 1);
  MemoryNodes::here().settle(0, 1);
}

TEST_CASE("a group's memory is free as far as only pages of files are there") {
  const testing::TempFolder folder;
  const auto write = [&](const std::string& name, const std::string& text) {
    const std::filesystem::path path = folder / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  };
  const std::string root = folder.path().string(), membership = root + "/membership";
  CHECK(cgroup_memory_left(root, membership) == -1);
  write("membership", "0::/a/b\n");
  CHECK(cgroup_memory_left(root, membership) == -1);
  write("a/b/memory.max", "max\n");
  write("a/b/memory.current", "700\n");
  CHECK(cgroup_memory_left(root, membership) == -1);
  write("a/memory.max", "1000\n");
  write("a/memory.current", "900\n");
  CHECK(cgroup_memory_left(root, membership) == 100);
  write("a/memory.stat", "anon 100\nfile 800\nshmem 50\ninactive_file 500\nactive_file 250\n");
  CHECK(cgroup_memory_left(root, membership) == 850);
}

TEST_CASE("memory that is not there is warned of before it is taken") {
  const std::string meminfo = "MemTotal:       8000000 kB\nMemFree: 1 kB\nMemAvailable:    4000000 kB\n";
  CHECK(memory_warning(3'000'000'000, meminfo, "0\n", 1, -1).empty());
  CHECK(memory_warning(5'000'000'000, meminfo, "0\n", 1, -1).find("5.0 GB are needed, but 4.1 GB are free") ==
        0);
  // A container's limit holds too.
  CHECK(memory_warning(3'000'000'000, meminfo, "0\n", 1, 2'000'000'000).find("2.0 GB are free") !=
        std::string::npos);
  // Reclaim by swapping matters where there is another node.
  CHECK(memory_warning(1, meminfo, "7\n", 2, -1).find("vm.zone_reclaim_mode") == 0);
  CHECK(memory_warning(1, meminfo, "1\n", 2, -1).empty());
  CHECK(memory_warning(1, meminfo, "7\n", 1, -1).empty());
  CHECK(memory_warning(1, "", "", 1, -1).empty());
  CHECK(memory_warning(1).empty());
}
