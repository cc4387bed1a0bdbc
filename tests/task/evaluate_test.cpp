#include "task/evaluate.h"

#include <cstring>
#include <doctest/doctest.h>

#include "task/fake_task.h"

using namespace millrace;
using testing::batch_dim;
using testing::FakeClass;
using testing::FakeInput;
using testing::put;

namespace {

/// Two batches of three rows, of five samples: number 1 stands in for a bad one, the last row pads.
class FakeFeed : public data::Feed {
 public:
  explicit FakeFeed(std::vector<data::Field> fields) : fields_(std::move(fields)) {}
  std::span<const data::Field> fields() const override { return fields_; }
  const data::FeedBatch& next() override {
    const bool first = cursor_.position == 0;
    cursor_.position += 3;
    samples_ = first ? std::vector<int64_t>{0, 1, 2} : std::vector<int64_t>{1, 4};
    x_.clear();
    for (int64_t i = 0; i < 3; ++i) {
      const double at = i < static_cast<int64_t>(samples_.size())
                            ? static_cast<double>(samples_[static_cast<size_t>(i)])
                            : 0;
      x_.push_back(static_cast<float>(at == 0));
      x_.push_back(static_cast<float>(at != 0));
    }
    targets_ = {first ? 0 : 1, 1, first ? 0 : -1};  // sample 2 is wrong: 5 in all, 4 different ones
    batch_.arrays.clear();
    for (const data::Field& field : fields_)
      batch_.arrays.push_back(field.name.ends_with("x") ? std::as_bytes(std::span(x_))
                                                        : std::as_bytes(std::span(targets_)));
    batch_.samples = samples_;
    batch_.valid = static_cast<int64_t>(samples_.size());
    return batch_;
  }
  data::Cursor cursor() const override { return cursor_; }
  void seek(const data::Cursor& cursor) override { cursor_ = cursor; }
  int64_t batch_size() const override { return 3; }
  int64_t batches_per_epoch() const override { return 2; }
  int64_t count() const override { return 5; }
  const std::string& path() const override { return path_; }
  const char* unit() const override { return "samples"; }
  bool cached() const override { return true; }
  data::LoaderWork work() const override { return {}; }

 private:
  std::vector<data::Field> fields_;
  std::vector<float> x_;
  std::vector<int64_t> targets_, samples_;
  data::FeedBatch batch_;
  data::Cursor cursor_;
  std::string path_ = "fake";
};

/// The two numbers of a row as the logits of two classes, for each output.
void copy_input(task::Task& task) {
  const auto parameters = task.network->parameters();
  for (const nn::Named& named : parameters) {
    Array array(named.tensor->type());
    if (array.shape().rank() == 2)
      for (int64_t i = 0; i < 2; ++i) array.set(3 * i, 1);
    *named.tensor = array;
  }
}

}  // namespace

TEST_CASE("samples that stand in for bad ones count once, padding never") {
  task::Task task;
  put<FakeInput>(task.inputs, "", Shape{2});
  auto& output = put<FakeClass>(task.outputs, "", 2);
  task.recipe.model.layers = {"linear 2"};
  task::make_network(task);
  copy_input(task);
  task::TaskFeed set;
  // More arrays than the model takes, in another order.
  set.feed = std::make_unique<FakeFeed>(
      std::vector<data::Field>{{"target", {i64, {batch_dim()}}}, {"x", {f32, {batch_dim(), 2}}}});
  set.inputs.resize(1);
  task::Predictor predictor(task);
  std::vector<int64_t> progress;
  const auto evaluation = task::evaluate(predictor, task, set, {"accuracy"},
                                         [&](int64_t done, int64_t) { progress.push_back(done); });
  REQUIRE(output.judged.size() == 2);
  CHECK(output.judged[0] == std::vector<char>{1, 1, 1});
  CHECK(output.judged[1] == std::vector<char>{0, 1, 0});
  CHECK(evaluation.count == 4);
  REQUIRE(evaluation.metrics.size() == 1);
  CHECK(evaluation.metrics[0].value == 0.75);
  CHECK(progress == std::vector<int64_t>{1, 2});
  CHECK(task::metrics_text(evaluation.metrics) == "accuracy 75.00 %");
  // From the beginning again.
  CHECK(task::evaluate(predictor, task, set, {"accuracy"}).metrics[0].value == 0.75);
}

TEST_CASE(
    "metrics of several outputs are told apart by the output's name, in the order they were asked for in") {
  task::Task task;
  put<FakeInput>(task.inputs, "", Shape{2});
  put<FakeClass>(task.outputs, "one", 2);
  put<FakeClass>(task.outputs, "two", 2);
  task::make_network(task);
  task::TaskFeed set;
  set.feed = std::make_unique<FakeFeed>(std::vector<data::Field>{{"x", {f32, {batch_dim(), 2}}},
                                                                 {"one.target", {i64, {batch_dim()}}},
                                                                 {"two.target", {i64, {batch_dim()}}}});
  set.inputs.resize(1);
  task::Predictor predictor(task);
  const std::vector<std::string> names = {"two.accuracy", "one.log-loss", "two.log-loss"};
  const auto evaluation = task::evaluate(predictor, task, set, names);
  REQUIRE(evaluation.metrics.size() == 3);
  for (size_t i = 0; i < names.size(); ++i) CHECK(evaluation.metrics[i].name == names[i]);
  CHECK(&task::metric_of("two.accuracy") == &task::metric_of("accuracy"));
  CHECK_THROWS_WITH_AS(task::evaluate(predictor, task, set, {"three.accuracy"}),
                       doctest::Contains("\"three.accuracy\" names no output"), InputError);
}

TEST_CASE("logits are means over the views of an input, each by its weight") {
  class TwoViews : public FakeInput {
   public:
    TwoViews() : FakeInput("", {2}) {}
    int views() const override { return 2; }
    float view_weight(int view) const override { return view == 0 ? 1 : 0.5f; }
    std::vector<Array> view(std::span<const Array> arrays, int view) const override {
      if (view == 0) return {arrays[0]};
      return {Array::full(f32, arrays[0].shape(), 7)};
    }
  };
  task::Task task;
  put<TwoViews>(task.inputs);
  put<FakeClass>(task.outputs, "", 2);
  task.recipe.model.layers = {"linear 2"};
  task::make_network(task);
  copy_input(task);
  const Array x = Array::of(f32, {1, 2}, std::vector<double>{1, 4});
  task::Predictor predictor(task, true);
  const auto averaged = predictor.logits({&x, 1})[0].to_doubles();
  CHECK(averaged[0] == doctest::Approx((1 + 0.5 * 7) / 1.5));
  CHECK(averaged[1] == doctest::Approx((4 + 0.5 * 7) / 1.5));
  predictor.use_views(false);
  CHECK(predictor.logits({&x, 1})[0].to_doubles() == std::vector<double>{1, 4});
}
