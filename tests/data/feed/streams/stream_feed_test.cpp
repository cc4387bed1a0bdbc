#include "data/feed/streams/stream_feed.h"

#include <algorithm>
#include <doctest/doctest.h>

#include <millrace/error.h>
#include <millrace/feed.h>

#include "base/file.h"
#include "base/format.h"
#include "data/feed/streams/stream_parts.h"
#include "data/formats/streams/stream.h"
#include "data/io/compression.h"
#include "support/pictures.h"
#include "support/streams.h"
#include "support/temp_folder.h"

using namespace millrace;
using namespace millrace::data;
using namespace millrace::testing;

namespace {

StreamFeedOptions stream_options(int64_t batch, int64_t epoch, int threads = 2) {
  StreamFeedOptions given;
  given.batch = batch;
  given.threads = threads;
  given.epoch_samples = epoch;
  given.order = "shuffle-buffer 7";
  given.unit = "pictures";
  return given;
}

std::unique_ptr<StreamFeed> stream_feed_of(const std::string& path, const StreamFeedOptions& given) {
  return feed_of_stream(open_stream(path), given);
}

}  // namespace

TEST_CASE("each pass draws every sample once, out of order by no more than the buffer holds") {
  const TempFolder folder;
  const std::string path = (folder.path() / "a.tar").string();
  put_file(path, members(30) + end_mark);
  StreamFeedOptions given = stream_options(6, 30);
  const auto feed = stream_feed_of(path, given);
  CHECK(feed->streamed());
  CHECK(feed->batches_per_epoch() == 5);
  std::vector<std::vector<int64_t>> passes;
  for (int pass = 0; pass < 3; ++pass) {
    std::vector<int64_t> seen;
    for (const StreamBatch& batch : take_stream_batches(*feed, 5))
      for (size_t i = 0; i < 6; ++i) {
        seen.push_back(batch.indices[i]);
        CHECK(batch.labels[i] == batch.indices[i] % 3);
        CHECK(batch.names[i] == fmt::format("{}:{:05}", path, batch.indices[i]));
      }
    passes.push_back(seen);
    for (size_t i = 0; i < seen.size(); ++i) CHECK(seen[i] <= static_cast<int64_t>(i) + 6);
    std::sort(seen.begin(), seen.end());
    for (int64_t i = 0; i < 30; ++i) CHECK(seen[static_cast<size_t>(i)] == i);
  }
  CHECK(passes[0] != passes[1]);
  CHECK(passes[1] != passes[2]);
  given.order = "sequential";
  const std::vector<StreamBatch> plain = take_stream_batches(*stream_feed_of(path, given), 2);
  CHECK(plain[1].indices == std::vector<int64_t>{6, 7, 8, 9, 10, 11});
}

TEST_CASE("batches of a stream are the same for any number of threads, and from any cursor on") {
  const TempFolder folder;
  const std::string path = (folder.path() / "a.tar").string();
  put_file(path, members(40, {0, 5, 6, 7, 39}) + end_mark);
  constexpr int total = 14;  // 84 samples of 35 good ones a pass: into the third
  std::vector<StreamBatch> whole;
  for (const int threads : {1, 2, 5}) {
    const auto batches = take_stream_batches(*stream_feed_of(path, stream_options(6, 20, threads)), total);
    if (whole.empty()) whole = batches;
    CHECK(batches == whole);
  }
  for (const StreamBatch& batch : whole)
    for (const int64_t index : batch.indices)
      CHECK((index != 0 && index != 5 && index != 6 && index != 7 && index != 39));
  const std::string plain = read_text(path);
  const auto packed = pack_zstd({reinterpret_cast<const uint8_t*>(plain.data()), plain.size()});
  put_file(path + ".zst", {packed.begin(), packed.end()});
  for (const std::string& from : {path, "pipe:cat " + path, path + ".zst"}) {
    std::vector<Cursor> cursors;
    const auto feed = stream_feed_of(from, stream_options(6, 20));
    for (int i = 0; i < total; ++i) {
      // A look ahead does not move the cursor.
      if (i % 2) CHECK(feed->ready(60));
      cursors.push_back(feed->cursor());
      CHECK(feed->next().start == Cursor{1, i / 3, i % 3 * 6});
    }
    for (const int at : {0, 1, 4, 5, 6, 9, 13}) {
      CAPTURE(at);
      const auto again = at % 2 ? stream_feed_of(from, stream_options(6, 20, 1)) : nullptr;
      StreamFeed& other = again ? *again : *feed;
      other.seek(cursors[static_cast<size_t>(at)]);
      CHECK(other.cursor() == cursors[static_cast<size_t>(at)]);
      std::vector<StreamBatch> rest = take_stream_batches(other, total - at);
      for (StreamBatch& each : rest)  // names begin with what was opened
        for (std::string& name : each.names) name = path + name.substr(from.size());
      CHECK(std::equal(rest.begin(), rest.end(), whole.begin() + at));
    }
  }
}

TEST_CASE("bad samples of a stream are left out, counted and named") {
  const TempFolder folder;
  const std::string path = (folder.path() / "a.tar").string();
  put_file(path, members(10, {2}) + member("00010.jpg", make_jpeg(8, 8, 3, 1)) + member("00010.cls", "3") +
                     member("00011.cls", "1") + member("00012.jpg", make_jpeg(8, 8, 3, 2)) +
                     members(3, {}, 13) + end_mark);
  StreamFeedOptions given = stream_options(4, 12);
  given.order = "sequential";
  const auto feed = stream_feed_of(path, given);
  const std::vector<StreamBatch> batches = take_stream_batches(*feed, 3);
  CHECK(batches[0].indices == std::vector<int64_t>{0, 1, 3, 4});
  CHECK(batches[2].indices == std::vector<int64_t>{9, 13, 14, 15});
  const std::vector<BadSample> bad = feed->bad_samples();
  REQUIRE(bad.size() == 4);
  CHECK(bad[0].name == path + ":00002");
  CHECK(bad[1].why == "is of class 3, there are 3");
  CHECK(bad[2].why.find("has no picture") != std::string::npos);
  CHECK(bad[3].why.find("has no cls") != std::string::npos);
  CHECK(feed->tried().samples == 16);
  CHECK(feed->tried().bad == 4);
}

TEST_CASE("a pipe that gives other data, less of it, or fails says so, and the cursor stays good") {
  const TempFolder folder;
  const std::string path = (folder.path() / "a.tar").string(), pipe = "pipe:cat " + path;
  const std::string all = members(40) + end_mark;
  put_file(path, all);
  const auto whole = take_stream_batches(*stream_feed_of(pipe, stream_options(6, 36)), 5);
  Cursor cursor;
  {
    // It breaks within sample 20.
    put_file(path, all.substr(0, members(20).size() + 600));
    const auto feed = stream_feed_of(pipe + "; exit 4", stream_options(6, 36));
    int done = 0;
    const std::string why = refusal<IoError>([&] {
      for (; done < 6; ++done) {
        const bool same =
            take_stream_batches(*feed, 1)[0].indices == whole[static_cast<size_t>(done)].indices;
        CHECK(same);
      }
    });
    CHECK(why.find("exit status 4") != std::string::npos);
    CHECK(done == 2);  // 20 samples, of which the buffer keeps 7
    CHECK(refusal<IoError>([&] { feed->next(); }) == why);
    cursor = feed->cursor();
  }
  const auto resumed = [&] {
    const auto feed = stream_feed_of(pipe, stream_options(6, 36));
    feed->seek(cursor);
    return take_stream_batches(*feed, 3);
  };
  put_file(path, all);
  const auto rest = resumed();
  CHECK(std::equal(rest.begin(), rest.end(), whole.begin() + 2));
  put_file(path, members(10) + end_mark);
  CHECK(refusal(resumed).find("gives other data than when the run was saved") != std::string::npos);
  put_file(path, members(40, {12, 13, 14, 15, 16, 17, 18}) + end_mark);
  CHECK(refusal(resumed).find("is another than when the run was saved") != std::string::npos);
}

TEST_CASE("a stream that stalls can be waited for, given up and gone on with") {
  const TempFolder folder;
  const std::string path = (folder.path() / "a.tar").string(), gate = (folder.path() / "gate").string();
  put_file(path, members(40) + end_mark);
  const std::string pipe = fmt::format("pipe:head -c {} {}; [ -e {} ] || sleep 1000; tail -c +{} {}",
                                       members(20).size(), path, gate, members(20).size() + 1, path);
  const auto whole = take_stream_batches(*stream_feed_of(path, stream_options(6, 36)), 5);
  Cursor cursor;
  {
    const auto feed = stream_feed_of(pipe, stream_options(6, 36));
    take_stream_batches(*feed, 2);
    CHECK(!feed->ready(0.2));
    cursor = feed->cursor();
  }  // ends the command
  put_file(gate, "");
  const auto feed = stream_feed_of(pipe, stream_options(6, 36));
  feed->seek(cursor);
  const auto rest = take_stream_batches(*feed, 3);
  for (int i = 0; i < 3; ++i)
    CHECK(rest[static_cast<size_t>(i)].pictures == whole[static_cast<size_t>(i + 2)].pictures);
}

TEST_CASE("cursors of streams that are not theirs are refused") {
  const TempFolder folder;
  const std::string path = (folder.path() / "a.tar").string();
  put_file(path, members(20) + end_mark);
  const auto feed = stream_feed_of(path, stream_options(6, 18));
  feed->next();
  const Cursor good = feed->cursor();
  for (size_t i = 0; i < 7; ++i)
    for (const int64_t wrong : {int64_t{-1}, INT64_MAX}) {
      if (i == 4 && wrong > 0) continue;  // any number of draws is possible
      if (i == 3 && wrong > 0) continue;  // and of passes
      if (i == 5 && wrong > 0) continue;  // and of samples, as far as anyone knows before reading
      if (i == 6) continue;               // true or false
      Cursor cursor = good;
      cursor.state[i] = wrong;
      CAPTURE(i);
      CHECK_THROWS_AS(feed->seek(cursor), InputError);
    }
  Cursor cursor = good;
  cursor.state.pop_back();
  CHECK_THROWS_AS(feed->seek(cursor), InputError);
  cursor = good;
  cursor.position = 19;
  CHECK_THROWS_AS(feed->seek(cursor), InputError);
  StreamFeedOptions other = stream_options(6, 18);
  other.order = "shuffle-buffer 8";
  CHECK_THROWS_WITH_AS(stream_feed_of(path, other)->seek(good), doctest::Contains("of another size"),
                       InputError);
  other.order = "shuffle";
  CHECK_THROWS_WITH_AS(stream_feed_of(path, other), doctest::Contains("\"shuffle-buffer N\""), InputError);
}

TEST_CASE("parts are made for the first samples of a stream, as many as they need to look at") {
  const TempFolder folder;
  const std::string path = (folder.path() / "a.tar").string(), log = (folder.path() / "log").string();
  // The first record is none, the next two are no pictures; the others do not come before somebody waits for
  // them.
  put_file(path, member("zero.txt", "x") + members(10, {1, 2}, 1) + end_mark);
  std::vector<int64_t> counts;
  const auto make = [&](const Dataset& head) {
    counts.push_back(head.count());
    return stream_parts()(head);
  };
  const std::string pipe = fmt::format("pipe:head -c {} {}; sleep 1000",
                                       (member("zero.txt", "x") + members(4, {1, 2}, 1)).size(), path);
  CHECK_NOTHROW(feed_of_stream(open_stream(pipe), stream_options(2, 4), make));
  CHECK(counts == std::vector<int64_t>{1, 2, 4});
  // What goes wrong with a sample that is not the last is said at once.
  const auto refuse = [](const Dataset& head) -> std::vector<NamedPart> {
    fail<InputError>("{} is too small", value_text(head.read(0, 0), head.columns()[0].kind));
  };
  CHECK_THROWS_WITH_AS(feed_of_stream(open_stream(pipe), stream_options(2, 4), refuse),
                       "\"zero\" is too small", InputError);
  put_file(path, members(6, {0, 1, 2, 3, 4, 5}) + end_mark);
  CHECK(refusal([&] { stream_feed_of(path, stream_options(2, 4)); }) ==
        path + ": none of its first 6 samples is a picture");
  put_file(path, "{broken\n{broken\n");
  CHECK(refusal([&] {
          stream_feed_of(path, stream_options(2, 4));
        }).find("none of its first 2 samples can be read (the first: ") != std::string::npos);
}

TEST_CASE("the first samples of a stream can be looked at before it is read, and come all the same") {
  const TempFolder folder;
  const std::string path = (folder.path() / "a.tar").string();
  put_file(path, members(12, {3}) + end_mark);
  const auto plain = take_stream_batches(*stream_feed_of("pipe:cat " + path, stream_options(4, 8)), 5);
  const auto feed = stream_feed_of("pipe:cat " + path, stream_options(4, 8));
  const auto first = feed->first_samples(6);
  REQUIRE(first->count() == 6);  // a picture that is damaged shows only when it is decoded
  CHECK(first->name(4) == "pipe:cat " + path + ":00004");
  CHECK(std::get<int64_t>(first->read(4, first->column("cls"))) == 1);
  CHECK(feed->first_samples(100)->count() == 12);
  CHECK(take_stream_batches(*feed, 5) == plain);
  CHECK_THROWS_AS(feed->first_samples(1), InternalError);
}

TEST_CASE("samples of different columns make one data set, and what one lacks has no value") {
  const TempFolder folder;
  const std::string path = (folder.path() / "a.jsonl").string();
  put_file(path, "{\"n\": 1}\n{\"t\": \"x\", \"n\": 2.5}\n{\"n\": \n{\"t\": \"y\"}\n");
  std::vector<std::string> seen;
  const auto look = [&](const Dataset& head) -> std::vector<NamedPart> {
    seen.clear();
    for (int64_t i = 0; i < head.count(); ++i)
      for (size_t c = 0; c < head.columns().size(); ++c)
        seen.push_back(head.has(i, c) ? value_text(head.read(i, c), head.columns()[c].kind) : "none");
    fail<InputError>("seen");
  };
  CHECK_THROWS_WITH_AS(feed_of_stream(open_stream(path), stream_options(1, 4), look), "seen", InputError);
  CHECK(seen == std::vector<std::string>{"1", "none", "2.5", "\"x\"", "none", "\"y\""});
}

TEST_CASE("samples of a stream are mixed within their batch, with their targets beside") {
  const TempFolder folder;
  const std::string path = (folder.path() / "a.tar").string();
  put_file(path, members(12, {3}) + end_mark);
  StreamFeedOptions given = stream_options(4, 8);
  given.ranks = 2;  // so that batches are padded
  const auto plain = feed_of_stream(open_stream(path), given);
  const auto feed = feed_of_stream(open_stream(path), given, stream_parts("cls", true));
  REQUIRE(feed->fields().size() == 4);
  CHECK(feed->fields()[2].name == "mixed.labels");
  CHECK(feed->fields()[3].name == "mix");
  for (int b = 0; b < 4; ++b) {
    const StreamBatch own = take_stream_batches(*plain, 1)[0];
    const FeedBatch& batch = feed->next();
    CHECK(array_of<int64_t>(*feed, batch, "labels") == own.labels);
    const auto mixed = array_of<int64_t>(*feed, batch, "mixed.labels");
    const auto pictures = array_of<std::byte>(*feed, batch, "pictures");
    const size_t size = pictures.size() / 4, valid = static_cast<size_t>(batch.valid);
    for (size_t i = 0; i < 4; ++i) {
      const size_t before = i > 0 ? i - 1 : valid - 1;
      CHECK(mixed[i] == (i < valid ? own.labels[before] : -1));
      const auto sum = std::to_integer<unsigned>(own.pictures[i * size]) +
                       std::to_integer<unsigned>(own.pictures[(i < valid ? before : i) * size]);
      CHECK(pictures[i * size] == static_cast<std::byte>(sum));
    }
    CHECK(array_of<float>(*feed, batch, "mix") ==
          std::vector<float>(4, 1 / static_cast<float>(2 + batch.start.epoch + batch.start.position)));
    CHECK(reinterpret_cast<uintptr_t>(batch.arrays[1].data()) % 64 == 0);
  }
}
