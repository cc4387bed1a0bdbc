#include "data/feed/sound_part.h"

#include <cstring>
#include <doctest/doctest.h>
#include <limits>

#include <millrace/error.h>

#include "data/feed/sample_feed.h"
#include "support/feed_samples.h"
#include "support/rows_dataset.h"

using namespace millrace;
using namespace millrace::data;
using namespace millrace::testing;

namespace {

/// A WAV file of floats.
Bytes wav_file(const std::vector<float>& samples, int channels, int rate) {
  std::vector<uint8_t> file;
  const auto put = [&](auto value) {
    const auto* bytes = reinterpret_cast<const uint8_t*>(&value);
    file.insert(file.end(), bytes, bytes + sizeof value);
  };
  const auto text = [&](std::string_view four) {
    for (const char letter : four) file.push_back(static_cast<uint8_t>(letter));
  };
  const auto size = static_cast<uint32_t>(samples.size() * sizeof(float));
  text("RIFF");
  put(uint32_t{36 + size});
  text("WAVE");
  text("fmt ");
  put(uint32_t{16});
  put(uint16_t{3});
  put(static_cast<uint16_t>(channels));
  put(static_cast<uint32_t>(rate));
  put(static_cast<uint32_t>(rate * channels * 4));
  put(static_cast<uint16_t>(channels * 4));
  put(uint16_t{32});
  text("data");
  put(size);
  for (const float sample : samples) put(sample);
  return Bytes(file);
}

std::shared_ptr<RowsDataset> sound_rows_of(std::vector<Bytes> files) {
  std::vector<std::vector<Value>> rows;
  for (Bytes& file : files) rows.push_back({int64_t{0}, std::move(file)});
  return std::make_shared<RowsDataset>(
      "sounds", std::vector<Column>{{"label", ColumnKind::integer}, {"wav", ColumnKind::audio}},
      std::move(rows));
}

std::vector<float> heard(const SoundPart& part, const Dataset& set, int64_t index) {
  const auto scratch = part.scratch();
  std::vector<float> sound(part.stored_bytes() / sizeof(float));
  const std::string why =
      part.read(set, index, nullptr, scratch.get(), reinterpret_cast<std::byte*>(sound.data()));
  CHECK(why == "");
  return sound;
}

}  // namespace

TEST_CASE("sounds of a part are of one channel, rate and length; bad ones are replaced") {
  const float huge = std::numeric_limits<float>::max();
  const auto set = sound_rows_of({wav_file({0.5F, -0.5F, 0.25F, 0.75F}, 2, 8000),  // shorter, two channels
                                  wav_file({1, 2, 3, 4, 5, 6, 7, 8}, 1, 8000),     // longer
                                  Bytes(std::vector<uint8_t>{1, 2, 3}),            // none
                                  wav_file({0, huge, 0}, 1, 8000),                 // no power
                                  wav_file(std::vector<float>(8000, 0.25F), 1, 16000)});
  const auto part = sound_part(*set, {.rate = 8000, .samples = 5});
  CHECK(part->fields()[0].type == Type{f32, {Dim::named("batch"), 5}});
  CHECK(part->only_copies());
  CHECK(heard(*part, *set, 0) == std::vector<float>{0, 0.5F, 0, 0, 0});
  CHECK(heard(*part, *set, 1) == std::vector<float>{1, 2, 3, 4, 5});
  // At half the rate, half as many samples, of the same loudness in the middle.
  const auto slower = heard(*sound_part(*set, {.rate = 8000, .samples = 6000}), *set, 4);
  CHECK(slower[2000] == doctest::Approx(0.25).epsilon(0.01));
  CHECK(slower[3900] == doctest::Approx(0.25).epsilon(0.01));
  CHECK(slower[4100] == 0);

  FeedOptions options;
  options.batch = 5;
  options.threads = 2;
  for (const int64_t cache : {0, 1 << 20}) {
    options.cache_bytes = cache;
    const auto feed = sample_feed(set, {{"", part, false}}, sample_rows(*set, {}), options);
    const FeedBatch& batch = feed->next();
    CHECK(std::vector<int64_t>(batch.samples.begin(), batch.samples.end()) ==
          std::vector<int64_t>{0, 1, 4, 4, 4});
    CHECK(batch.valid == 5);
    const auto bad = feed->bad_samples();
    REQUIRE(bad.size() == 2);
    CHECK(bad[0].index == 2);
    CHECK(bad[1].why == "its samples are so large that their power is no number");
    CHECK((feed->digest() != 0) == (cache > 0));
  }
}

TEST_CASE("masks of spec-augment are those that it would mask with, and others in each epoch") {
  const auto set = sound_rows_of(std::vector<Bytes>(6, wav_file(std::vector<float>(16, 0.5F), 1, 8000)));
  constexpr int64_t mels = 20, frames = 30;
  const std::string text = "spec-augment 2 6 2 9 0.4";
  const SoundOptions augmented{
      .rate = 8000, .samples = 16, .spec_augment = text, .mels = mels, .frames = frames};
  FeedOptions options;
  options.batch = 3;
  options.seed = 9;
  options.threads = 2;
  const auto feed =
      sample_feed(set, {{"", sound_part(*set, augmented), false}}, sample_rows(*set, {}), options);
  CHECK(feed->field("mel_mask") == 1);
  CHECK(feed->field("frame_mask") == 2);
  const SpecAugment augment = SpecAugment::parse(text);
  std::set<std::vector<float>> different;
  for (int b = 0; b < 4; ++b) {
    const FeedBatch& batch = feed->next();
    const auto of_mels = values_of<float>(batch.arrays[1]), of_frames = values_of<float>(batch.arrays[2]);
    for (int64_t i = 0; i < 3; ++i) {
      std::vector<float> masks(of_mels.begin() + i * mels, of_mels.begin() + (i + 1) * mels);
      masks.insert(masks.end(), of_frames.begin() + i * frames, of_frames.begin() + (i + 1) * frames);
      std::vector<float> wanted(mels + frames);
      RandomStream random(9, 0x6368616e00000000 ^ static_cast<uint64_t>(batch.start.epoch),
                          static_cast<uint64_t>(batch.start.position + i));
      augment.draw(mels, frames, random, std::span(wanted).first(mels), std::span(wanted).subspan(mels));
      CHECK(masks == wanted);
      different.insert(masks);
    }
  }
  CHECK(different.size() > 8);
}

TEST_CASE("sounds that no part can be made of are refused") {
  const auto set = sound_rows_of({wav_file({1}, 1, 8000)});
  CHECK_THROWS_WITH_AS(sound_part(*set, {.column = "label"}), doctest::Contains("holds no sounds"),
                       InputError);
  CHECK_THROWS_AS(sound_part(*set, {.column = "wave"}), InputError);
  CHECK_THROWS_AS(sound_part(*set, {.rate = 10}), InputError);
  CHECK_THROWS_AS(sound_part(*set, {.samples = 0}), InputError);
  CHECK_THROWS_AS(sound_part(*set, {.spec_augment = "spec-augment x", .mels = 3, .frames = 3}), InputError);
  CHECK_THROWS_AS(sound_part(*set, {.spec_augment = "spec-augment"}), InputError);
  CHECK_THROWS_WITH_AS(sound_part(MemoryPictures(2), {}), doctest::Contains("no column holds sounds"),
                       InputError);
}
