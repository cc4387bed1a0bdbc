#include "data/tools/fingerprint.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "base/digest.h"
#include "base/format.h"
#include "data/io/location.h"

namespace millrace::data {
namespace {

constexpr int64_t most_samples = 4096, most_bytes = 64 << 20;

/// Bytes that no two different values share.
class Digested {
 public:
  void add(std::string_view bytes) {
    const uint64_t size = bytes.size();
    text_.append(reinterpret_cast<const char*>(&size), sizeof size).append(bytes);
  }
  template <typename T>
  void number(T value) {
    add({reinterpret_cast<const char*>(&value), sizeof value});
  }
  void add(std::span<const uint8_t> bytes) {
    add({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  }
  void value(const Value& held_by) {
    number(static_cast<uint8_t>(held_by.index()));
    std::visit(
        [&](const auto& held) {
          using Held = std::decay_t<decltype(held)>;
          if constexpr (std::is_same_v<Held, int64_t> || std::is_same_v<Held, double>) {
            number(held);
          } else if constexpr (std::is_same_v<Held, std::string>) {
            add(std::string_view(held));
          } else if constexpr (std::is_same_v<Held, Pixels>) {
            for (const int size : {held.height, held.width, held.channels}) number(size);
            add(std::span<const uint8_t>(held.bytes.data(), held.bytes.size()));
          } else if constexpr (std::is_same_v<Held, Bytes>) {
            add(std::span<const uint8_t>(held.data(), held.size()));
          } else if constexpr (std::is_same_v<Held, Array>) {
            add(std::string_view(held.type().str()));
            add({static_cast<const char*>(held.data()), static_cast<size_t>(held.bytes())});
          }
        },
        held_by);
  }
  /// What was added so far becomes one digest, so that little of it is kept.
  void fold() { text_ = digest(); }
  size_t size() const { return text_.size(); }
  std::string digest() const {
    return *hex_digest("xxh3_128", {reinterpret_cast<const uint8_t*>(text_.data()), text_.size()});
  }

 private:
  std::string text_;
};

void add_sample(const Dataset& samples, int64_t sample, Digested& into) {
  for (size_t column = 0; column < samples.columns().size(); ++column) {
    try {
      into.value(samples.read(sample, column));
    } catch (const Error&) {
      into.add(std::string_view("unreadable"));
    }
  }
}

/// Names and places, of samples that would have to be fetched.
void add_places(const Dataset& samples, int64_t taken, Digested& into) {
  for (int64_t i = 0; i < taken; ++i) {
    const int64_t sample = i * samples.count() / taken;
    into.add(std::string_view(samples.name(sample)));
    if (const auto at = samples.extent(sample)) {
      into.number(at->offset);
      into.number(at->size);
    }
  }
}

}  // namespace

Fingerprint fingerprint(const Dataset& samples) {
  Fingerprint made{samples.path(), samples.count(), 0, {}};
  Digested digested;
  digested.number(made.samples);
  for (const Column& column : samples.columns()) {
    digested.add(std::string_view(column.name));
    digested.number(static_cast<int32_t>(column.kind));
  }
  int64_t taken = std::min(made.samples, most_samples), bytes = 0;
  const bool away = is_remote(samples.path());
  if (away) add_places(samples, taken, digested);
  for (int64_t i = 0; i < taken && !away; ++i) {
    digested.fold();
    const size_t before = digested.size();
    add_sample(samples, i * made.samples / taken, digested);
    bytes += static_cast<int64_t>(digested.size() - before);
    ++made.read;
    // What is large is spread more thinly from the beginning: how many it would be is known after the first.
    if (i == 0)
      taken =
          std::clamp<int64_t>(most_bytes / std::max<int64_t>(bytes, 1), std::min<int64_t>(taken, 64), taken);
    if (bytes > 4 * most_bytes) break;
  }
  made.digest = digested.digest();
  return made;
}

}  // namespace millrace::data
