// What streams have in common with indexed sources: mixtures, conditions, weights of samples, ranks.
#include <algorithm>
#include <doctest/doctest.h>
#include <map>
#include <set>

#include <millrace/error.h>

#include "base/format.h"
#include "data/feed/loader_options.h"
#include "data/feed/streams/stream_loader.h"
#include "data/formats/formats.h"
#include "data/formats/open_dataset.h"
#include "data/formats/streams/stream.h"
#include "data/order/shares.h"
#include "data/table/dataset.h"
#include "data/table/query.h"
#include "data/table/select.h"
#include "support/pictures.h"
#include "support/streams.h"
#include "support/temp_folder.h"

using namespace millrace;
using namespace millrace::data;
using namespace millrace::testing;

namespace {

LoaderOptions options(int64_t batch, int threads = 2) {
  LoaderOptions given;
  given.batch = batch;
  given.threads = threads;
  given.epoch_samples = 6 * batch;
  given.order = "shuffle-buffer 5";
  given.augment = {"pad-crop 1", "flip"};
  return given;
}

const std::vector<std::string> kClasses = {"a", "b", "c"};

/// Streams of 13, 40 and 7 samples, whose keys tell them apart.
struct Mixed {
  TempFolder folder;
  std::map<std::string, std::string> paths;
  Mixed() {
    int64_t first = 0;
    for (const auto& [name, count] : {std::pair("ads", 13), std::pair("news", 40), std::pair("old", 7)}) {
      paths[name] = (folder.path() / name).string() + ".tar";
      put_file(paths[name], members(count, {first + 2}, first) + end_mark);
      first += 100;
    }
  }
  std::unique_ptr<Loader> loader(LoaderOptions given, const std::string& pipe = "",
                                 std::vector<double> shares = {0.5, 0.3, 0.2}) const {
    std::vector<NamedStream> streams;
    for (const auto& [name, path] : paths) streams.push_back({name, open_stream(pipe + path)});
    given.shares = std::move(shares);
    return std::make_unique<Loader>(streamed(std::move(streams), kClasses, std::move(given)));
  }
};

/// The stream and the number in it, of each sample.
std::vector<std::pair<size_t, int64_t>> places(const std::vector<Copy>& batches, int64_t streams) {
  std::vector<std::pair<size_t, int64_t>> all;
  for (const Copy& batch : batches)
    for (const int64_t index : batch.indices)
      all.emplace_back(static_cast<size_t>(index % streams), index / streams);
  return all;
}

}  // namespace

TEST_CASE("streams are mixed by place alone, and each is gone through by itself") {
  const Mixed mixed;
  LoaderOptions given = options(10);
  const auto loader = mixed.loader(given);
  CHECK(loader->path() == "ads, news, old");
  const auto batches = take(*loader, 30);
  const auto got = places(batches, 3);
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
  CHECK(loader->bad_samples().size() == 3);
  CHECK(loader->bad_samples()[0].name.find("ads.tar:00002") != std::string::npos);
  CHECK(loader->tried().samples <= 60);
  CHECK(loader->tried().samples > 40);
}

TEST_CASE("a mixture of streams is the same for any number of threads, and from any cursor on") {
  const Mixed mixed;
  constexpr int total = 15;
  std::vector<Copy> whole;
  for (const int threads : {1, 2, 5}) {
    const auto batches = take(*mixed.loader(options(8, threads)), total);
    if (whole.empty()) whole = batches;
    CHECK(batches == whole);
  }
  for (const std::string pipe : {"", "pipe:cat ", "pipe:gzip -c "}) {
    CAPTURE(pipe);
    std::vector<Cursor> cursors;
    const auto loader = mixed.loader(options(8), pipe);
    for (int i = 0; i < total; ++i) {
      if (i % 2) CHECK(loader->ready(60));
      cursors.push_back(loader->cursor());
      loader->next();
    }
    for (const int at : {0, 3, 7, 14}) {
      const auto again = at % 2 ? mixed.loader(options(8, 1), pipe) : nullptr;
      Loader& other = again ? *again : *loader;
      other.seek(cursors[static_cast<size_t>(at)]);
      CHECK(other.cursor() == cursors[static_cast<size_t>(at)]);
      const auto rest = take(other, total - at);
      for (size_t i = 0; i < rest.size(); ++i) {
        CHECK(rest[i].pictures == whole[i + static_cast<size_t>(at)].pictures);
        CHECK(rest[i].indices == whole[i + static_cast<size_t>(at)].indices);
      }
    }
    // Cursors of others are refused.
    for (size_t i = 0; i < 4; ++i) {
      Cursor wrong = cursors[3];
      ++wrong.state[i];
      CHECK_THROWS_AS(loader->seek(wrong), InputError);
    }
    Cursor wrong = cursors[3];
    wrong.state.pop_back();
    CHECK_THROWS_AS(loader->seek(wrong), InputError);
  }
}

TEST_CASE(
    "other shares of streams hold from the next batch on, whatever was ready, and pipes are not read again") {
  const Mixed mixed;
  const std::vector<double> later = {0, 0.1, 0.9};
  const std::string log = (mixed.folder.path() / "opened").string();
  const std::string pipe = fmt::format("pipe:echo >> {}; cat ", log);
  std::vector<Copy> expected;
  Cursor changed_at;
  for (const int look : {0, 1, 2}) {
    CAPTURE(look);
    std::filesystem::remove(log);
    const auto loader = mixed.loader(options(8), pipe);
    auto batches = take(*loader, 3);
    if (look == 1) CHECK(loader->ready(60));
    // As much of the batch as comes at once.
    if (look == 2) (void)loader->ready(0);
    changed_at = loader->cursor();
    loader->set_shares(later);
    CHECK(loader->cursor() == changed_at);
    const auto rest = take(*loader, 2);
    for (const auto& [source, number] : places(rest, 3)) CHECK(source != 0);
    batches.insert(batches.end(), rest.begin(), rest.end());
    if (look == 0) expected = batches;
    CHECK(batches == expected);
    // ads (13) was read once or, by the look ahead, twice; news once; old several times.
    if (look == 0) CHECK(std::filesystem::file_size(log) < 20);
  }
  const auto other = mixed.loader(options(8), pipe, later);
  other->seek(changed_at);
  CHECK(take(*other, 2) == std::vector<Copy>(expected.begin() + 3, expected.end()));
  CHECK_THROWS_AS(other->set_shares(std::vector<double>{0, 0, 0}), InputError);
  CHECK_THROWS_AS(other->set_shares(std::vector<double>{1}), InputError);
}

TEST_CASE("what was ready by other shares is any rank's afterwards") {
  const Mixed mixed;
  for (const int rank : {0, 1, 2}) {
    std::vector<Copy> expected;
    for (const bool look : {false, true}) {
      CAPTURE(rank);
      CAPTURE(look);
      LoaderOptions given = options(6);
      given.ranks = 3;
      given.rank = rank;
      given.epoch_samples = 90;
      const auto loader = mixed.loader(given);
      std::vector<Copy> batches;
      int64_t tried = 0;
      for (const std::vector<double>& shares :
           {std::vector<double>{0, 0.1, 0.9}, {0.4, 0.6, 0}, {0.5, 0.3, 0.2}}) {
        if (look) CHECK(loader->ready(60));
        loader->set_shares(shares);
        const auto more = take(*loader, 2);
        batches.insert(batches.end(), more.begin(), more.end());
        tried = loader->tried().samples;
      }
      if (!look) expected = batches;
      CHECK(batches == expected);
      CHECK(tried > 0);
    }
  }
}

TEST_CASE("a stream of share 0 that gives nothing more does not hold up the others") {
  const Mixed mixed;
  std::vector<NamedStream> streams;
  const std::string ads = mixed.paths.at("ads"), news = mixed.paths.at("news");
  const auto half = fmt::format("pipe:head -c {} {}; sleep 1000", members(10, {2}).size(), ads);
  streams.push_back({"ads", open_stream(half)});
  streams.push_back({"news", open_stream(news)});
  LoaderOptions given = options(4);
  given.order = "shuffle-buffer 3";
  given.shares = {1, 0};
  Loader loader(streamed(std::move(streams), kClasses, given));
  CHECK(take(loader, 1)[0].indices.size() == 4);  // 9 come, of which the buffer keeps 3 and 1 is bad
  CHECK(!loader.ready(0.1));                      // at most 2 are left
  loader.set_shares(std::vector<double>{0, 1});
  for (const auto& [source, number] : places(take(loader, 20), 2)) CHECK(source == 1);
}

TEST_CASE("a condition passes over samples of a stream before its buffer") {
  const TempFolder folder;
  const std::string path = (folder.path() / "a.tar").string();
  put_file(path, members(40, {4}) + end_mark);
  const auto chosen = [&](const std::string& condition) {
    const auto stream = select(open_stream(path), condition);
    std::vector<int64_t> numbers;
    StreamRecord record;
    while (stream->next(record)) numbers.push_back(record.at.number);
    return numbers;
  };
  // As of the indexed form.
  const std::shared_ptr<const Dataset> dataset = open_dataset(path);
  for (const std::string condition :
       {"label = 1", "cls in (0, 2) and width = 8", "__key__ like '*7'", "label > 0 or __key__ = '00003'",
        "not (label = 2)", "height < 9 and not label in (1)"}) {
    CAPTURE(condition);
    CHECK(chosen(condition) == matching(*dataset, Query::parse(condition)));
  }
  LoaderOptions given = options(6);
  const std::string where = "label != 1";
  const auto make = [&](const std::string& from) {
    return std::make_unique<Loader>(streamed(select(open_stream(from), where), kClasses, given));
  };
  const auto loader = make(path);
  std::vector<Cursor> cursors;
  std::vector<Copy> whole;
  for (int i = 0; i < 10; ++i) {
    cursors.push_back(loader->cursor());
    whole.push_back(take(*loader, 1)[0]);
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
      const auto rest = take(*other, static_cast<int>(10 - at));
      for (size_t i = 0; i < rest.size(); ++i) CHECK(rest[i].pictures == whole[at + i].pictures);
    }

  CHECK(message<InputError>([&] {
          chosen("label = 7");
        }).find("no sample matches the condition label = 7, of 40") != std::string::npos);
  CHECK(message<InputError>([&] { chosen("lable = 1"); }).find("did you mean 'cls'") != std::string::npos);
  CHECK(message<InputError>([&] { chosen("label = 'x'"); }).find("holds numbers; this is a text") !=
        std::string::npos);
  CHECK(message<InputError>([&] { chosen("label ="); }) != "nothing was thrown");
}

TEST_CASE("what a record of a stream lacks is missing, and what cannot be read is kept to be counted") {
  const TempFolder folder;
  const std::string path = (folder.path() / "a.jsonl").string();
  put_file(
      path,
      "{\"n\": 1, \"t\": \"x\"}\n{\"n\": 2}\n{\"n\": \"no number\"}\n{\"n\": 4.5, \"t\": \"y\"}\n{broken\n");
  const auto chosen = [&](const std::string& condition) {
    const auto stream = select(open_stream(path), condition);
    std::vector<int64_t> numbers;
    StreamRecord record;
    while (stream->next(record)) numbers.push_back(record.at.number);
    return numbers;
  };
  CHECK(chosen("n > 1") == std::vector<int64_t>{1, 3, 4});
  CHECK(chosen("t = 'x' or n = 2") == std::vector<int64_t>{0, 1, 4});
  CHECK(chosen("not t = 'x'") == std::vector<int64_t>{3, 4});
  CHECK(chosen("n not in (1, 2)") == std::vector<int64_t>{3, 4});
  CHECK(message<InputError>([&] { chosen("t = 'z'"); }).find("no sample matches") != std::string::npos);
}

TEST_CASE("samples of a stream carry their weights") {
  const TempFolder folder;
  const std::string path = (folder.path() / "a.tfrecord").string();
  const auto writer = format_named("tfrecord")
                          .create(path, {{"image", ColumnKind::picture},
                                         {"label", ColumnKind::integer},
                                         {"loss", ColumnKind::real}});
  for (int64_t i = 0; i < 12; ++i) {
    const std::string jpeg = make_jpeg(8, 8, 3, static_cast<uint64_t>(i));
    writer->add(std::vector<Value>{Bytes(std::vector<uint8_t>(jpeg.begin(), jpeg.end())), i % 3,
                                   i == 5 ? -1.0 : static_cast<double>(i) / 4});
  }
  writer->finish();
  LoaderOptions given = options(4);
  given.order = "sequential";
  given.sample_weight = "loss";
  Loader loader(streamed(open_stream(path), kClasses, given));
  CHECK(loader.weighted());
  CHECK(loader.next().weights == std::vector<float>{0, 0.25F, 0.5F, 0.75F});
  CHECK(loader.next().weights == std::vector<float>{1, 1.5F, 1.75F, 2});
  REQUIRE(loader.bad_samples().size() == 1);
  CHECK(loader.bad_samples()[0].why.find("a weight is a number from 0 on") != std::string::npos);
  given.sample_weight = "lost";
  CHECK_THROWS_WITH_AS(Loader(streamed(open_stream(path), kClasses, given)), doctest::Contains("loss"),
                       InputError);
}

TEST_CASE("ranks share what a stream gives, and go on as any other number of ranks") {
  const TempFolder folder;
  const std::string path = (folder.path() / "a.tar").string();
  put_file(path, members(48, {7, 20}) + end_mark);
  const auto rank_loader = [&](int rank, int ranks, int64_t batch) {
    LoaderOptions given = options(batch);
    given.epoch_samples = 48;
    given.rank = rank;
    given.ranks = ranks;
    return std::make_unique<Loader>(streamed(open_stream(path), kClasses, given));
  };
  // What all ranks take together, in so many batches; they agree on where they are.
  struct Taken {
    std::multiset<int64_t> numbers;
    Cursor end;
  };
  const auto all = [&](int ranks, int64_t batch, int batches, const Cursor* from) {
    Taken taken;
    for (int rank = 0; rank < ranks; ++rank) {
      const auto loader = rank_loader(rank, ranks, batch);
      if (from) loader->seek(*from);
      int64_t drawn = 0;
      for (int i = 0; i < batches; ++i) {
        const Batch& got = loader->next();
        CHECK(got.names.size() == static_cast<size_t>(got.valid));
        for (int64_t k = 0; k < got.valid; ++k) taken.numbers.insert(got.indices[static_cast<size_t>(k)]);
        for (size_t k = static_cast<size_t>(got.valid); k < got.indices.size(); ++k)
          CHECK(got.indices[k] == -1);
        drawn += got.valid;
      }
      drawn += static_cast<int64_t>(loader->bad_samples().size());
      if (ranks > 1) CHECK(drawn == batch * batches);
      if (rank == 0) taken.end = loader->cursor();
      CHECK(loader->cursor() == taken.end);
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
  LoaderOptions given = options(4);
  given.order = "sequential";
  given.ranks = 3;
  given.rank = 1;
  given.epoch_samples = 48;
  Loader second(streamed(open_stream(path), kClasses, given));
  CHECK(take(second, 1)[0].indices == std::vector<int64_t>{1, 4, 10, -1});  // 7 is bad
  CHECK(take(second, 1)[0].indices == std::vector<int64_t>{13, 16, 19, 22});
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
