#include <cstring>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <millrace/operator.h>

#include "ir/node_key.h"
#include "passes/pass.h"
#include "target/shared_constants.h"

namespace millrace {
namespace {

/// Where constants lie, one place for all that are equal. Hashing weights would cost more than it finds: only
/// those are compared whole of which some bytes are the same.
class Constants {
 public:
  const void* place_of(const Array& array) {
    if (LateArrays::is_late(array)) {
      return late_.emplace(std::pair(array.type().str(), digest_of(array)), LateArrays::place(array))
          .first->second;
    }
    constexpr int64_t words = 64, word = 8;
    std::string key = array.type().str();
    for (int64_t i = 0; i < words; ++i)
      key.append(static_cast<const char*>(array.data()) + (array.bytes() - word) * i / (words - 1), word);
    std::vector<Array>& like = alike_[key];
    for (const Array& each : like)
      if (each.data() == array.data() || each.identical(array)) return each.data();
    like.push_back(array);
    return array.data();
  }

 private:
  std::unordered_map<std::string, std::vector<Array>> alike_;
  std::map<std::pair<std::string, Digest>, const void*> late_;  // by types
};

}  // namespace

// Nodes with equal operator, operands and attributes are computed once. Random operators differ by their
// `stream`.
Graph eliminate_common(const Graph& graph, const PassContext&) {
  Rewriter rewrite(graph);
  std::unordered_map<std::string, Value> seen;
  Constants constants;
  const ArrayKey array_key = [&](std::string& key, const Array& array) {
    constexpr int64_t few = 4096;  // bytes
    if (array.bytes() < few) return append_elements(key, array);
    append_key(key, array.type());
    append_bytes(key, constants.place_of(array));
  };
  std::string key;
  rewrite.go_through([&](int i) {
    const Node& node = graph.node(i);
    if (node.op->takes_body()) return false;  // bodies made by passes are not compared
    key.clear();
    append_key(key, node, rewrite.mapped(node.operands), array_key);
    const auto it = seen.find(key);
    if (it == seen.end()) {
      rewrite.copy(i);
      seen.emplace(key, rewrite[{i, 0}]);
    } else {
      rewrite.set_all(i, it->second);
    }
    return true;
  });
  return rewrite.finish();
}

MILLRACE_PASS(cse){.name = "cse",
                   .doc = "nodes with equal operator, operands and attributes are computed once",
                   .place = 130,
                   .run = eliminate_common};

}  // namespace millrace
