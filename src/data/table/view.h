// Data sets that are made of another one.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <millrace/dataset.h>

namespace millrace::data {

/// Samples of another data set, with its columns. Derived classes say which, and may change values.
class View : public Dataset {
 public:
  int64_t count() const override { return whole_->count(); }
  Value read(int64_t index, size_t column) const override { return whole_->read(at(index), column); }
  bool has(int64_t index, size_t column) const override { return whole_->has(at(index), column); }
  std::vector<std::string> class_names(size_t column) const override { return whole_->class_names(column); }
  std::optional<size_t> class_column() const override { return whole_->class_column(); }
  bool decimal_comma(size_t column) const override { return whole_->decimal_comma(column); }
  std::optional<ArrayElements> elements(size_t column) const override { return whole_->elements(column); }
  SampleRows rows(int64_t index) const override { return whole_->rows(at(index)); }
  std::string lacks() const override { return whole_->lacks(); }
  std::string name(int64_t index) const override { return whole_->name(at(index)); }
  void will_read(int64_t index) const override { whole_->will_read(at(index)); }
  void verify(int64_t index) const override { whole_->verify(at(index)); }
  /// Of which data set a sample is, and its number there.
  std::pair<const Dataset*, int64_t> original(int64_t index) const { return {whole_.get(), at(index)}; }

 protected:
  explicit View(std::shared_ptr<const Dataset> whole) : Dataset(whole->path()), whole_(std::move(whole)) {
    columns_ = whole_->columns();
    set_origin(whole_->format(), whole_->notes());
  }
  /// The sample of the whole that a sample is.
  virtual int64_t at(int64_t index) const { return index; }
  const Dataset& whole() const { return *whole_; }

 private:
  std::shared_ptr<const Dataset> whole_;
};

}  // namespace millrace::data
