#include "data/formats/streams/stream.h"

#include <algorithm>
#include <doctest/doctest.h>
#include <fstream>
#include <set>
#include <zlib.h>

#include <millrace/error.h>

#include "base/file.h"
#include "base/format.h"
#include "data/feed/loader.h"
#include "data/feed/loader_options.h"
#include "data/feed/loader_work.h"
#include "data/feed/streams/stream_loader.h"
#include "data/formats/formats.h"
#include "data/formats/open_dataset.h"
#include "data/formats/tar_members.h"
#include "data/io/compression.h"
#include "support/pictures.h"
#include "support/streams.h"
#include "support/temp_folder.h"

using namespace millrace;
using namespace millrace::data;
using namespace millrace::testing;

namespace {

/// A member whose name only an extension header holds.
std::string long_member(const std::string& name, const std::string& content, bool pax) {
  std::string record = " path=" + name + "\n";
  size_t size = record.size();
  while (std::to_string(size).size() + record.size() != size)
    size = std::to_string(size).size() + record.size();
  record = std::to_string(size) + record;
  std::string extension = pax ? member("x", record) : member("././@LongLink", name + '\0');
  extension[156] = pax ? 'x' : 'L';
  // The checksum anew: the sum of all bytes with its own field as spaces.
  extension.replace(148, 8, 8, ' ');
  unsigned sum = 0;
  for (size_t i = 0; i < 512; ++i) sum += static_cast<uint8_t>(extension[i]);
  extension.replace(148, 8, fmt::format("{:06o}", sum) + std::string("\0 ", 2));
  return extension + member("short.txt", content);
}

std::string gzipped(const std::string& content) {
  z_stream stream{};
  REQUIRE(deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK);
  std::string out(deflateBound(&stream, content.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(content.data()));
  stream.avail_in = static_cast<uInt>(content.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  REQUIRE(deflate(&stream, Z_FINISH) == Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

std::string zstd(const std::string& content) {
  const auto bytes = pack_zstd({reinterpret_cast<const uint8_t*>(content.data()), content.size()});
  return {bytes.begin(), bytes.end()};
}

std::vector<StreamRecord> all_of(Stream& stream) {
  std::vector<StreamRecord> records;
  StreamRecord record;
  while (stream.next(record)) records.push_back(record);
  return records;
}

/// All values of all samples, as text.
std::vector<std::string> values(const Dataset& dataset) {
  std::vector<std::string> all;
  for (int64_t i = 0; i < dataset.count(); ++i)
    for (size_t c = 0; c < dataset.columns().size(); ++c) {
      const Column& column = dataset.columns()[c];
      const Value value = dataset.read(i, c);
      const auto* bytes = std::get_if<Bytes>(&value);
      all.push_back(column.name + " " +
                    (bytes ? std::string(bytes->text()) : value_text(value, column.kind, 1000)));
    }
  return all;
}

/// A stream must hold what the file holds, and from any of its samples on the rest.
void check_stream(const std::string& path, const std::string& of) {
  CAPTURE(path);
  const auto dataset = open_dataset(of);
  const auto stream = open_stream(path);
  CHECK(stream->format() == dataset->format());
  const std::vector<StreamRecord> records = all_of(*stream);
  REQUIRE(static_cast<int64_t>(records.size()) == dataset->count());
  CHECK(values(*stream->samples(records)) == values(*dataset));
  StreamRecord record;
  for (size_t i = 0; i < records.size(); ++i) {
    CHECK(records[i].at.number == static_cast<int64_t>(i));
    CHECK(records[i].fault.empty());
    stream->seek(records[i].at);
    do REQUIRE(stream->next(record));
    while (record.at.number < static_cast<int64_t>(i));  // where there is no random access
    CHECK(record.at == records[i].at);
    CHECK(record.bytes.text() == records[i].bytes.text());
  }
}

LoaderOptions options(int64_t batch, int64_t epoch, int threads = 2) {
  LoaderOptions given;
  given.batch = batch;
  given.threads = threads;
  given.epoch_samples = epoch;
  given.order = "shuffle-buffer 7";
  given.augment = {"pad-crop 1", "flip"};
  return given;
}

std::unique_ptr<Loader> loader_of(const std::string& path, const LoaderOptions& given) {
  return std::make_unique<Loader>(streamed(open_stream(path), {"a", "b", "c"}, given));
}

}  // namespace

TEST_CASE("a stream of any format holds what the file holds, plain, compressed and through a pipe") {
  const TempFolder folder;
  const auto path = [&](const std::string& name) { return (folder.path() / name).string(); };
  const std::string name(140, 'n');
  const std::string tar = members(9) + long_member("long/" + name + ".txt", "gnu", false) +
                          long_member("long/p" + name + ".txt", "pax", true) + members(2, {}, 9) + end_mark;
  put_file(path("a.tar"), tar);
  put_file(path("a.jsonl"), "{\"a\": 1, \"b\": \"x\"}\n\n{\"a\": 2}\r\n{\"b\": \"last\", \"a\": 3}");
  put_file(path("a.csv"), "name,x\n\"two\nlines, \"\"quoted\"\"\",1\nplain,2\n\nlast,3");
  {
    const auto writer =
        format_named("tfrecord")
            .create(path("a.tfrecord"), {{"n", ColumnKind::integer}, {"t", ColumnKind::text}});
    for (int64_t i = 0; i < 5; ++i)
      writer->add(std::vector<Value>{i, std::string(static_cast<size_t>(i + 1), 'x')});
    writer->finish();
  }
  for (const std::string file : {"a.tar", "a.jsonl", "a.csv", "a.tfrecord"}) {
    check_stream(path(file), path(file));
    check_stream("pipe:cat " + path(file), path(file));
    const std::string content = read_text(path(file));
    put_file(path(file + ".gz"), gzipped(content));
    check_stream(path(file + ".gz"), path(file));
    put_file(path(file + ".zst"), zstd(content));
    check_stream("pipe:cat " + path(file + ".zst"), path(file));
  }
}

TEST_CASE("tars may follow each other, in one pipe and as several files") {
  const TempFolder folder;
  const std::string base = folder.path().string();
  put_file(base + "/s-0.tar", members(4) + end_mark);
  put_file(base + "/s-1.tar", members(3, {}, 4) + end_mark + end_mark);
  put_file(base + "/whole.tar", members(7) + end_mark);
  check_stream("pipe:cat " + base + "/s-0.tar " + base + "/s-1.tar", base + "/whole.tar");
  check_stream(base + "/s-{0..1}.tar", base + "/whole.tar");
  check_stream("pipe:cat " + base + "/s-0.tar | gzip; gzip -c " + base + "/s-1.tar", base + "/whole.tar");
}

TEST_CASE("what is cut off, damaged or none of the formats is said where it is") {
  const TempFolder folder;
  const std::string path = (folder.path() / "x").string();
  const auto fault = [&](const std::string& content) {
    put_file(path, content);
    return message<InputError>([&] { all_of(*open_stream(path)); });
  };
  const std::string tar = members(3);
  CHECK(fault(tar.substr(0, tar.size() - 300)).find("the tar ends within 00002.cls") != std::string::npos);
  CHECK(fault(tar).find("without an end mark") != std::string::npos);
  std::string damaged = tar + end_mark;
  damaged[tar.size() - 1024 + 3] ^= 1;
  CHECK(fault(damaged).find("damaged tar header at byte") != std::string::npos);
  CHECK(fault("").find("gives nothing") != std::string::npos);
  CHECK(fault(std::string(100, '\1') + '\0').find("is none of the formats") != std::string::npos);
  CHECK(fault("{\"a\": 1}\n\"b").find("nothing was thrown") != std::string::npos);  // its own sample says so
  CHECK(fault("a,b\n1,\"x\n").find("ends within the quotes") != std::string::npos);
  const std::string packed = gzipped(tar + end_mark);
  CHECK(fault(packed.substr(0, packed.size() - 20)).find("gzip content (it ends early)") !=
        std::string::npos);
  std::string broken = zstd(tar + end_mark);
  CHECK(fault(broken.substr(0, broken.size() - 5)).find("zstd content (it ends early)") != std::string::npos);
  CHECK(message<IoError>([&] {
          all_of(*open_stream("pipe:cat " + path + ".not 2>/dev/null; exit 3"));
        }).find("exit status 3") != std::string::npos);
  put_file(path, tar);
  CHECK(message<IoError>([&] {
          all_of(*open_stream("pipe:cat " + path + "; kill -9 $$"));
        }).find("signal 9") != std::string::npos);
}

TEST_CASE("each pass draws every sample once, out of order by no more than the buffer holds") {
  const TempFolder folder;
  const std::string path = (folder.path() / "a.tar").string();
  put_file(path, members(30) + end_mark);
  LoaderOptions given = options(6, 30);
  const auto loader = loader_of(path, given);
  CHECK(loader->streamed());
  CHECK(loader->batches_per_epoch() == 5);
  std::vector<std::vector<int64_t>> passes;
  for (int pass = 0; pass < 3; ++pass) {
    std::vector<int64_t> seen;
    for (const Copy& batch : take(*loader, 5))
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
  const std::vector<Copy> plain = take(*loader_of(path, given), 2);
  CHECK(plain[1].indices == std::vector<int64_t>{6, 7, 8, 9, 10, 11});
}

TEST_CASE("batches of a stream are the same for any number of threads, and from any cursor on") {
  const TempFolder folder;
  const std::string path = (folder.path() / "a.tar").string();
  put_file(path, members(40, {0, 5, 6, 7, 39}) + end_mark);
  constexpr int total = 14;  // 84 samples of 35 good ones a pass: into the third
  std::vector<Copy> whole;
  for (const int threads : {1, 2, 5}) {
    const auto batches = take(*loader_of(path, options(6, 20, threads)), total);
    if (whole.empty()) whole = batches;
    CHECK(batches == whole);
  }
  for (const Copy& batch : whole)
    for (const int64_t index : batch.indices)
      CHECK((index != 0 && index != 5 && index != 6 && index != 7 && index != 39));
  put_file(path + ".gz", gzipped(read_text(path)));
  for (const std::string& from : {path, "pipe:cat " + path, path + ".gz"}) {
    std::vector<Cursor> cursors;
    const auto loader = loader_of(from, options(6, 20));
    for (int i = 0; i < total; ++i) {
      // A look ahead does not move the cursor.
      if (i % 2) CHECK(loader->ready(60));
      cursors.push_back(loader->cursor());
      CHECK(loader->next().start == Cursor{1, i / 3, i % 3 * 6});
    }
    for (const int at : {0, 1, 4, 5, 6, 9, 13}) {
      CAPTURE(at);
      const auto again = at % 2 ? loader_of(from, options(6, 20, 1)) : nullptr;
      Loader& other = again ? *again : *loader;
      other.seek(cursors[static_cast<size_t>(at)]);
      CHECK(other.cursor() == cursors[static_cast<size_t>(at)]);
      std::vector<Copy> rest = take(other, total - at);
      for (Copy& each : rest)  // names begin with what was opened
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
  LoaderOptions given = options(4, 12);
  given.order = "sequential";
  const auto loader = loader_of(path, given);
  const std::vector<Copy> batches = take(*loader, 3);
  CHECK(batches[0].indices == std::vector<int64_t>{0, 1, 3, 4});
  CHECK(batches[2].indices == std::vector<int64_t>{9, 13, 14, 15});
  const std::vector<BadSample> bad = loader->bad_samples();
  REQUIRE(bad.size() == 4);
  CHECK(bad[0].name == path + ":00002");
  CHECK(bad[1].why == "is of class 3, there are 3");
  CHECK(bad[2].why.find("has no pictures") != std::string::npos);
  CHECK(bad[3].why.find("which column is the class") != std::string::npos);
  CHECK(loader->tried().samples == 16);
  CHECK(loader->tried().bad == 4);
}

TEST_CASE("a pipe that gives other data, less of it, or fails says so, and the cursor stays good") {
  const TempFolder folder;
  const std::string path = (folder.path() / "a.tar").string(), pipe = "pipe:cat " + path;
  const std::string all = members(40) + end_mark;
  put_file(path, all);
  const auto whole = take(*loader_of(pipe, options(6, 36)), 5);
  Cursor cursor;
  {
    // It breaks within sample 20.
    put_file(path, all.substr(0, members(20).size() + 600));
    const auto loader = loader_of(pipe + "; exit 4", options(6, 36));
    int done = 0;
    const std::string why = message<IoError>([&] {
      for (; done < 6; ++done) {
        const bool same = loader->next().indices == whole[static_cast<size_t>(done)].indices;
        CHECK(same);
      }
    });
    CHECK(why.find("exit status 4") != std::string::npos);
    CHECK(done == 2);  // 20 samples, of which the buffer keeps 7
    CHECK(message<IoError>([&] { loader->next(); }) == why);
    cursor = loader->cursor();
  }
  const auto resumed = [&] {
    const auto loader = loader_of(pipe, options(6, 36));
    loader->seek(cursor);
    return take(*loader, 3);
  };
  put_file(path, all);
  const auto rest = resumed();
  CHECK(std::equal(rest.begin(), rest.end(), whole.begin() + 2));
  put_file(path, members(10) + end_mark);
  CHECK(message<InputError>(resumed).find("gives other data than when the run was saved") !=
        std::string::npos);
  put_file(path, members(40, {12, 13, 14, 15, 16, 17, 18}) + end_mark);
  CHECK(message<InputError>(resumed).find("is another than when the run was saved") != std::string::npos);
}

TEST_CASE("a stream that stalls can be waited for, given up and gone on with") {
  const TempFolder folder;
  const std::string path = (folder.path() / "a.tar").string(), gate = (folder.path() / "gate").string();
  put_file(path, members(40) + end_mark);
  const std::string pipe = fmt::format("pipe:head -c {} {}; [ -e {} ] || sleep 1000; tail -c +{} {}",
                                       members(20).size(), path, gate, members(20).size() + 1, path);
  const auto whole = take(*loader_of(path, options(6, 36)), 5);
  Cursor cursor;
  {
    const auto loader = loader_of(pipe, options(6, 36));
    take(*loader, 2);
    CHECK(!loader->ready(0.2));
    cursor = loader->cursor();
  }  // ends the command
  put_file(gate, "");
  const auto loader = loader_of(pipe, options(6, 36));
  loader->seek(cursor);
  const auto rest = take(*loader, 3);
  for (int i = 0; i < 3; ++i)
    CHECK(rest[static_cast<size_t>(i)].pictures == whole[static_cast<size_t>(i + 2)].pictures);
}

TEST_CASE("cursors of streams that are not theirs are refused") {
  const TempFolder folder;
  const std::string path = (folder.path() / "a.tar").string();
  put_file(path, members(20) + end_mark);
  const auto loader = loader_of(path, options(6, 18));
  loader->next();
  const Cursor good = loader->cursor();
  for (size_t i = 0; i < 7; ++i)
    for (const int64_t wrong : {int64_t{-1}, INT64_MAX}) {
      if (i == 4 && wrong > 0) continue;  // any number of draws is possible
      if (i == 3 && wrong > 0) continue;  // and of passes
      if (i == 5 && wrong > 0) continue;  // and of samples, as far as anyone knows before reading
      if (i == 6) continue;               // true or false
      Cursor cursor = good;
      cursor.state[i] = wrong;
      CAPTURE(i);
      CHECK_THROWS_AS(loader->seek(cursor), InputError);
    }
  Cursor cursor = good;
  cursor.state.pop_back();
  CHECK_THROWS_AS(loader->seek(cursor), InputError);
  cursor = good;
  cursor.position = 19;
  CHECK_THROWS_AS(loader->seek(cursor), InputError);
  LoaderOptions other = options(6, 18);
  other.order = "shuffle-buffer 8";
  CHECK_THROWS_WITH_AS(loader_of(path, other)->seek(good), doctest::Contains("of another size"), InputError);
  other.order = "shuffle";
  CHECK_THROWS_WITH_AS(loader_of(path, other), doctest::Contains("\"shuffle-buffer N\""), InputError);
}
