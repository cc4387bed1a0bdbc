// Arrays of a numpy .npz file as np.savez writes it (zip without compression), for tests.
#pragma once

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <stdexcept>
#include <string>

#include <millrace/array.h>

namespace millrace::test {

/// The .npy at `data` (numpy.lib.format, version 1, C order; f4, i8).
inline Array parse_npy(const std::string& data) {
  const auto length = static_cast<size_t>(static_cast<unsigned char>(data[8])) |
                      static_cast<size_t>(static_cast<unsigned char>(data[9])) << 8;
  const std::string header = data.substr(10, length);
  const DType dtype = header.find("<f4") != std::string::npos ? f32
                      : header.find("<i8") != std::string::npos
                          ? i64
                          : throw std::runtime_error("npy: dtype in " + header);
  Shape shape;
  const size_t open = header.find('(');
  for (const char* at = header.c_str() + open + 1; *at != ')';) {
    char* end = nullptr;
    const int64_t size = std::strtoll(at, &end, 10);
    if (end != at) shape.push_back(size);
    at = end == at ? at + 1 : end;
  }
  Array array(dtype, shape);
  std::memcpy(array.data(), data.data() + 10 + length, static_cast<size_t>(array.bytes()));
  return array;
}

inline std::map<std::string, Array> read_npz(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  const auto number = [&](size_t at, int size) {
    uint64_t value = 0;
    for (int i = size - 1; i >= 0; --i) value = value << 8 | static_cast<unsigned char>(bytes[at + i]);
    return value;
  };
  std::map<std::string, Array> arrays;
  // Entries of the central directory: sizes there are right even where the local header leaves them out.
  for (size_t at = bytes.find("PK\1\2"); at != std::string::npos; at = bytes.find("PK\1\2", at + 4)) {
    const auto name_length = number(at + 28, 2), extra = number(at + 30, 2), local = number(at + 42, 4);
    const std::string name = bytes.substr(at + 46, name_length);
    if (number(at + 10, 2) != 0) throw std::runtime_error("npz: " + name + " is compressed");
    const size_t start = local + 30 + number(local + 26, 2) + number(local + 28, 2);
    arrays[name.substr(0, name.rfind(".npy"))] = parse_npy(bytes.substr(start, number(at + 24, 4)));
    at += 46 + name_length + extra - 4;
  }
  return arrays;
}

}  // namespace millrace::test
