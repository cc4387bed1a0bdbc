// Any text as the sidecar of packed shards: classes and shards that lie beside it, or a refusal.
#include "data/formats/shard_index.h"

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "fuzz/fuzz.h"

using namespace millrace;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::refuse_or_take([&] {
    const auto index = data::parse_shard_index(fuzz::text(data, size), "fuzz.json");
    if (!index) return;
    for (const data::ShardEntry& shard : index->shards)
      if (std::filesystem::path(shard.name).has_parent_path() || shard.samples < 0) std::abort();
    const nlohmann::json list = data::json_of(index->shards);
    if (data::json_of(data::shards_of(list)) != list) std::abort();
  });
  return 0;
}
