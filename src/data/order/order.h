// In which order samples come: each kind is a file here.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/settings.h>

#include "base/registry.h"

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
  /// Of the sample in the loss; 1 unless samples are drawn by importance.
  double weight = 1;
};

/// A function of seed, epoch and position alone: any place of any epoch can be asked for, in any order, from
/// many threads. So a training resumes anywhere, and ranks that take every Nth position see together exactly
/// an epoch.
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

struct OrderKind;

/// A recipe's text, as "block-shuffle 1000 8".
struct OrderText {
  const OrderKind* kind = nullptr;
  std::string text;
  Settings settings;

  /// The column of values that it names; "" for none.
  std::string column() const;
  /// InputError when the population lacks what is needed.
  std::unique_ptr<Order> make(const Population& population) const;
  /// InputError that quotes the text and says how it is written.
  [[noreturn]] void wrong(const std::string& why) const;
};
/// InputError names the nearest kind, or says how it is written.
OrderText parse_order(std::string_view text);

/// A kind of order; each one is a file here with MILLRACE_ORDER(name){…}.
struct OrderKind {
  std::string name;  // "block-shuffle"
  std::string doc = {};
  int place = 0;                       // in lists; the library's have 10, 20 …
  std::vector<Setting> settings = {};  // as words (base/word_settings.h)
  bool by_class = false;               // needs labels
  bool by_column = false;              // its setting COLUMN names a column, which gives values
  bool weighs = false;                 // picks have weights
  bool own_length = false;             // an epoch is as long as the settings say, not as the data
  std::unique_ptr<Order> (*make)(const OrderText& text, const Population& population) = nullptr;
};

#define MILLRACE_ORDER(NAME)           \
  extern const OrderKind order_##NAME; \
  const OrderKind order_##NAME

Registry<OrderKind>& order_kinds();
/// Adds an order to those of the library. InputError.
const OrderKind& register_order(const OrderKind& kind);

/// "block-shuffle SAMPLES BLOCKS", of all.
std::vector<std::string> order_usages();

/// The samples of each class, by number.
std::vector<std::vector<int64_t>> samples_of_classes(const Population& population);

}  // namespace millrace::data
