#include <algorithm>
#include <atomic>
#include <doctest/doctest.h>

#include <millrace/error.h>
#include <millrace/feed.h>

#include "base/file.h"
#include "base/format.h"
#include "data/feed/streams/stream_feed.h"
#include "data/feed/streams/stream_memory.h"
#include "data/feed/streams/stream_parts.h"
#include "data/formats/streams/stream.h"
#include "support/pictures.h"
#include "support/streams.h"
#include "support/temp_folder.h"

using namespace millrace;
using namespace millrace::data;
using namespace millrace::testing;

namespace {

/// Bytes of samples that are alive, of all streams, as the samples themselves tell.
std::atomic<int64_t> bytes_alive{0}, most_bytes_alive{0};

/// Another stream, whose samples are counted as long as anybody keeps them.
class CountedStream final : public Stream {
 public:
  explicit CountedStream(std::unique_ptr<Stream> of) : Stream(of->path()), of_(std::move(of)) {}
  bool next(StreamRecord& record) override {
    if (!of_->next(record)) return false;
    const auto size = static_cast<int64_t>(record.bytes.size());
    const int64_t now = bytes_alive += size;
    for (int64_t most = most_bytes_alive; now > most && !most_bytes_alive.compare_exchange_weak(most, now);)
      continue;
    record.bytes = Bytes(record.bytes.view(),
                         std::shared_ptr<const void>(nullptr, [kept = record.bytes, size](const void*) {
                           (void)kept;
                           bytes_alive -= size;
                         }));
    return true;
  }
  void seek(const StreamPlace& place) override { of_->seek(place); }
  void stop() override { of_->stop(); }
  void set_room(SampleRoom room) override { of_->set_room(std::move(room)); }
  std::unique_ptr<Dataset> samples(std::span<const StreamRecord> records) const override {
    return of_->samples(records);
  }
  const std::string& format() const override { return of_->format(); }

 private:
  std::unique_ptr<Stream> of_;
};

/// Samples of pictures 8×8, each with so many bytes of no use.
std::string stuffed(const std::vector<size_t>& sizes, int64_t first = 0) {
  std::string tar;
  for (size_t i = 0; i < sizes.size(); ++i)
    tar += members(1, {}, first + static_cast<int64_t>(i)) +
           member(fmt::format("{:05}.bin", first + static_cast<int64_t>(i)), std::string(sizes[i], 'x'));
  return tar + end_mark;
}

StreamFeedOptions limited_options(int64_t memory, int threads,
                                  const std::string& order = "shuffle-buffer 20") {
  StreamFeedOptions given;
  given.batch = 4;
  given.threads = threads;
  given.epoch_samples = 40;
  given.order = order;
  given.memory = memory;
  given.unit = "pictures";
  return given;
}

std::unique_ptr<StreamFeed> limited_feed(const std::vector<std::string>& paths, StreamFeedOptions given) {
  most_bytes_alive = bytes_alive.load();
  std::vector<NamedStream> streams;
  for (size_t i = 0; i < paths.size(); ++i)
    streams.push_back({paths.size() == 1 ? "" : fmt::format("s{}", i),
                       std::make_unique<CountedStream>(open_stream(paths[i]))});
  if (paths.size() > 1) given.shares.assign(paths.size(), 1);
  return stream_feed(std::move(streams), stream_parts(), given);
}

/// Batches up to the error, and this.
std::pair<std::vector<StreamBatch>, std::string> batches_until_error(StreamFeed& feed, int most) {
  std::vector<StreamBatch> got;
  try {
    for (int i = 0; i < most; ++i) got.push_back(take_stream_batches(feed, 1)[0]);
  } catch (const InputError& error) {
    return {got, error.what()};
  }
  return {got, ""};
}

}  // namespace

TEST_CASE("under a limit of memory a stream gives the same samples, with fewer of them ahead") {
  const TempFolder folder;
  const std::string path = (folder.path() / "a.tar").string();
  std::vector<size_t> sizes;
  for (size_t i = 0; i < 50; ++i) sizes.push_back(1000 + i * 7919 % 30'000);
  put_file(path, stuffed(sizes));
  for (const int ranks : {1, 2}) {
    StreamFeedOptions free = limited_options(0, 3);
    free.ranks = ranks;
    auto unlimited = limited_feed({path}, free);
    const std::vector<StreamBatch> wanted = take_stream_batches(*unlimited, 40);
    const int64_t took = most_bytes_alive;
    CHECK(unlimited->memory() == 0);
    unlimited.reset();
    for (const int threads : {1, 4})
      for (const int64_t memory : {int64_t{620'000}, int64_t{900'000}, int64_t{20'000'000}}) {
        CAPTURE(ranks);
        CAPTURE(threads);
        CAPTURE(memory);
        StreamFeedOptions given = limited_options(memory, threads);
        given.ranks = ranks;
        const auto feed = limited_feed({path}, given);
        std::vector<StreamBatch> got = take_stream_batches(*feed, 13);
        const Cursor cursor = feed->cursor();
        const std::vector<StreamBatch> rest = take_stream_batches(*feed, 27);
        got.insert(got.end(), rest.begin(), rest.end());
        CHECK(got == wanted);
        // By its own count, and by what was really there of stored samples.
        CHECK(feed->memory() <= memory);
        CHECK(feed->memory() > 300'000);
        CHECK(most_bytes_alive.load() <= memory);
        CHECK(most_bytes_alive.load() <= feed->memory());
        if (memory < took && ranks == 1) CHECK(most_bytes_alive.load() < took);
        feed->seek(cursor);
        CHECK(take_stream_batches(*feed, 27) == rest);
        CHECK(feed->memory() <= memory);
      }
  }
  CHECK(bytes_alive.load() == 0);
}

TEST_CASE("a shuffle buffer that does not fit is refused with what fits, always at the same sample") {
  const TempFolder folder;
  const std::string path = (folder.path() / "a.tar").string();
  // The larger samples come later: that the buffer does not fit shows on the way.
  std::vector<size_t> sizes(60, 10'000);
  sizes.resize(120, 40'000);
  put_file(path, stuffed(sizes));
  constexpr int64_t memory = 700'000;
  const std::vector<StreamBatch> wanted =
      take_stream_batches(*limited_feed({path}, limited_options(0, 2)), 30);
  std::vector<size_t> lengths;
  for (const int threads : {1, 2, 4}) {
    const auto feed = limited_feed({path}, limited_options(memory, threads));
    const auto [got, why] = batches_until_error(*feed, 30);
    CAPTURE(why);
    CHECK(why.find("a.tar: data.memory leaves 0.") != std::string::npos);
    CHECK(why.find("20 of the 20 in the shuffle buffer take 0.") != std::string::npos);
    CHECK(why.find("raise data.memory so that it leaves 0.") != std::string::npos);
    CHECK(why.find("or set data.order = \"shuffle-buffer 1") != std::string::npos);
    CHECK(got.size() > 8);
    CHECK(got == std::vector<StreamBatch>(wanted.begin(), wanted.begin() + std::ssize(got)));
    CHECK(feed->memory() <= memory);
    CHECK(most_bytes_alive.load() <= memory);
    lengths.push_back(got.size());
    // The place is good, for a larger limit, and for the same one up to the same sample.
    const Cursor cursor = feed->cursor();
    const auto larger = limited_feed({path}, limited_options(2 * memory, threads));
    larger->seek(cursor);
    CHECK(take_stream_batches(*larger, 5) ==
          std::vector<StreamBatch>(wanted.begin() + std::ssize(got), wanted.begin() + std::ssize(got) + 5));
    const auto again = limited_feed({path}, limited_options(memory, threads));
    take_stream_batches(*again, 3);
    const Cursor early = again->cursor();
    const auto resumed = limited_feed({path}, limited_options(memory, threads));
    resumed->seek(early);
    const auto [rest, why_again] = batches_until_error(*resumed, 30);
    CHECK(rest.size() == got.size() - 3);
    CHECK(why_again == why);
  }
  CHECK(lengths == std::vector<size_t>(3, lengths[0]));

  // While it is filled: what fits is said, and does fit.
  put_file(path, stuffed(std::vector<size_t>(400, 10'000)));
  const std::string large = "shuffle-buffer 300";
  const auto [none, why] = batches_until_error(*limited_feed({path}, limited_options(memory, 2, large)), 30);
  CAPTURE(why);
  CHECK(none.empty());
  CHECK(why.find(" of the 300 in the shuffle buffer take ") != std::string::npos);
  const size_t at = why.find("\"shuffle-buffer ");
  REQUIRE(at != std::string::npos);
  const std::string fits = why.substr(at + 1, why.rfind('"') - at - 1);
  CHECK(batches_until_error(*limited_feed({path}, limited_options(memory, 2, fits)), 100).second.empty());
  const int64_t size = std::stoll(fits.substr(fits.rfind(' ')));
  CHECK(batches_until_error(
            *limited_feed({path}, limited_options(memory, 2, fmt::format("shuffle-buffer {}", size * 3 / 2))),
            1)
            .second != "");
  CHECK(bytes_alive.load() == 0);
}

TEST_CASE("one sample, a batch, or what is looked at first may be more than a limit of memory") {
  const TempFolder folder;
  const std::string path = (folder.path() / "a.tar").string();
  put_file(path, stuffed({100, 100, 100, 100, 100, 100, 100, 900'000, 100}));
  const auto [got, why] =
      batches_until_error(*limited_feed({path}, limited_options(1'000'000, 2, "sequential")), 5);
  CHECK(got.size() == 1);
  CHECK(why.find("one that is read or decoded takes 1.") != std::string::npos);
  CHECK(why.find("shuffle-buffer") == std::string::npos);
  CHECK(most_bytes_alive.load() < 1'000'000);
  CHECK(batches_until_error(*limited_feed({path}, limited_options(3'000'000, 2, "sequential")), 5)
            .second.empty());

  const std::string small = refusal([&] { limited_feed({path}, limited_options(22'000, 2)); });
  CAPTURE(small);
  CHECK(small.find("a batch of 4 with a picture") != std::string::npos);
  put_file(path, stuffed(std::vector<size_t>(70, 5000)));
  const std::string first =
      refusal([&] { limited_feed({path}, limited_options(300'000, 2, "sequential"))->first_samples(64); });
  CHECK(first.find(" of the 64 that are looked at first take 0.") != std::string::npos);
  CHECK(limited_feed({path}, limited_options(2'000'000, 2, "sequential"))->first_samples(64)->count() == 64);
}

TEST_CASE("a condition goes with a limit of memory, and what it passes over takes none") {
  const TempFolder folder;
  const std::string path = (folder.path() / "a.tar").string();
  put_file(path, stuffed(std::vector<size_t>(90, 9000)));
  const auto run = [&](int64_t memory) {
    StreamFeedOptions given = limited_options(memory, 3);
    given.batch = 2;
    // One in three is kept; the first two are looked at before one matches.
    const auto feed =
        feed_of_stream(select(std::make_unique<CountedStream>(open_stream(path)), "cls = 2"), given);
    most_bytes_alive = bytes_alive.load();
    std::vector<StreamBatch> got = take_stream_batches(*feed, 30);
    if (memory > 0) CHECK(feed->memory() <= memory);
    if (memory > 0) CHECK(most_bytes_alive.load() <= memory);
    return got;
  };
  CHECK(run(450'000) == run(0));
  CHECK(run(450'000)[0].labels == std::vector<int64_t>{2, 2});
  CHECK_THROWS_WITH_AS(run(200'000), doctest::Contains("in the shuffle buffer take"), InputError);
}

TEST_CASE("several streams share a limit of memory, also when their weights change") {
  const TempFolder folder;
  const std::string a = (folder.path() / "a.tar").string(), b = (folder.path() / "b.tar").string();
  put_file(a, stuffed(std::vector<size_t>(30, 3000)));
  put_file(b, stuffed(std::vector<size_t>(40, 9000), 100));
  constexpr int64_t memory = 900'000;
  const auto run = [&](StreamFeed& feed) {
    std::vector<StreamBatch> got = take_stream_batches(feed, 10);
    for (const std::vector<double>& shares : {std::vector<double>{1, 0}, {0, 1}, {3, 1}}) {
      (void)feed.ready(10);
      feed.set_shares(shares);
      const std::vector<StreamBatch> more = take_stream_batches(feed, 7);
      got.insert(got.end(), more.begin(), more.end());
    }
    return got;
  };
  const std::vector<StreamBatch> wanted = run(*limited_feed({a, b}, limited_options(0, 3)));
  for (const int threads : {1, 4}) {
    const auto feed = limited_feed({a, b}, limited_options(memory, threads));
    CHECK(run(*feed) == wanted);
    CHECK(feed->memory() <= memory);
    CHECK(most_bytes_alive.load() <= memory);
  }
  const auto [got, why] = batches_until_error(*limited_feed({a, b}, limited_options(400'000, 2)), 5);
  CAPTURE(why);
  CHECK(why.find("b.tar: data.memory leaves 0.2 MB for samples of this stream, which need about 0.3 MB") !=
        std::string::npos);
  CHECK(bytes_alive.load() == 0);
}
