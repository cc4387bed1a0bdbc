// Parquet and Arrow's own files and streams (Feather version 2 is the file), read and written by Arrow.
// https://parquet.apache.org/docs/file-format/ https://arrow.apache.org/docs/format/Columnar.html
#include <algorithm>
#include <deque>
#include <dlfcn.h>
#include <filesystem>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/contains.h"
#include "base/file.h"
#include "base/format.h"
#include "base/has_at.h"
#include "base/number_at.h"
#include "base/words.h"
#include "data/formats/arrow/module.h"
#include "data/formats/content.h"
#include "data/formats/formats.h"

namespace millrace::data {
namespace {

using arrow_module::FileKind;

constexpr size_t memory_budget = size_t{512} << 20;
// Nulls and repeated values take no room in a file, but in memory they do: a batch has no more rows than
// this, or than the file has bits. Arrow writes at most so many into a row group of Parquet.
constexpr int64_t most_batch_rows = int64_t{1} << 26;
// Of a batch that is written.
constexpr size_t most_buffered_rows = 65'536, most_buffered_bytes = size_t{64} << 20,
                 most_value = size_t{1} << 30;

/// Loads the module at the first call. IoError when it is not there.
const arrow_module::Module& load_arrow() {
  static const arrow_module::Module* module = nullptr;
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  if (module) return *module;
  // Beside the program, or the library that this is part of; else along the run path. It stays loaded.
  constexpr const char* name = "libmillrace_arrow.so";
  void* library = nullptr;
  if (Dl_info here{}; dladdr(reinterpret_cast<const void*>(&load_arrow), &here) != 0 && here.dli_fname) {
    std::error_code ignored;
    const auto beside = std::filesystem::canonical(here.dli_fname, ignored).parent_path() / name;
    if (std::filesystem::exists(beside, ignored)) library = dlopen(beside.c_str(), RTLD_NOW | RTLD_LOCAL);
  }
  if (!library) library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (!library)
    fail<IoError>(
        "Arrow's libraries, which read Parquet and Arrow files, cannot be loaded: {}; install Millrace again",
        dlerror());
  const auto entry = reinterpret_cast<arrow_module::Entry>(dlsym(library, arrow_module::entry_name));
  if (!entry) fail<IoError>("libmillrace_arrow.so is of another version of Millrace; install it again");
  module = entry();
  return *module;
}

/// A file for the module; keeps the error that a read ended with, since none passes through Arrow.
class ModuleInput final : public arrow_module::Input {
 public:
  explicit ModuleInput(std::shared_ptr<const RandomAccessFile> file) : file_(std::move(file)) {}
  uint64_t size() const override { return file_->size(); }
  bool read(uint64_t offset, uint64_t size, Bytes& bytes) noexcept override {
    try {
      bytes = file_->read(offset, size);
      return true;
    } catch (...) {
      const std::lock_guard lock(mutex_);
      error_ = std::current_exception();
      return false;
    }
  }
  std::exception_ptr taken_error() {
    const std::lock_guard lock(mutex_);
    return std::exchange(error_, nullptr);
  }

 private:
  std::shared_ptr<const RandomAccessFile> file_;
  std::mutex mutex_;
  std::exception_ptr error_;
};

size_t memory_of(const ColumnValues& values) {
  size_t bytes = values.present.size() + 8 * (values.integers.size() + values.reals.size());
  for (const std::string_view content : values.contents) bytes += sizeof content + content.size();
  return bytes;
}

/// Batches are read when they are asked for, column by column, and kept within a budget of memory. InputError
/// for a damaged file and when no column can be used; IoError when the file or Arrow's libraries cannot be
/// read.
class ArrowTable final : public Dataset {
 public:
  ArrowTable(FileKind kind, const std::string& path, Files files) : Dataset(path), files_(std::move(files)) {
    for (size_t f = 0; f < files_.size(); ++f) {
      inputs_.push_back(std::make_shared<ModuleInput>(files_[f]));
      readers_.push_back(guarded(f, [&] { return load_arrow().open(kind, inputs_[f]); }));
      const arrow_module::Reader& reader = *readers_[f];
      if (f == 0) {
        columns_ = reader.columns;
        if (columns_.empty())
          fail<InputError>("{}: none of its columns can be used: {}", files_[f]->path(),
                           fmt::join(reader.refused, ", "));
        for (const std::string& refused : reader.refused)
          note(fmt::format("{}: the column {} is left out: nested values cannot be used; flatten it first",
                           files_[f]->path(), refused));
      } else if (reader.columns != readers_[0]->columns) {
        fail<InputError>(
            "{}: its columns are not those of {}: files that are read together must have the same",
            files_[f]->path(), files_[0]->path());
      }
      for (size_t b = 0; b < reader.batches.size(); ++b) {
        if (reader.batches[b] < 0 || reader.batches[b] > INT64_MAX - count_)
          fail<InputError>("{}: damaged: a batch of {} rows", files_[f]->path(), reader.batches[b]);
        if (reader.batches[b] > std::max(most_batch_rows, static_cast<int64_t>(8 * files_[f]->size())))
          fail<InputError>("{}: a batch of {} rows; write it again in batches of at most {}",
                           files_[f]->path(), reader.batches[b], most_batch_rows);
        if (reader.batches[b] > 0) batches_.push_back({f, b, count_, reader.batches[b]});
        count_ += reader.batches[b];
      }
    }
    if (count_ == 0) fail<InputError>("{}: has no rows; copy it again", path);
    std::vector<std::string> seen;
    for (const Column& column : columns_) {
      if (contains(seen, column.name))
        fail<InputError>("{}: two columns are called '{}'; rename one", path, column.name);
      seen.push_back(column.name);
    }
    for (size_t c = 0; c < columns_.size(); ++c)
      if (columns_[c].kind == ColumnKind::bytes) find_content(c);
  }

  int64_t count() const override { return count_; }
  std::span<const std::shared_ptr<const RandomAccessFile>> files() const override { return files_; }
  std::optional<size_t> source_file(int64_t index) const override { return batch_of(index).file; }

  Value read(int64_t index, size_t column) const override {
    const Batch& batch = batch_of(index);
    return value_at(values(batch, column), static_cast<size_t>(index - batch.first));
  }

  bool has(int64_t index, size_t column) const override {
    const Batch& batch = batch_of(index);
    return values(batch, column)->has(static_cast<size_t>(index - batch.first));
  }

  /// Whole row groups, each once: of Parquet, pages have checksums where their writer made them.
  void verify(int64_t index) const override {
    const Batch& batch = batch_of(index);
    const std::lock_guard lock(verifying_);
    const auto [verdict, added] = verdicts_.try_emplace(&batch);
    if (added) try {
        for (size_t c = 0; c < columns_.size(); ++c) (void)values(batch, c);
      } catch (const Error& error) {
        verdict->second = error.what();
      }
    if (!verdict->second.empty()) throw InputError(verdict->second);
  }

  bool read_run(int64_t first, int64_t count, std::span<const size_t> columns,
                std::vector<ColumnValues>& out) const override {
    out.assign(columns.size(), {});
    for (size_t k = 0; k < columns.size(); ++k) {
      out[k].kind = columns_.at(columns[k]).kind;
      for (int64_t row = first; row < first + count;) {
        const Batch& batch = batch_of(row);
        const int64_t last = std::min(first + count, batch.first + batch.rows);
        append(values(batch, columns[k]), row - batch.first, last - batch.first, out[k]);
        row = last;
      }
    }
    return true;
  }

 private:
  struct Batch {
    size_t file = 0, number = 0;
    int64_t first = 0, rows = 0;
  };
  using Key = std::pair<const Batch*, size_t>;
  /// Values of a column of a batch, or to be: who comes first reads them.
  struct Entry {
    std::mutex mutex;
    std::shared_ptr<const ColumnValues> values;
    size_t memory = 0;
    std::list<Key>::iterator place;
  };

  /// `body`, with what goes wrong in it as an error of this file.
  template <typename Body>
  auto guarded(size_t file, Body&& body) const -> decltype(body()) {
    try {
      return body();
    } catch (const Error&) {
      throw;
    } catch (const std::exception& error) {
      if (const auto cause = inputs_[file]->taken_error()) std::rethrow_exception(cause);
      fail<InputError>("{}: cannot be read: {}", files_[file]->path(), error.what());
    }
  }

  const Batch& batch_of(int64_t row) const {
    if (row < 0 || row >= count_) fail<InputError>("{}: there is no row {} ({} rows)", path(), row, count_);
    return *std::prev(std::ranges::upper_bound(batches_, row, {}, &Batch::first));
  }

  static void append(const std::shared_ptr<const ColumnValues>& from, int64_t begin, int64_t end,
                     ColumnValues& to) {
    const auto part = [&](const auto& source, auto& target) {
      if (!source.empty()) target.insert(target.end(), source.begin() + begin, source.begin() + end);
    };
    const size_t before = to.size();
    part(from->integers, to.integers);
    part(from->reals, to.reals);
    part(from->contents, to.contents);
    if (!from->present.empty() || !to.present.empty()) {
      to.present.resize(before, 1);
      if (from->present.empty())
        to.present.resize(to.size(), 1);
      else
        part(from->present, to.present);
    }
    to.element = from->element;
    if (!from->contents.empty()) to.owners.push_back(from);
  }

  /// From the cache, or read. What was used longest ago goes when the memory is full; who still uses it keeps
  /// it.
  std::shared_ptr<const ColumnValues> values(const Batch& batch, size_t column) const {
    const Key key{&batch, column};
    std::shared_ptr<Entry> entry;
    {
      const std::lock_guard lock(mutex_);
      const auto [at, added] = cache_.try_emplace(key);
      if (added) {
        at->second = std::make_shared<Entry>();
        used_.push_front(key);
        at->second->place = used_.begin();
      } else {
        used_.splice(used_.begin(), used_, at->second->place);
      }
      entry = at->second;
    }
    const std::lock_guard reading(entry->mutex);
    if (entry->values) return entry->values;
    auto read = std::make_shared<ColumnValues>(
        guarded(batch.file, [&] { return readers_[batch.file]->read(batch.number, column); }));
    if (read->size() != static_cast<size_t>(batch.rows))
      fail<InputError>("{}: damaged: the column '{}' has {} values for {} rows", files_[batch.file]->path(),
                       columns_[column].name, read->size(), batch.rows);
    read->kind = columns_[column].kind;
    entry->values = std::move(read);
    const std::lock_guard lock(mutex_);
    const auto at = cache_.find(key);
    if (at == cache_.end() || at->second != entry) return entry->values;
    entry->memory = memory_of(*entry->values);
    memory_ += entry->memory;
    while (memory_ > memory_budget && used_.back() != key) {
      const auto last = cache_.find(used_.back());
      memory_ -= last->second->memory;
      used_.pop_back();
      cache_.erase(last);
    }
    return entry->values;
  }

  /// Bytes are pictures or sounds when the first that are there begin so.
  void find_content(size_t column) {
    const auto first = values(batches_[0], column);
    for (size_t i = 0; i < first->size(); ++i) {
      if (!first->has(i)) continue;
      const std::string_view content = first->contents[i];
      const ColumnKind kind =
          content_kind({reinterpret_cast<const uint8_t*>(content.data()), content.size()});
      if (kind != ColumnKind::picture && kind != ColumnKind::audio) return;
      columns_[column].kind = kind;
      // What is cached says bytes still.
      const std::lock_guard lock(mutex_);
      cache_.clear();
      used_.clear();
      memory_ = 0;
      return;
    }
  }

  Files files_;
  std::vector<std::shared_ptr<ModuleInput>> inputs_;
  std::vector<std::unique_ptr<arrow_module::Reader>> readers_;
  std::vector<Batch> batches_;
  int64_t count_ = 0;
  mutable std::mutex mutex_;
  mutable std::mutex verifying_;
  mutable std::map<const Batch*, std::string> verdicts_;  // "": good
  mutable std::map<Key, std::shared_ptr<Entry>> cache_;
  mutable std::list<Key> used_;  // the last used first
  mutable size_t memory_ = 0;
};

class ModuleOutput final : public arrow_module::Output {
 public:
  explicit ModuleOutput(const std::string& path) : file_(path) {}
  bool write(const void* data, size_t size) noexcept override {
    try {
      file_.write(data, size);
      return true;
    } catch (...) {
      error_ = std::current_exception();
      return false;
    }
  }
  std::exception_ptr error() const { return error_; }
  void commit() { file_.commit(); }

 private:
  AtomicFile file_;
  std::exception_ptr error_;
};

/// Batches of up to 65,536 rows or 64 MB. Arrays must have rank 1 and, in a column, one type.
class ArrowTableWriter final : public DatasetWriter {
 public:
  ArrowTableWriter(FileKind kind, const std::string& path, const std::vector<Column>& columns)
      : path_(path),
        columns_(columns),
        output_(std::make_shared<ModuleOutput>(path)),
        elements_(columns.size()) {
    writer_ = load_arrow().create(kind, columns, output_);
    start();
  }

  void add(std::span<const Value> values) override {
    for (size_t c = 0; c < columns_.size(); ++c) add_value(values[c], c);
    ++rows_;
    ++count_;
    if (rows_ >= most_buffered_rows || bytes_ >= most_buffered_bytes) flush();
  }

  void finish() override {
    if (rows_ > 0 || count_ == 0) flush();
    guarded([&] { writer_->finish(); });
    output_->commit();
  }

 private:
  void start() {
    batch_.assign(columns_.size(), {});
    for (size_t c = 0; c < columns_.size(); ++c) {
      batch_[c].kind = columns_[c].kind;
      batch_[c].element = elements_[c].value_or(f32);
    }
    kept_.clear();
    rows_ = bytes_ = 0;
  }

  template <typename Body>
  void guarded(Body&& body) {
    try {
      body();
    } catch (const std::exception& error) {
      if (output_->error()) std::rethrow_exception(output_->error());
      fail<InputError>("{}: cannot be written: {}", path_, error.what());
    }
  }

  void flush() {
    for (size_t c = 0; c < columns_.size(); ++c) batch_[c].element = elements_[c].value_or(f32);
    guarded([&] { writer_->write(batch_); });
    // The type of lists stands in the file from now on.
    for (size_t c = 0; c < columns_.size(); ++c)
      if (columns_[c].kind == ColumnKind::array) elements_[c] = batch_[c].element;
    start();
  }

  [[noreturn]] void refuse(size_t c, const std::string& why) const {
    fail<InputError>("{}: sample {}: the column '{}' {}", path_, count_, columns_[c].name, why);
  }

  void content(ColumnValues& to, std::string_view bytes, size_t c) {
    if (bytes.size() > most_value)
      refuse(c, fmt::format("has a value of {} bytes; 1 GB is the most", bytes.size()));
    to.contents.push_back(kept_.emplace_back(bytes));
    bytes_ += bytes.size();
  }

  void add_value(const Value& value, size_t c) {
    ColumnValues& to = batch_[c];
    bytes_ += 8;
    const bool missing = std::holds_alternative<std::monostate>(value);
    if (missing && to.present.empty()) to.present.assign(rows_, 1);
    if (missing || !to.present.empty()) to.present.push_back(!missing);
    switch (to.kind) {
      case ColumnKind::integer:
        to.integers.push_back(missing ? 0 : std::get<int64_t>(value));
        return;
      case ColumnKind::real:
        to.reals.push_back(missing ? 0 : std::get<double>(value));
        return;
      default:
        break;
    }
    if (missing) {
      to.contents.emplace_back();
    } else if (const auto* text = std::get_if<std::string>(&value)) {
      if (!is_utf8(*text)) refuse(c, "has a text that is not UTF-8; convert the source first (iconv)");
      content(to, *text, c);
    } else if (const auto* bytes = std::get_if<Bytes>(&value)) {
      content(to, bytes->text(), c);
    } else if (const auto* array = std::get_if<Array>(&value)) {
      add_array(to, *array, c);
    } else {
      refuse(c, "is a decoded picture; only encoded ones can be held");
    }
  }

  void add_array(ColumnValues& to, const Array& array, size_t c) {
    if (array.shape().size() != 1)
      refuse(c, fmt::format("is {}; lists hold arrays of rank 1 only: leave it out with --columns",
                            array.type().str()));
    const DType type = array.dtype();
    const DType stored = type == f16 || type == bf16 ? f32 : type == boolean ? u8 : type;
    if (!elements_[c]) elements_[c] = stored;
    if (*elements_[c] != stored)
      refuse(c, fmt::format("has numbers of type {}, the first sample's are {}", type.name(),
                            elements_[c]->name()));
    const Array numbers = stored == type ? array : array.converted(stored);
    content(to, {static_cast<const char*>(numbers.data()), static_cast<size_t>(numbers.bytes())}, c);
  }

  std::string path_;
  std::vector<Column> columns_;
  std::shared_ptr<ModuleOutput> output_;
  std::unique_ptr<arrow_module::Writer> writer_;
  std::vector<ColumnValues> batch_;
  std::deque<std::string> kept_;
  std::vector<std::optional<DType>> elements_;
  size_t rows_ = 0, bytes_ = 0;
  int64_t count_ = 0;
};

/// A stream begins with a mark and the size of its schema, which is a multiple of 8.
bool is_stream(std::span<const uint8_t> head) {
  if (head.size() < 16 || !has_at(head, 0, "\xff\xff\xff\xff")) return false;
  const auto size = number_at<uint32_t>(&head[4]);
  return size > 0 && size % 8 == 0 && size < 1 << 26;
}

}  // namespace

MILLRACE_FORMAT(arrow){
    .name = "arrow",
    .doc = "Arrow IPC or Feather (.arrow, .feather; .arrows: a stream)",
    .place = 30,
    .matches =
        [](std::string_view, std::span<const uint8_t> head) {
          return has_at(head, 0, "ARROW1") || has_at(head, 0, "FEA1") || is_stream(head);
        },
    .open = [](const std::string& path, Files files,
               const OpenOptions& /*none*/) -> std::unique_ptr<Dataset> {
      const auto kind_of = [](const RandomAccessFile& file) {
        const Bytes head = file.read(0, std::min<uint64_t>(file.size(), 8));
        if (has_at(head.view(), 0, "FEA1"))
          fail<InputError>("{}: is Feather version 1; write it again as version 2", file.path());
        return has_at(head.view(), 0, "ARROW1") ? FileKind::ipc_file : FileKind::ipc_stream;
      };
      const auto kind = kind_of(*files[0]);
      for (const auto& file : files)
        if (kind_of(*file) != kind)
          fail<InputError>("{}: one of {} and {} is an Arrow stream, the other an Arrow file", path,
                           files[0]->path(), file->path());
      return std::make_unique<ArrowTable>(kind, path, std::move(files));
    },
    .create = [](const std::string& path,
                 const std::vector<Column>& columns) -> std::unique_ptr<DatasetWriter> {
      const auto kind = has_ending(path, {".arrows"}) ? FileKind::ipc_stream : FileKind::ipc_file;
      return std::make_unique<ArrowTableWriter>(kind, path, columns);
    },
    .pipes = true};

MILLRACE_FORMAT(parquet){
    .name = "parquet",
    .doc = "Parquet (.parquet)",
    .place = 20,
    .matches = [](std::string_view, std::span<const uint8_t> head) { return has_at(head, 0, "PAR1"); },
    .open = [](const std::string& path, Files files,
               const OpenOptions& /*none*/) -> std::unique_ptr<Dataset> {
      return std::make_unique<ArrowTable>(FileKind::parquet, path, std::move(files));
    },
    .create = [](const std::string& path,
                 const std::vector<Column>& columns) -> std::unique_ptr<DatasetWriter> {
      return std::make_unique<ArrowTableWriter>(FileKind::parquet, path, columns);
    },
    .pipes = true};

}  // namespace millrace::data
