#include "ir/late_array.h"

#include <atomic>
#include <cstring>
#include <doctest/doctest.h>
#include <thread>
#include <utility>
#include <vector>

#include <millrace/error.h>

using namespace millrace;

namespace {

/// Numbers that stand for `first` and those behind it, which count how often they are written.
Array late_numbers(double first, int& written, std::shared_ptr<LateDigest> digest = nullptr) {
  return LateArrays::make(
      {f32, {100}},
      [first, &written](void* elements) {
        ++written;
        for (int i = 0; i < 100; ++i) static_cast<float*>(elements)[i] = static_cast<float>(first + i);
      },
      std::move(digest));
}

}  // namespace

TEST_CASE("elements that come late come when they are first read, once") {
  int written = 0;
  const Array array = late_numbers(3, written), copy = array, view = array.reshaped({10, 10});
  CHECK(LateArrays::is_late(array));
  CHECK_FALSE(array.empty());
  CHECK(array.shares_memory(view));
  CHECK(written == 0);
  CHECK(view.at(99) == 102);
  CHECK(array.at(0) == 3);
  CHECK(copy.to_doubles()[50] == 53);
  CHECK(written == 1);
  CHECK_FALSE(LateArrays::is_late(copy));
}

TEST_CASE("whoever reads elements that come late, in whatever way, gets them") {
  int written = 0;
  CHECK(late_numbers(1, written).clone().at(1) == 2);
  CHECK(late_numbers(1, written).as<float>()[2] == 3);
  CHECK(late_numbers(1, written).converted(f64).at(3) == 4);
  CHECK(late_numbers(1, written).identical(late_numbers(1, written)));
  Array assigned(f32, {100});
  assigned.assign(late_numbers(1, written));
  CHECK(assigned.at(4) == 5);
  Array over = late_numbers(1, written);
  over.set(5, 50);
  CHECK(over.at(5) == 50);
  CHECK(over.at(6) == 7);
  Array edited = late_numbers(1, written);
  edited.edit<float>([](std::span<float> numbers) { numbers[7] = 70; });
  CHECK(edited.at(8) == 9);
  Array into = late_numbers(1, written);
  into.assign(Array::full(f32, {100}, 9));
  CHECK(into.at(9) == 9);
  CHECK(written == 9);
}

TEST_CASE("who keeps an array alive is read through its view") {
  int written = 0;
  auto digest = std::make_shared<LateDigest>(Digest{1, 2});
  std::weak_ptr<Array> gone;
  {
    auto kept = std::make_shared<Array>(late_numbers(7, written, digest));
    gone = kept;
    const Array view = LateArrays::view(kept), other = LateArrays::view(kept);
    kept = nullptr;
    CHECK(LateArrays::is_late(view));
    CHECK(LateArrays::digest(view) == digest);
    CHECK(view.at(1) == 8);
    CHECK(other.at(2) == 9);
    CHECK(written == 1);
    CHECK_FALSE(gone.expired());
  }
  CHECK(gone.expired());
  const Array plain = LateArrays::view(std::make_shared<Array>(Array::full(f32, {3}, 5)));
  CHECK(plain.at(2) == 5);
  CHECK(LateArrays::digest(plain) == nullptr);
}

TEST_CASE("an array whose elements are there may have a digest that comes late") {
  const Array numbers = Array::full(f32, {3}, 5);
  const auto digest = std::make_shared<LateDigest>();
  const Array known = LateArrays::with_digest(numbers, digest);
  CHECK(known.shares_memory(numbers));
  CHECK_FALSE(LateArrays::is_late(known));
  CHECK(LateArrays::digest(known) == digest);
  CHECK_FALSE(digest->get());
  digest->set({3, 4});
  CHECK(LateArrays::digest(known)->get() == Digest{3, 4});
}

TEST_CASE("elements that could not be had are asked for again") {
  int asked = 0;
  const Array array = LateArrays::make(
      {f32, {4}},
      [&](void* elements) {
        if (++asked == 1) throw InputError("the file is gone");
        std::memset(elements, 0, 16);
      },
      nullptr);
  CHECK_THROWS_AS((void)array.at(0), InputError);
  CHECK(array.at(0) == 0);
  CHECK(asked == 2);
}

TEST_CASE("threads that read at the same time have the elements written once") {
  for (int round = 0; round < 20; ++round) {
    std::atomic<int> written{0};
    const Array array = LateArrays::make(
        {f32, {5000}},
        [&](void* elements) {
          ++written;
          for (int i = 0; i < 5000; ++i) static_cast<float*>(elements)[i] = static_cast<float>(i);
        },
        nullptr);
    std::atomic<int> right{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&, copy = array] {
        if (std::as_const(copy).as<float>()[4999] == 4999) ++right;
      });
    for (std::thread& thread : threads) thread.join();
    CHECK(right == 4);
    CHECK(written == 1);
  }
}
