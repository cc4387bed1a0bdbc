#include <algorithm>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/digest.h"
#include "base/file.h"
#include "base/format.h"
#include "base/utf8.h"
#include "data/codecs/pictures/picture_size.h"
#include "data/codecs/pictures/png.h"
#include "data/formats/mds.h"
#include "data/io/compression.h"

namespace millrace::data {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

template <typename T>
void append(std::string& to, T value) {
  to.append(reinterpret_cast<const char*>(&value), sizeof value);
}

/// With the element type and the shape in front, as encoding "ndarray" has it.
std::string encode_array(const Array& array, const std::string& where) {
  const NumpyType type = numpy_type_of(array.dtype(), where);
  if (type.kind == 'b') fail<InputError>("{}: MDS has no arrays of bool; convert it to u8", where);
  if (array.shape().rank() == 0 || array.count() == 0 || array.shape().rank() > 63)
    fail<InputError>("{}: an array {}: MDS holds only arrays of 1 to 63 axes that are not empty", where,
                     array.type().str());
  std::string out;
  append(out, static_cast<uint8_t>(8 * type.size + (type.kind == 'u' ? 0 : type.kind == 'i' ? 1 : 2)));
  const std::vector<int64_t> sizes = array.shape().sizes();
  const int64_t most = *std::max_element(sizes.begin(), sizes.end());
  const int width = most < 1 << 8 ? 0 : most < 1 << 16 ? 1 : most < int64_t{1} << 32 ? 2 : 3;
  append(out, static_cast<uint8_t>(sizes.size() << 2 | static_cast<size_t>(width)));
  for (const int64_t size : sizes) out.append(reinterpret_cast<const char*>(&size), size_t{1} << width);
  return out.append(static_cast<const char*>(array.data()), static_cast<size_t>(array.bytes()));
}

std::string encode_pixels(const Pixels& pixels) {
  const std::string_view mode = pixels.channels == 1 ? "L" : "RGB";
  std::string out;
  append(out, static_cast<uint32_t>(pixels.width));
  append(out, static_cast<uint32_t>(pixels.height));
  append(out, static_cast<uint32_t>(mode.size()));
  return out.append(mode).append(pixels.bytes.text());
}

/// The encoding that suits a column, by its first value.
std::string encoding_of(const Value& value, ColumnKind kind, const std::string& where) {
  switch (kind) {
    case ColumnKind::integer:
      return "int";
    case ColumnKind::real:
      return "float64";
    case ColumnKind::text:
      return "str";
    case ColumnKind::json:
      return "json";
    case ColumnKind::array:
      return "ndarray";
    case ColumnKind::picture: {
      if (std::holds_alternative<Pixels>(value)) return "pil";
      const auto* bytes = std::get_if<Bytes>(&value);
      if (bytes && jpeg_size(bytes->view())) return "jpeg";
      if (bytes && is_png(bytes->view())) return "png";
      fail<InputError>("{}: MDS keeps JPEG and PNG files and pixels, and this picture is none of them",
                       where);
    }
    default:
      return "bytes";
  }
}

class MdsWriter final : public DatasetWriter {
 public:
  MdsWriter(const std::string& path, std::vector<Column> columns, MdsOptions options)
      : folder_(path), columns_(std::move(columns)), options_(std::move(options)), order_(columns_.size()) {
    if (fs::exists(folder_ / "index.json"))
      fail<InputError>("{}: has a data set already; remove it, or choose another folder", path);
    if (columns_.empty()) fail<InputError>("{}: a data set needs a column", path);
    for (const Column& column : columns_)
      if (!is_utf8(column.name)) fail<InputError>("{}: the name of a column is no UTF-8", path);
    std::iota(order_.begin(), order_.end(), size_t{0});
    std::sort(order_.begin(), order_.end(),
              [&](size_t a, size_t b) { return columns_[a].name < columns_[b].name; });
    for (size_t i = 1; i < order_.size(); ++i)
      if (columns_[order_[i]].name == columns_[order_[i - 1]].name)
        fail<InputError>("{}: two columns are called '{}'", path, columns_[order_[i]].name);
  }
  ~MdsWriter() override {
    std::error_code ignored;
    for (const fs::path& path : written_) fs::remove(path, ignored);
    if (!written_.empty()) fs::remove(folder_, ignored);  // only when nothing else is in it
  }

  void add(std::span<const Value> values) override {
    if (config_.is_null()) configure(values);
    std::string head, body;
    for (size_t i = 0; i < order_.size(); ++i) {
      const std::string value = encode(values[order_[i]], i);
      if (config_["column_sizes"][i].is_null()) append(head, static_cast<uint32_t>(value.size()));
      body += value;
    }
    const uint64_t size = head.size() + body.size(), overhead = 8 + config_text_.size();
    if (!sizes_.empty() && overhead + samples_.size() + size + 4 * (sizes_.size() + 1) > options_.shard_bytes)
      flush();
    if (overhead + size + 4 >= uint64_t{1} << 32)
      fail<InputError>("{}: sample {} has {} bytes, an MDS shard at most 4 GiB", folder_.string(), count_,
                       size);
    samples_ += head;
    samples_ += body;
    sizes_.push_back(static_cast<uint32_t>(size));
    ++count_;
  }

  void finish() override {
    if (count_ == 0) fail<InputError>("{}: there are no samples to write", folder_.string());
    flush();
    const Json index = {{"shards", shards_}, {"version", 2}};
    write_file(folder_ / "index.json", index.dump());
    written_.clear();
  }

 private:
  std::string where(size_t i) const {
    return fmt::format("{}: the {} of sample {}", folder_.string(), columns_[order_[i]].name, count_);
  }

  void configure(std::span<const Value> values) {
    Json names = Json::array(), encodings = Json::array(), sizes = Json::array();
    for (size_t i = 0; i < order_.size(); ++i) {
      const Column& column = columns_[order_[i]];
      const std::string name = encoding_of(values[order_[i]], column.kind, where(i));
      names.push_back(column.name);
      encodings.push_back(name);
      const auto size = MdsEncoding(name, column.name).size();
      sizes.push_back(size ? Json(*size) : Json());
    }
    config_ = {{"column_encodings", encodings},
               {"column_names", names},
               {"column_sizes", sizes},
               {"compression", options_.zstd ? Json("zstd") : Json()},
               {"format", "mds"},
               {"hashes", options_.hashes},
               {"size_limit", options_.shard_bytes},
               {"version", 2}};
    config_text_ = config_.dump();
  }

  std::string encode(const Value& value, size_t i) const {
    const std::string encoding = config_["column_encodings"][i];
    if (std::holds_alternative<std::monostate>(value))
      fail<InputError>("{} is missing, and MDS has no missing values; leave the column out", where(i));
    if (const auto* array = std::get_if<Array>(&value)) return encode_array(*array, where(i));
    std::string out;
    if (const auto* integer = std::get_if<int64_t>(&value)) append(out, *integer);
    if (const auto* real = std::get_if<double>(&value)) append(out, *real);
    if (const auto* text = std::get_if<std::string>(&value)) out = *text;
    if (encoding == "str" && !is_utf8(out))
      fail<InputError>(
          "{} is no UTF-8, which texts of MDS must be; convert the source first (iconv, or convmv for names "
          "of files)",
          where(i));
    if (const auto* bytes = std::get_if<Bytes>(&value)) out = bytes->text();
    if (const auto* pixels = std::get_if<Pixels>(&value)) out = encode_pixels(*pixels);
    if (columns_[order_[i]].kind == ColumnKind::picture &&
        encoding_of(value, ColumnKind::picture, where(i)) != encoding)
      fail<InputError>("{} is not stored as {} like those before; an MDS column has one encoding", where(i),
                       encoding);
    if (out.size() >= uint64_t{1} << 32)
      fail<InputError>("{} has {} bytes, and MDS holds less than 4 GiB", where(i), out.size());
    return out;
  }

  void flush() {
    std::string shard;
    append(shard, static_cast<uint32_t>(sizes_.size()));
    auto offset = static_cast<uint32_t>(4 + 4 * (sizes_.size() + 1) + config_text_.size());
    append(shard, offset);
    for (const uint32_t size : sizes_) append(shard, offset += size);
    shard += config_text_;
    shard += samples_;
    Json entry = config_;
    entry["samples"] = sizes_.size();
    const std::string name = fmt::format("shard.{:05}.mds", shards_.size());
    const std::span<const uint8_t> bytes(reinterpret_cast<const uint8_t*>(shard.data()), shard.size());
    entry["raw_data"] = listed(name, bytes);
    entry["zip_data"] = nullptr;
    if (options_.zstd) {
      const std::vector<uint8_t> packed = pack_zstd(bytes);
      entry["zip_data"] = listed(name + ".zstd", packed);
      write(name + ".zstd", packed);
    } else {
      write(name, bytes);
    }
    shards_.push_back(std::move(entry));
    samples_.clear();
    sizes_.clear();
  }

  Json listed(const std::string& name, std::span<const uint8_t> bytes) const {
    Json hashes = Json::object();
    for (const std::string& algorithm : options_.hashes) {
      const auto digest = hex_digest(algorithm, bytes);
      if (!digest) fail<InputError>("there is no hash '{}'; sha1, sha256 and xxh64 are some", algorithm);
      hashes[algorithm] = *digest;
    }
    return {{"basename", name}, {"bytes", bytes.size()}, {"hashes", hashes}};
  }

  void write(const std::string& name, std::span<const uint8_t> bytes) {
    write_file(folder_ / name, bytes);
    written_.push_back(folder_ / name);
  }

  fs::path folder_;
  std::vector<Column> columns_;
  MdsOptions options_;
  std::vector<size_t> order_;  // columns by name
  Json config_, shards_ = Json::array();
  std::string config_text_, samples_;
  std::vector<uint32_t> sizes_;
  std::vector<fs::path> written_;  // removed unless finish() comes
  int64_t count_ = 0;
};

}  // namespace

std::unique_ptr<DatasetWriter> create_mds(const std::string& path, const std::vector<Column>& columns,
                                          const MdsOptions& options) {
  return std::make_unique<MdsWriter>(path, columns, options);
}

}  // namespace millrace::data
