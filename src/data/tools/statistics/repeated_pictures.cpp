#include "data/tools/statistics/repeated_pictures.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <iterator>
#include <numeric>
#include <unordered_map>
#include <vector>
#include <xxhash.h>

#include <millrace/error.h>

#include "base/parallel_for.h"
#include "data/codecs/pictures/frame.h"
#include "data/codecs/pictures/picture_reader.h"
#include "data/io/remote_object.h"
#include "data/table/contents.h"
#include "data/tools/statistics/perceptual_hash.h"

namespace millrace::data {
namespace {

using LookClock = std::chrono::steady_clock;

constexpr int look_side = 32, look_bits = 3, look_bands = 4;
/// Pictures that are held in memory of each set, a kilobyte each; and of one band that are compared with one.
constexpr size_t most_looks = 50'000, most_alike = 500;

struct SeenPicture {
  int64_t index = 0;
  bool good = false;
  Likeness looks = {};
  std::array<uint8_t, look_side * look_side> grey{};
};

/// Calls `look` for samples from all over a data set until `end`: any number of the first ones are spread
/// over it.
template <typename Seen, typename Look>
std::vector<Seen> look_around(int64_t count, size_t most, LookClock::time_point end, const Look& look) {
  auto step = std::max<int64_t>(1, static_cast<int64_t>(0.618 * static_cast<double>(count)));
  while (std::gcd(step, count) != 1) ++step;
  std::vector<Seen> seen(std::min(most, static_cast<size_t>(count)));
  parallel_parts(std::ssize(seen), 8, 0, [&](int64_t first, int64_t last) {
    PictureReader reader;
    for (int64_t i = first; i < last && LookClock::now() < end; ++i) {
      try {
        look(i * step % count, reader, seen[static_cast<size_t>(i)]);
      } catch (const RemoteError&) {
        throw;                  // the server is away, and would be asked for each picture again
      } catch (const Error&) {  // told of where it is read
      }
    }
  });
  std::erase_if(seen, [](const Seen& each) { return !each.good; });
  return seen;
}

struct SeenBytes {
  int64_t index = 0;
  bool good = false;
  uint64_t content = 0;
};

std::vector<SeenBytes> read_around(const Dataset& set, const Contents& pictures, LookClock::time_point end) {
  return look_around<SeenBytes>(set.count(), 1'000'000, end, [&](int64_t i, PictureReader&, SeenBytes& seen) {
    const StoredPicture stored = stored_picture(pictures.read(i));
    seen = {i, !stored.bytes.empty(), XXH3_64bits(stored.bytes.data(), stored.bytes.size())};
  });
}

std::vector<SeenPicture> see_around(const Dataset& set, const Contents& pictures, LookClock::time_point end) {
  return look_around<SeenPicture>(
      set.count(), most_looks, end, [&](int64_t i, PictureReader& reader, SeenPicture& seen) {
        const StoredPicture stored = stored_picture(pictures.read(i));
        if (!reader.open(stored).empty()) return;
        const Frame all = whole_frame(reader.height(), reader.width(), look_side, look_side);
        if (!reader.load(all, 1, true, seen.grey.data()).empty()) return;
        seen.looks = likeness({look_side, look_side, 1, {seen.grey.begin(), seen.grey.end()}});
        seen.index = i;
        seen.good = true;
      });
}

/// The grey of most pixels: paper, a studio's wall.
int ground_of(const SeenPicture& picture) {
  constexpr int wide = 8;
  std::array<int, 256 / wide> counts{};
  for (const uint8_t grey : picture.grey) ++counts[grey / wide];
  const auto most = std::max_element(counts.begin(), counts.end());
  return static_cast<int>(most - counts.begin()) * wide + wide / 2;
}

/// More alike than hashes alone can tell: the mean difference where they are not ground. Digits and drawings
/// have so much of it that many of them differ little on the whole.
bool same_greys(const SeenPicture& a, const SeenPicture& b) {
  constexpr int most_difference = 5, ground = 12;
  const int of_a = ground_of(a), of_b = ground_of(b);
  int difference = 0, pixels = 0;
  for (size_t i = 0; i < a.grey.size(); ++i) {
    if (std::abs(a.grey[i] - of_a) <= ground && std::abs(b.grey[i] - of_b) <= ground) continue;
    difference += std::abs(a.grey[i] - b.grey[i]);
    ++pixels;
  }
  return pixels > 0 && difference <= most_difference * pixels;
}

/// Pictures of training by parts of their hashes, of which hashes of three different bits share one.
class LookAlikes {
 public:
  explicit LookAlikes(const std::vector<SeenPicture>& pictures) : pictures_(pictures) {
    for (size_t i = 0; i < pictures.size(); ++i)
      for (int band = 0; band < look_bands; ++band) {
        auto& list = bands_[key(pictures[i], band)];
        if (list.size() < most_alike) list.push_back(static_cast<uint32_t>(i));
      }
  }
  const SeenPicture* find(const SeenPicture& picture) const {
    for (int band = 0; band < look_bands; ++band)
      if (const auto at = bands_.find(key(picture, band)); at != bands_.end())
        for (const uint32_t i : at->second)
          if (look_alike(picture.looks, pictures_[i].looks, look_bits) && same_greys(picture, pictures_[i]))
            return &pictures_[i];
    return nullptr;
  }

 private:
  static uint32_t key(const SeenPicture& picture, int band) {
    return static_cast<uint32_t>(band) << 16 | static_cast<uint16_t>(picture.looks.hash >> 16 * band);
  }
  const std::vector<SeenPicture>& pictures_;
  std::unordered_map<uint32_t, std::vector<uint32_t>> bands_;
};

}  // namespace

RepeatedPictures repeated_pictures(const Dataset& train, const Dataset& test, const std::string& column,
                                   double seconds) {
  const auto begin = LookClock::now();
  const auto until = [&](double share) {
    return begin +
           std::chrono::duration_cast<LookClock::duration>(std::chrono::duration<double>(share * seconds));
  };
  const Contents trained(train, ColumnKind::picture, column), tested(test, ColumnKind::picture, column);
  RepeatedPictures result;
  std::vector<char> found(static_cast<size_t>(test.count()));
  const auto add = [&](int64_t in_test, int64_t in_train) {
    char& known = found[static_cast<size_t>(in_test)];
    if (known) return;
    known = 1;
    if (result.repeated++ > 0) return;
    result.test = test.name(in_test);
    result.train = train.name(in_train);
  };
  // The same files are found many times faster than those that only look alike.
  const auto files = read_around(test, tested, until(0.15)),
             trained_files = read_around(train, trained, until(0.3));
  std::unordered_map<uint64_t, int64_t> contents;
  for (const SeenBytes& each : trained_files) contents.emplace(each.content, each.index);
  for (const SeenBytes& each : files)
    if (const auto at = contents.find(each.content); at != contents.end()) add(each.index, at->second);
  const auto pictures = see_around(test, tested, until(0.6)), others = see_around(train, trained, until(1));
  const LookAlikes alikes(others);
  for (const SeenPicture& each : pictures)
    if (const SeenPicture* other = found[static_cast<size_t>(each.index)] ? nullptr : alikes.find(each))
      add(each.index, other->index);
  result.bytes = {std::ssize(files), std::ssize(trained_files)};
  result.looks = {std::ssize(pictures), std::ssize(others)};
  return result;
}

}  // namespace millrace::data
