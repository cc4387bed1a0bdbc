// TFRecord: u64 length, u32 masked CRC-32C of the length, data, u32 masked CRC-32C of the data
// (tensorflow/core/lib/io/ record_writer.cc); the whole file may be gzip or zlib. The data is a
// tf.train.Example as protobuf (tensorflow/core/example/{example,feature}.proto):
//   Example { Features features = 1; }   Features { map<string, Feature> feature = 1; }
//   Feature { oneof { BytesList = 1; FloatList = 2; Int64List = 3; } }   each list: repeated value = 1;
// It is read in place, because protobuf's own classes would copy every picture twice.
#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include <millrace/file.h>

#include "base/crc32c.h"
#include "base/file.h"
#include "base/format.h"
#include "base/number_at.h"
#include "base/wire.h"
#include "data/formats/content.h"
#include "data/formats/formats.h"
#include "data/io/compression.h"
#include "data/table/indexed_samples.h"

namespace millrace::data {
namespace {

constexpr uint64_t framing = 16;  // 12 bytes before the data, 4 behind it
/// Values of a feature that decide what its bytes are.
constexpr int64_t judged = 64;

bool begins_record(std::span<const uint8_t> frame) {
  return frame.size() >= 12 &&
         number_at<uint32_t>(frame.data() + 8) == masked_crc32c(crc32c(frame.data(), 8));
}

std::span<const uint8_t> bytes_of(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

/// A Feature: the lists of the kind that was set last, as protobuf's oneof has it.
struct Feature {
  int kind = 0;  // 1 bytes, 2 float, 3 int64; 0 nothing is set
  std::vector<std::string_view> lists;

  /// False when the message is damaged.
  bool parse(std::string_view message) {
    kind = 0;
    lists.clear();
    WireReader fields(message);
    while (fields.next()) {
      if (fields.type() != 2 || fields.field() > 3) continue;
      if (fields.field() != kind) lists.clear();
      kind = fields.field();
      lists.push_back(fields.bytes());
    }
    return !fields.damaged();
  }

  /// Calls visit(bytes) for each value of a bytes_list; false when it is damaged.
  template <typename Visit>
  bool each_bytes(const Visit& visit) const {
    for (const std::string_view list : lists) {
      WireReader values(list);
      while (values.next())
        if (values.field() == 1 && values.type() == 2) visit(values.bytes());
      if (values.damaged()) return false;
    }
    return true;
  }

  /// Calls visit(number) for each value of a float_list or int64_list, packed or not.
  template <typename Visit>
  bool each_number(const Visit& visit) const {
    for (const std::string_view list : lists) {
      WireReader values(list);
      while (values.next()) {
        if (values.field() != 1) continue;
        if (kind == 2 && values.type() == 5) visit(number_at<float>(bytes_of(values.bytes()).data()));
        if (kind == 3 && values.type() == 0) visit(static_cast<int64_t>(values.number()));
        if (values.type() != 2) continue;
        std::string_view packed = values.bytes();
        if (kind == 2 && packed.size() % 4 != 0) return false;
        while (!packed.empty()) {
          uint64_t number = 0;
          if (kind == 2) {
            visit(number_at<float>(bytes_of(packed).data()));
            packed.remove_prefix(4);
          } else if (WireReader::varint(packed, number)) {
            visit(static_cast<int64_t>(number));
          } else {
            return false;
          }
        }
      }
      if (values.damaged()) return false;
    }
    return true;
  }

  /// The number of values; -1 when it is damaged.
  int64_t count() const {
    int64_t values = 0;
    const auto one = [&](auto) { ++values; };
    return (kind == 1 ? each_bytes(one) : each_number(one)) ? values : -1;
  }
};

/// Calls visit(name, Feature message) for the features of an Example; false when the bytes are none.
template <typename Visit>
bool each_feature(std::string_view example, const Visit& visit) {
  WireReader fields(example);
  while (fields.next()) {
    // Field 2 makes it a SequenceExample, which is something else.
    if (fields.field() != 1 || fields.type() != 2) return false;
    WireReader entries(fields.bytes());
    while (entries.next()) {
      if (entries.field() != 1 || entries.type() != 2) return false;
      WireReader entry(entries.bytes());
      std::string_view name, feature;
      while (entry.next()) {
        if (entry.field() == 1 && entry.type() == 2) name = entry.bytes();
        if (entry.field() == 2 && entry.type() == 2) feature = entry.bytes();
      }
      if (entry.damaged() || !is_utf8(name)) return false;
      visit(name, feature);
    }
    if (entries.damaged()) return false;
  }
  return !fields.damaged();
}

/// What all samples say about one feature.
struct Survey {
  int kind = 0;
  int64_t most = 0, fewest = INT64_MAX, seen = 0, pictures = 0, sounds = 0;
  bool text = true, any = false;  // any: a value that is not empty

  void add(const Feature& feature, int64_t count) {
    kind = kind == 0 ? feature.kind : kind;
    if (feature.kind != kind) return;  // reading that sample says so
    most = std::max(most, count);
    fewest = std::min(fewest, count);
    if (kind != 1) return;
    (void)feature.each_bytes([&](std::string_view value) {
      if (value.empty() || (!text && seen >= judged)) return;
      const ColumnKind content = content_kind(bytes_of(value));
      any = true;
      text = text && content == ColumnKind::text;
      if (++seen > judged) return;
      pictures += content == ColumnKind::picture;
      sounds += content == ColumnKind::audio;
    });
  }

  bool same_column(const Survey& other) const {
    return kind == other.kind && most == other.most && fewest == other.fewest && text == other.text;
  }

  ColumnKind column() const {
    if (kind != 1)
      return most != 1 || fewest != 1 ? ColumnKind::array
             : kind == 2              ? ColumnKind::real
                                      : ColumnKind::integer;
    if (any && text) return most > 1 || fewest < 1 ? ColumnKind::json : ColumnKind::text;
    const int64_t half = (std::min(seen, judged) + 1) / 2;
    return any && pictures >= half ? ColumnKind::picture
           : any && sounds >= half ? ColumnKind::audio
                                   : ColumnKind::bytes;
  }
};

class TfRecord final : public Dataset {
 public:
  TfRecord(const std::string& path, Files files) : Dataset(path), files_(std::move(files)) {
    for (size_t f = 0; f < files_.size(); ++f) {
      auto& file = files_[f];
      const Bytes head = file->read(0, std::min<uint64_t>(file->size(), 12));
      const size_t before = records_.size();
      if (is_deflated(head.view()) && !begins_record(head.view())) {
        packed_.insert(f);
        file = decompress_file(*file, Compression::gzip, unpacked_limit(file->size()));
      } else {
        check_index(f);
      }
      index(f);
      if (records_.size() == before)
        fail<InputError>("{}: has no records; copy the file again", file->path());
    }
    survey();
  }

  /// By the indices: only the first samples are looked at.
  TfRecord(const std::string& path, Files files, std::vector<std::shared_ptr<const Index>> indices)
      : Dataset(path), files_(std::move(files)), indexed_(indices) {
    columns_ = indices[0]->columns();
    for (const Column& column : columns_)
      kinds_.push_back(column.kind == ColumnKind::integer ? 3
                       : column.kind == ColumnKind::real  ? 2
                       : column.kind == ColumnKind::array ? 0
                                                          : 1);
    constexpr int64_t looked_at = 64;
    const int64_t most = std::min(count(), looked_at);
    int64_t good = 0;
    std::vector<Found> found;
    for (int64_t i = 0; i < most; ++i) {
      const Bytes record = content(i);
      if (!parse_record(record.text(), found)) continue;
      good += !found.empty();
      // An array may be of either kind of number, which the index does not tell.
      for (const Found& each : found)
        for (size_t c = 0; c < columns_.size(); ++c)
          if (kinds_[c] == 0 && columns_[c].name == each.name && each.feature.kind > 1)
            kinds_[c] = each.feature.kind;
    }
    examples_ = 2 * good >= most;
    if (!examples_ && columns_ != std::vector<Column>{{"data", ColumnKind::bytes}})
      fail<InputError>(
          "{}: holds no tf.train.Example, unlike its index says; make the index again with millrace data "
          "index",
          path);
  }

  int64_t count() const override {
    return indexed_.empty() ? static_cast<int64_t>(records_.size()) : indexed_.count();
  }
  std::span<const std::shared_ptr<const RandomAccessFile>> files() const override { return files_; }
  /// With the framing; nothing in a file that is compressed as a whole.
  std::optional<SampleExtent> extent(int64_t index) const override {
    const SampleExtent record = place(index);
    return packed_.contains(record.file) ? std::nullopt : std::optional(record);
  }
  std::string name(int64_t index) const override {
    const SampleExtent record = place(index);
    return fmt::format("{}, byte {}", files_[record.file]->path(), record.offset);
  }

  Value read(int64_t index, size_t column) const override {
    if (!indexed_.empty())
      if (Value small = indexed_.small(index, column); !std::holds_alternative<std::monostate>(small))
        return small;
    const Bytes record = content(index);
    if (!examples_) return record;
    const Column& wanted = columns_.at(column);
    // Of pictures and sounds, which are decoded one by one, a damaged one can be replaced; decoders notice
    // little.
    if (wanted.kind == ColumnKind::picture || wanted.kind == ColumnKind::audio) verify(index);
    bool present = false;
    std::string_view message;
    const bool good = each_feature(record.text(), [&](std::string_view key, std::string_view feature) {
      if (key != wanted.name) return;
      present = true;
      message = feature;
    });
    Feature feature;
    if (!good || !feature.parse(message) || feature.count() < 0)
      fail<InputError>("{}: holds no tf.train.Example, unlike others here; it is damaged", name(index));
    if (!present || feature.kind == 0) return std::monostate();
    if (feature.kind != kinds_[column] && (kinds_[column] != 0 || feature.kind == 1))
      fail<InputError>("{}: its {} is a {}, but a {} in samples before", name(index), wanted.name,
                       list_name(feature.kind), list_name(kinds_[column]));
    return feature.kind == 1 ? read_bytes(feature, record, wanted, index) : read_numbers(feature, wanted);
  }

  void verify(int64_t index) const override {
    const std::string problem = refusal(index);
    if (!problem.empty()) throw InputError(problem);
  }

 private:
  static const char* list_name(int kind) {
    return kind == 0 ? "list of numbers" : kind == 1 ? "bytes_list" : kind == 2 ? "float_list" : "int64_list";
  }

  SampleExtent place(int64_t index) const {
    if (indexed_.empty()) return records_.at(static_cast<size_t>(index));
    const SampleExtent at = indexed_.extent(index);
    if (at.size < framing)
      fail<InputError>("{}: a record of {} bytes cannot be; make the index again with millrace data index",
                       path(), at.size);
    return at;
  }

  /// "" or what is wrong with a record's checksum.
  std::string refusal(int64_t index) const {
    const SampleExtent record = place(index);
    const Bytes data = files_[record.file]->read(record.offset + 12, record.size - 12);
    const uint64_t size = record.size - framing;
    const uint32_t wanted = number_at<uint32_t>(data.data() + size),
                   found = masked_crc32c(crc32c(data.data(), size));
    if (found == wanted) return "";
    return fmt::format("{}: damaged: the checksum of its data is {:08x}, not {:08x}; copy the file again",
                       name(index), found, wanted);
  }

  Bytes content(int64_t index) const {
    const SampleExtent record = place(index);
    return files_[record.file]->read(record.offset + 12, record.size - framing);
  }

  void index(size_t f) {
    const RandomAccessFile& file = *files_[f];
    for (uint64_t at = 0; at < file.size();) {
      const auto damaged = [&](const char* why) {
        fail<InputError>("{}: damaged at byte {}: {}; copy the file again", file.path(), at, why);
      };
      if (file.size() - at < framing) damaged("a record is cut off");
      const Bytes frame = file.read(at, 12);
      if (!begins_record(frame.view())) damaged("the checksum of a record's length is wrong");
      const auto size = number_at<uint64_t>(frame.data());
      if (size > file.size() - at - framing) damaged("a record is cut off");
      records_.push_back({f, at, framing + size});
      at += framing + size;
    }
  }

  /// tfrecord2idx and DALI's tool write lines of "offset size" beside a file. Where there are such, they must
  /// be right.
  void check_index(size_t f) const {
    namespace fs = std::filesystem;
    const RandomAccessFile& file = *files_[f];
    fs::path found;
    for (const char* extension : {".idx", ".index"})
      for (const fs::path& path :
           {fs::path(file.path() + extension), fs::path(file.path()).replace_extension(extension)})
        if (std::error_code ignored; found.empty() && fs::is_regular_file(path, ignored)) found = path;
    if (found.empty()) return;
    const std::string text = read_text(found);
    uint64_t at = 0;
    int64_t line = 0;
    const auto refuse = [&](const char* why) {
      fail<InputError>("{}: line {} does not fit {}: {}; remove it, or make it again with tfrecord2idx",
                       found.string(), line, file.path(), why);
    };
    const char* next = text.c_str();
    while (*(next += std::strspn(next, " \t\r\n"))) {
      ++line;
      uint64_t numbers[2] = {};
      for (uint64_t& number : numbers) {
        next += std::strspn(next, " \t");
        const size_t digits = std::strspn(next, "0123456789");
        if (digits == 0 || digits > 19) refuse("it is not of the form \"offset size\"");
        number = std::strtoull(next, nullptr, 10);
        next += digits;
      }
      if (numbers[0] != at) refuse("a record begins elsewhere");
      if (numbers[1] < framing || numbers[1] > file.size() - at ||
          number_at<uint64_t>(file.read(at, 8).data()) != numbers[1] - framing)
        refuse("the record has another size");
      at += numbers[1];
    }
    if (at != file.size()) refuse("there are more records");
  }

  /// A feature of the record that is surveyed.
  struct Found {
    std::string_view name;
    Feature feature;
    int64_t values = 0;
  };

  /// The columns, from all records. A damaged one is a bad sample and must not change them: whatever says
  /// something new has its checksum compared.
  void survey() {
    std::map<std::string, Survey, std::less<>> surveys;
    std::vector<std::string> order;
    std::vector<Found> found;
    size_t good = 0;
    for (size_t i = 0; i < records_.size(); ++i) {
      const Bytes record = content(static_cast<int64_t>(i));
      if (!parse_record(record.text(), found)) continue;
      const bool news = std::any_of(found.begin(), found.end(), [&](const Found& each) {
        const auto at = surveys.find(each.name);
        if (at == surveys.end()) return true;
        Survey after = at->second;
        after.add(each.feature, each.values);
        return !after.same_column(at->second);
      });
      if (news && !refusal(static_cast<int64_t>(i)).empty()) continue;
      good += !found.empty();
      for (const Found& each : found) {
        if (each.feature.kind == 0) continue;
        auto at = surveys.find(each.name);
        if (at == surveys.end()) {
          at = surveys.emplace(each.name, Survey()).first;
          order.emplace_back(each.name);
        }
        at->second.add(each.feature, each.values);
      }
    }
    // When most records are no Examples, the payload is something else.
    examples_ = 2 * good >= records_.size() && !order.empty();
    if (!examples_) {
      columns_ = {{"data", ColumnKind::bytes}};
      return;
    }
    for (const std::string& key : order) {
      columns_.push_back({key, surveys.at(key).column()});
      kinds_.push_back(surveys.at(key).kind);
    }
  }

  /// False when the record is no Example.
  static bool parse_record(std::string_view record, std::vector<Found>& found) {
    size_t count = 0;
    bool whole = each_feature(record, [&](std::string_view key, std::string_view message) {
      if (found.size() == count) found.emplace_back();
      Found& next = found[count++];  // whose memory is used again
      next.name = key;
      next.values = next.feature.parse(message) ? next.feature.count() : -1;
    });
    found.resize(count);
    return whole &&
           std::all_of(found.begin(), found.end(), [](const Found& each) { return each.values >= 0; });
  }

  Value read_bytes(const Feature& feature, const Bytes& record, const Column& column, int64_t index) const {
    std::vector<std::string_view> values;
    (void)feature.each_bytes([&](std::string_view value) { values.push_back(value); });
    if (column.kind == ColumnKind::json) {
      nlohmann::json list = values;
      return list.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    }
    if (values.size() != 1)
      fail<InputError>(
          "{}: its {} is a list of {} byte strings; only lists of texts, and single ones, can be read",
          name(index), column.name, values.size());
    if (column.kind == ColumnKind::text) return std::string(values[0]);
    return record.part(static_cast<size_t>(values[0].data() - record.text().data()), values[0].size());
  }

  Value read_numbers(const Feature& feature, const Column& column) const {
    if (column.kind == ColumnKind::array) {
      Array array(feature.kind == 2 ? f32 : i64, {feature.count()});
      int64_t i = 0;
      (void)feature.each_number([&](auto number) {
        if constexpr (std::is_same_v<decltype(number), float>)
          array.as<float>()[static_cast<size_t>(i++)] = number;
        else
          array.as<int64_t>()[static_cast<size_t>(i++)] = number;
      });
      return array;
    }
    Value value;
    (void)feature.each_number([&](auto number) {
      if constexpr (std::is_same_v<decltype(number), float>)
        value = double{number};
      else
        value = number;
    });
    return value;
  }

  Files files_;
  std::vector<SampleExtent> records_;
  IndexedSamples indexed_;   // instead of records_
  std::set<size_t> packed_;  // files that are compressed as a whole
  std::vector<int> kinds_;   // of Feature, a column; 0: either kind of numbers
  bool examples_ = false;
};

class TfRecordWriter final : public DatasetWriter {
 public:
  TfRecordWriter(const std::string& path, const std::vector<Column>& columns)
      : path_(path), columns_(columns), file_(path) {
    for (const Column& column : columns)
      if (!is_utf8(column.name)) fail<InputError>("{}: the name of a column is no UTF-8", path);
  }

  void add(std::span<const Value> values) override {
    WireWriter features;
    for (size_t c = 0; c < columns_.size(); ++c) {
      if (std::holds_alternative<std::monostate>(values[c])) continue;
      WireWriter entry;
      entry.bytes(1, columns_[c].name).message(2, feature(values[c], columns_[c]));
      features.message(1, entry);
    }
    const std::string example = WireWriter().message(1, features).text();
    const uint64_t size = example.size();
    const uint32_t before = masked_crc32c(crc32c(&size, sizeof size)),
                   behind = masked_crc32c(crc32c(example.data(), example.size()));
    file_.write(&size, sizeof size);
    file_.write(&before, sizeof before);
    file_.write(example);
    file_.write(&behind, sizeof behind);
    ++count_;
  }

  void finish() override { file_.commit(); }

 private:
  WireWriter numbers(const Array& array) const {
    std::string packed;
    if (array.dtype().is_float()) {
      const Array floats = array.converted(f32);
      for (int64_t i = 0; i < array.count(); ++i)
        if (std::isinf(floats.at(i)) && !std::isinf(array.at(i)))
          fail<InputError>("{}: sample {}: {} is more than the floats of 32 bits hold that TFRecord has",
                           path_, count_, array.at(i));
      packed.assign(static_cast<const char*>(floats.data()), static_cast<size_t>(floats.bytes()));
    } else {
      WireWriter list;
      for (int64_t i = 0; i < array.count(); ++i) list.raw_varint(static_cast<uint64_t>(array.int_at(i)));
      packed = list.text();
    }
    return WireWriter().message(array.dtype().is_float() ? 2 : 3, WireWriter().bytes(1, packed));
  }

  WireWriter feature(const Value& value, const Column& column) const {
    if (const auto* array = std::get_if<Array>(&value)) return numbers(*array);
    if (const auto* real = std::get_if<double>(&value)) return numbers(Array::scalar(f64, *real));
    if (const auto* integer = std::get_if<int64_t>(&value)) {
      Array one(i64, {});
      one.set_int(0, *integer);
      return numbers(one);
    }
    std::string_view text;
    if (const auto* own = std::get_if<std::string>(&value)) text = *own;
    if (const auto* bytes = std::get_if<Bytes>(&value)) text = bytes->text();
    if (std::holds_alternative<Pixels>(value))
      fail<InputError>("{}: the {} of sample {} is stored as pixels; TFRecord keeps only encoded pictures",
                       path_, column.name, count_);
    return WireWriter().message(1, WireWriter().bytes(1, text));
  }

  std::string path_;
  std::vector<Column> columns_;
  AtomicFile file_;
  int64_t count_ = 0;
};

}  // namespace

MILLRACE_FORMAT(tfrecord){
    .name = "tfrecord",
    .doc = "TFRecord (.tfrecord)",
    .place = 40,
    .matches =
        [](std::string_view, std::span<const uint8_t> head) {
          return begins_record(head) || (is_deflated(head) && begins_record(deflated_head(head, 12)));
        },
    .open = open_as<TfRecord>,
    .create = create_as<TfRecordWriter>,
    .open_indexed = [](const std::string& path, Files files,
                       std::vector<std::shared_ptr<const Index>> indices) -> std::unique_ptr<Dataset> {
      return std::make_unique<TfRecord>(path, std::move(files), std::move(indices));
    },
    .pipes = true};

}  // namespace millrace::data
