// In which order samples come: each kind is a file here.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace millrace::data {

/// What an order may look at.
struct Population {
  int64_t count = 0;
  /// Of each sample, 0 … classes - 1; empty where there are none.
  std::vector<int64_t> labels;
  std::vector<std::string> classes;
  /// Of each sample, the column that the order's text names; empty when it names none.
  std::vector<double> values;
};

/// One place of an epoch.
struct Pick {
  int64_t index = 0;
  /// Of the sample in the loss; 1 but for importance sampling.
  double weight = 1;
};

/// A function of seed, epoch and position alone: any place of any epoch can be asked for, in any order, from many threads.
/// So a training resumes anywhere, and ranks that take every Nth position see together exactly an epoch.
class Order {
 public:
  virtual ~Order() = default;
  /// Places of an epoch.
  virtual int64_t length() const = 0;
  /// 0 ≤ position < length().
  virtual Pick at(uint64_t seed, int64_t epoch, int64_t position) const = 0;
  /// The places from `position` on, as many as `picks` has.
  virtual void run(uint64_t seed, int64_t epoch, int64_t position, std::span<Pick> picks) const {
    for (size_t i = 0; i < picks.size(); ++i) picks[i] = at(seed, epoch, position + static_cast<int64_t>(i));
  }
};

/// A kind of order; each one is a file here and a line in order.cpp.
struct OrderKind {
  const char* name;   // "block-shuffle"
  const char* usage;  // "block-shuffle SAMPLES BLOCKS"
  /// The column of values that a text of this kind names; "" for none.
  std::string (*column)(const std::vector<std::string>& words);
  /// `words`: all of the text's, the name first. InputError when they are not as `usage` says, or the population lacks what
  /// is needed.
  std::unique_ptr<Order> (*make)(const std::vector<std::string>& words, Population population);
};
const std::vector<const OrderKind*>& order_kinds();
extern const OrderKind sequential_order, shuffle_order, block_shuffle_order, class_balanced_order,
    stratified_order, quota_order, weighted_order, importance_order;

/// The kind and words of a recipe's text, as "block-shuffle 1000 8"; InputError names the nearest kind.
struct OrderText {
  const OrderKind* kind = nullptr;
  std::vector<std::string> words;
  std::string column() const { return kind->column ? kind->column(words) : std::string(); }
};
OrderText parse_order(std::string_view text);

/// InputError that quotes the text and says how it is written.
[[noreturn]] void wrong_order(const OrderKind& kind, const std::vector<std::string>& words,
                              const std::string& why);
/// A whole number ≥ `least` of the words.
int64_t order_integer(const OrderKind& kind, const std::vector<std::string>& words, size_t place,
                      int64_t least);
/// The same of a part of a word.
int64_t order_integer(const OrderKind& kind, const std::vector<std::string>& words, std::string_view part,
                      int64_t least);

/// The samples of each class, by number. InputError when there are no classes.
std::vector<std::vector<int64_t>> samples_of_classes(const OrderKind& kind,
                                                     const std::vector<std::string>& words,
                                                     const Population& population);

}  // namespace millrace::data
