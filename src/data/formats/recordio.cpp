// MXNet RecordIO: u32 0xced7230a, u32 (cflag << 29 | length), data, zeros to a multiple of four. A record
// whose payload contains the magic number at a multiple of four is split there into parts (cflag 1 first, 2
// middle, 3 last), the number itself left out. Samples begin with IRHeader: u32 flag, f32 label, u64 id, u64
// id2; flag > 0: so many f32 labels follow (apache/mxnet, python/mxnet/recordio.py; dmlc-core,
// src/recordio.cc).
#include <cstring>

#include "base/file.h"
#include "base/format.h"
#include "base/number_at.h"
#include "data/formats/formats.h"
#include "data/table/index.h"

namespace millrace::data {
namespace {

constexpr uint32_t record_magic = 0xced7230a, most_length = (1u << 29) - 1;
constexpr uint64_t image_header = 24;

/// Calls visit(cflag, offset, length) for each part from `offset` on, until it returns false.
template <typename Visit>
void for_each_part(const RandomAccessFile& file, uint64_t offset, const Visit& visit) {
  const auto damaged = [&](const char* why) {
    fail<InputError>("{}: damaged at byte {}: {}; copy the file again", file.path(), offset, why);
  };
  while (offset < file.size()) {
    if (file.size() - offset < 8) damaged("a record is cut off");
    const Bytes frame = file.read(offset, 8);
    const uint32_t word = number_at<uint32_t>(frame.data() + 4);
    if (number_at<uint32_t>(frame.data()) != record_magic) damaged("no record begins here");
    const uint64_t length = word & most_length, padded = (length + 3) / 4 * 4;
    if (padded > file.size() - offset - 8) damaged("a record is cut off");
    if (!visit(word >> 29, offset + 8, length)) return;
    offset += 8 + padded;
  }
}

class RecordIo final : public Dataset {
 public:
  RecordIo(const std::string& path, Files files) : Dataset(path), files_(std::move(files)) {
    bool several = false, picture = false;
    for (size_t f = 0; f < files_.size(); ++f) {
      index(f);
      if (records_.empty()) fail<InputError>("{}: has no records; copy the file again", files_[f]->path());
    }
    for (size_t i = 0; i < records_.size(); ++i) {
      const Bytes record = assemble(records_[i]);
      const uint32_t flag = header(record, i);
      several = several || flag > 0;
      if (i == 0) {
        const auto content = record.view().subspan(image_header + 4 * size_t{flag});
        picture = content.size() > 3 &&
                  ((content[0] == 0xff && content[1] == 0xd8) || (content[0] == 0x89 && content[1] == 'P'));
      }
    }
    columns_ = {{"label", several ? ColumnKind::array : ColumnKind::real},
                {"id", ColumnKind::integer},
                {"id2", ColumnKind::integer},
                {picture ? "image" : "data", picture ? ColumnKind::picture : ColumnKind::bytes}};
  }

  /// By the indices: nothing is read.
  RecordIo(const std::string& path, Files files, const std::vector<std::shared_ptr<const Index>>& indices)
      : Dataset(path), files_(std::move(files)) {
    columns_ = indices[0]->columns();
    for (size_t f = 0; f < indices.size(); ++f)
      for (int64_t i = 0; i < indices[f]->count(); ++i)
        records_.push_back({f, indices[f]->offset(i), indices[f]->size(i)});
  }

  int64_t count() const override { return static_cast<int64_t>(records_.size()); }
  std::span<const std::shared_ptr<const RandomAccessFile>> files() const override { return files_; }
  std::optional<SampleExtent> extent(int64_t index) const override {
    return records_.at(static_cast<size_t>(index));
  }
  std::string name(int64_t index) const override {
    const SampleExtent& record = records_.at(static_cast<size_t>(index));
    return fmt::format("{}, byte {}", files_[record.file]->path(), record.offset);
  }

  Value read(int64_t index, size_t column) const override {
    const Bytes record = assemble(records_.at(static_cast<size_t>(index)));
    const uint32_t flag = header(record, static_cast<size_t>(index));
    switch (column) {
      case 0: {
        const auto label = number_at<float>(record.data() + 4);
        if (columns_[0].kind == ColumnKind::real) return double{label};
        Array labels(f32, {std::max<int64_t>(flag, 1)});
        if (flag == 0)
          labels.as<float>()[0] = label;
        else
          std::memcpy(labels.data(), record.data() + image_header, 4 * size_t{flag});
        return labels;
      }
      case 1:
      case 2:
        return number_at<int64_t>(record.data() + 8 * column);
      default: {
        const size_t begin = image_header + 4 * size_t{flag};
        return record.part(begin, record.size() - begin);
      }
    }
  }

 private:
  void index(size_t f) {
    SampleExtent record;
    bool inside = false;
    for_each_part(*files_[f], 0, [&](uint32_t cflag, uint64_t offset, uint64_t length) {
      const bool begins = cflag == 0 || cflag == 1;
      if (begins == inside || cflag > 3)
        fail<InputError>("{}: damaged at byte {}: {}; copy the file again", files_[f]->path(), offset - 8,
                         inside ? "the parts of a split record do not follow each other"
                                : "a part of a record without its beginning");
      if (begins) record = {f, offset - 8, 0};
      record.size = offset + length - record.offset;
      inside = cflag == 1 || cflag == 2;
      if (!inside) records_.push_back(record);
      return true;
    });
    if (inside) fail<InputError>("{}: the last record is cut off; copy the file again", files_[f]->path());
  }

  /// The content of a record, its parts joined.
  Bytes assemble(const SampleExtent& record) const {
    const RandomAccessFile& file = *files_[record.file];
    const Bytes whole = file.read(record.offset, record.size);
    const bool single = whole.size() >= 8 && number_at<uint32_t>(whole.data()) == record_magic &&
                        number_at<uint32_t>(whole.data() + 4) == whole.size() - 8;
    if (single) return whole.part(8, whole.size() - 8);
    std::vector<uint8_t> joined;
    for_each_part(file, record.offset, [&](uint32_t cflag, uint64_t offset, uint64_t length) {
      const bool begins = cflag == 0 || cflag == 1;
      const auto* word = reinterpret_cast<const uint8_t*>(&record_magic);
      if (!begins) joined.insert(joined.end(), word, word + 4);
      const Bytes part = file.read(offset, length);
      joined.insert(joined.end(), part.view().begin(), part.view().end());
      return cflag == 1 || cflag == 2;
    });
    return Bytes(std::move(joined));
  }

  /// The number of labels that follow the header.
  uint32_t header(const Bytes& record, size_t i) const {
    const uint32_t flag = record.size() < image_header ? 0 : number_at<uint32_t>(record.data());
    if (record.size() < image_header || flag > (record.size() - image_header) / 4)
      fail<InputError>(
          "{}: a record of {} bytes has no image header: only files that im2rec or pack_img made can "
          "be read",
          name(static_cast<int64_t>(i)), record.size());
    return flag;
  }

  Files files_;
  std::vector<SampleExtent> records_;  // framing included, without padding behind
};

std::string record_index(const std::string& path) { return path.substr(0, path.rfind('.')) + ".idx"; }

class RecordIoWriter final : public DatasetWriter {
 public:
  RecordIoWriter(const std::string& path, const std::vector<Column>& columns)
      : path_(path), index_path_(record_index(path)), file_(path) {
    for (size_t i = 0; i < columns.size(); ++i) {
      const Column& column = columns[i];
      const bool content = column.kind == ColumnKind::picture || column.kind == ColumnKind::bytes ||
                           column.kind == ColumnKind::audio;
      int& place = column.name == "label" ? label_
                   : column.name == "id"  ? id_
                   : column.name == "id2" ? id2_
                                          : content_;
      if (place >= 0 || (&place == &content_) != content)
        fail<InputError>(
            "{}: RecordIO holds a label, id, id2 and one picture or bytes; it has no place for the column "
            "'{}' "
            "({})",
            path, column.name, kind_name(column.kind));
      place = static_cast<int>(i);
    }
    if (content_ < 0) fail<InputError>("{}: RecordIO needs a column of pictures or bytes", path);
  }

  void add(std::span<const Value> values) override {
    std::vector<uint8_t> record(image_header);
    const auto put = [&](size_t at, const void* from, size_t size) { std::memcpy(&record[at], from, size); };
    if (label_ >= 0) put_label(values[label_], record);
    const int64_t id = id_ < 0 ? count_ : std::get<int64_t>(values[id_]);
    put(8, &id, sizeof id);
    if (id2_ >= 0) put(16, &std::get<int64_t>(values[id2_]), sizeof(int64_t));
    const auto* content = std::get_if<Bytes>(&values[content_]);
    if (!content)
      fail<InputError>("{}: sample {} holds no encoded picture; RecordIO keeps only encoded ones", path_,
                       count_);
    record.insert(record.end(), content->view().begin(), content->view().end());
    index_ += fmt::format("{}\t{}\n", count_++, file_.size());
    write_record(record);
  }

  void finish() override {
    file_.commit();
    write_file(index_path_, index_);
  }

 private:
  void put_label(const Value& value, std::vector<uint8_t>& record) {
    float label = 0;
    if (const auto* array = std::get_if<Array>(&value)) {
      const auto flag = static_cast<uint32_t>(array->count());
      std::memcpy(record.data(), &flag, sizeof flag);
      const Array floats = array->converted(f32);
      const auto* from = reinterpret_cast<const uint8_t*>(floats.data());
      record.insert(record.end(), from, from + 4 * size_t{flag});
    } else if (const auto* integer = std::get_if<int64_t>(&value)) {
      label = static_cast<float>(*integer);
      if (static_cast<int64_t>(label) != *integer)
        fail<InputError>("{}: sample {} has the label {}, which RecordIO's 32-bit float cannot hold", path_,
                         count_, *integer);
    } else if (const auto* real = std::get_if<double>(&value)) {
      label = static_cast<float>(*real);
    } else {
      fail<InputError>("{}: sample {} has a label that is no number", path_, count_);
    }
    std::memcpy(&record[4], &label, sizeof label);
  }

  void write_record(std::span<const uint8_t> record) {
    std::vector<size_t> cuts;
    for (size_t at = 0; at + 4 <= record.size(); at += 4)
      if (number_at<uint32_t>(&record[at]) == record_magic) cuts.push_back(at);
    size_t begin = 0;
    for (size_t i = 0; i <= cuts.size(); ++i) {
      const size_t end = i < cuts.size() ? cuts[i] : record.size();
      const uint32_t cflag = cuts.empty() ? 0 : i == 0 ? 1 : i < cuts.size() ? 2 : 3;
      if (end - begin > most_length)
        fail<InputError>("{}: sample {} has {} bytes, a RecordIO record at most {}", path_, count_ - 1,
                         record.size(), most_length);
      const uint32_t frame[2] = {record_magic, cflag << 29 | static_cast<uint32_t>(end - begin)};
      file_.write(frame, sizeof frame);
      file_.write(&record[0] + begin, end - begin);
      file_.write("\0\0\0", (4 - (end - begin) % 4) % 4);
      begin = end + 4;
    }
  }

  std::string path_, index_path_, index_;
  AtomicFile file_;
  int label_ = -1, id_ = -1, id2_ = -1, content_ = -1;
  int64_t count_ = 0;
};

}  // namespace

MILLRACE_FORMAT(recordio){
    .name = "recordio",
    .doc = "MXNet RecordIO (.rec)",
    .place = 10,
    .matches =
        [](std::string_view, std::span<const uint8_t> head) {
          return head.size() >= 8 && number_at<uint32_t>(head.data()) == record_magic;
        },
    .open = open_as<RecordIo>,
    .create = create_as<RecordIoWriter>,
    .open_indexed = [](const std::string& path, Files files,
                       std::vector<std::shared_ptr<const Index>> indices) -> std::unique_ptr<Dataset> {
      const auto& columns = indices[0]->columns();
      if (columns.size() != 4 || columns[0].name != "label" || columns[1].name != "id" ||
          columns[2].name != "id2")
        return nullptr;
      return std::make_unique<RecordIo>(path, std::move(files), indices);
    },
    .beside = record_index};

}  // namespace millrace::data
