#include "target/shared_constants.h"

#include <doctest/doctest.h>
#include <thread>
#include <vector>

#include <millrace/error.h>

using namespace millrace;

namespace {

Array shared_numbers(double first) {
  Array array(f32, {1000});
  for (int64_t i = 0; i < array.count(); ++i) array.set(i, first + static_cast<double>(i));
  return array;
}

Array shared_twice(const Array& constant, int* made = nullptr) {
  return shared_form(constant, "twice", constant.type(), [&](Array& array) {
    if (made) ++*made;
    for (int64_t i = 0; i < array.count(); ++i) array.set(i, 2 * constant.at(i));
  });
}

}  // namespace

TEST_CASE("equal constants are in memory once, for as long as anyone has them") {
  const int64_t before = shared_constant_bytes();
  {
    const Array one = shared_constant(shared_numbers(3)), same = shared_constant(shared_numbers(3)),
                other = shared_constant(shared_numbers(4));
    CHECK(one.shares_memory(same));
    CHECK_FALSE(one.shares_memory(other));
    CHECK(one.identical(shared_numbers(3)));
    CHECK(shared_constant(one).shares_memory(one));
    // The same bytes as another type are another constant's.
    const Array reshaped = shared_constant(shared_numbers(3).reshaped({10, 100}));
    CHECK(reshaped.shape() == Shape{10, 100});
    CHECK(shared_constant_bytes() == before + 12000);
  }
  CHECK(shared_constant_bytes() == before);
}

TEST_CASE("who gave a constant may change his own afterwards") {
  Array mine = shared_numbers(5);
  const Array shared = shared_constant(mine);
  mine.set(0, 77);
  CHECK(shared.at(0) == 5);
  CHECK(shared_constant(shared_numbers(5)).shares_memory(shared));
  CHECK_FALSE(shared_constant(mine).shares_memory(shared));
}

TEST_CASE("what nobody writes to is kept itself") {
  const int64_t before = shared_constant_bytes();
  {
    const Array mine = shared_numbers(11), shared = shared_constant(mine, true);
    CHECK(shared.shares_memory(mine));
    CHECK(shared_constant(shared_numbers(11), true).shares_memory(mine));
    CHECK(shared_constant_bytes() == before + 4000);
  }
  CHECK(shared_constant_bytes() == before);
}

TEST_CASE("forms are made once of equal constants, and by their names") {
  int made = 0;
  const int64_t before = shared_constant_bytes();
  {
    const Array twice = shared_twice(shared_numbers(6), &made),
                again = shared_twice(shared_constant(shared_numbers(6)), &made);
    CHECK(twice.shares_memory(again));
    CHECK(made == 1);
    CHECK(twice.at(999) == 2 * 1005);
    const Array other = shared_twice(shared_numbers(7), &made);
    CHECK(made == 2);
    CHECK(other.at(0) == 14);
    const Array first = shared_form(shared_numbers(6), "first", {f32, {1}},
                                    [](Array& array) { array.set(0, shared_numbers(6).at(0)); });
    CHECK(first.to_doubles() == std::vector<double>{6});
  }
  CHECK(shared_constant_bytes() == before);
  (void)shared_twice(shared_numbers(6), &made);
  CHECK(made == 3);
}

TEST_CASE("what fails while a form is made leaves nothing behind") {
  const int64_t before = shared_constant_bytes();
  CHECK_THROWS_AS(
      (void)shared_form(shared_numbers(8), "twice", {f32, {1000}}, [](Array&) { throw Error("no memory"); }),
      Error);
  CHECK(shared_constant_bytes() == before);
  CHECK(shared_twice(shared_numbers(8)).at(0) == 16);
}

TEST_CASE("threads that want the same form at the same time share one in the end") {
  const Array constant = shared_numbers(9);
  for (int round = 0; round < 50; ++round) {
    std::vector<Array> forms(4);
    std::vector<std::thread> threads;
    for (Array& form : forms) threads.emplace_back([&] { form = shared_twice(constant); });
    for (std::thread& thread : threads) thread.join();
    for (const Array& form : forms) {
      CHECK(form.shares_memory(forms[0]));
      CHECK(form.at(1) == 20);
    }
  }
}

TEST_CASE("forms that are offered of a constant are given, not made") {
  const Array constant = shared_numbers(9);
  const Array form = Array::full(f32, {1000}, 5), other = Array::full(f32, {10}, 6);
  const int64_t before = shared_constant_bytes();
  int made = 0;
  {
    const OfferedConstants offered({{constant, "file 1", {{"twice", form}, {"short", other}}}});
    CHECK(shared_twice(constant, &made).shares_memory(form));
    const auto make = [&](Array& array) { array.set(0, ++made); };
    // Another form, another type of it, another constant, other memory.
    CHECK(shared_form(constant, "thrice", {f32, {10}}, make).at(0) == 1);
    CHECK(shared_form(constant, "short", {f32, {11}}, make).at(0) == 2);
    CHECK_FALSE(shared_twice(shared_numbers(9), &made).shares_memory(form));
    CHECK_FALSE(shared_twice(constant.reshaped({10, 100}), &made).shares_memory(form));
    CHECK_FALSE(shared_form(constant.reshaped({10, 100}), "twice", {f32, {1000}}, make).shares_memory(form));
    CHECK(made == 5);
    CHECK(shared_constant_bytes() == before);
    // What is made of one constant of a file is the same wherever the file is mapped, and nobody else's.
    const Array mapped = shared_numbers(9), next = shared_numbers(9);
    const OfferedConstants again({{mapped, "file 1", {}}, {next, "file 2", {}}});
    const Array own = shared_form(constant, "first", {f32, {1}}, make),
                same = shared_form(mapped, "first", {f32, {1}}, make),
                others = shared_form(next, "first", {f32, {1}}, make);
    CHECK(own.shares_memory(same));
    CHECK_FALSE(own.shares_memory(others));
    CHECK(made == 7);
  }
  CHECK_FALSE(shared_twice(constant, &made).shares_memory(form));
}

TEST_CASE("forms of a constant are found by their names while somebody has them") {
  const Array constant = shared_numbers(12);
  CHECK(forms_of(constant).empty());
  {
    const Array shared = shared_constant(constant), twice = shared_twice(shared_numbers(12));
    const std::vector<NamedForm> forms = forms_of(shared_numbers(12));
    REQUIRE(forms.size() == 1);
    CHECK(forms[0].form == "twice");
    CHECK(forms[0].array.shares_memory(twice));
    CHECK(forms_of(shared_numbers(13)).empty());
  }
  CHECK(forms_of(constant).empty());
}
