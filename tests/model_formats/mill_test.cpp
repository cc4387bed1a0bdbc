#include "model_formats/mill.h"

#include <chrono>
#include <doctest/doctest.h>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <millrace/error.h>
#include <millrace/nn.h>
#include <millrace/optim.h>
#include <millrace/random.h>

#include "backend/cpu/codegen/jit.h"
#include "base/file.h"
#include "base/section_file.h"
#include "support/cache_variable.h"
#include "support/temp_folder.h"
#include "target/shared_constants.h"

using namespace millrace;

namespace {

/// Small pictures → logits, with convolutions, norms, products and groups.
SessionModel mill_lenet(bool weights_beside = false) {
  SessionModel made;
  made.inputs = {{"x", {f32, {Dim::named("batch"), 1, 12, 12}}}};
  made.outputs = {{"y", {f32, {Dim::named("batch"), 7}}}};
  const nn::Model model = nn::make_layers(
      {"conv 6 3", "batch-norm", "relu", "max-pool 2", "flatten", "linear 33", "gelu", "linear 7"},
      {1, 12, 12});
  model.module->initialise(3);
  const Graph graph = optim::build_eval_graph(
      *model.module, std::vector<optim::TensorSpec>{{"x", made.inputs[0].type}},
      [](nn::Module& module, std::span<const Tensor> in) {
        return std::vector<optim::NamedTensor>{{"y", module(in)}};
      },
      false);
  made.graph = [graph](const Bindings&) { return graph; };
  made.independent = {"batch"};
  if (!weights_beside) return made;
  Graph scaled;
  const Value x = scaled.input("x", made.inputs[0].type), w = scaled.input("w", {f32, {144, 7}});
  const Value flat = scaled.add("reshape", {x}, {{"shape", Shape{Dim::named("batch"), 144}}});
  scaled.set_outputs({scaled.add("matmul", {flat, w})}, {"y"});
  made.weights = {Array::full(f32, {144, 7}, 0.25)};
  made.graph = [scaled](const Bindings&) { return scaled; };
  return made;
}

/// y of x, rows of so many numbers, whose graph is emitted for each batch by itself.
SessionModel mill_rows(int64_t width, const std::function<Value(Graph&, int64_t batch, Value x)>& emit) {
  SessionModel made;
  made.inputs = {{"x", {f32, {Dim::named("batch"), width}}}};
  made.outputs = {{"y", {f32, {Dim::named("batch"), width}}}};
  made.graph = [width, emit](const Bindings& sizes) {
    Graph graph;
    const int64_t batch = sizes.at("batch");
    const Value x = graph.input("x", {f32, {batch, width}});
    graph.set_outputs({emit(graph, batch, x)}, {"y"});
    return graph;
  };
  return made;
}

Array mill_pictures(int64_t count) {
  Array array(f32, {count, 1, 12, 12});
  RandomStream random(5, 1);
  for (int64_t i = 0; i < array.count(); ++i) array.set(i, 2 * random.uniform() - 1);
  return array;
}

std::filesystem::path mill_built(const testing::TempFolder& folder, const SessionModel& model) {
  const std::filesystem::path path = folder / "model.mill";
  mill::build(model, {.sizes = {{{"batch", 1}}, {{"batch", 4}}}, .independent = model.independent}, path);
  return path;
}

/// The same file with another description, and sound checksums.
void mill_described(const std::filesystem::path& from, const std::filesystem::path& to,
                    const std::function<void(nlohmann::json&)>& change) {
  const SectionFile file(from, mill::kMagic, mill::kVersion);
  nlohmann::json description = nlohmann::json::parse(file.text("description", true));
  change(description);
  SectionWriter writer(to, mill::kMagic, mill::kVersion);
  for (const Section& section : file.sections())
    writer.add(section.name, section.name == "description" ? description.dump()
                                                           : std::string(file.text(section.name, true)));
  writer.commit();
}

}  // namespace

TEST_CASE("a built model says what the model says, for all that it was built for") {
  testing::TempFolder folder;
  for (const bool beside : {false, true}) {
    CAPTURE(beside);
    const SessionModel model = mill_lenet(beside);
    const std::filesystem::path path = mill_built(folder, model);
    mill::verify(path);
    CHECK(mill::sizes_of(path) == std::vector<Bindings>{{{"batch", 1}}, {{"batch", 4}}});
    const Session plain(model), built = Session::load(path);
    CHECK(built.notes().empty());
    CHECK(built.inputs()[0].type.str() == "f32[batch, 1, 12, 12]");
    CHECK(built.outputs()[0].name == "y");
    for (const int64_t rows : {1, 4, 3, 5, 11}) {
      const Array x = mill_pictures(rows);
      const Array should = plain.run({{x}})[0], is = built.run({{x}})[0];
      REQUIRE(is.type() == should.type());
      for (int64_t i = 0; i < is.count(); ++i) CHECK(is.at(i) == doctest::Approx(should.at(i)).epsilon(1e-5));
    }
    CHECK_THROWS_WITH_AS((void)mill::load(path).graph({{"batch", 0}}),
                         doctest::Contains("cannot be run for batch=0: 'batch' is 0"), InputError);
    CHECK_THROWS_WITH_AS((void)mill::load(path).graph({{"batch", int64_t{1} << 60}}),
                         doctest::Contains("cannot be run for batch="), InputError);
    CHECK_THROWS_WITH_AS(Session::load(path, {.precision = "bf16"}), doctest::Contains("built for fp32"),
                         InputError);
  }
}

TEST_CASE("nothing is compiled for a built model, though the cache is empty") {
  testing::TempFolder folder;
  const std::filesystem::path path = mill_built(folder, mill_lenet());
  const testing::CacheVariable empty;
  codegen::forget_unused_code();
  const auto before = codegen::code_counts();
  const Session built = Session::load(path);
  (void)built.run({{mill_pictures(4)}});
  const auto after = codegen::code_counts();
  CHECK(after.compiled == before.compiled);
  CHECK(after.from_disk > before.from_disk);
}

TEST_CASE("a built model whose graph differs from size to size runs for those that it was built for") {
  testing::TempFolder folder;
  const SessionModel model = mill_rows(5, [](Graph& graph, int64_t batch, Value x) {
    return graph.add(batch % 3 == 1 ? "tanh" : "exp", {x});
  });
  const Session built = Session::load(mill_built(folder, model));
  CHECK(built.run({{Array::full(f32, {4, 5}, 0)}})[0].at(7) == 0);
  CHECK_THROWS_WITH_AS(built.run({{Array::full(f32, {6, 5}, 0)}}),
                       doctest::Contains("was not built for batch=6; it was for batch=1; batch=4"),
                       InputError);
}

TEST_CASE("a built model's graph for other sizes is for those that it was tried for") {
  testing::TempFolder folder;
  const auto built = [&](const std::function<bool(int64_t batch)>& other) {
    return Session::load(mill_built(folder, mill_rows(5, [other](Graph& graph, int64_t batch, Value x) {
                                      return graph.add(other(batch) ? "tanh" : "exp", {x});
                                    })));
  };
  const auto first = [](const Session& session, int64_t rows) {
    return session.run({{Array::full(f32, {rows, 5}, 0)}})[0].at(0);
  };
  const Session large = built([](int64_t batch) { return batch > 1000; });
  for (const int64_t rows : {1, 2, 6, 300}) CHECK(first(large, rows) == 1);
  CHECK_THROWS_WITH_AS(first(large, 1001),
                       doctest::Contains("was tried for 'batch' from 1 to 1000: build it"), InputError);
  const Session small = built([](int64_t batch) { return batch < 4; });
  CHECK(first(small, 1) == 0);  // which it was built for
  CHECK(first(small, 7000) == 1);
  CHECK_THROWS_WITH_AS(first(small, 2), doctest::Contains("was tried for 'batch' from 4 to "), InputError);
  const Session otherwise =
      Session::load(mill_built(folder, mill_rows(5, [](Graph& graph, int64_t batch, Value x) {
                                 const Value y = graph.add("exp", {x});
                                 return batch < 4 ? graph.add("abs", {y}) : y;  // says the same
                               })));
  CHECK(first(otherwise, 2) == 1);
  const Session between = built([](int64_t batch) { return batch > 200; });
  CHECK(first(between, 6) == 1);
  CHECK_THROWS_WITH_AS(first(between, 201), doctest::Contains("was tried for 'batch' from 1 to 200"),
                       InputError);
}

TEST_CASE("states that begin with zeros, as many as there are rows, are no numbers of one size") {
  testing::TempFolder folder;
  const SessionModel model = mill_rows(40, [](Graph& graph, int64_t batch, Value x) {
    const Value state = graph.constant(Array::full(f32, {batch, 40}, 0.5));
    const Value weights = graph.constant(Array::full(f32, {40, 40}, 0.125));  // uniform, but of one size
    const Value product = graph.add("matmul", {graph.add("maximum", {x, state}), weights});
    Array bias(f32, {batch, 40});  // a row for each, all alike
    for (int64_t i = 0; i < bias.count(); ++i) bias.set(i, static_cast<double>(i % 40));
    return graph.add("add", {product, graph.constant(std::move(bias))});
  });
  const Session built = Session::load(mill_built(folder, model));
  for (const int64_t rows : {1, 4, 9, 50}) {
    const Array y = built.run({{Array::full(f32, {rows, 40}, 0.25)}})[0];
    REQUIRE(y.shape() == Shape{rows, 40});
    CHECK(y.at(y.count() - 1) == 2.5 + 39);
    CHECK(y.at(0) == 2.5);
  }
}

TEST_CASE("a table that is cut, a mask and a bias for each row serve any size up to the table's end") {
  testing::TempFolder folder;
  Array table(f32, {500, 8});
  for (int64_t i = 0; i < table.count(); ++i) table.set(i, static_cast<double>(i * 7 % 1001));
  SessionModel model;
  model.inputs = {{"x", {f32, {Dim::named("batch"), Dim::named("n"), 8}}}};
  model.outputs = {{"y", {f32, {Dim::named("batch"), Dim::named("n"), 8}}},
                   {"mask", {f32, {Dim::named("n"), Dim::named("n")}}}};
  model.graph = [table](const Bindings& sizes) {
    const int64_t batch = sizes.at("batch"), n = sizes.at("n");
    if (n > 500) fail<InputError>("the table has 500 rows");
    Graph graph;
    const Value x = graph.input("x", {f32, {batch, n, 8}});
    Array rows(f32, {batch, n, 8}), mask(f32, {n, n});
    for (int64_t i = 0; i < rows.count(); ++i) rows.set(i, table.at(i % (n * 8)));
    for (int64_t i = 0; i < mask.count(); ++i) mask.set(i, i % n <= i / n ? 0 : -1);
    const Value y = graph.add("add", {x, graph.constant(std::move(rows))});
    const std::vector<int64_t> zeros(3, 0), ones(3, 1);
    const Value one = graph.add("slice", {x}, {{"starts", zeros}, {"ends", ones}, {"steps", ones}});
    const Value scale = graph.add("broadcast", {graph.add("reshape", {one}, {{"shape", Shape{1, 1}}})},
                                  {{"shape", Shape{n, n}}});
    graph.set_outputs({y, graph.add("mul", {graph.constant(std::move(mask)), scale})});
    return graph;
  };
  const std::filesystem::path path = folder / "m.mill";
  mill::build(model, {.sizes = {{{"batch", 1}, {"n", 16}}}}, path);
  const Session built = Session::load(path), plain(model);
  for (const auto& [batch, n] : {std::pair{1, 16}, {1, 1}, {2, 16}, {3, 127}, {1, 499}, {2, 500}}) {
    const Array x = Array::full(f32, {batch, n, 8}, 0.5);
    const std::vector<Array> is = built.run({{x}}), should = plain.run({{x}});
    CHECK(is[0].identical(should[0]));
    CHECK(is[1].identical(should[1]));
  }
  CHECK_THROWS_WITH_AS(built.run({{Array(f32, {1, 501, 8})}}),
                       doctest::Contains("was tried for 'n' from 1 to 500"), InputError);
  CHECK_NOTHROW(built.run({{Array::full(f32, {3000, 2, 8}, 0.5)}}));  // of the batch nothing is kept
}

TEST_CASE("what grows with a size is kept no further than the file may become larger by") {
  testing::TempFolder folder;
  const SessionModel model = mill_rows(64, [](Graph& graph, int64_t batch, Value x) {
    Array numbers(f32, {batch, 64});
    for (int64_t i = 0; i < numbers.count(); ++i) numbers.set(i, static_cast<double>(i));
    return graph.add("add", {x, graph.constant(std::move(numbers))});
  });
  const std::filesystem::path path = mill_built(folder, model);
  const Session built = Session::load(path);
  for (const int64_t rows : {4, 6, 14000})
    CHECK(built.run({{Array::full(f32, {rows, 64}, 0.5)}})[0].at(rows * 64 - 1) ==
          static_cast<double>(rows * 64 - 1) + 0.5);
  CHECK_THROWS_WITH_AS(built.run({{Array(f32, {16400, 64})}}),
                       doctest::Contains("tried for 'batch' from 1 to "), InputError);
  CHECK(std::filesystem::file_size(path) < 5 << 20);
}

TEST_CASE("constants that are no beginnings of larger ones are refused for other sizes") {
  testing::TempFolder folder;
  const SessionModel model = mill_rows(40, [](Graph& graph, int64_t batch, Value x) {
    Array numbers(f32, {batch, 40});
    for (int64_t i = 0; i < numbers.count(); ++i) numbers.set(i, static_cast<double>(batch * 40 - i));
    return graph.add("add", {x, graph.constant(std::move(numbers))});
  });
  const Session built = Session::load(mill_built(folder, model));
  CHECK(built.run({{Array::full(f32, {4, 40}, 0.5)}})[0].at(159) == 1.5);
  CHECK_THROWS_AS(built.run({{Array::full(f32, {6, 40}, 0)}}), InputError);
}

TEST_CASE("what a model makes of two sizes together is looked for") {
  testing::TempFolder folder;
  const auto built = [&](const std::function<bool(int64_t b, int64_t n)>& other) {
    SessionModel model;
    model.inputs = {{"x", {f32, {Dim::named("b"), Dim::named("n")}}}};
    model.outputs = {{"y", {f32, {Dim::named("b"), Dim::named("n")}}}};
    model.graph = [other](const Bindings& sizes) {
      const int64_t b = sizes.at("b"), n = sizes.at("n");
      Graph graph;
      graph.set_outputs({graph.add(other(b, n) ? "tanh" : "exp", {graph.input("x", {f32, {b, n}})})});
      return graph;
    };
    const std::filesystem::path path = folder / "m.mill";
    mill::build(model, {.sizes = {{{"b", 1}, {"n", 2}}}}, path);
    return Session::load(path);
  };
  const auto first = [](const Session& session, int64_t b, int64_t n) {
    return session.run({{Array::full(f32, {b, n}, 0)}})[0].at(0);
  };
  const Session product = built([](int64_t b, int64_t n) { return b * n > 20000; });
  CHECK(first(product, 113, 101) == 1);
  CHECK_THROWS_WITH_AS(first(product, 198, 170), doctest::Contains("tried for"), InputError);
  const Session square = built([](int64_t b, int64_t n) { return b == n; });
  CHECK(first(square, 1, 2) == 1);
  CHECK_THROWS_WITH_AS(first(square, 5, 5), doctest::Contains("was not built for"), InputError);
}

TEST_CASE("no weights are packed for a built model: it has them as kernels want them") {
  testing::TempFolder folder;
  const std::filesystem::path path = mill_built(folder, mill_lenet());
  const int64_t before = shared_constant_bytes();
  const Session built = Session::load(path), twice = Session::load(path);
  for (const Session* session : {&built, &twice})
    for (const int64_t rows : {1, 4, 12}) (void)session->run({{mill_pictures(rows)}});
  CHECK(shared_constant_bytes() == before);
  const SectionFile file(path, mill::kMagic, mill::kVersion);
  CHECK(file.bytes("packed", true).size() > 33 * 600);
}

TEST_CASE("packed weights of other kernels are made anew") {
  testing::TempFolder folder;
  const std::filesystem::path path = mill_built(folder, mill_lenet()), other = folder / "other.mill";
  mill_described(path, other, [](nlohmann::json& d) { d["kernels"] = "others"; });
  const Session built = Session::load(path), old = Session::load(other);
  REQUIRE(old.notes().size() == 1);
  CHECK(old.notes()[0].find("build it again") != std::string::npos);
  const int64_t before = shared_constant_bytes();
  const Array x = mill_pictures(4);
  CHECK(old.run({{x}})[0].identical(built.run({{x}})[0]));
  CHECK(shared_constant_bytes() > before);
}

TEST_CASE("constants that lie in one place, and outputs of another type than the graph's, are damage") {
  testing::TempFolder folder;
  const std::filesystem::path path = mill_built(folder, mill_lenet()), other = folder / "other.mill";
  mill_described(path, other, [](nlohmann::json& d) { d["constants"].push_back(d["constants"][0]); });
  CHECK_THROWS_WITH_AS(Session::load(other), doctest::Contains("two constants lie in one place"), InputError);
  mill_described(path, other, [](nlohmann::json& d) { d["outputs"][0]["type"] = "f64[batch, 7]"; });
  CHECK_THROWS_WITH_AS(Session::load(other).run({{mill_pictures(4)}}),
                       doctest::Contains("output is of f32, not f64"), InputError);
}

TEST_CASE("packed weights that cannot be are refused") {
  testing::TempFolder folder;
  const std::filesystem::path path = mill_built(folder, mill_lenet()), other = folder / "other.mill";
  const std::vector<std::pair<const char*, nlohmann::json>> wrong = {
      {"constant", 1000}, {"constant", -1}, {"offset", 8},         {"offset", int64_t{1} << 40},
      {"type", "f32[9]"}, {"form", 3},      {"type", "f32[batch]"}};
  for (const auto& [name, value] : wrong) {
    CAPTURE(name);
    mill_described(path, other, [&](nlohmann::json& d) { d["packed"][0][name] = value; });
    if (value == "f32[9]")  // no kernel asks for one of that type
      CHECK(Session::load(other).run({{mill_pictures(1)}}).size() == 1);
    else
      CHECK_THROWS_WITH_AS(Session::load(other), doctest::Contains("is damaged"), InputError);
  }
}

TEST_CASE("a built model that is written to or cut short while it is open gives no more results") {
  for (const bool cut : {false, true}) {
    CAPTURE(cut);
    testing::TempFolder folder;
    const std::filesystem::path path = mill_built(folder, mill_lenet());
    const Session session = Session::load(path);
    const Array x = mill_pictures(4);
    (void)session.run({{x}});
    if (cut)
      std::filesystem::resize_file(path, 4096);
    else
      std::ofstream(path, std::ios::in | std::ios::out | std::ios::binary).seekp(4096) << "something else";
    std::this_thread::sleep_for(std::chrono::milliseconds(5));  // it looks once a millisecond
    CHECK_THROWS_WITH_AS((void)session.run({{x}}), doctest::Contains(path.c_str()), IoError);
    CHECK_THROWS_AS((void)session.run({{mill_pictures(3)}}), IoError);
  }
}

TEST_CASE("a built model that is damaged is refused, or at least by verification") {
  testing::TempFolder folder;
  const std::filesystem::path path = mill_built(folder, mill_lenet());
  const std::string whole = read_text(path);
  const std::filesystem::path other = folder / "damaged.mill";
  const SectionFile sections(path, mill::kMagic, mill::kVersion);
  const auto section_of = [&](size_t at) {
    for (const Section& section : sections.sections())
      if (at >= section.offset && at < section.offset + section.size) return section.name;
    return std::string();
  };
  RandomStream random(9, 1);
  for (int i = 0; i < 150; ++i) {
    const auto at = random.below(static_cast<uint32_t>(whole.size()));
    CAPTURE(at);
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ (1 << random.below(8)));
    write_file(other, damaged);
    CHECK_THROWS_AS(mill::verify(other), InputError);
    // What is read at once is checked at once.
    const std::string where = section_of(at);
    if (where == "objects" || where == "graphs" || where == "description")
      CHECK_THROWS_AS(Session::load(other), InputError);
  }
  for (int i = 0; i < 40; ++i) {
    write_file(other, std::string_view(whole).substr(0, random.below(static_cast<uint32_t>(whole.size()))));
    CHECK_THROWS_AS(Session::load(other), InputError);
  }
  std::string later = whole;
  later[8] = static_cast<char>(mill::kVersion + 1);
  write_file(other, later);
  CHECK_THROWS_WITH_AS(Session::load(other),
                       doctest::Contains("is of version 5, but only version 4 can be read"), InputError);
}
