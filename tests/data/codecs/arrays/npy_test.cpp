#include "data/codecs/arrays/npy.h"

#include <cstring>
#include <doctest/doctest.h>
#include <fmt/core.h>
#include <zlib.h>

#include <millrace/error.h>

#include "support/refusal.h"

using namespace millrace;
using namespace millrace::data;

namespace {

std::string little_endian(uint64_t value, int bytes) {
  return {reinterpret_cast<const char*>(&value), static_cast<size_t>(bytes)};
}

/// A file of that version with that header and content.
std::string npy_file(const std::string& header, const std::string& content, int version = 1) {
  return std::string("\x93NUMPY") + static_cast<char>(version) + std::string(1, '\0') +
         little_endian(header.size(), version == 1 ? 2 : 4) + header + content;
}
template <typename T>
std::string numbers(std::initializer_list<T> values) {
  return {reinterpret_cast<const char*>(std::data(values)), values.size() * sizeof(T)};
}
std::span<const uint8_t> bytes_of(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}
std::string refusal(const std::string& file) {
  return testing::refusal([&] { (void)parse_npy(bytes_of(file)); });
}

struct ZipMember {
  std::string name, content;
  bool deflated = false, zip64 = false;
};

std::string raw_deflate(const std::string& content) {
  z_stream stream{};
  REQUIRE(::deflateInit2(&stream, 9, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY) == Z_OK);
  std::string out(content.size() + 100, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(content.data()));
  stream.avail_in = static_cast<uInt>(content.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  REQUIRE(::deflate(&stream, Z_FINISH) == Z_STREAM_END);
  out.resize(stream.total_out);
  ::deflateEnd(&stream);
  return out;
}

/// By PKWARE's APPNOTE 6.3: local headers (4.3.7), the directory (4.3.12) and its end (4.3.16).
std::string zip_file(const std::vector<ZipMember>& members, const std::string& comment = "", int method = 8) {
  std::string all, directory;
  for (const ZipMember& m : members) {
    const std::string packed = m.deflated ? raw_deflate(m.content) : m.content;
    const size_t at = all.size();
    const std::string how = little_endian(m.deflated ? static_cast<uint64_t>(method) : 0, 2);
    // Sizes in local headers may be left out; an extra field stands there alone.
    all += "PK\3\4" + std::string(4, '\0') + how + std::string(16, '\0') + little_endian(m.name.size(), 2) +
           little_endian(6, 2) + m.name + "\xfe\xca" + little_endian(2, 2) + "xx" + packed;
    const uint64_t large = 0xffffffff;
    const std::string extra = m.zip64 ? "\xfe\xca" + little_endian(1, 2) + "x" + little_endian(1, 2) +
                                            little_endian(24, 2) + little_endian(m.content.size(), 8) +
                                            little_endian(packed.size(), 8) + little_endian(at, 8)
                                      : "";
    directory += "PK\1\2" + std::string(6, '\0') + how + std::string(8, '\0') +
                 little_endian(m.zip64 ? large : packed.size(), 4) +
                 little_endian(m.zip64 ? large : m.content.size(), 4) + little_endian(m.name.size(), 2) +
                 little_endian(extra.size(), 2) + little_endian(3, 2) + std::string(8, '\0') +
                 little_endian(m.zip64 ? large : at, 4) + m.name + extra + "why";
  }
  const size_t at = all.size();
  return all + directory + "PK\5\6" + std::string(4, '\0') + little_endian(members.size(), 2) +
         little_endian(members.size(), 2) + little_endian(directory.size(), 4) + little_endian(at, 4) +
         little_endian(comment.size(), 2) + comment;
}

std::string zip_refusal(const std::string& file) {
  return testing::refusal([&] {
    for (const std::string& name : npz_names(bytes_of(file))) (void)parse_npz(bytes_of(file), name);
  });
}

const std::string usual = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }";

}  // namespace

TEST_CASE("arrays of NumPy's files are read, of all versions, in both orders of dimensions") {
  const std::string content = numbers<float>({1, 2, 3, 4, 5, 6});
  for (const int version : {1, 2, 3}) {
    CAPTURE(version);
    const Array array = parse_npy(bytes_of(npy_file(usual + "   \n", content, version)));
    CHECK(array.type() == Type{f32, {2, 3}});
    CHECK(array.to_doubles() == std::vector<double>{1, 2, 3, 4, 5, 6});
  }
  for (const char* header : {"{\"shape\":(2,3),\"fortran_order\":True,\"descr\":\"<f4\"}",
                             "{ 'shape' : ( 2L , 3L , ) ,\t'fortran_order' : True , 'descr' : '=f4' }\n"})
    CHECK(parse_npy(bytes_of(npy_file(header, content))).to_doubles() ==
          std::vector<double>{1, 3, 5, 2, 4, 6});
  const Array one =
      parse_npy(bytes_of(npy_file("{'descr': '|u1', 'fortran_order': False, 'shape': (), }", "\xfe")));
  CHECK(one.type() == Type{u8, {}});
  CHECK(one.at(0) == 254);
  CHECK(parse_npy(bytes_of(npy_file("{'descr': '<f8', 'fortran_order': False, 'shape': (0, 3), }", "")))
            .type() == Type{f64, {0, 3}});
  // Three dimensions, the first fastest.
  const Array deep =
      parse_npy(bytes_of(npy_file("{'descr': '<i8', 'fortran_order': True, 'shape': (2, 2, 3), }",
                                  numbers<int64_t>({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}))));
  CHECK(deep.to_doubles() == std::vector<double>{0, 4, 8, 2, 6, 10, 1, 5, 9, 3, 7, 11});
}

TEST_CASE("elements of each of NumPy's types are read, into wider ones where there are none of that type") {
  const auto read = [](const std::string& descr, const std::string& content) {
    const Array array = parse_npy(bytes_of(
        npy_file(fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': (2,), }}", descr), content)));
    return fmt::format("{} {} {}", array.dtype().name(), array.at(0), array.at(1));
  };
  CHECK(read("|b1", std::string("\0\1", 2)) == "bool 0 1");
  CHECK(read("|b1", std::string("\0\2", 2)) == "bool 0 1");
  CHECK(read("|i1", "\xff\x7f") == "i8 -1 127");
  CHECK(read("<i2", numbers<int16_t>({-300, 300})) == "i32 -300 300");
  CHECK(read("<u2", numbers<uint16_t>({1, 65535})) == "i32 1 65535");
  CHECK(read("<i4", numbers<int32_t>({-70000, 3})) == "i32 -70000 3");
  CHECK(read("<u4", numbers<uint32_t>({4000000000U, 3})) == "i64 4000000000 3");
  CHECK(read("<i8", numbers<int64_t>({-5, 1LL << 40})) == "i64 -5 1099511627776");
  CHECK(read("<u8", numbers<uint64_t>({5, 6})) == "i64 5 6");
  CHECK(read("<f2", numbers<uint16_t>({0x3c00, 0xc000})) == "f16 1 -2");
  CHECK(read("<f8", numbers<double>({0.1, -3})) == "f64 0.1 -3");
}

TEST_CASE("files that are no arrays, are cut off or would run code are refused with the reason") {
  const std::string content = numbers<float>({1, 2, 3, 4, 5, 6});
  CHECK(refusal(npy_file(usual, content)).empty());
  CHECK(refusal("").find("is no .npy file") != std::string::npos);
  CHECK(refusal("\x93NUMPZ and some more").find("is no .npy file") != std::string::npos);
  CHECK(refusal(npy_file(usual, content, 4)).find("version 4") != std::string::npos);
  CHECK(refusal(npy_file(usual, content).substr(0, 40)).find("cut off in its header") != std::string::npos);
  CHECK(refusal(npy_file(usual, content, 2).substr(0, 11)).find("is cut off") != std::string::npos);
  CHECK(!refusal(npy_file(usual, content.substr(1))).empty());
  const auto with = [&](const std::string& what, const std::string& by) {
    std::string header = usual;
    header.replace(header.find(what), what.size(), by);
    return refusal(npy_file(header, content));
  };
  CHECK(with("'<f4'", "'|O'").find("could run any code") != std::string::npos);
  CHECK(with("'<f4'", "[('a', '<f4')]").find("records of several fields") != std::string::npos);
  for (const char* type : {"'>f4'", "'<c8'", "'<f3'", "'<f16'", "'<M8'", "'<f'"})
    CHECK_MESSAGE(with("'<f4'", type).find("of NumPy's type") != std::string::npos, std::string(type));
  for (const auto& [what, by] : std::vector<std::pair<std::string, std::string>>{{"False", "false"},
                                                                                 {"(2, 3)", "(2, x)"},
                                                                                 {"(2, 3)", "(2 3)"},
                                                                                 {"(2, 3)", "2"},
                                                                                 {"(2, 3)", "(-2, 3)"},
                                                                                 {"(2, 3)", "(2, 3"},
                                                                                 {"'shape'", "'shapes'"},
                                                                                 {"'shape': (2, 3), ", ""},
                                                                                 {"'<f4'", "''"},
                                                                                 {"'<f4'", "'<f4"},
                                                                                 {": '<f4'", " '<f4'"},
                                                                                 {", 'fortran", " 'fortran"},
                                                                                 {"{", "("},
                                                                                 {"}", ""}}) {
    CAPTURE(by);
    CHECK(with(what, by).find("is damaged") != std::string::npos);
  }
  CHECK(!with("(2, 3)", "(9999999999999999, 9999999999999999)").empty());
}

TEST_CASE("what is written as NumPy's file has its header, and is read as it was") {
  for (const DType& type : {f32, f64, f16, i8, u8, i32, i64, boolean})
    for (const Shape& shape : {Shape{}, Shape{3}, Shape{2, 2}, Shape{0, 5}}) {
      CAPTURE(type.name());
      Array array(type, shape);
      for (int64_t i = 0; i < array.count(); ++i) array.set(i, static_cast<double>(i % 2));
      const std::vector<uint8_t> file = encode_npy(array);
      CHECK((file.size() - static_cast<size_t>(array.count() * type.bytes())) % 64 == 0);
      CHECK(parse_npy(file).identical(array));
    }
  const std::vector<uint8_t> file = encode_npy(Array::full(f32, {3}, 1));
  CHECK(std::string(file.begin() + 10, file.begin() + 71) ==
        "{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }    ");
  CHECK(file[127] == '\n');
  CHECK(parse_npy(encode_npy(Array::full(bf16, {2}, 1.5))).to_doubles() == std::vector<double>{1.5, 1.5});
}

TEST_CASE("zips of arrays are read by name: stored, deflated, with long sizes and a comment behind") {
  const std::string a = npy_file(usual, numbers<float>({1, 2, 3, 4, 5, 6})),
                    b = npy_file("{'descr': '<i8', 'fortran_order': False, 'shape': (2,), }",
                                 numbers<int64_t>({7, 8}));
  for (const bool deflated : {false, true})
    for (const bool zip64 : {false, true})
      for (const std::string& comment : {std::string(), std::string("PK and more words")}) {
        CAPTURE(deflated);
        CAPTURE(zip64);
        const std::string file =
            zip_file({{"a.npy", a, deflated, zip64}, {"b.npy", b, !deflated, false}}, comment);
        CHECK(npz_names(bytes_of(file)) == std::vector<std::string>{"a", "b"});
        CHECK(parse_npz(bytes_of(file), "a").to_doubles() == std::vector<double>{1, 2, 3, 4, 5, 6});
        CHECK(parse_npz(bytes_of(file), "b").to_doubles() == std::vector<double>{7, 8});
        CHECK_THROWS_WITH_AS((void)parse_npz(bytes_of(file), "c"), "has no array 'c'", InputError);
      }
}

TEST_CASE("zips that are damaged or packed otherwise are refused, wherever they end") {
  const std::string a = npy_file(usual, numbers<float>({1, 2, 3, 4, 5, 6}));
  CHECK(zip_refusal(zip_file({{"a.npy", a, true, false}}, "", 12)).find("zip's method 12") !=
        std::string::npos);
  for (const bool zip64 : {false, true}) {
    const std::string file = zip_file({{"a.npy", a, true, zip64}});
    CHECK(zip_refusal(file).empty());
    for (size_t size = 0; size < file.size(); ++size)
      CHECK_MESSAGE(zip_refusal(file.substr(0, size)).find("is damaged: no whole zip") != std::string::npos,
                    size);
    // A byte that points elsewhere is refused or gives other names, and reads nothing beyond the file.
    for (size_t at = file.size() - 120; at < file.size(); ++at)
      for (const char byte : {'\xff', '\x7f'}) {
        std::string other = file;
        other[at] = byte;
        (void)zip_refusal(other);
      }
  }
}
