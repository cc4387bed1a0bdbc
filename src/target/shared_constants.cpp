#include "target/shared_constants.h"

#include <array>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <tuple>
#include <utility>
#include <xxhash.h>

namespace millrace {
namespace {

// Hashes' secrets are this process's own: nobody can make two constants that meet.
using Secret = std::array<uint32_t, XXH3_SECRET_SIZE_MIN / 4 + 1>;

Secret new_secret() {
  Secret words;
  std::random_device random;
  for (uint32_t& word : words) word = random();
  return words;
}

Digest digest(const void* data, size_t bytes, const Secret& secret) {
  const XXH128_hash_t hash = XXH3_128bits_withSecret(data, bytes, secret.data(), sizeof secret);
  return {hash.high64, hash.low64};
}

Digest digest_of_bytes(const Array& array) {
  static const Secret secret = new_secret();
  return digest(array.data(), static_cast<size_t>(array.bytes()), secret);
}

/// With another secret: no constant's bytes are taken for an identity.
Digest digest_of(std::string_view identity) {
  static const Secret secret = new_secret();
  return digest(identity.data(), identity.size(), secret);
}

/// Type of the constant, its bytes, the form.
using Key = std::tuple<std::string, Digest, std::string>;

/// A constant that is offered, by its address.
struct Offer {
  Type type;
  Digest digest;
  std::vector<NamedForm> forms;
};

struct Store {
  std::mutex mutex;
  std::map<const void*, Offer> offers;
  std::map<Key, std::weak_ptr<Array>> forms;
  std::map<const void*, Digest> digests;  // of constants that are here themselves
  int64_t bytes = 0;
};

/// Outlives whatever may be destroyed at the end of the process.
Store& store() {
  static Store& one = *new Store;
  return one;
}

/// With the last copy of an array goes its place.
struct Forget {
  Key key;
  void operator()(Array* array) const {
    Store& all = store();
    {
      const std::lock_guard lock(all.mutex);
      all.bytes -= array->bytes();
      all.digests.erase(LateArrays::place(*array));
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

/// The form that is offered of a constant; an empty array where none is.
Array offered_form(const Array& constant, const std::string& form, const Type& type) {
  const std::lock_guard lock(store().mutex);
  const auto at = store().offers.find(LateArrays::place(constant));
  if (at == store().offers.end() || at->second.type != constant.type()) return {};
  for (const NamedForm& each : at->second.forms)
    if (each.form == form && each.array.type() == type) return each.array;
  return {};
}

/// That of its bytes, which are read only where it comes late and nobody has read it before.
Digest digest_of_elements(const Array& constant) {
  const std::shared_ptr<LateDigest> late = LateArrays::digest(constant);
  if (!late) return digest_of_bytes(constant);
  if (const std::optional<Digest> known = late->get()) return *known;
  const Digest digest = digest_of_bytes(constant);
  late->set(digest);
  return digest;
}

}  // namespace

Digest digest_of(const Array& constant) {
  {
    const std::lock_guard lock(store().mutex);
    const void* const place = LateArrays::place(constant);
    const auto offer = store().offers.find(place);
    if (offer != store().offers.end() && offer->second.type == constant.type()) return offer->second.digest;
    const auto found = store().digests.find(place);
    if (found != store().digests.end()) return found->second;
  }
  return digest_of_elements(constant);
}

Digest digest_of_result(std::string_view how, std::span<const Array> operands) {
  std::string identity(how);
  for (const Array& operand : operands) {
    const Digest digest = digest_of(operand);
    identity.append(reinterpret_cast<const char*>(&digest), sizeof digest);
  }
  return digest_of(identity);
}

Array shared_form(const Array& constant, const std::string& form, const Type& type,
                  const std::function<void(Array& array)>& make) {
  if (Array offered = offered_form(constant, form, type); !offered.empty()) return offered;
  const Key key{constant.type().str(), digest_of(constant), form};
  if (const std::shared_ptr<Array> there = find(key)) return LateArrays::view(there);
  Array array(type);
  make(array);
  return LateArrays::view(keep(key, std::move(array)));
}

Array shared_constant(const Array& constant, bool nobodys) {
  if (constant.empty()) return constant;
  // In a file that is mapped it is once, and others may not come to depend on that file.
  if (const auto late = LateArrays::digest(constant); late && late->in_file()) return constant;
  {
    const std::lock_guard lock(store().mutex);
    if (store().digests.contains(LateArrays::place(constant))) return constant;
  }
  const Key key{constant.type().str(), digest_of_elements(constant), ""};
  std::shared_ptr<Array> kept = find(key);
  if (!kept) {
    kept = keep(key, nobodys ? constant : constant.clone());
    const std::lock_guard lock(store().mutex);
    store().digests[LateArrays::place(*kept)] = std::get<Digest>(key);
  }
  return LateArrays::view(kept);
}

std::vector<NamedForm> forms_of(const Array& constant) {
  const std::string type = constant.type().str();
  const Digest digest = digest_of(constant);
  std::vector<NamedForm> all;
  const std::lock_guard lock(store().mutex);
  for (auto at = store().forms.lower_bound({type, digest, ""}); at != store().forms.end(); ++at) {
    const auto& [own_type, own_digest, form] = at->first;
    if (own_type != type || own_digest != digest) break;
    const std::shared_ptr<Array> kept = form.empty() ? nullptr : at->second.lock();
    if (kept) all.push_back({form, LateArrays::view(kept)});
  }
  return all;
}

OfferedConstants::OfferedConstants(std::vector<OfferedConstant> constants) {
  const std::lock_guard lock(store().mutex);
  for (OfferedConstant& each : constants) {
    Offer offer{each.array.type(), digest_of(each.identity), std::move(each.forms)};
    if (store().offers.try_emplace(each.array.data(), std::move(offer)).second)
      addresses_.push_back(each.array.data());
  }
}

OfferedConstants::~OfferedConstants() {
  std::vector<Offer> gone;  // after the lock
  const std::lock_guard lock(store().mutex);
  for (const void* const address : addresses_) {
    const auto at = store().offers.find(address);
    gone.push_back(std::move(at->second));
    store().offers.erase(at);
  }
}

int64_t shared_constant_bytes() {
  const std::lock_guard lock(store().mutex);
  return store().bytes;
}

}  // namespace millrace
