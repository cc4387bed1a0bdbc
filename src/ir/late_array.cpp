#include "ir/late_array.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "base/format.h"

namespace millrace {

struct Array::Late {
  std::mutex mutex;  // of what follows
  LateArrays::Write write;
  const std::shared_ptr<LateDigest> digest;

  Late(LateArrays::Write how, std::shared_ptr<LateDigest> known)
      : write(std::move(how)), digest(std::move(known)) {}
};

void Array::fetch() const {
  const std::lock_guard lock(memory_->how->mutex);
  if (!memory_->late.load(std::memory_order_relaxed)) return;
  memory_->how->write(data_);
  memory_->how->write = nullptr;  // with what it keeps alive
  memory_->late.store(false, std::memory_order_release);
}

Array LateArrays::make(const Type& type, Write write, std::shared_ptr<LateDigest> digest) {
  if (const std::string fault = type.fault(); !fault.empty())
    fail<TypeError>("an array of this type cannot be: {}", fault);
  constexpr size_t line = 64;
  const auto wanted = static_cast<size_t>(std::max<int64_t>(type.bytes(), 1));
  // Pages that nobody touches are no memory.
  std::shared_ptr<void> memory(std::aligned_alloc(line, (wanted + line - 1) / line * line), std::free);
  if (!memory)
    fail<Error>("{:.1f} MB of memory for an array could not be had", static_cast<double>(wanted) / 1e6);
  Array array(type, memory.get(), memory);
  array.memory_->how = std::make_shared<Array::Late>(std::move(write), std::move(digest));
  array.memory_->late = true;
  return array;
}

Array LateArrays::with_digest(const Array& array, std::shared_ptr<LateDigest> digest) {
  Array known(array.type_, array.data_, array.memory_);
  if (known.memory_) known.memory_->how = std::make_shared<Array::Late>(nullptr, std::move(digest));
  return known;
}

Array LateArrays::view(const std::shared_ptr<Array>& kept) {
  Array array(kept->type(), kept->data_, kept);
  if (!kept->memory_ || !kept->memory_->how) return array;
  const bool late = is_late(*kept);
  array.memory_->how = std::make_shared<Array::Late>(
      [whole = kept.get()](void*) { (void)std::as_const(*whole).data(); }, kept->memory_->how->digest);
  array.memory_->late = late;
  return array;
}

std::shared_ptr<LateDigest> LateArrays::digest(const Array& array) {
  return array.memory_ && array.memory_->how ? array.memory_->how->digest : nullptr;
}

bool LateArrays::is_late(const Array& array) {
  return array.memory_ && array.memory_->late.load(std::memory_order_acquire);
}

}  // namespace millrace
