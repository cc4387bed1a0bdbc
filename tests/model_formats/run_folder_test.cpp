#include <doctest/doctest.h>
#include <fstream>

#include <millrace/run.h>
#include <millrace/session.h>

#include "support/temp_folder.h"

using namespace millrace;

namespace {

namespace fs = std::filesystem;

/// A model of a table with a column of numbers, one of texts and a target of two classes.
Run trained_on_rows(const fs::path& folder) {
  std::ofstream file(folder / "rows.csv");
  file << "across,colour,side\n";
  for (int i = 0; i < 240; ++i) {
    const int across = i * 37 % 101;
    const bool red = i % 3 > 0;
    file << across << ',' << (red ? "red" : "blue") << ',' << (red && across > 50 ? "in" : "out") << '\n';
  }
  file.close();
  return Run::train(task::parse_recipe(R"([output]
kind = "class"
column = "side"
[train]
epochs = 2
batch = 20
[eval]
batch = 32
)",
                                       "rows", {{"data.train=" + (folder / "rows.csv").string()}}),
                    folder / "run");
}

}  // namespace

TEST_CASE("a session of a run folder says what prediction says") {
  testing::TempFolder folder;
  Run run = trained_on_rows(folder.path());
  const Predictions predicted = run.predict({(folder / "rows.csv").string()});
  const Session session = Session::load(folder / "run");
  CHECK(session.notes().empty());
  REQUIRE(session.outputs().size() == 2);
  CHECK(session.outputs()[0].name == "logits");
  CHECK(session.outputs()[0].type.str() == "f32[batch, 2]");
  CHECK(session.outputs()[1].name == "probabilities");

  data::Feed& feed = run.tests((folder / "rows.csv").string());
  const data::FeedBatch& batch = feed.next();
  std::vector<Array> arrays;
  for (const SessionValue& input : session.inputs())
    arrays.push_back(feed.array(batch, feed.field(input.name)));
  const std::vector<Array> results = session.run(arrays);
  REQUIRE(results[0].shape() == Shape{32, 2});
  for (int64_t i = 0; i < results[0].count(); ++i) {
    CHECK(results[0].at(i) == doctest::Approx(predicted.outputs[0].logits.at(i)).epsilon(1e-5));
    CHECK(results[1].at(i) == doctest::Approx(predicted.outputs[0].values.at(i)).epsilon(1e-5));
  }
}

TEST_CASE("what is no model is not loaded, and the message says what would be") {
  testing::TempFolder folder;
  CHECK_THROWS_WITH_AS(Session::load(folder.path()), doctest::Contains("a run folder"), InputError);
}
