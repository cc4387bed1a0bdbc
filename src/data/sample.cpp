#include "data/sample.h"

namespace millrace::data {
namespace {

class Part : public Source {
 public:
  Part(std::shared_ptr<const Source> whole, int64_t count) : whole_(std::move(whole)), count_(count) {
    classes_ = whole_->classes();
    path_ = whole_->path();
    notes_ = whole_->notes();
  }
  int64_t count() const override { return count_; }
  int64_t label(int64_t index) const override { return whole_->label(at(index)); }
  std::string name(int64_t index) const override { return whole_->name(at(index)); }
  Sample read(int64_t index) const override { return whole_->read(at(index)); }
  void will_read(int64_t index) const override { whole_->will_read(at(index)); }
  std::string key(int64_t index) const override { return whole_->key(at(index)); }
  std::vector<Column> extra_columns() const override { return whole_->extra_columns(); }
  Value extra(int64_t index, size_t column) const override { return whole_->extra(at(index), column); }
  std::vector<double> numbers(const std::string& column) const override {
    const std::vector<double> all = whole_->numbers(column);
    std::vector<double> own;
    for (int64_t i = 0; i < count_; ++i) own.push_back(all[static_cast<size_t>(at(i))]);
    return own;
  }

 private:
  int64_t at(int64_t index) const { return index * whole_->count() / count_; }
  std::shared_ptr<const Source> whole_;
  int64_t count_;
};

}  // namespace

std::shared_ptr<const Source> sample_of(std::shared_ptr<const Source> source, int64_t count) {
  if (count >= source->count()) return source;
  return std::make_shared<Part>(std::move(source), count);
}

}  // namespace millrace::data
