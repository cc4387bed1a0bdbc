#include <algorithm>
#include <doctest/doctest.h>
#include <map>
#include <set>

#include <millrace/error.h>
#include <millrace/feed.h>

#include "base/file.h"
#include "base/format.h"
#include "data/feed/streams/stream_feed.h"
#include "data/feed/streams/stream_parts.h"
#include "data/formats/formats.h"
#include "data/formats/streams/stream.h"
#include "data/order/shares.h"
#include "support/pictures.h"
#include "support/streams.h"
#include "support/temp_folder.h"

using namespace millrace;
using namespace millrace::data;
using namespace millrace::testing;

namespace {

StreamFeedOptions mixing_options(int64_t batch, int threads = 2) {
  StreamFeedOptions given;
  given.batch = batch;
  given.threads = threads;
  given.epoch_samples = 6 * batch;
  given.order = "shuffle-buffer 5";
  return given;
}

/// Streams of 13, 40 and 7 samples, whose keys tell them apart.
struct MixedStreams {
  TempFolder folder;
  std::map<std::string, std::string> paths;
  MixedStreams() {
    int64_t first = 0;
    for (const auto& [name, count] : {std::pair("ads", 13), std::pair("news", 40), std::pair("old", 7)}) {
      paths[name] = (folder.path() / name).string() + ".tar";
      put_file(paths[name], members(count, {first + 2}, first) + end_mark);
      first += 100;
    }
  }
  std::unique_ptr<StreamFeed> feed(StreamFeedOptions given, const std::string& pipe = "",
                                   std::vector<double> shares = {0.5, 0.3, 0.2}) const {
    std::vector<NamedStream> streams;
    for (const auto& [name, path] : paths) streams.push_back({name, open_stream(pipe + path)});
    given.shares = std::move(shares);
    return stream_feed(std::move(streams), stream_parts(), std::move(given));
  }
};

/// The stream and the number in it, of each sample.
std::vector<std::pair<size_t, int64_t>> stream_places(const std::vector<StreamBatch>& batches,
                                                      int64_t streams) {
  std::vector<std::pair<size_t, int64_t>> all;
  for (const StreamBatch& batch : batches)
    for (const int64_t index : batch.indices)
      all.emplace_back(static_cast<size_t>(index % streams), index / streams);
  return all;
}

}  // namespace

TEST_CASE("streams are mixed by place alone, and each is gone through by itself") {
  const MixedStreams mixed;
  StreamFeedOptions given = mixing_options(10);
  const auto feed = mixed.feed(given);
  CHECK(feed->path() == "ads, news, old");
  const auto batches = take_stream_batches(*feed, 30);
  const auto got = stream_places(batches, 3);
  // The good ones of those that the shares choose, place by place; one of each stream is bad.
  const Shares shares(3, std::vector<double>{0.5, 0.3, 0.2});
  size_t at = 0;
  std::vector<std::vector<int64_t>> numbers(3);
  std::vector<std::set<int64_t>> pass(3);
  const int64_t sizes[] = {13, 40, 7};
  for (int64_t place = 0; at < got.size(); ++place) {
    const size_t source = shares.source_at(given.seed, place);
    // A draw of the stream that is not the next good sample was its bad one.
    auto& seen = pass[source];
    const bool taken = got[at].first == source && !seen.contains(got[at].second);
    const int64_t number = taken ? got[at].second : 2;
    CHECK(!seen.contains(number));
    seen.insert(number);
    if (static_cast<int64_t>(seen.size()) == sizes[source]) seen.clear();
    if (taken) ++at;
  }
  CHECK(batches[0].names[0].starts_with(std::vector<std::string>{"ads: ", "news: ", "old: "}[got[0].first]));
  CHECK(feed->bad_samples().size() == 3);
  CHECK(feed->bad_samples()[0].name.find("ads.tar:00002") != std::string::npos);
  CHECK(feed->tried().samples <= 60);
  CHECK(feed->tried().samples > 40);
}

TEST_CASE("a mixture of streams is the same for any number of threads, and from any cursor on") {
  const MixedStreams mixed;
  constexpr int total = 15;
  std::vector<StreamBatch> whole;
  for (const int threads : {1, 2, 5}) {
    const auto batches = take_stream_batches(*mixed.feed(mixing_options(8, threads)), total);
    if (whole.empty()) whole = batches;
    CHECK(batches == whole);
  }
  for (const std::string pipe : {"", "pipe:cat ", "pipe:gzip -c "}) {
    CAPTURE(pipe);
    std::vector<Cursor> cursors;
    const auto feed = mixed.feed(mixing_options(8), pipe);
    for (int i = 0; i < total; ++i) {
      if (i % 2) CHECK(feed->ready(60));
      cursors.push_back(feed->cursor());
      feed->next();
    }
    for (const int at : {0, 3, 7, 14}) {
      const auto again = at % 2 ? mixed.feed(mixing_options(8, 1), pipe) : nullptr;
      StreamFeed& other = again ? *again : *feed;
      other.seek(cursors[static_cast<size_t>(at)]);
      CHECK(other.cursor() == cursors[static_cast<size_t>(at)]);
      const auto rest = take_stream_batches(other, total - at);
      for (size_t i = 0; i < rest.size(); ++i) {
        CHECK(rest[i].pictures == whole[i + static_cast<size_t>(at)].pictures);
        CHECK(rest[i].indices == whole[i + static_cast<size_t>(at)].indices);
      }
    }
    // Cursors of others are refused.
    for (size_t i = 0; i < 4; ++i) {
      Cursor wrong = cursors[3];
      ++wrong.state[i];
      CHECK_THROWS_AS(feed->seek(wrong), InputError);
    }
    Cursor wrong = cursors[3];
    wrong.state.pop_back();
    CHECK_THROWS_AS(feed->seek(wrong), InputError);
  }
}

TEST_CASE(
    "other shares of streams hold from the next batch on, whatever was ready, and pipes are not read again") {
  const MixedStreams mixed;
  const std::vector<double> later = {0, 0.1, 0.9};
  const std::string log = (mixed.folder.path() / "opened").string();
  const std::string pipe = fmt::format("pipe:echo >> {}; cat ", log);
  std::vector<StreamBatch> expected;
  Cursor changed_at;
  for (const int look : {0, 1, 2}) {
    CAPTURE(look);
    std::filesystem::remove(log);
    const auto feed = mixed.feed(mixing_options(8), pipe);
    auto batches = take_stream_batches(*feed, 3);
    if (look == 1) CHECK(feed->ready(60));
    // As much of the batch as comes at once.
    if (look == 2) (void)feed->ready(0);
    changed_at = feed->cursor();
    feed->set_shares(later);
    CHECK(feed->cursor() == changed_at);
    const auto rest = take_stream_batches(*feed, 2);
    for (const auto& [source, number] : stream_places(rest, 3)) CHECK(source != 0);
    batches.insert(batches.end(), rest.begin(), rest.end());
    if (look == 0) expected = batches;
    CHECK(batches == expected);
    // ads (13) was read once or, by the look ahead, twice; news once; old several times.
    if (look == 0) CHECK(std::filesystem::file_size(log) < 20);
  }
  const auto other = mixed.feed(mixing_options(8), pipe, later);
  other->seek(changed_at);
  CHECK(take_stream_batches(*other, 2) == std::vector<StreamBatch>(expected.begin() + 3, expected.end()));
  CHECK_THROWS_AS(other->set_shares(std::vector<double>{0, 0, 0}), InputError);
  CHECK_THROWS_AS(other->set_shares(std::vector<double>{1}), InputError);
}

TEST_CASE("what was ready by other shares is any rank's afterwards") {
  const MixedStreams mixed;
  for (const int rank : {0, 1, 2}) {
    std::vector<StreamBatch> expected;
    for (const bool look : {false, true}) {
      CAPTURE(rank);
      CAPTURE(look);
      StreamFeedOptions given = mixing_options(6);
      given.ranks = 3;
      given.rank = rank;
      given.epoch_samples = 90;
      const auto feed = mixed.feed(given);
      std::vector<StreamBatch> batches;
      int64_t tried = 0;
      for (const std::vector<double>& shares :
           {std::vector<double>{0, 0.1, 0.9}, {0.4, 0.6, 0}, {0.5, 0.3, 0.2}}) {
        if (look) CHECK(feed->ready(60));
        feed->set_shares(shares);
        const auto more = take_stream_batches(*feed, 2);
        batches.insert(batches.end(), more.begin(), more.end());
        tried = feed->tried().samples;
      }
      if (!look) expected = batches;
      CHECK(batches == expected);
      CHECK(tried > 0);
    }
  }
}

TEST_CASE("a stream of share 0 that gives nothing more does not hold up the others") {
  const MixedStreams mixed;
  std::vector<NamedStream> streams;
  const std::string ads = mixed.paths.at("ads"), news = mixed.paths.at("news");
  const auto half = fmt::format("pipe:head -c {} {}; sleep 1000", members(10, {2}).size(), ads);
  streams.push_back({"ads", open_stream(half)});
  streams.push_back({"news", open_stream(news)});
  StreamFeedOptions given = mixing_options(4);
  given.order = "shuffle-buffer 3";
  given.shares = {1, 0};
  const auto feed = stream_feed(std::move(streams), stream_parts(), given);
  CHECK(take_stream_batches(*feed, 1)[0].indices.size() ==
        4);                  // 9 come, of which the buffer keeps 3 and 1 is bad
  CHECK(!feed->ready(0.1));  // at most 2 are left
  feed->set_shares(std::vector<double>{0, 1});
  for (const auto& [source, number] : stream_places(take_stream_batches(*feed, 20), 2)) CHECK(source == 1);
}

TEST_CASE("a condition passes over samples of a stream before its buffer") {
  const TempFolder folder;
  const std::string path = (folder.path() / "a.tar").string();
  put_file(path, members(40, {4}) + end_mark);
  StreamFeedOptions given = mixing_options(6);
  const std::string where = "label != 1";
  const auto make = [&](const std::string& from) {
    return feed_of_stream(select(open_stream(from), where), given);
  };
  const auto feed = make(path);
  std::vector<Cursor> cursors;
  std::vector<StreamBatch> whole;
  for (int i = 0; i < 10; ++i) {
    cursors.push_back(feed->cursor());
    whole.push_back(take_stream_batches(*feed, 1)[0]);
    for (const int64_t label : whole.back().labels) CHECK(label != 1);
  }
  // 27 of 40 match, one of which is label 1 and bad.
  std::set<int64_t> first(whole[0].indices.begin(), whole[0].indices.end());
  for (size_t i = 1; i < 4; ++i) first.insert(whole[i].indices.begin(), whole[i].indices.end());
  CHECK(first.size() == 24);
  for (const std::string& from : {path, "pipe:cat " + path})
    for (const size_t at : {2u, 5u, 9u}) {
      const auto other = make(from);
      other->seek(cursors[at]);
      const auto rest = take_stream_batches(*other, static_cast<int>(10 - at));
      for (size_t i = 0; i < rest.size(); ++i) CHECK(rest[i].pictures == whole[at + i].pictures);
    }
}

TEST_CASE("samples of a stream carry their weights") {
  const TempFolder folder;
  const std::string path = (folder.path() / "a.tfrecord").string();
  const auto writer = formats()
                          .at("tfrecord")
                          .create(path, {{"image", ColumnKind::picture},
                                         {"label", ColumnKind::integer},
                                         {"loss", ColumnKind::real}});
  for (int64_t i = 0; i < 12; ++i) {
    const std::string jpeg = make_jpeg(8, 8, 3, static_cast<uint64_t>(i));
    writer->add(std::vector<Value>{Bytes(std::vector<uint8_t>(jpeg.begin(), jpeg.end())), i % 3,
                                   i == 5 ? -1.0 : static_cast<double>(i) / 4});
  }
  writer->finish();
  StreamFeedOptions given = mixing_options(4);
  given.order = "sequential";
  given.sample_weight = "loss";
  const auto feed = feed_of_stream(open_stream(path), given, stream_parts("label"));
  CHECK(take_stream_batches(*feed, 1)[0].weights == std::vector<float>{0, 0.25F, 0.5F, 0.75F});
  CHECK(take_stream_batches(*feed, 1)[0].weights == std::vector<float>{1, 1.5F, 1.75F, 2});
  REQUIRE(feed->bad_samples().size() == 1);
  CHECK(feed->bad_samples()[0].why.find("a weight is a number from 0 on") != std::string::npos);
  given.sample_weight = "lost";
  CHECK_THROWS_WITH_AS(feed_of_stream(open_stream(path), given, stream_parts("label")),
                       doctest::Contains("loss"), InputError);
}

TEST_CASE("ranks share what a stream gives, and go on as any other number of ranks") {
  const TempFolder folder;
  const std::string path = (folder.path() / "a.tar").string();
  put_file(path, members(48, {7, 20}) + end_mark);
  const auto rank_loader = [&](int rank, int ranks, int64_t batch) {
    StreamFeedOptions given = mixing_options(batch);
    given.epoch_samples = 48;
    given.rank = rank;
    given.ranks = ranks;
    return feed_of_stream(open_stream(path), given);
  };
  // What all ranks take together, in so many batches; they agree on where they are.
  struct Taken {
    std::multiset<int64_t> numbers;
    Cursor end;
  };
  const auto all = [&](int ranks, int64_t batch, int batches, const Cursor* from) {
    Taken taken;
    for (int rank = 0; rank < ranks; ++rank) {
      const auto feed = rank_loader(rank, ranks, batch);
      if (from) feed->seek(*from);
      int64_t drawn = 0;
      for (int i = 0; i < batches; ++i) {
        const FeedBatch& got = feed->next();
        CHECK(got.names.size() == static_cast<size_t>(got.valid));
        taken.numbers.insert(got.samples.begin(), got.samples.end());
        CHECK(std::ssize(got.samples) == got.valid);
        const auto labels = array_of<int64_t>(*feed, got, "labels");
        for (auto k = static_cast<size_t>(got.valid); k < labels.size(); ++k) CHECK(labels[k] == -1);
        drawn += got.valid;
      }
      drawn += static_cast<int64_t>(feed->bad_samples().size());
      if (ranks > 1) CHECK(drawn == batch * batches);
      if (rank == 0) taken.end = feed->cursor();
      CHECK(feed->cursor() == taken.end);
    }
    return taken;
  };
  std::multiset<int64_t> good;
  for (int64_t i = 0; i < 48; ++i)
    if (i != 7 && i != 20) good.insert(i);
  for (const auto& [ranks, batch] : {std::pair(2, 6), std::pair(3, 4), std::pair(8, 2)}) {
    CAPTURE(ranks);
    CHECK(all(ranks, batch, 48 / (ranks * static_cast<int>(batch)), nullptr).numbers == good);
  }
  CHECK(all(1, 23, 2, nullptr).numbers == good);
  // In the order of one: rank r has every R-th.
  StreamFeedOptions given = mixing_options(4);
  given.order = "sequential";
  given.ranks = 3;
  given.rank = 1;
  given.epoch_samples = 48;
  const auto second = feed_of_stream(open_stream(path), given);
  CHECK(take_stream_batches(*second, 1)[0].indices == std::vector<int64_t>{1, 4, 10});  // 7 is bad
  CHECK(take_stream_batches(*second, 1)[0].indices == std::vector<int64_t>{13, 16, 19, 22});
  // Half of it by so many ranks, the rest by others.
  for (const int before : {1, 2, 3, 8})
    for (const int after : {1, 2, 3, 8}) {
      CAPTURE(before);
      CAPTURE(after);
      const Taken first = all(before, 24 / before, 1, nullptr);
      // One rank alone takes 24 good ones.
      Taken rest = all(after, (before == 1 ? 23 : 24) / after, 1, &first.end);
      if (after == 1) {  // fills up from the next pass
        CHECK(std::ranges::count_if(rest.numbers,
                                    [&](int64_t number) { return first.numbers.contains(number); }) <= 2);
        continue;
      }
      if (before == 1) {
        for (const int64_t number : rest.numbers) CHECK(!first.numbers.contains(number));
        continue;
      }
      rest.numbers.insert(first.numbers.begin(), first.numbers.end());
      CHECK(rest.numbers == good);
    }
  CHECK_THROWS_AS(rank_loader(2, 2, 4), InputError);
}
