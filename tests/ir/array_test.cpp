#include <doctest/doctest.h>
#include <utility>

#include <millrace/array.h>
#include <millrace/error.h>

using namespace millrace;

TEST_CASE("arrays of any size are aligned, and zero also where memory was used before") {
  for (const int64_t bytes : {0, 1, 63, 64, 65, 895, 896, 897, 960, 4096})
    for (int round = 0; round < 3; ++round) {
      Array array(u8, {bytes});
      CHECK(reinterpret_cast<uintptr_t>(array.data()) % 64 == 0);
      for (uint8_t& value : array.as<uint8_t>()) {
        CHECK(value == 0);
        value = 0xff;
      }
    }
}

TEST_CASE("an array's stamp is another after every way of writing that leaves no pointer behind") {
  Array array(f32, {4});
  const Array other = Array::full(f32, {4}, 2);
  auto last = array.stamp();
  REQUIRE(last);
  CHECK(array.stamp() == last);
  const Array same = array;  // shares the memory
  Array view = array.reshaped({2, 2});
  const auto changed = [&] {
    const auto now = array.stamp();
    const bool is = now && now != last && same.stamp() == now && view.stamp() == now;
    last = now;
    return is;
  };
  array.set(1, 3);
  CHECK(changed());
  array.set_int(2, 3);
  CHECK(changed());
  view.set(0, 1);
  CHECK(changed());
  array.assign(other);
  CHECK(changed());
  array.edit<float>([](std::span<float> values) { values[0] = 7; });
  CHECK(changed());
  CHECK(array.at(0) == 7);
  array.mark_written();
  CHECK(changed());
  // Reading leaves it.
  CHECK(same.as<float>()[0] == 7);
  CHECK(std::as_const(array).data() == same.data());
  CHECK(array.clone().converted(f64).at(3) == 2);
  CHECK(array.stamp() == last);
  CHECK(array.clone().stamp() != last);
  CHECK_THROWS_AS(array.assign(Array(f32, {5})), TypeError);
}

TEST_CASE("memory that a pointer to write through was given to has no stamp, nor has foreign memory") {
  Array a(f32, {4}), b(f32, {4}), c(f32, {4});
  const Array shared = a;
  a.data();
  CHECK_FALSE(a.stamp());
  CHECK_FALSE(shared.stamp());
  a.set(0, 1);
  CHECK_FALSE(a.stamp());
  CHECK(a.clone().stamp());
  b.as<float>();
  CHECK_FALSE(b.stamp());
  c.reshaped({2, 2}).as<float>();
  CHECK_FALSE(c.stamp());
  float foreign[4] = {};
  CHECK_FALSE(Array({f32, {4}}, foreign, nullptr).stamp());
  CHECK_FALSE(Array().stamp());
}
