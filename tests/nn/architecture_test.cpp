#include "nn/models/architecture.h"

#include <doctest/doctest.h>
#include <set>

#include <millrace/error.h>
#include <millrace/optim.h>

#include "nn/models/combine.h"

using namespace millrace;

namespace {

const Dim any_batch = Dim::named("batch");

nn::ModelOptions small_options(const nn::Architecture& kind) {
  nn::ModelOptions options;
  options.classes = 5;
  if (kind.takes == "picture") options.input = {3, 32, 32};
  if (kind.takes == "tokens") options.input = {14};
  options.vocabulary = 20;
  options.width = 16;
  options.depth = 2;
  options.heads = 2;
  return options;
}

Type output_of(const nn::Model& model) {
  std::vector<Type> types;
  for (const nn::InputSpec& input : model.inputs) types.push_back(input.type);
  return nn::output_type(*model.module, types);
}

nn::Model table_of(int64_t numbers, std::vector<int64_t> ids, int64_t outputs = 3) {
  return nn::make_model(
      "table", {.classes = outputs, .width = 8, .depth = 1, .numbers = numbers, .ids = std::move(ids)});
}

/// A picture and a row of a table to a class (of three) and a number.
nn::Model picture_and_row(const nn::CombineOptions& options) {
  return nn::combine(
      {{"picture", nn::make_model("lenet", {.classes = options.features, .input = {1, 16, 16}})},
       {"row", table_of(2, {4, 3}, options.features)}},
      options);
}

nn::CombineOptions two_heads() {
  return {.features = 6, .width = 10, .depth = 1, .dropout = 0, .heads = {{"kind", 3}, {"size", 1}}};
}

std::vector<std::vector<double>> values_of(nn::Module& module) {
  std::vector<std::vector<double>> all;
  for (const nn::Named& p : module.parameters()) all.push_back(p.tensor->to_array().to_doubles());
  return all;
}

Tensor numbers_of(DType dtype, const Shape& shape, const std::vector<double>& values) {
  return Tensor(Array::of(dtype, shape, values));
}

void fill_ids(Array array, int64_t count) {
  for (int64_t i = 0; i < array.count(); ++i) array.set(i, static_cast<double>(i % count));
}

}  // namespace

TEST_CASE("every architecture builds from small options and gives outputs of the shape that it says") {
  const std::set<std::string> known = {"resnet18",
                                       "resnet50",
                                       "resnet18_cifar",
                                       "mobilenet_v2",
                                       "bert_base",
                                       "bert_base_14",
                                       "minilm",
                                       "gpt_mini",
                                       "gpt",
                                       "encoder",
                                       "bag",
                                       "dlrm",
                                       "mlp",
                                       "lenet",
                                       "lstm",
                                       "airbench",
                                       "convnet",
                                       "table",
                                       "linear",
                                       "fm",
                                       "vit",
                                       "naive_bayes",
                                       "nearest_neighbours",
                                       "boosting",
                                       "bradley_terry",
                                       "bert",
                                       "gru"};
  const std::vector<std::string> names = nn::model_kinds();
  CHECK(std::set(names.begin(), names.end()) == known);
  for (const nn::Architecture* kind : nn::architectures().all()) {
    CAPTURE(kind->name);
    CHECK(!kind->doc.empty());
    if (!kind->ending.empty()) {
      CHECK(nn::architecture_of_file("folder/model" + kind->ending) == kind);
      CHECK_THROWS_WITH_AS(nn::make_model(kind->name), doctest::Contains("is a file"), InputError);
      continue;
    }
    CHECK(std::set<std::string>{"picture", "tokens", "table", "duel"}.contains(kind->takes));
    for (const Setting& setting : kind->settings) CHECK(!setting.doc.empty());
    const nn::Model model = nn::make_model(kind->name, small_options(*kind));
    CHECK(model.kind == kind->name);
    Shape expected = {any_batch, 5};
    if (kind->name == "gpt") expected = {any_batch, 14, 20};
    if (kind->name == "gpt_mini") expected = {any_batch, 14, 5};
    if (kind->name == "dlrm") expected = {any_batch};
    if (kind->name == "bradley_terry") expected = {any_batch, 2};
    CHECK(output_of(model) == Type{f32, expected});
    // What is usual builds too.
    const auto usual = nn::make_model(kind->name).module;
    CHECK((kind->fitted ? !usual->buffers().empty() : usual->parameter_count() > 0));
  }
  CHECK_THROWS_WITH_AS(nn::make_model("resnet81"), doctest::Contains("did you mean 'resnet18'?"), InputError);
}

TEST_CASE("sizes come from settings, and from the options where those give them") {
  const nn::Architecture& gpt = nn::architectures().at("gpt");
  Settings settings(gpt.settings);
  settings.set("width", int64_t{24});
  settings.set("depth", int64_t{3});
  settings.set("heads", int64_t{2});
  const nn::ModelOptions options{.input = {8}, .vocabulary = 30};
  nn::ModelOptions same = options;
  same.width = 24;
  same.depth = 3;
  same.heads = 2;
  const auto made = gpt.make("gpt", settings, options).module, asked = nn::make_model("gpt", same).module;
  CHECK(made->find("tok")->shape() == Shape{30, 24});
  CHECK(made->find("blocks.2.qkv.weight") != nullptr);
  CHECK(made->find("blocks.3.qkv.weight") == nullptr);
  CHECK(made->parameter_count() == asked->parameter_count());
  CHECK(nn::make_model("gpt", options).module->find("blocks.3.qkv.weight")->shape() == Shape{3 * 128, 128});
  CHECK(nn::architectures().at("lenet").settings.empty());
  same.depth = -1;
  CHECK_THROWS_WITH_AS(nn::make_model("gpt", same),
                       "the depth of the model 'gpt' must be from 1 to 1000, not -1", InputError);
}

TEST_CASE("the model of a table takes numbers, ids, or both") {
  const nn::Model numbers = table_of(4, {}), ids = table_of(0, {7, 100}), both = table_of(4, {7, 100});
  CHECK(numbers.inputs.size() == 1);
  CHECK(numbers.inputs[0].type == Type{f32, {any_batch, 4}});
  CHECK(ids.inputs.size() == 1);
  CHECK(ids.inputs[0].type == Type{i64, {any_batch, 2}});
  CHECK(both.inputs.size() == 2);
  for (const nn::Model* model : {&numbers, &ids, &both})
    CHECK(output_of(*model) == Type{f32, {any_batch, 3}});
  CHECK(numbers.module->find("mlp.0.weight")->shape() == Shape{8, 4});
  CHECK(ids.module->find("emb1.weight")->shape() == Shape{100, 32});
  CHECK(both.module->find("mlp.0.weight")->shape() == Shape{8, 4 + 4 + 32});
  CHECK(output_of(table_of(4, {7}, 1)).shape == Shape{any_batch, 1});  // a number to predict
  CHECK_THROWS_WITH_AS((*both.module)(Tensor::zeros({2, 4})), doctest::Contains("numbers and ids"),
                       TypeError);
  CHECK_THROWS_WITH_AS(table_of(0, {3, 0}), doctest::Contains("needs ids"), InputError);
  CHECK_THROWS_WITH_AS(nn::make_model("mlp", {.numbers = 3, .ids = {2}}), doctest::Contains("'table'"),
                       InputError);
  CHECK_THROWS_WITH_AS(nn::make_model("dlrm", {.numbers = 3}), doctest::Contains("with categories"),
                       InputError);
  const nn::Model clicks = nn::make_model("dlrm", {.classes = 3, .numbers = 2, .ids = {4, 5}});
  CHECK(output_of(clicks) == Type{f32, {any_batch, 3}});
  CHECK(clicks.module->find("emb.weight")->shape() == Shape{9, 32});
  CHECK(nn::make_model("mlp", {.numbers = 3}).inputs[0].type == Type{f32, {any_batch, 3}});
}

TEST_CASE("a linear model sums the weights of numbers and of the values of categories") {
  const nn::Model model = nn::make_model("linear", {.classes = 2, .numbers = 2, .ids = {3, 2}});
  model.module->initialise(1);
  for (const nn::Named& p : model.module->parameters())
    for (const double value : p.tensor->to_array().to_doubles()) CHECK(value == 0);
  const auto set = [&](const char* name, std::vector<double> values) {
    Tensor* const to = model.module->find(name);
    REQUIRE(to != nullptr);
    *to = numbers_of(f32, to->shape(), values);
  };
  set("weight", {1, 2, 3, 4});
  set("bias", {0.5, -0.5});
  set("category0.weight", {10, 20, 30, 40, 50, 60});
  set("category1.weight", {0, 0, 100, 200});
  const Tensor inputs[] = {numbers_of(f32, {2, 2}, {1, 1, 2, -1}), numbers_of(i64, {2, 2}, {2, 1, 0, 0})};
  CHECK((*model.module)(inputs).to_array().to_doubles() == std::vector<double>{153.5, 266.5, 10.5, 21.5});
  // Without numbers there is a bias, too.
  const nn::Model ids = nn::make_model("linear", {.classes = 1, .ids = {4}});
  CHECK(ids.module->parameter_count() == 5);
  CHECK(output_of(ids).shape == Shape{any_batch, 1});
}

TEST_CASE("a factorisation machine is the sum over all pairs of columns") {
  const int64_t outputs = 2, factors = 3;
  Settings settings(nn::architectures().at("fm").settings);
  settings.set("factors", factors);
  settings.set("deviation", 0.5);
  const nn::Model model =
      nn::architectures().at("fm").make("fm", settings, {.classes = outputs, .numbers = 2, .ids = {3, 4}});
  model.module->initialise(7);
  const std::vector<double> x = {1.5, -0.5};
  const std::vector<int64_t> ids = {2, 1};
  const Tensor inputs[] = {numbers_of(f32, {1, 2}, x), numbers_of(i64, {1, 2}, {2, 1})};
  const auto found = (*model.module)(inputs).to_array().to_doubles();
  // Each column is a value times a row of weights and vectors.
  const auto table = [&](const std::string& name) {
    return model.module->find(name)->to_array().to_doubles();
  };
  const size_t width = static_cast<size_t>(outputs * (1 + factors));
  std::vector<std::pair<double, std::vector<double>>> columns;
  const auto row = [&](const std::vector<double>& from, size_t at) {
    return std::vector<double>(from.begin() + static_cast<std::ptrdiff_t>(at * width),
                               from.begin() + static_cast<std::ptrdiff_t>((at + 1) * width));
  };
  for (size_t i = 0; i < 2; ++i) columns.emplace_back(x[i], row(table("numbers.weight"), i));
  for (size_t i = 0; i < 2; ++i)
    columns.emplace_back(1,
                         row(table("category" + std::to_string(i) + ".weight"), static_cast<size_t>(ids[i])));
  for (size_t k = 0; k < 2; ++k) {
    double sum = 0;
    for (size_t i = 0; i < columns.size(); ++i) {
      CHECK(columns[i].second[k] == 0);  // a weight begins at 0
      for (size_t j = i + 1; j < columns.size(); ++j)
        for (size_t f = 0; f < static_cast<size_t>(factors); ++f) {
          const size_t at = static_cast<size_t>(outputs) + k * static_cast<size_t>(factors) + f;
          sum += columns[i].first * columns[i].second[at] * columns[j].first * columns[j].second[at];
        }
    }
    CHECK(found[k] == doctest::Approx(sum).epsilon(1e-5));
  }
}

TEST_CASE("branches are joined and each head gives its part of the output") {
  const nn::CombineOptions options = two_heads();
  const nn::Model model = picture_and_row(options);
  std::vector<std::string> inputs;
  for (const nn::InputSpec& input : model.inputs) inputs.push_back(input.name);
  CHECK(inputs == std::vector<std::string>{"picture", "row.numbers", "row.ids"});
  CHECK(output_of(model) == Type{f32, {any_batch, 4}});
  CHECK(model.module->find("body.0.weight")->shape() == Shape{10, 12});
  CHECK(model.module->find("heads.size.weight")->shape() == Shape{1, 10});
  CHECK(model.module->find("branches.row.emb0.weight") != nullptr);
  std::set<std::string> names;
  for (const nn::Named& p : model.module->parameters()) CHECK_MESSAGE(names.insert(p.name).second, p.name);

  model.module->initialise(3);
  const auto once = values_of(*model.module);
  model.module->initialise(3);
  CHECK(values_of(*model.module) == once);
  const nn::Model again = picture_and_row(options);
  again.module->initialise(3);
  CHECK(values_of(*again.module) == once);

  Array ids(i64, {2, 2});
  fill_ids(ids, 3);
  const Tensor data[] = {random_normal({2, 1, 16, 16}, next_random_key()),
                         random_normal({2, 2}, next_random_key()), Tensor(ids)};
  const Tensor whole = (*model.module)(data);
  const auto heads = std::dynamic_pointer_cast<nn::Combined>(model.module)->heads(data);
  REQUIRE(heads.size() == 2);
  CHECK(heads[0].shape() == Shape{2, 3});
  CHECK(heads[1].shape() == Shape{2, 1});
  CHECK(heads[0].to_array().to_doubles() == slice(whole, -1, 0, 3).to_array().to_doubles());
  CHECK(heads[1].to_array().to_doubles() == slice(whole, -1, 3, 4).to_array().to_doubles());
  // Rows of a sample lie one head after the other.
  CHECK(whole.to_array().at(3) == heads[1].to_array().at(0));
  CHECK(whole.to_array().at(4) == heads[0].to_array().at(3));
  CHECK_THROWS_WITH_AS((*model.module)(std::span(data).first(2)),
                       doctest::Contains("3 inputs for its 2 branches"), TypeError);
}

TEST_CASE("training a model of branches and heads reaches every parameter and lowers the loss") {
  const nn::CombineOptions options = two_heads();
  const nn::Model model = picture_and_row(options);
  model.module->initialise(3);
  const auto before = values_of(*model.module);
  optim::TrainStep step(
      model.module,
      {{"picture", {f32, {12, 1, 16, 16}}},
       {"numbers", {f32, {12, 2}}},
       {"ids", {i64, {12, 2}}},
       {"kind", {i64, {12}}},
       {"size", {f32, {12, 1}}}},
      [&](nn::Module& module, std::span<const Tensor> in) {
        const auto outputs = dynamic_cast<nn::Combined&>(module).heads(in.first(3));
        return optim::StepResult{cross_entropy(outputs[0], in[3]) + mse_loss(outputs[1], in[4])};
      },
      optim::sgd({.momentum = 0.5}));
  nn::init::normal(0, 1)(step.input(0), 1, "picture");
  nn::init::normal(0, 1)(step.input(1), 1, "numbers");
  fill_ids(step.input(2), 3);
  fill_ids(step.input(3), 3);
  nn::init::normal(0, 1)(step.input(4), 1, "size");
  step.run(0.05);
  const double first = step.loss();
  const auto after = values_of(*model.module);
  for (size_t i = 0; i < after.size(); ++i)
    CHECK_MESSAGE(after[i] != before[i], model.module->parameters()[i].name);
  for (int i = 0; i < 5; ++i) step.run(0.05);
  CHECK(step.loss() < first);
}

TEST_CASE("one branch may have several heads, and no layers between") {
  nn::CombineOptions options = two_heads();
  options.depth = 0;
  const nn::Model model =
      nn::combine({{"text", nn::make_model("bag", {.classes = 6, .input = {9}, .width = 4})}}, options);
  CHECK(model.inputs.size() == 1);
  CHECK(model.inputs[0].name == "text");
  CHECK(output_of(model) == Type{f32, {any_batch, 4}});
  CHECK(model.module->find("heads.kind.weight")->shape() == Shape{3, 6});
  CHECK(nn::combine({{"p", nn::make_model("airbench")}}, options).fit);

  // Segments of padded texts, which whoever feeds them adds.
  nn::Model padded =
      nn::make_model("encoder", {.classes = 6, .input = {9}, .width = 4, .depth = 1, .heads = 2});
  padded.inputs.push_back({"segments", padded.inputs[0].type});
  const nn::Model both = nn::combine({{"text", padded}, {"row", table_of(2, {}, 6)}}, options);
  CHECK(both.inputs[1].name == "text.segments");
  CHECK(both.inputs[2].name == "row");
  CHECK(output_of(both) == Type{f32, {any_batch, 4}});

  Settings settings(nn::combine_settings());
  settings.set("width", int64_t{20});
  const nn::CombineOptions read = nn::combine_options(settings, {{"a", 2}});
  CHECK(read.features == nn::CombineOptions{}.features);
  CHECK(read.width == 20);
  CHECK(read.depth == nn::CombineOptions{}.depth);
}

TEST_CASE("branches and heads that cannot be are told") {
  const nn::CombineOptions options = two_heads();
  const auto row = [] { return nn::Branch{"row", table_of(2, {}, 6)}; };
  CHECK_THROWS_WITH_AS(nn::combine({}, options), doctest::Contains("at least one branch"), InputError);
  CHECK_THROWS_WITH_AS(nn::combine({row()}, {}), doctest::Contains("at least one head"), InputError);
  CHECK_THROWS_WITH_AS(nn::combine({row(), row()}, options), "there are two of the branch 'row'", InputError);
  CHECK_THROWS_WITH_AS(nn::combine({{"a.b", table_of(2, {})}}, options), doctest::Contains("no dot"),
                       InputError);
  CHECK_THROWS_WITH_AS(nn::combine({row()}, {.heads = {{"a", 0}}}),
                       doctest::Contains("cannot have 0 outputs"), InputError);
  CHECK_THROWS_WITH_AS(nn::combine({{"text", nn::make_model("gpt")}}, options),
                       doctest::Contains("'gpt' of the branch 'text' gives"), InputError);
}

TEST_CASE("a program's own layer stands in lists beside the others") {
  const auto triple = [](const Settings& settings, const Tensor&) -> std::shared_ptr<nn::Module> {
    const double factor = settings.number("factor");
    return std::make_shared<nn::Function>([factor](const Tensor& x) { return x * factor; });
  };
  nn::register_layer({.name = "scale-by",
                      .doc = "times a number",
                      .settings = {{"factor", "by which", 3.0, -10, 10}},
                      .make = triple});
  const nn::Model model = nn::make_layers({"scale-by", "relu", "scale-by factor=2"}, {2});
  CHECK((*model.module)(Tensor::of({1, 2}, {-1, 2})).to_array().to_doubles() == std::vector<double>{0, 12});
  CHECK_THROWS_WITH_AS(nn::make_layers({"scale-by 4"}, {2}),
                       "layer \"scale-by 4\": \"4\" is too much; write it as scale-by [factor=3]",
                       InputError);
  CHECK_THROWS_WITH_AS(nn::make_layers({"scaleby"}, {2}), doctest::Contains("did you mean 'scale-by'?"),
                       InputError);
  CHECK_THROWS_WITH_AS(nn::register_layer({.name = "relu", .make = triple}),
                       doctest::Contains("'relu' already"), InputError);
  CHECK_THROWS_AS(nn::register_layer({.name = "two words", .make = triple}), InputError);
  CHECK_THROWS_AS(nn::register_layer({.name = "nothing"}), InputError);
}
