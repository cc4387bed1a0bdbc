#include <algorithm>
#include <atomic>
#include <doctest/doctest.h>

#include <millrace/error.h>

#include "base/file.h"
#include "data/feed/loader.h"
#include "data/feed/loader_options.h"
#include "data/feed/streams/stream_loader.h"
#include "data/formats/streams/stream.h"
#include "support/streams.h"
#include "support/temp_folder.h"

using namespace millrace;
using namespace millrace::data;
using namespace millrace::testing;

namespace {

/// Bytes of samples that are alive, of all streams, as the samples themselves tell.
std::atomic<int64_t> alive{0}, most_alive{0};

/// Another stream, whose samples are counted as long as anybody keeps them.
class Counted final : public Stream {
 public:
  explicit Counted(std::unique_ptr<Stream> of) : Stream(of->path()), of_(std::move(of)) {}
  bool next(StreamRecord& record) override {
    if (!of_->next(record)) return false;
    const auto size = static_cast<int64_t>(record.bytes.size());
    const int64_t now = alive += size;
    for (int64_t most = most_alive; now > most && !most_alive.compare_exchange_weak(most, now);) continue;
    record.bytes = Bytes(record.bytes.view(),
                         std::shared_ptr<const void>(nullptr, [kept = record.bytes, size](const void*) {
                           (void)kept;
                           alive -= size;
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
std::string samples(const std::vector<size_t>& sizes, int64_t first = 0) {
  std::string tar;
  for (size_t i = 0; i < sizes.size(); ++i)
    tar += members(1, {}, first + static_cast<int64_t>(i)) +
           member(fmt::format("{:05}.bin", first + static_cast<int64_t>(i)), std::string(sizes[i], 'x'));
  return tar + end_mark;
}

LoaderOptions options(int64_t memory, int threads, const std::string& order = "shuffle-buffer 20") {
  LoaderOptions given;
  given.batch = 4;
  given.threads = threads;
  given.epoch_samples = 40;
  given.order = order;
  given.memory = memory;
  given.augment = {"pad-crop 1", "flip"};
  return given;
}

std::unique_ptr<Loader> loader_of(const std::vector<std::string>& paths, LoaderOptions given) {
  most_alive = alive.load();
  std::vector<NamedStream> streams;
  for (size_t i = 0; i < paths.size(); ++i)
    streams.push_back(
        {paths.size() == 1 ? "" : fmt::format("s{}", i), std::make_unique<Counted>(open_stream(paths[i]))});
  if (paths.size() > 1) given.shares.assign(paths.size(), 1);
  return std::make_unique<Loader>(streamed(std::move(streams), {"a", "b", "c"}, given));
}

/// Batches up to the error, and this.
std::pair<std::vector<Copy>, std::string> until_error(Loader& loader, int most) {
  std::vector<Copy> got;
  try {
    for (int i = 0; i < most; ++i) got.push_back(take(loader, 1)[0]);
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
  put_file(path, samples(sizes));
  for (const int ranks : {1, 2}) {
    LoaderOptions free = options(0, 3);
    free.ranks = ranks;
    auto unlimited = loader_of({path}, free);
    const std::vector<Copy> wanted = take(*unlimited, 40);
    const int64_t took = most_alive;
    CHECK(unlimited->memory_used() == 0);
    unlimited.reset();
    for (const int threads : {1, 4})
      for (const int64_t memory : {int64_t{620'000}, int64_t{900'000}, int64_t{20'000'000}}) {
        CAPTURE(ranks);
        CAPTURE(threads);
        CAPTURE(memory);
        LoaderOptions given = options(memory, threads);
        given.ranks = ranks;
        const auto loader = loader_of({path}, given);
        std::vector<Copy> got = take(*loader, 13);
        const Cursor cursor = loader->cursor();
        const std::vector<Copy> rest = take(*loader, 27);
        got.insert(got.end(), rest.begin(), rest.end());
        CHECK(got == wanted);
        // By its own count, and by what was really there of stored samples.
        CHECK(loader->memory_used() <= memory);
        CHECK(loader->memory_used() > 300'000);
        CHECK(most_alive.load() <= memory);
        CHECK(most_alive.load() <= loader->memory_used());
        if (memory < took && ranks == 1) CHECK(most_alive.load() < took);
        loader->seek(cursor);
        CHECK(take(*loader, 27) == rest);
        CHECK(loader->memory_used() <= memory);
      }
  }
  CHECK(alive.load() == 0);
}

TEST_CASE("a shuffle buffer that does not fit is refused with what fits, always at the same sample") {
  const TempFolder folder;
  const std::string path = (folder.path() / "a.tar").string();
  // The larger samples come later: that the buffer does not fit shows on the way.
  std::vector<size_t> sizes(60, 10'000);
  sizes.resize(120, 40'000);
  put_file(path, samples(sizes));
  constexpr int64_t memory = 700'000;
  const std::vector<Copy> wanted = take(*loader_of({path}, options(0, 2)), 30);
  std::vector<size_t> lengths;
  for (const int threads : {1, 2, 4}) {
    const auto loader = loader_of({path}, options(memory, threads));
    const auto [got, why] = until_error(*loader, 30);
    CAPTURE(why);
    CHECK(why.find("a.tar: data.memory leaves 0.") != std::string::npos);
    CHECK(why.find("20 of the 20 in the shuffle buffer take 0.") != std::string::npos);
    CHECK(why.find("raise data.memory so that it leaves 0.") != std::string::npos);
    CHECK(why.find("or set data.order = \"shuffle-buffer 1") != std::string::npos);
    CHECK(got.size() > 8);
    CHECK(got == std::vector<Copy>(wanted.begin(), wanted.begin() + std::ssize(got)));
    CHECK(loader->memory_used() <= memory);
    CHECK(most_alive.load() <= memory);
    lengths.push_back(got.size());
    // The place is good, for a larger limit, and for the same one up to the same sample.
    const Cursor cursor = loader->cursor();
    const auto larger = loader_of({path}, options(2 * memory, threads));
    larger->seek(cursor);
    CHECK(take(*larger, 5) ==
          std::vector<Copy>(wanted.begin() + std::ssize(got), wanted.begin() + std::ssize(got) + 5));
    const auto again = loader_of({path}, options(memory, threads));
    take(*again, 3);
    const Cursor early = again->cursor();
    const auto resumed = loader_of({path}, options(memory, threads));
    resumed->seek(early);
    const auto [rest, why_again] = until_error(*resumed, 30);
    CHECK(rest.size() == got.size() - 3);
    CHECK(why_again == why);
  }
  CHECK(lengths == std::vector<size_t>(3, lengths[0]));

  // While it is filled: what fits is said, and does fit.
  put_file(path, samples(std::vector<size_t>(400, 10'000)));
  const std::string large = "shuffle-buffer 300";
  const auto [none, why] = until_error(*loader_of({path}, options(memory, 2, large)), 30);
  CAPTURE(why);
  CHECK(none.empty());
  CHECK(why.find(" of the 300 in the shuffle buffer take ") != std::string::npos);
  const size_t at = why.find("\"shuffle-buffer ");
  REQUIRE(at != std::string::npos);
  const std::string fits = why.substr(at + 1, why.rfind('"') - at - 1);
  CHECK(until_error(*loader_of({path}, options(memory, 2, fits)), 100).second.empty());
  const int64_t size = std::stoll(fits.substr(fits.rfind(' ')));
  CHECK(until_error(*loader_of({path}, options(memory, 2, fmt::format("shuffle-buffer {}", size * 3 / 2))), 1)
            .second != "");
  CHECK(alive.load() == 0);
}

TEST_CASE("one sample, a batch, or what is looked at first may be more than a limit of memory") {
  const TempFolder folder;
  const std::string path = (folder.path() / "a.tar").string();
  put_file(path, samples({100, 100, 100, 100, 100, 100, 100, 900'000, 100}));
  const auto [got, why] = until_error(*loader_of({path}, options(1'000'000, 2, "sequential")), 5);
  CHECK(got.size() == 1);
  CHECK(why.find("one that is read or decoded takes 1.") != std::string::npos);
  CHECK(why.find("shuffle-buffer") == std::string::npos);
  CHECK(most_alive.load() < 1'000'000);
  CHECK(until_error(*loader_of({path}, options(3'000'000, 2, "sequential")), 5).second.empty());

  const std::string small = message<InputError>([&] { loader_of({path}, options(22'000, 2)); });
  CAPTURE(small);
  CHECK(small.find("a batch of 4 with a picture") != std::string::npos);
  put_file(path, samples(std::vector<size_t>(70, 5000)));
  const std::string first =
      message<InputError>([&] { loader_of({path}, options(300'000, 2, "sequential"))->first_pictures(64); });
  CHECK(first.find(" of the 64 that are looked at first take 0.") != std::string::npos);
  CHECK(loader_of({path}, options(2'000'000, 2, "sequential"))->first_pictures(64).size() == 64 * 8 * 8 * 3);
}

TEST_CASE("a condition goes with a limit of memory, and what it passes over takes none") {
  const TempFolder folder;
  const std::string path = (folder.path() / "a.tar").string();
  put_file(path, samples(std::vector<size_t>(90, 9000)));
  const auto run = [&](int64_t memory) {
    LoaderOptions given = options(memory, 3);
    given.batch = 2;
    const std::vector<std::string> classes = {"a", "b", "c"};
    // One in three is kept; the first two are looked at before one matches.
    Loader loader(streamed(select(std::make_unique<Counted>(open_stream(path)), "cls = 2"), classes, given));
    most_alive = alive.load();
    std::vector<Copy> got = take(loader, 30);
    if (memory > 0) CHECK(loader.memory_used() <= memory);
    if (memory > 0) CHECK(most_alive.load() <= memory);
    return got;
  };
  CHECK(run(450'000) == run(0));
  CHECK(run(450'000)[0].labels == std::vector<int64_t>{2, 2});
  CHECK_THROWS_WITH_AS(run(200'000), doctest::Contains("in the shuffle buffer take"), InputError);
}

TEST_CASE("several streams share a limit of memory, also when their weights change") {
  const TempFolder folder;
  const std::string a = (folder.path() / "a.tar").string(), b = (folder.path() / "b.tar").string();
  put_file(a, samples(std::vector<size_t>(30, 3000)));
  put_file(b, samples(std::vector<size_t>(40, 9000), 100));
  constexpr int64_t memory = 900'000;
  const auto run = [&](Loader& loader) {
    std::vector<Copy> got = take(loader, 10);
    for (const std::vector<double>& shares : {std::vector<double>{1, 0}, {0, 1}, {3, 1}}) {
      (void)loader.ready(10);
      loader.set_shares(shares);
      const std::vector<Copy> more = take(loader, 7);
      got.insert(got.end(), more.begin(), more.end());
    }
    return got;
  };
  const std::vector<Copy> wanted = run(*loader_of({a, b}, options(0, 3)));
  for (const int threads : {1, 4}) {
    const auto loader = loader_of({a, b}, options(memory, threads));
    CHECK(run(*loader) == wanted);
    CHECK(loader->memory_used() <= memory);
    CHECK(most_alive.load() <= memory);
  }
  const auto [got, why] = until_error(*loader_of({a, b}, options(400'000, 2)), 5);
  CAPTURE(why);
  CHECK(why.find("b.tar: data.memory leaves 0.2 MB for samples of this stream, which need about 0.3 MB") !=
        std::string::npos);
  CHECK(alive.load() == 0);
}
