#include "data/table/joined.h"

#include <algorithm>
#include <set>

#include "base/format.h"

namespace millrace::data {
namespace {

bool by_name(const std::string& a, const std::string& b) {
  const auto number = [](const std::string& text) {
    return !text.empty() && text.size() < 10 && text.find_first_not_of("0123456789") == std::string::npos;
  };
  if (number(a) && number(b) && std::stol(a) != std::stol(b)) return std::stol(a) < std::stol(b);
  return a < b;
}

class Joined final : public Source {
 public:
  explicit Joined(std::vector<std::pair<std::string, std::shared_ptr<const Source>>> sources)
      : sources_(std::move(sources)) {
    for (const auto& [name, source] : sources_) {
      first_.push_back(count_);
      count_ += source->count();
      path_ += (path_.empty() ? "" : ", ") + name;
      for (const std::string& note : source->notes()) notes_.push_back(note);
    }
    const bool same = std::all_of(sources_.begin(), sources_.end(), [&](const auto& each) {
      return each.second->classes() == sources_[0].second->classes();
    });
    classes_ = sources_[0].second->classes();
    if (!same) join_classes();
  }

  int64_t count() const override { return count_; }
  int64_t label(int64_t index) const override {
    const auto [source, at] = place(index);
    const int64_t own = sources_[source].second->label(at);
    return labels_.empty() || own < 0 ? own : labels_[source][static_cast<size_t>(own)];
  }
  std::string name(int64_t index) const override {
    const auto [source, at] = place(index);
    return fmt::format("{}: {}", sources_[source].first, sources_[source].second->name(at));
  }
  std::string key(int64_t index) const override {
    const auto [source, at] = place(index);
    return fmt::format("{}/{}", sources_[source].first, sources_[source].second->key(at));
  }
  Sample read(int64_t index) const override {
    const auto [source, at] = place(index);
    return sources_[source].second->read(at);
  }
  void will_read(int64_t index) const override {
    const auto [source, at] = place(index);
    sources_[source].second->will_read(at);
  }
  std::vector<double> numbers(const std::string& column) const override {
    std::vector<double> all;
    for (const auto& [name, source] : sources_) {
      const std::vector<double> own = source->numbers(column);
      all.insert(all.end(), own.begin(), own.end());
    }
    return all;
  }

 private:
  std::pair<size_t, int64_t> place(int64_t index) const {
    const auto source =
        static_cast<size_t>(std::upper_bound(first_.begin(), first_.end(), index) - first_.begin()) - 1;
    return {source, index - first_[source]};
  }

  void join_classes() {
    std::set<std::string, bool (*)(const std::string&, const std::string&)> all(&by_name);
    for (const auto& [name, source] : sources_)
      all.insert(source->classes().begin(), source->classes().end());
    classes_.assign(all.begin(), all.end());
    for (const auto& [name, source] : sources_) {
      auto& own = labels_.emplace_back();
      for (const std::string& text : source->classes())
        own.push_back(std::lower_bound(classes_.begin(), classes_.end(), text, by_name) - classes_.begin());
    }
  }

  std::vector<std::pair<std::string, std::shared_ptr<const Source>>> sources_;
  std::vector<int64_t> first_;
  std::vector<std::vector<int64_t>> labels_;  // of each source, where classes differ
  int64_t count_ = 0;
};

}  // namespace

std::unique_ptr<Source> join(std::vector<std::pair<std::string, std::shared_ptr<const Source>>> sources) {
  if (sources.empty()) fail<InternalError>("no sources to join");
  return std::make_unique<Joined>(std::move(sources));
}

}  // namespace millrace::data
