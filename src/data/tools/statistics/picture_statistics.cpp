#include <algorithm>
#include <atomic>
#include <cmath>
#include <mutex>
#include <numeric>
#include <xxhash.h>

#include "base/format.h"
#include "base/parallel_for.h"
#include "data/codecs/pictures/decode.h"
#include "data/codecs/pictures/picture.h"
#include "data/codecs/pictures/stored_picture.h"
#include "data/io/remote_object.h"
#include "data/table/contents.h"
#include "data/table/labels.h"
#include "data/tools/statistics/perceptual_hash.h"
#include "data/tools/statistics/statistics.h"

namespace millrace::data {
namespace {

constexpr int bands = 4, band_bits = 16;
/// Pictures with one band in common that are compared each with each; beyond, only neighbours in order of
/// hash.
constexpr size_t most_compared = 20'000, neighbours = 50;

/// What is known of one picture.
struct Facts {
  Place place;
  uint64_t content = 0;  // hash of the bytes
  Likeness looks;
  int height = 0, width = 0, channels = 0;  // 0: cannot be read
  std::array<double, 3> sum{}, squares{};   // of its channels, values 0…255
};

/// A data set that is looked at.
struct Looked {
  const Dataset& set;
  Contents pictures;
  Labels labels;
  explicit Looked(const Dataset& of) : set(of), pictures(of, ColumnKind::picture), labels(of) {}
  StoredPicture picture(int64_t index) const { return stored_picture(pictures.read(index)); }
};

/// Reads one picture; the reason when it cannot be.
std::string look_at(const Looked& source, Facts& facts, uint64_t& bytes) {
  Picture picture;
  try {
    const StoredPicture sample = source.picture(facts.place.index);
    bytes = sample.bytes.size();
    facts.content = XXH3_64bits(sample.bytes.data(), sample.bytes.size());
    if (std::string why = decode_picture(sample, picture); !why.empty()) return why;
  } catch (const RemoteError&) {
    throw;  // the server is away: no fault of this picture
  } catch (const Error& error) {
    return error.what();
  }
  facts.looks = likeness(picture);
  facts.height = picture.height;
  facts.width = picture.width;
  facts.channels = picture.channels;
  for (size_t i = 0; i < picture.pixels.size(); ++i) {
    const double value = picture.pixels[i];
    facts.sum[i % static_cast<size_t>(picture.channels)] += value;
    facts.squares[i % static_cast<size_t>(picture.channels)] += value * value;
  }
  return {};
}

bool same_bytes(const std::vector<Looked>& sources, Place a, Place b) {
  const StoredPicture one = sources[static_cast<size_t>(a.source)].picture(a.index),
                      other = sources[static_cast<size_t>(b.source)].picture(b.index);
  return std::equal(one.bytes.begin(), one.bytes.end(), other.bytes.begin(), other.bytes.end());
}

/// Sets of numbers that were joined.
class Groups {
 public:
  explicit Groups(size_t count) : parent_(count) { std::iota(parent_.begin(), parent_.end(), size_t{0}); }
  size_t find(size_t i) {
    while (parent_[i] != i) i = parent_[i] = parent_[parent_[i]];
    return i;
  }
  void join(size_t a, size_t b) { parent_[std::max(find(a), find(b))] = std::min(find(a), find(b)); }

 private:
  std::vector<size_t> parent_;
};

/// Joins what hashes of at most three different bits have: one of four bands in common.
void join_alike(const std::vector<Facts>& facts, const std::vector<size_t>& readable, int most,
                Groups& groups) {
  std::vector<size_t> order = readable;
  for (int band = 0; band < bands; ++band) {
    const auto key = [&](size_t i) { return std::rotr(facts[i].looks.hash, band * band_bits); };
    const auto bits = [&](size_t i) { return key(i) & ((1u << band_bits) - 1); };
    std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      return std::tuple(bits(a), key(a), a) < std::tuple(bits(b), key(b), b);
    });
    for (size_t begin = 0; begin < order.size();) {
      size_t end = begin + 1;
      while (end < order.size() && bits(order[end]) == bits(order[begin])) ++end;
      const size_t reach = end - begin > most_compared ? neighbours : end - begin;
      for (size_t a = begin; a < end; ++a)
        for (size_t b = a + 1; b < std::min(end, a + reach); ++b)
          if (look_alike(facts[order[a]].looks, facts[order[b]].looks, most)) groups.join(order[a], order[b]);
      begin = end;
    }
  }
}

std::vector<Twins> twins_of(const std::vector<Looked>& sources, const std::vector<Facts>& facts,
                            Groups& groups) {
  std::map<size_t, Twins> found;
  for (size_t i = 0; i < facts.size(); ++i) {
    const size_t first = groups.find(i);
    if (first == i) continue;
    Twins& twins = found[first];
    if (twins.places.empty()) twins.places.push_back(facts[first].place);
    twins.places.push_back(facts[i].place);
  }
  std::vector<Twins> list;
  for (auto& [first, twins] : found) {
    const auto name = [&](const Place& place) {
      const Labels& labels = sources[static_cast<size_t>(place.source)].labels;
      return labels.there() ? labels.names()[static_cast<size_t>(labels[place.index])] : std::string();
    };
    for (const Place& place : twins.places) {
      twins.classes_differ = twins.classes_differ || name(place) != name(twins.places[0]);
      twins.sources_differ = twins.sources_differ || place.source != twins.places[0].source;
    }
    list.push_back(std::move(twins));
  }
  return list;
}

void add_up(const std::vector<Facts>& facts, std::vector<PictureStatistics::OfSource>& sources) {
  for (size_t s = 0; s < sources.size(); ++s) {
    std::array<double, 3> sum{}, squares{};
    double pixels = 0;
    int channels = 0;
    for (const Facts& f : facts) {
      if (f.place.source != static_cast<int>(s) || f.height == 0) continue;
      ++sources[s].sizes[{f.height, f.width, f.channels}];
      if (channels == 0) channels = f.channels;
      if (f.channels != channels) continue;
      pixels += static_cast<double>(f.height) * f.width;
      for (size_t c = 0; c < 3; ++c) {
        sum[c] += f.sum[c];
        squares[c] += f.squares[c];
      }
    }
    for (size_t c = 0; c < static_cast<size_t>(channels); ++c) {
      const double mean = sum[c] / pixels;
      sources[s].mean.push_back(mean / 255);
      sources[s].std.push_back(std::sqrt(std::max(0.0, squares[c] / pixels - mean * mean)) / 255);
    }
  }
}

}  // namespace

PictureStatistics picture_statistics(const std::vector<std::shared_ptr<const Dataset>>& sets,
                                     const StatisticsOptions& options) {
  if (options.distance < 0 || options.distance > 3)
    fail<InputError>("a distance of {} bits: wanted are 0 to 3", options.distance);
  std::vector<Looked> sources;
  for (const auto& set : sets) sources.emplace_back(*set);
  PictureStatistics result;
  std::vector<Facts> facts;
  for (size_t s = 0; s < sources.size(); ++s) {
    PictureStatistics::OfSource of;
    of.pictures = sources[s].set.count();
    const Labels& labels = sources[s].labels;
    of.of_class.resize(labels.names().size());
    for (int64_t i = 0; i < of.pictures; ++i) {
      if (labels.there()) ++of.of_class[static_cast<size_t>(labels[i])];
      facts.push_back({{static_cast<int>(s), i}, 0, {}, 0, 0, 0, {}, {}});
    }
    result.sources.push_back(std::move(of));
  }

  std::mutex mutex;
  std::atomic<int64_t> done{0};
  const auto total = static_cast<int64_t>(facts.size());
  parallel_parts(total, 64, options.threads, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      Facts& f = facts[static_cast<size_t>(i)];
      const Looked& source = sources[static_cast<size_t>(f.place.source)];
      uint64_t bytes = 0;
      const std::string why = look_at(source, f, bytes);
      const std::lock_guard lock(mutex);
      auto& of = result.sources[static_cast<size_t>(f.place.source)];
      of.bytes += bytes;
      if (!why.empty()) of.bad.push_back({f.place.index, source.set.name(f.place.index), why});
    }
    done += end - begin;
    const std::lock_guard lock(mutex);
    if (options.progress) options.progress(done, total);
  });
  for (auto& of : result.sources)
    std::sort(of.bad.begin(), of.bad.end(), [](const auto& a, const auto& b) { return a.index < b.index; });
  add_up(facts, result.sources);

  std::map<uint64_t, size_t> first;
  std::vector<size_t> readable;  // one of each content
  Groups same(facts.size()), alike(facts.size());
  for (size_t i = 0; i < facts.size(); ++i) {
    if (facts[i].height == 0) continue;
    const auto [at, added] = first.try_emplace(facts[i].content, i);
    if (added)
      readable.push_back(i);
    else if (same_bytes(sources, facts[at->second].place, facts[i].place))
      same.join(at->second, i);
  }
  join_alike(facts, readable, options.distance, alike);
  result.same = twins_of(sources, facts, same);
  result.alike = twins_of(sources, facts, alike);
  return result;
}

}  // namespace millrace::data
