#include "runtime/late_result.h"

#include <doctest/doctest.h>
#include <memory>
#include <optional>
#include <vector>

#include <millrace/operator.h>

#include "backend/ref/evaluate.h"
#include "ops/build.h"
#include "target/shared_constants.h"

using namespace millrace;

namespace {

constexpr int64_t kSide = 40;

/// A square weight that comes late, whose digest is known.
Array late_weight(double first) {
  return LateArrays::make(
      {f32, {kSide, kSide}},
      [first](void* elements) {
        for (int64_t i = 0; i < kSide * kSide; ++i)
          static_cast<float*>(elements)[i] = static_cast<float>(first + static_cast<double>(i));
      },
      std::make_shared<LateDigest>(Digest{7, static_cast<uint64_t>(first)}));
}

/// What `emit` makes of a weight's place in a graph of its own, left to who reads it.
template <typename Emit>
std::optional<Array> late(const Array& weight, const Emit& emit) {
  Graph graph;
  ops::Build build(graph);
  const Value made = emit(build, graph.input("w", weight.type()));
  return late_result(graph, graph.node(made), std::vector{weight});
}

Value turned(ops::Build& build, Value w) { return build.transpose(w, {1, 0}); }
Value negated(ops::Build& build, Value w) { return build.neg(w); }

}  // namespace

TEST_CASE("what is computed of weights that come late is computed when it is read") {
  const Array weight = late_weight(3);
  const std::optional<Array> result = late(weight, turned);
  REQUIRE(result);
  CHECK(LateArrays::is_late(*result));
  CHECK(LateArrays::is_late(weight));
  CHECK(result->at(1) == 3 + kSide);
  CHECK_FALSE(LateArrays::is_late(weight));
}

TEST_CASE("a digest says what was computed of which weights, before anyone has read them") {
  const Digest once = digest_of(*late(late_weight(3), turned));
  CHECK(digest_of(*late(late_weight(3), turned)) == once);
  CHECK(digest_of(*late(late_weight(4), turned)) != once);
  CHECK(digest_of(*late(late_weight(3), negated)) != once);
  CHECK(digest_of(late_weight(3)) != once);
  // The first that reads them sets that of elements of which nothing was known.
  const Array plain = Array::full(f32, {kSide, kSide}, 5);
  const auto digest = std::make_shared<LateDigest>();
  const Array known = LateArrays::with_digest(plain, digest);
  CHECK(digest_of(known) == digest_of(plain));
  CHECK(digest->get() == digest_of(plain));
}

TEST_CASE("small results, and those of other arrays, are computed at once") {
  CHECK_FALSE(late(Array::full(f32, {kSide, kSide}, 1), turned));
  CHECK_FALSE(late(late_weight(3), [](ops::Build& build, Value w) { return build.sum(w, {0, 1}, false); }));
}
