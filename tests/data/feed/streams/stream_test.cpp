#include "data/formats/streams/stream.h"

#include <algorithm>
#include <bzlib.h>
#include <doctest/doctest.h>
#include <fstream>
#include <lzma.h>
#include <set>
#include <zlib.h>

#include <millrace/error.h>

#include "base/file.h"
#include "base/format.h"
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

std::string bzipped(const std::string& content) {
  auto size = static_cast<unsigned>(content.size() + content.size() / 100 + 600);
  std::string out(size, '\0');
  REQUIRE(BZ2_bzBuffToBuffCompress(out.data(), &size, const_cast<char*>(content.data()),
                                   static_cast<unsigned>(content.size()), 9, 0, 0) == BZ_OK);
  out.resize(size);
  return out;
}

std::string xzipped(const std::string& content) {
  std::string out(lzma_stream_buffer_bound(content.size()), '\0');
  size_t size = 0;
  REQUIRE(lzma_easy_buffer_encode(6, LZMA_CHECK_CRC64, nullptr,
                                  reinterpret_cast<const uint8_t*>(content.data()), content.size(),
                                  reinterpret_cast<uint8_t*>(out.data()), &size, out.size()) == LZMA_OK);
  out.resize(size);
  return out;
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
        formats()
            .at("tfrecord")
            .create(path("a.tfrecord"), {{"n", ColumnKind::integer}, {"t", ColumnKind::text}});
    for (int64_t i = 0; i < 5; ++i)
      writer->add(std::vector<Value>{i, std::string(static_cast<size_t>(i + 1), 'x')});
    writer->finish();
  }
  put_file(path("a.txt"), "to be, or not\n\n\"that is, the question\nwhether\tit\nis\n \nname,x");
  for (const std::string file : {"a.tar", "a.jsonl", "a.csv", "a.tfrecord", "a.txt"}) {
    check_stream(path(file), path(file));
    check_stream("pipe:cat " + path(file), path(file));
    const std::string content = read_text(path(file));
    put_file(path(file + ".gz"), gzipped(content));
    check_stream(path(file + ".gz"), path(file));
    put_file(path(file + ".zst"), zstd(content));
    check_stream("pipe:cat " + path(file + ".zst"), path(file));
    const size_t half = content.size() / 2;
    put_file(path(file + ".bz2"), bzipped(content.substr(0, half)) + bzipped(content.substr(half)));
    check_stream(path(file + ".bz2"), path(file));
    put_file(path(file + ".xz"), xzipped(content.substr(0, half)) + xzipped(content.substr(half)));
    check_stream("pipe:cat " + path(file + ".xz"), path(file));
  }
}

TEST_CASE("rows that are longer than the head of a stream are no plain text") {
  const TempFolder folder;
  const std::string path = (folder.path() / "long.csv").string();
  const std::string words(6000, 'x');
  put_file(path, "label,text\n1," + words + "\n2," + words + "\n");
  CHECK(open_stream("pipe:cat " + path)->format() == "csv");
}

TEST_CASE("texts in another code of bytes, or that begin with a brace, are streamed as they are read") {
  const TempFolder folder;
  const auto format = [&](const std::string& name, const std::string& content) {
    put_file((folder.path() / name).string(), content);
    return std::string(open_stream((folder.path() / name).string())->format());
  };
  CHECK(format("latin.txt", "Caf\xe9 ouvert\nd\xe9j\xe0 vu\nautre ligne\n") == "text");
  CHECK(format("latin.csv", "name,n\nCaf\xe9,1\nth\xe9,2\n") == "csv");
  CHECK(format("brace.txt", "{ brace text\nother\nthird one\n") == "text");
  CHECK(format("rows.txt", "{\"a\": 1}\n{\"a\": 2}\n") == "text");
  CHECK(format("rows.jsonl", "{\"a\": 1}\n{\"a\": 2}\n") == "jsonl");
  CHECK(format("control.csv", "name,n\na\vb,1\nc,2\n") == "csv");
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
    return refusal([&] { all_of(*open_stream(path)); });
  };
  const std::string tar = members(3);
  CHECK(fault(tar.substr(0, tar.size() - 300)).find("the tar ends within 00002.cls") != std::string::npos);
  CHECK(fault(tar).find("without an end mark") != std::string::npos);
  std::string damaged = tar + end_mark;
  damaged[tar.size() - 1024 + 3] ^= 1;
  CHECK(fault(damaged).find("damaged tar header at byte") != std::string::npos);
  CHECK(fault("").find("gives nothing") != std::string::npos);
  CHECK(fault(std::string(100, '\1') + '\0').find("is none of the formats") != std::string::npos);
  CHECK(fault("{\"a\": 1}\n\"b") == "");  // its own sample says so
  CHECK(fault("a,b\n1,\"x\n").find("ends within the quotes") != std::string::npos);
  const std::string packed = gzipped(tar + end_mark);
  CHECK(fault(packed.substr(0, packed.size() - 20)).find("gzip content (it ends early)") !=
        std::string::npos);
  std::string broken = zstd(tar + end_mark);
  CHECK(fault(broken.substr(0, broken.size() - 5)).find("zstd content (it ends early)") != std::string::npos);
  broken = bzipped(tar + end_mark);
  CHECK(fault(broken.substr(0, broken.size() - 9)).find("bzip2 content (it ends early)") !=
        std::string::npos);
  broken = xzipped(tar + end_mark);
  CHECK(fault(broken.substr(0, broken.size() - 9)).find("xz content (it ends early)") != std::string::npos);
  CHECK(refusal<IoError>([&] {
          all_of(*open_stream("pipe:cat " + path + ".not 2>/dev/null; exit 3"));
        }).find("exit status 3") != std::string::npos);
  put_file(path, tar);
  CHECK(refusal<IoError>([&] {
          all_of(*open_stream("pipe:cat " + path + "; kill -9 $$"));
        }).find("signal 9") != std::string::npos);
}
