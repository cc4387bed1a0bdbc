#include "target/shared_constants.h"

#include <array>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <tuple>
#include <utility>
#include <xxhash.h>

namespace millrace {
namespace {

/// Bytes by their hash, whose secret is this process's own: nobody can make two constants that meet.
struct Digest {
  uint64_t high = 0, low = 0;
  auto operator<=>(const Digest&) const = default;
};

Digest digest_of(const Array& array) {
  static const auto secret = [] {
    std::array<uint32_t, XXH3_SECRET_SIZE_MIN / 4 + 1> words;
    std::random_device random;
    for (uint32_t& word : words) word = random();
    return words;
  }();
  const XXH128_hash_t hash =
      XXH3_128bits_withSecret(array.data(), static_cast<size_t>(array.bytes()), secret.data(), sizeof secret);
  return {hash.high64, hash.low64};
}

/// Type of the constant, its bytes, the form.
using Key = std::tuple<std::string, Digest, std::string>;

struct Store {
  std::mutex mutex;
  std::map<Key, std::weak_ptr<Array>> forms;
  std::map<const void*, Digest> digests;  // of constants that are here themselves
  int64_t bytes = 0;
};

/// Outlives whatever may be destroyed at the end of the process.
Store& store() {
  static Store& one = *new Store;
  return one;
}

Array view_of(const std::shared_ptr<Array>& kept) { return {kept->type(), kept->data(), kept}; }

/// With the last copy of an array goes its place.
struct Forget {
  Key key;
  void operator()(Array* array) const {
    Store& all = store();
    {
      const std::lock_guard lock(all.mutex);
      all.bytes -= array->bytes();
      all.digests.erase(array->data());
      // Somebody may have made it anew since the last copy went.
      const auto found = all.forms.find(key);
      if (found != all.forms.end() && found->second.expired()) all.forms.erase(found);
    }
    delete array;
  }
};

std::shared_ptr<Array> find(const Key& key) {
  const std::lock_guard lock(store().mutex);
  const auto found = store().forms.find(key);
  return found == store().forms.end() ? nullptr : found->second.lock();
}

/// Keeps an array under a key; gives the one that another thread made meanwhile, if it did.
std::shared_ptr<Array> keep(const Key& key, Array array) {
  Store& all = store();
  const int64_t bytes = array.bytes();
  std::shared_ptr<Array> made(new Array(std::move(array)), Forget{key});
  std::shared_ptr<Array> earlier;
  const std::lock_guard lock(all.mutex);
  all.bytes += bytes;
  std::weak_ptr<Array>& place = all.forms[key];
  earlier = place.lock();
  if (earlier) return earlier;
  place = made;
  return made;
}

Digest known_digest(const Array& constant) {
  {
    const std::lock_guard lock(store().mutex);
    const auto found = store().digests.find(constant.data());
    if (found != store().digests.end()) return found->second;
  }
  return digest_of(constant);
}

}  // namespace

Array shared_form(const Array& constant, const std::string& form, const Type& type,
                  const std::function<void(Array& array)>& make) {
  const Key key{constant.type().str(), known_digest(constant), form};
  if (const std::shared_ptr<Array> there = find(key)) return view_of(there);
  Array array(type);
  make(array);
  return view_of(keep(key, std::move(array)));
}

Array shared_constant(const Array& constant) {
  if (constant.empty()) return constant;
  {
    const std::lock_guard lock(store().mutex);
    if (store().digests.contains(constant.data())) return constant;
  }
  const Key key{constant.type().str(), digest_of(constant), ""};
  std::shared_ptr<Array> kept = find(key);
  if (!kept) {
    kept = keep(key, constant.clone());
    const std::lock_guard lock(store().mutex);
    store().digests[kept->data()] = std::get<Digest>(key);
  }
  return view_of(kept);
}

int64_t shared_constant_bytes() {
  const std::lock_guard lock(store().mutex);
  return store().bytes;
}

}  // namespace millrace
