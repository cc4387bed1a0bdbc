#include "data/feed/picture_part.h"

#include <doctest/doctest.h>

#include <millrace/error.h>

#include "support/feed_samples.h"
#include "support/labelled.h"
#include "support/pictures.h"
#include "support/rows_dataset.h"
#include "support/temp_folder.h"

using namespace millrace;
using namespace millrace::data;
using namespace millrace::testing;

namespace {

FeedOptions pictures_by(int64_t batch, int threads, int64_t cache = int64_t{1} << 30) {
  FeedOptions options;
  options.batch = batch;
  options.threads = threads;
  options.cache_bytes = cache;
  options.unit = "pictures";
  return options;
}

std::unique_ptr<Feed> feed_by(const std::shared_ptr<const Dataset>& set, const PictureOptions& pictures,
                              const FeedOptions& options, const OrderedSamples& order = {}) {
  return sample_feed(set, {{"", picture_part(*set, pictures), false}}, sample_rows(*set, order), options);
}

}  // namespace

TEST_CASE("truncated pictures in a folder are left out by a feed; nothing but bad ones is an error") {
  TempFolder folder;
  Members members = make_members({"cat", "dog"}, 4);
  members[5].second.resize(members[5].second.size() / 2);
  write_members(folder / "set", members);
  const auto feed = feed_by(open_labelled(folder / "set"), {}, pictures_by(8, 2));
  CHECK(feed->next().valid == 8);
  REQUIRE(feed->bad_samples().size() == 1);
  CHECK(feed->bad_samples()[0].name == (folder / "set/dog/1001.jpg").string());

  for (auto& [name, content] : members) content = "no picture";
  write_members(folder / "bad", members);
  CHECK_THROWS_WITH_AS(
      picture_part(*open_labelled(folder / "bad"), {}),
      doctest::Contains("none of its 8 pictures can be decoded (the first: it is no picture"), InputError);
}

TEST_CASE("pictures of a part that differ in size are an error that names both, and resize mends it") {
  TempFolder folder;
  Members members = make_members({"cat", "dog"}, 2);
  members[2].second = make_jpeg(10, 12, 3, 5);
  write_members(folder / "set", members);
  const auto set = open_labelled(folder / "set");
  for (const int64_t cache : {int64_t{0}, int64_t{1} << 30}) {
    CHECK_THROWS_WITH_AS(feed_by(set, {}, pictures_by(4, 2, cache))->next(),
                         doctest::Contains("dog/1000.jpg is 12x10 colour, but"), InputError);
    const PictureOptions resized{.resize = 9};
    CHECK(picture_part(*set, resized)->extent().height == 9);
    CHECK(picture_part(*set, resized)->extent().width == 9);
    CHECK(feed_by(set, resized, pictures_by(4, 2, cache))->next().valid == 4);
  }
}

TEST_CASE("grey pictures of a part among colour ones become what is asked for, and the error says how") {
  TempFolder folder;
  Members members = make_members({"cat", "dog"}, 2);
  members[0].second = make_jpeg(8, 8, 1, 5);
  write_members(folder / "set", members);
  const auto set = open_labelled(folder / "set");
  CHECK_THROWS_WITH_AS(feed_by(set, {}, pictures_by(4, 2)), doctest::Contains("set input.channels = 1"),
                       InputError);
  for (const int channels : {1, 3}) {
    CHECK(picture_part(*set, {.channels = channels})->extent().channels == channels);
    CHECK(feed_by(set, {.channels = channels}, pictures_by(4, 2))->next().valid == 4);
  }
}

TEST_CASE("options of pictures that make no sense are refused, and pictures that a model does not take") {
  const MemoryPictures set(4);
  const auto with = [&](PictureOptions options) { picture_part(set, std::move(options)); };
  CHECK_THROWS_AS(with({.augment = {"pad-crop 6"}}), InputError);
  CHECK_THROWS_AS(with({.augment = {"flop"}}), InputError);
  CHECK_THROWS_AS(with({.mix = {"mixdown 1"}}), InputError);
  CHECK_THROWS_AS(with({.resize = -1}), InputError);
  CHECK_THROWS_AS(with({.channels = 2}), InputError);
  CHECK_THROWS_AS(with({.column = "pictures"}), InputError);
  CHECK_THROWS_WITH_AS(with({.column = "label"}), doctest::Contains("'label' holds no pictures"), InputError);
  CHECK_THROWS_WITH_AS(with({.wanted = Extent{3, 8, 6}}),
                       doctest::Contains("memory has pictures of 6×6 with 3 channels, the model takes 6×8"),
                       InputError);
  CHECK(picture_part(set, {.wanted = Extent{1, 6, 6}})->extent().channels == 1);  // made grey
  const RowsDataset none("rows", {{"a", ColumnKind::integer}}, {{int64_t{1}}});
  CHECK_THROWS_WITH_AS(picture_part(none, {}), doctest::Contains("has no pictures"), InputError);
}

TEST_CASE("a column of pictures is found by its name, wherever it stands in the data set that is read") {
  const auto grey = [](uint64_t seed) { return Pixels{6, 6, 3, Bytes(make_picture(6, 6, 3, seed).pixels)}; };
  const RowsDataset first("first", {{"a", ColumnKind::picture}, {"b", ColumnKind::picture}},
                          {{grey(1), grey(2)}});
  const RowsDataset second("second", {{"b", ColumnKind::picture}, {"a", ColumnKind::picture}},
                           {{grey(2), grey(1)}});
  const auto part = picture_part(first, {.column = "b"});
  const auto scratch = part->scratch();
  std::vector<std::byte> one(part->stored_bytes()), two(part->stored_bytes());
  CHECK(part->read(first, 0, nullptr, scratch.get(), one.data()).empty());
  CHECK(part->read(second, 0, nullptr, scratch.get(), two.data()).empty());
  CHECK(one == two);
  std::vector<uint8_t> planes(108);
  to_planes(make_picture(6, 6, 3, 2), planes.data());
  CHECK(std::memcmp(planes.data(), one.data(), 108) == 0);
}

TEST_CASE("pictures of random frames may have any size, and damage replaces one sample at a time") {
  TempFolder folder;
  Members members;
  for (int i = 0; i < 12; ++i)
    members.emplace_back((i % 2 ? "cat/" : "dog/") + std::to_string(i) + ".jpg",
                         make_jpeg(40 + 7 * i, 90 - 3 * i, 3, static_cast<uint64_t>(i)));
  members[3].second.resize(members[3].second.size() / 2);
  write_members(folder / "set", members);
  const auto set = open_labelled(folder / "set");
  const PictureOptions framed{.augment = {"random-resized-crop 16", "flip"}};
  std::vector<FeedCopy> first;
  for (const int threads : {1, 3}) {
    const auto feed = feed_by(set, framed, pictures_by(5, threads), {"shuffle"});
    CHECK(!feed->cached());
    CHECK(feed->cache_needed() == 0);
    CHECK(feed->fields()[0].type == Type{u8, {Dim::named("batch"), 3, 16, 16}});
    const auto batches = take_batches(*feed, 12);
    if (first.empty()) first = batches;
    CHECK(batches == first);
    CHECK(feed->bad_samples().size() == 1);
    // A feed that begins later has met no damage yet, and gives the same.
    const auto later = feed_by(set, framed, pictures_by(5, threads), {"shuffle"});
    later->seek(first[7].start);
    CHECK(take_batches(*later, 5) == std::vector<FeedCopy>(first.begin() + 7, first.end()));
  }
  const auto cropped = picture_part(*set, {.augment = {"flip"}, .resize = 24, .crop = 20});
  CHECK(cropped->extent().bytes() == 3 * 20 * 20);
  CHECK_THROWS_WITH_AS(feed_by(set, {.augment = {"flip"}, .crop = 60}, pictures_by(5, 2))->next(),
                       doctest::Contains("input.crop = 60"), InputError);
}
