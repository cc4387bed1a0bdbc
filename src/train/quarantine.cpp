#include "train/quarantine.h"

#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/format.h"
#include "base/words.h"
#include "track/metrics_log.h"

namespace millrace::train {

bool too_many_bad(const data::Tried& tried, double most_bad) {
  const auto bad = static_cast<double>(tried.bad);
  if (most_bad == 0 || most_bad >= 1) return bad > most_bad;
  return tried.bad > kFewBad && bad > most_bad * static_cast<double>(tried.samples);
}

void require_few_bad(const data::Feed& feed, double most_bad, const std::string& more) {
  const data::Tried tried = feed.tried();
  if (!too_many_bad(tried, most_bad)) return;
  constexpr size_t shown = 5;
  std::string list;
  const std::vector<data::BadSample> bad = feed.bad_samples();
  for (size_t i = 0; i < std::min(shown, bad.size()); ++i)
    list += fmt::format("\n  {}: {}", bad[i].name, bad[i].why);
  if (bad.size() > shown) list += fmt::format("\n  and {} more", bad.size() - shown);
  fail<InputError>(
      "{}: {} of the {} samples tried so far cannot be read, more than data.most_bad = {} allows:{}\n{}",
      feed.path(), tried.bad, tried.samples, most_bad, list, more);
}

std::vector<std::string> skipped_samples(const data::Feed& feed, std::set<int64_t>& named) {
  std::vector<std::string> lines;
  const auto bad = feed.bad_samples();
  constexpr size_t shown = 5;
  size_t fresh = 0;
  for (const data::BadSample& sample : bad)
    if (named.insert(sample.index).second && fresh++ < shown)
      lines.push_back(fmt::format("skipped {}: {}", sample.name, sample.why));
  if (fresh > shown)
    lines.push_back(fmt::format("skipped {} more {} that cannot be read", fresh - shown, feed.unit()));
  if (fresh > 0)
    lines.push_back(fmt::format("{}: {} of {} {} cannot be read and are left out", feed.path(), bad.size(),
                                feed.streamed() ? feed.tried().samples : feed.count(), feed.unit()));
  return lines;
}

BadList::BadList(std::filesystem::path path) : path_(std::move(path)) {
  if (!std::filesystem::exists(path_)) return;
  const std::string text = read_text(path_);
  std::string kept;
  for (const std::string& line : lines_in(text, true)) {
    const auto json = nlohmann::json::parse(line, nullptr, false);
    if (!json.is_object()) continue;
    const auto set = json.find("set"), index = json.find("index");
    if (set == json.end() || !set->is_string() || index == json.end() || !index->is_number_integer())
      continue;
    if (listed_.emplace(set->get<std::string>(), index->get<int64_t>()).second) kept += line + "\n";
  }
  if (kept != text) write_file(path_, kept);
}

void BadList::add(const std::string& set, const std::vector<data::BadSample>& samples) {
  std::string lines;
  for (const data::BadSample& sample : samples)
    if (listed_.emplace(set, sample.index).second)
      lines += track::json_line(
                   {{"set", set}, {"index", sample.index}, {"name", sample.name}, {"why", sample.why}}) +
               "\n";
  if (!lines.empty()) append_lines(path_, lines, "list the bad samples", false);
}

}  // namespace millrace::train
