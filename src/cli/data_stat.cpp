#include <algorithm>
#include <fmt/core.h>
#include <map>
#include <nlohmann/json.hpp>

#include <millrace/feed.h>

#include "base/utf8.h"
#include "cli/data_notes.h"
#include "cli/progress.h"
#include "cli/table.h"
#include "cli/verbs.h"
#include "data/codecs/pictures/picture.h"
#include "data/encode/table_encoder.h"
#include "data/formats/open_dataset.h"
#include "data/table/contents.h"
#include "data/table/labels.h"
#include "data/tools/statistics/statistics.h"
#include "task/open.h"

namespace millrace::cli {
namespace {

constexpr size_t stat_shown = 10;  // of each list

using Sources = std::vector<std::shared_ptr<const data::Dataset>>;

std::string stat_size_text(const std::array<int, 3>& size) {
  return data::Picture{size[0], size[1], size[2], {}}.size_text();
}

std::vector<std::pair<std::array<int, 3>, int64_t>> sizes_by_count(
    const data::PictureStatistics::OfSource& of) {
  std::vector<std::pair<std::array<int, 3>, int64_t>> sizes(of.sizes.begin(), of.sizes.end());
  std::stable_sort(sizes.begin(), sizes.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  return sizes;
}

void print_picture_source(const data::Dataset& source, const data::PictureStatistics::OfSource& of) {
  const data::Labels labels(source);
  const bool classes = labels.there();
  fmt::print("{}: {} pictures, {} classes, {}\n", source.path(), thousands(of.pictures),
             classes ? std::to_string(labels.names().size()) : "no",
             bytes_text(static_cast<double>(of.bytes)));
  const auto sizes = sizes_by_count(of);
  Table table({"<size", "pictures", "share"});
  const auto share = [&](int64_t count) {
    return fmt::format("{:.1f} %", 100.0 * static_cast<double>(count) / static_cast<double>(of.pictures));
  };
  for (size_t i = 0; i < std::min(sizes.size(), stat_shown); ++i)
    table.row({stat_size_text(sizes[i].first), thousands(sizes[i].second), share(sizes[i].second)});
  fmt::print("{}", table.str());
  if (sizes.size() > stat_shown) fmt::print("  and {} other sizes\n", sizes.size() - stat_shown);
  Table by_class({"<class", "pictures", "share"});
  for (size_t c = 0; c < labels.names().size(); ++c)
    by_class.row({stored_text(labels.names()[c]), thousands(of.of_class[c]), share(of.of_class[c])});
  if (classes) fmt::print("{}", by_class.str());
  for (size_t c = 0; c < of.mean.size(); ++c)
    fmt::print("  channel {}: mean {:.4f}, deviation {:.4f}\n", c, of.mean[c], of.std[c]);
  if (!of.bad.empty())
    fmt::print("  {} pictures cannot be read:\n", thousands(static_cast<int64_t>(of.bad.size())));
  for (size_t i = 0; i < std::min(of.bad.size(), stat_shown); ++i)
    fmt::print("    {}: {}\n", of.bad[i].name, of.bad[i].why);
}

void print_twins(const char* title, const Sources& sources, const std::vector<data::Twins>& list) {
  size_t pictures = 0;
  int64_t across = 0, mixed = 0;
  for (const data::Twins& twins : list) {
    pictures += twins.places.size();
    across += twins.sources_differ;
    mixed += twins.classes_differ;
  }
  fmt::print("{}: {} groups of {} pictures in all", title, thousands(static_cast<int64_t>(list.size())),
             thousands(static_cast<int64_t>(pictures)));
  if (across > 0) fmt::print(", {} groups across sources", thousands(across));
  if (mixed > 0) fmt::print(", {} of different classes", thousands(mixed));
  fmt::print("\n");
  // Those that matter most first.
  std::vector<const data::Twins*> order;
  for (const data::Twins& twins : list) order.push_back(&twins);
  std::stable_sort(order.begin(), order.end(), [](const auto* a, const auto* b) {
    return a->sources_differ * 2 + a->classes_differ > b->sources_differ * 2 + b->classes_differ;
  });
  for (size_t i = 0; i < std::min(order.size(), stat_shown); ++i) {
    std::string line;
    for (size_t k = 0; k < std::min(order[i]->places.size(), size_t{4}); ++k) {
      const data::Place& place = order[i]->places[k];
      line += (k ? "  =  " : "") + sources[static_cast<size_t>(place.source)]->name(place.index);
    }
    if (order[i]->places.size() > 4) line += fmt::format("  and {} more", order[i]->places.size() - 4);
    fmt::print("  {}\n", line);
  }
}

nlohmann::ordered_json json_twins(const Sources& sources, const std::vector<data::Twins>& list) {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const data::Twins& twins : list) {
    nlohmann::ordered_json names;
    for (const data::Place& place : twins.places)
      names.push_back(stored_text(sources[static_cast<size_t>(place.source)]->name(place.index)));
    json.push_back({{"pictures", names},
                    {"classes_differ", twins.classes_differ},
                    {"sources_differ", twins.sources_differ}});
  }
  return json;
}

void print_picture_statistics(const Sources& sources, const data::PictureStatistics& statistics) {
  nlohmann::ordered_json json;
  for (size_t s = 0; s < sources.size(); ++s) {
    const auto& of = statistics.sources[s];
    nlohmann::ordered_json one{
        {"source", sources[s]->path()}, {"pictures", of.pictures}, {"bytes", of.bytes}};
    const data::Labels labels(*sources[s]);
    for (size_t c = 0; c < of.of_class.size(); ++c)
      one["classes"][stored_text(labels.names()[c])] = of.of_class[c];
    for (const auto& [size, count] : sizes_by_count(of))
      one["sizes"].push_back(
          {{"height", size[0]}, {"width", size[1]}, {"channels", size[2]}, {"pictures", count}});
    one["mean"] = of.mean;
    one["std"] = of.std;
    one["bad"] = nlohmann::ordered_json::array();
    for (const data::BadSample& bad : of.bad)
      one["bad"].push_back({{"name", stored_text(bad.name)}, {"why", bad.why}});
    json["sources"].push_back(one);
  }
  json["same"] = json_twins(sources, statistics.same);
  json["alike"] = json_twins(sources, statistics.alike);
  fmt::print("{}\n", json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

/// Cells without a value. What a word such as "none" is, only what the column is taken as says.
int64_t missing_of(const data::ColumnStatistics& of, const data::TableColumn* decision) {
  return decision ? std::max(of.missing, decision->missing - decision->bad) : of.missing;
}

/// What an input of kind table would make of each column.
std::map<std::string, data::TableColumn> decisions_of(const data::Dataset& dataset) {
  std::map<std::string, data::TableColumn> decisions;
  try {
    const auto encoder = data::TableEncoder::learn(dataset, data::usual_table(dataset));
    for (const data::TableColumn& each : encoder.decisions()) decisions.emplace(each.column, each);
  } catch (const InputError&) {  // it has none
  }
  return decisions;
}

std::string decision_text(const data::TableColumn& decision) {
  std::string text = decision.taken_as;
  if (decision.values > 0) text += fmt::format(" ({})", thousands(decision.values));
  if (decision.rare > 0) text += fmt::format(", {} rows rarer", thousands(decision.rare));
  std::string why = decision.why;
  if (decision.bad > 0)
    why += fmt::format("{}{}", why.empty() ? "" : "; ",
                       decision.bad == 1
                           ? "1 value cannot be read and counts as missing"
                           : fmt::format("{} values cannot be read and count as missing", decision.bad));
  return text + (why.empty() ? "" : ": " + why);
}

int table_statistics(const data::Dataset& dataset, bool as_json, const data::StatisticsOptions& options) {
  const auto statistics = data::column_statistics(dataset, options);
  nlohmann::ordered_json json{{"source", dataset.path()}, {"samples", dataset.count()}};
  std::string notes;
  Table table(
      {"<column", "<kind", "missing", "different", "least", "mean", "most", "<most frequent", "<taken as"});
  const auto decisions = decisions_of(dataset);
  for (size_t c = 0; c < statistics.size(); ++c) {
    const data::ColumnStatistics& of = statistics[c];
    const data::Column& column = dataset.columns()[c];
    const bool number = data::is_numeric(column.kind);
    const bool sound = column.kind == data::ColumnKind::audio;
    const auto found = decisions.find(column.name);
    const data::TableColumn* const decision = found != decisions.end() && !sound ? &found->second : nullptr;
    const int64_t missing = missing_of(of, decision);
    std::string frequent;
    nlohmann::ordered_json one{
        {"name", column.name}, {"kind", data::kind_name(column.kind)}, {"missing", missing}};
    if (of.different >= 0) one["different"] = of.different;
    if (number)
      one.update({{"least", of.least}, {"mean", of.mean}, {"std", of.std}, {"most", of.most}});
    else
      one.update({{"bytes", of.bytes}, {"shortest", of.shortest}, {"longest", of.longest}});
    for (size_t i = 0; i < of.frequent.size(); ++i) {
      if (i < 3 && of.frequent[i].second > 1)
        frequent += fmt::format("{}{} ({})", i ? ", " : "", stored_text(of.frequent[i].first),
                                thousands(of.frequent[i].second));
      one["frequent"].push_back({stored_text(of.frequent[i].first), of.frequent[i].second});
    }
    if (decision)
      one["taken_as"] = {{"kind", decision->taken_as},
                         {"why", decision->why},
                         {"missing", decision->missing},
                         {"categories", decision->values},
                         {"rare", decision->rare}};
    if (sound)
      one.update({{"seconds", {{"least", of.least}, {"mean", of.mean}, {"most", of.most}}}, {"bad", of.bad}});
    json["columns"].push_back(one);
    if (of.bad > 0)
      notes += fmt::format("  {}: {} sounds cannot be decoded (the first: {})\n", column.name,
                           thousands(of.bad), of.why);
    const auto n = [&](double value) {
      return number ? fmt::format("{:.6g}", value) : sound ? fmt::format("{:.2f} s", value) : std::string();
    };
    table.row({stored_text(column.name), data::kind_name(column.kind), thousands(missing),
               of.different >= 0 ? thousands(of.different) : "many", n(of.least), n(of.mean), n(of.most),
               frequent, decision ? decision_text(*decision) : ""});
  }
  if (as_json)
    fmt::print("{}\n", json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  else
    fmt::print("{}: {} samples\n{}{}", dataset.path(), thousands(dataset.count()), table.str(), notes);
  return 0;
}

Action declare_data_stat(Command& command) {
  struct Arguments {
    std::vector<std::string> sources;
    int64_t distance = 3;
    bool json = false;
    HeaderOption header;
  };
  auto a = std::make_shared<Arguments>();
  command.positional("SOURCE", a->sources, "data of any format; several (train and test) are compared")
      .option("--distance", a->distance,
              "bits in which the perceptual hashes of alike pictures may differ, 0 to 3")
      .flag("--json", a->json, "for programs: one JSON object")
      .footer(
          "Reads everything once: counts, classes, sizes, what cannot be read, and which pictures are there "
          "twice, by\n"
          "their bytes and by their looks (perceptual hash). A test picture that is also among those of "
          "training\n"
          "stands first in the list.\n\n"
          "  millrace data stat ${MILLRACE_DATA}/cifar10/train.tar ${MILLRACE_DATA}/cifar10/test.tar\n");
  a->header.declare(command);
  return [a] {
    Progress progress;
    data::StatisticsOptions options;
    options.distance = static_cast<int>(std::clamp<int64_t>(a->distance, -1, 4));
    options.progress = [&](int64_t done, int64_t total) {
      if (!a->json) progress.count("", done, total, "samples");
    };
    Sources sources;
    for (const std::string& text : a->sources) {
      auto set = task::open_set(text, a->header.options());
      print_notes(*set);
      if (a->sources.size() == 1 && !data::Contents::in(*set, data::ColumnKind::picture)) {
        const int code = table_statistics(*set, a->json, options);
        progress.finish();
        return code;
      }
      if (data::find_label(*set)) set = data::labelled(std::move(set), data::ColumnKind::picture);
      sources.push_back(std::move(set));
    }
    const data::PictureStatistics statistics = data::picture_statistics(sources, options);
    progress.finish();
    if (a->json) {
      print_picture_statistics(sources, statistics);
      return 0;
    }
    for (size_t s = 0; s < sources.size(); ++s) print_picture_source(*sources[s], statistics.sources[s]);
    print_twins("the same bytes", sources, statistics.same);
    print_twins("alike", sources, statistics.alike);
    return 0;
  };
}

}  // namespace

MILLRACE_DATA_VERB(stat){"stat",
                         "count, measure and compare: classes, sizes, what is bad, what is there twice",
                         declare_data_stat, 10};

}  // namespace millrace::cli
