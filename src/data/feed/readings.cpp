#include "data/feed/readings.h"

#include <algorithm>

#include "base/crc32c.h"
#include "base/format.h"
#include "base/mapped_file.h"
#include "base/parallel_for.h"

namespace millrace::data {

Readings::Readings(std::shared_ptr<const Dataset> samples, std::vector<std::shared_ptr<const Part>> parts,
                   ReadingsOptions options)
    : samples_(std::move(samples)), parts_(std::move(parts)), unit_(options.unit) {
  size_t end = 0;
  for (const auto& part : parts_) {
    const size_t size = part->stored_bytes();
    sizes_.push_back(size);
    offsets_.push_back(end);
    end += AlignedBytes::rounded(size);
    sample_bytes_ += static_cast<int64_t>(size);
    if (size > 0 && !part->keeps()) keeps_ = false;
  }
  if (!reads()) return;
  if (!samples_) fail<InternalError>("there are no samples, of which a part reads");
  const auto count = static_cast<size_t>(samples_->count());
  bad_ = std::vector<std::atomic<bool>>(count);
  met_ = std::vector<std::atomic<uint8_t>>(count);
  // As double: so much may be more than a number of bytes holds.
  const double all = static_cast<double>(sample_bytes_) * static_cast<double>(count);
  if (keeps_ && count > 0 && all <= static_cast<double>(options.most))
    keep(options.threads, options.progress);
  else
    find_first();
}

int64_t Readings::needed() const { return reads() && keeps_ ? sample_bytes_ * samples_->count() : 0; }

Readings::Reader Readings::reader() const {
  Reader reader;
  for (const auto& part : parts_) reader.scratch.push_back(part->scratch());
  if (reads() && !kept_) reader.bytes = AlignedBytes(offsets_.back() + sizes_.back());
  reader.stored.assign(parts_.size(), nullptr);
  for (size_t p = 0; p < parts_.size() && reads() && !kept_; ++p)
    if (sizes_[p] > 0) reader.stored[p] = reader.bytes.data() + offsets_[p];
  return reader;
}

void Readings::note_asked(int64_t index, bool good) {
  const uint8_t met = good ? 1 : 3;
  auto& before_now = met_[static_cast<size_t>(index)];
  if ((before_now.load(std::memory_order_relaxed) & met) == met) return;
  const uint8_t before = before_now.fetch_or(met);
  if (!(before & 1)) ++asked_;
  if (!good && !(before & 2)) ++asked_bad_;
}

void Readings::note_bad(int64_t index, const std::string& why) {
  const std::lock_guard lock(mutex_);
  if (reasons_.try_emplace(index, why).second) ++known_bad_;
}

/// One part's bytes of a sample; false when it is bad.
bool Readings::read(int64_t index, const SampleKey* key,
                    std::span<const std::unique_ptr<Part::Scratch>> scratch, size_t part, std::byte* stored) {
  const std::string why = parts_[part]->read(*samples_, index, key, scratch[part].get(), stored);
  if (why.empty()) return true;
  require_mapped_files(true);  // else it may not be the sample's fault
  note_bad(index, why);
  // What is random may lie beside the damage another time: then only this sample of this epoch is replaced,
  // whatever was met before, so that a resumed training sees the same.
  if (parts_[part]->keeps()) bad_[static_cast<size_t>(index)].store(true, std::memory_order_relaxed);
  return false;
}

bool Readings::read_all(int64_t index, const SampleKey* key, Reader& reader) {
  if (bad_[static_cast<size_t>(index)].load(std::memory_order_relaxed)) return false;
  for (size_t p = 0; p < parts_.size(); ++p)
    if (sizes_[p] > 0 && !read(index, key, reader.scratch, p, reader.stored[p])) return false;
  return true;
}

void Readings::none() const {
  const auto first = reasons_.find(0);
  fail<InputError>("{}: none of its {} {} can be read (the first: {})", samples_->path(), samples_->count(),
                   unit_, first != reasons_.end() ? first->second : "it is not there");
}

/// What cannot be read at all is said before anything begins.
void Readings::find_first() {
  Reader own = reader();
  for (int64_t i = 0; i < samples_->count(); ++i)
    if (read_all(i, nullptr, own)) return;
  none();
}

void Readings::keep(int threads, const std::function<void(int64_t, int64_t)>& progress) {
  const int64_t count = samples_->count();
  for (const size_t size : sizes_) cache_.emplace_back(size * static_cast<size_t>(count));
  kept_ = true;
  const auto ahead = ahead_of(*samples_, count);
  std::mutex reporting;
  std::atomic<int64_t> done{0};
  // Large enough for formats that read runs, small enough for all threads to have some.
  constexpr int64_t least = 64, most = 4096, bytes = 1 << 20;
  const int64_t chunk =
      std::clamp(std::min(bytes / sample_bytes_, count / (4 * std::max(threads, 1))), least, most);
  parallel_parts(count, chunk, threads, [&](int64_t first, int64_t end) {
    Reader own = reader();
    keep_run(first, end - first, own, ahead.get());
    const int64_t now = done += end - first;
    // Whoever finds another reporting leaves it at that; the last report is made below.
    if (progress && reporting.try_lock()) {
      progress(now, count);
      reporting.unlock();
    }
  });
  require_mapped_files(true);
  if (progress) progress(count, count);
  if (std::all_of(bad_.begin(), bad_.end(), [](const auto& bad) { return bad.load(); })) none();
}

void Readings::keep_run(int64_t first, int64_t count, Reader& reader, RowsAhead* ahead) {
  const int64_t end = first + count;
  const auto is_bad = [&](int64_t i) { return bad_[static_cast<size_t>(i)].load(std::memory_order_relaxed); };
  bool any_bad = false;
  for (size_t p = 0; p < parts_.size(); ++p) {
    if (sizes_[p] == 0) continue;
    if (ahead) ahead->reach(static_cast<uint64_t>(first));
    // Of bad samples nothing more is read, so that nothing is said of them either.
    if (!any_bad && parts_[p]->read_run(*samples_, first, count, place(p, first), sizes_[p])) continue;
    for (int64_t i = first; i < end; ++i) {
      if (ahead) ahead->reach(static_cast<uint64_t>(i));
      if (!is_bad(i) && !read(i, nullptr, reader.scratch, p, place(p, i))) any_bad = true;
    }
  }
  for (int64_t i = first; i < end; ++i) {
    note_asked(i, !is_bad(i));
    if (ahead) ahead->done(static_cast<uint64_t>(i));
  }
}

std::span<std::byte* const> Readings::get(int64_t& index, const SampleKey& key, Reader& reader) {
  if (!reads()) return reader.stored;
  const int64_t count = samples_->count();
  SampleKey sample = key;
  for (int64_t tried = 0; tried < count; ++tried, index = (index + 1) % count) {
    if (kept_) {
      if (bad_[static_cast<size_t>(index)].load(std::memory_order_relaxed)) continue;
      for (size_t p = 0; p < parts_.size(); ++p)
        if (sizes_[p] > 0) reader.stored[p] = place(p, index);
      return reader.stored;
    }
    sample.index = index;
    const bool good = read_all(index, &sample, reader);
    if (tried == 0) note_asked(index, good);
    if (good) return reader.stored;
  }
  fail<InputError>("{}: none of its {} can be read any more; were the files removed?", samples_->path(),
                   unit_);
}

uint32_t Readings::digest() const {
  uint32_t digest = 0;
  if (!kept_) return digest;
  for (size_t p = 0; p < parts_.size(); ++p) {
    if (sizes_[p] == 0) continue;
    for (int64_t i = 0; i < samples_->count(); ++i)
      if (!bad_[static_cast<size_t>(i)].load(std::memory_order_relaxed))
        digest = crc32c(place(p, i), sizes_[p], digest);
  }
  return digest;
}

std::vector<BadSample> Readings::bad_samples() const {
  const std::lock_guard lock(mutex_);
  std::vector<BadSample> list;
  for (const auto& [index, why] : reasons_) list.push_back({index, samples_->name(index), why});
  return list;
}

}  // namespace millrace::data
