#include <cstring>
#include <doctest/doctest.h>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <millrace/graph.h>
#include <millrace/millrace.h>
#include <millrace/version.h>

#include "onnx/export.h"
#include "support/temp_folder.h"

using namespace millrace;

namespace {

/// y = 2x + 1 and the sum of each row, of x: f32[batch, 3]; saved as an ONNX model.
std::filesystem::path capi_model(const testing::TempFolder& folder) {
  Graph graph;
  const Shape rows{Dim::named("batch"), 3};
  const Value x = graph.input("x", {f32, rows});
  const auto filled = [&](double value) {
    return graph.add("broadcast", {graph.constant(Array::full(f32, {1, 1}, value))}, {{"shape", rows}});
  };
  const Value y = graph.add("add", {graph.add("mul", {x, filled(2)}), filled(1)});
  const Value sum = graph.add("sum", {x}, {{"axes", std::vector<int64_t>{1}}});
  graph.set_outputs({y, sum}, {"y", "sum"});
  std::ofstream(folder / "model.onnx", std::ios::binary) << onnx::export_model(graph, {});
  return folder / "model.onnx";
}

struct CapiSession {
  explicit CapiSession(const std::filesystem::path& path) {
    REQUIRE(millrace_load(path.c_str(), nullptr, &session) == MILLRACE_OK);
  }
  ~CapiSession() { millrace_free(session); }
  CapiSession(const CapiSession&) = delete;
  CapiSession& operator=(const CapiSession&) = delete;
  millrace_session* session = nullptr;
};

millrace_tensor capi_rows(float* data, int64_t rows) {
  millrace_tensor tensor{};
  tensor.data = data;
  tensor.dtype = MILLRACE_F32;
  tensor.rank = 2;
  tensor.dims[0] = rows;
  tensor.dims[1] = 3;
  return tensor;
}

std::string message() { return millrace_error_message(); }

}  // namespace

TEST_CASE("a program in C learns what a model takes and gives") {
  testing::TempFolder folder;
  const CapiSession c(capi_model(folder));
  CHECK(std::string(millrace_version()) == version());
  CHECK(millrace_api_version() == MILLRACE_API_VERSION);
  REQUIRE(millrace_input_count(c.session) == 1);
  REQUIRE(millrace_output_count(c.session) == 2);
  millrace_value value{};
  REQUIRE(millrace_input(c.session, 0, &value) == MILLRACE_OK);
  CHECK(std::string(value.name) == "x");
  CHECK(value.dtype == MILLRACE_F32);
  CHECK(std::string(millrace_dtype_name(value.dtype)) == "f32");
  REQUIRE(value.rank == 2);
  CHECK(value.dims[0] == -1);
  CHECK(std::string(value.dim_names[0]) == "batch");
  CHECK(value.dims[1] == 3);
  CHECK(value.dim_names[1] == nullptr);
  REQUIRE(millrace_output(c.session, 1, &value) == MILLRACE_OK);
  CHECK(std::string(value.name) == "sum");
  for (const int32_t output : {-1, 0, 1, 2})  // of none the data say how large it is
    CHECK(millrace_data_axis(c.session, output) == -1);
  CHECK(millrace_data_axis(nullptr, 0) == -1);
  CHECK(millrace_dtype_name(12345) == nullptr);
  CHECK(millrace_dtype_name(0) == nullptr);
  // Every type has a number of its own.
  std::set<std::string> named;
  for (int kind = 1; kind < 20; ++kind)
    for (int bits = 1; bits <= 64; ++bits)
      if (const char* const name = millrace_dtype_name(MILLRACE_DTYPE(kind, bits))) named.insert(name);
  CHECK(named.size() == all_dtypes().size());
}

TEST_CASE("results come into the caller's memory, or into the session's") {
  testing::TempFolder folder;
  const CapiSession c(capi_model(folder));
  float x[] = {1, 2, 3, 4, 5, 6};
  for (const int64_t rows : {2, 1}) {  // the second after the first: nothing of it is left over
    CAPTURE(rows);
    const millrace_tensor input = capi_rows(x, rows);
    float y[7] = {0, 0, 0, 0, 0, 0, -1};
    millrace_tensor outputs[2] = {};
    outputs[0].data = y;
    outputs[0].capacity = 6 * sizeof(float);
    REQUIRE_MESSAGE(millrace_run(c.session, &input, 1, outputs, 2) == MILLRACE_OK, message());
    CHECK(outputs[0].data == y);
    CHECK(outputs[0].owner == nullptr);
    CHECK(outputs[0].rank == 2);
    CHECK(outputs[0].dims[0] == rows);
    CHECK(outputs[0].capacity == 6 * sizeof(float));
    for (int i = 0; i < 3 * rows; ++i) CHECK(y[i] == 2 * x[i] + 1);
    for (auto i = static_cast<int>(3 * rows); i < 6; ++i) CHECK(y[i] == 0);
    CHECK(y[6] == -1);
    REQUIRE(outputs[1].owner != nullptr);
    CHECK(outputs[1].dtype == MILLRACE_F32);
    CHECK(static_cast<float*>(outputs[1].data)[0] == 6);
    millrace_release(outputs, 2);
    CHECK(outputs[0].data == y);
    CHECK(outputs[1].data == nullptr);
    millrace_release(outputs, 2);  // once more does nothing
  }
}

TEST_CASE("no rows in are no rows out, with memory for them or none") {
  testing::TempFolder folder;
  const CapiSession c(capi_model(folder));
  float y[1] = {-1};
  for (float* const data : {static_cast<float*>(nullptr), y}) {
    const millrace_tensor input = capi_rows(data, 0);
    millrace_tensor outputs[2] = {};
    outputs[0].data = data;
    REQUIRE_MESSAGE(millrace_run(c.session, &input, 1, outputs, 2) == MILLRACE_OK, message());
    CHECK(outputs[0].rank == 2);
    CHECK(outputs[0].dims[0] == 0);
    CHECK(outputs[0].dims[1] == 3);
    CHECK(outputs[1].dims[0] == 0);
    CHECK(y[0] == -1);
    millrace_release(outputs, 2);
  }
}

TEST_CASE("memory of the caller may stand anywhere, and results where inputs are") {
  testing::TempFolder folder;
  const CapiSession c(capi_model(folder));
  constexpr int64_t rows = 1000;
  std::vector<float> memory(3 * rows + 1), results(3 * rows + 1);
  for (int64_t i = 0; i < 3 * rows; ++i) memory[i + 1] = static_cast<float>(i % 17);
  const std::vector<float> before = memory;
  const millrace_tensor input = capi_rows(memory.data() + 1, rows);  // no vector's alignment
  millrace_tensor outputs[2] = {};
  outputs[0].data = results.data() + 1;
  outputs[0].capacity = 3 * rows * static_cast<int64_t>(sizeof(float));
  REQUIRE_MESSAGE(millrace_run(c.session, &input, 1, outputs, 2) == MILLRACE_OK, message());
  millrace_release(outputs, 2);
  for (int64_t i = 1; i <= 3 * rows; ++i) REQUIRE(results[i] == 2 * before[i] + 1);
  // One element further than the input: what is written must not be read as input.
  outputs[0].data = memory.data();
  REQUIRE_MESSAGE(millrace_run(c.session, &input, 1, outputs, 2) == MILLRACE_OK, message());
  for (int64_t i = 0; i < 3 * rows; ++i) REQUIRE(memory[i] == 2 * before[i + 1] + 1);
  for (int64_t r = 0; r < rows; ++r)
    REQUIRE(static_cast<float*>(outputs[1].data)[r] ==
            before[3 * r + 1] + before[3 * r + 2] + before[3 * r + 3]);
  millrace_release(outputs, 2);
  // And one element behind it, where the next ones would be read from.
  memory = before;
  outputs[0].data = memory.data() + 1;
  const millrace_tensor ahead = capi_rows(memory.data(), rows);
  REQUIRE_MESSAGE(millrace_run(c.session, &ahead, 1, outputs, 2) == MILLRACE_OK, message());
  for (int64_t i = 0; i < 3 * rows; ++i) REQUIRE(memory[i + 1] == 2 * before[i] + 1);
  millrace_release(outputs, 2);
}

TEST_CASE("what C gets wrong is a code and a message, and nothing is written") {
  testing::TempFolder folder;
  const std::filesystem::path path = capi_model(folder);
  millrace_session* none = nullptr;
  CHECK(millrace_load((folder / "absent.onnx").c_str(), nullptr, &none) == MILLRACE_INPUT_ERROR);
  CHECK(message().find("absent.onnx") != std::string::npos);
  CHECK(none == nullptr);
  CHECK(millrace_load(nullptr, nullptr, &none) == MILLRACE_BAD_ARGUMENT);
  CHECK(message().find("path") != std::string::npos);
  CHECK(millrace_load(path.c_str(), nullptr, nullptr) == MILLRACE_BAD_ARGUMENT);
  millrace_options options{};
  CHECK(millrace_load(path.c_str(), &options, &none) == MILLRACE_BAD_ARGUMENT);  // its size is 0
  options.size = sizeof options;
  options.executables = -1;
  CHECK(millrace_load(path.c_str(), &options, &none) == MILLRACE_INPUT_ERROR);

  const CapiSession c(path);
  millrace_value value{};
  CHECK(millrace_input(c.session, 1, &value) == MILLRACE_BAD_ARGUMENT);
  CHECK(message() == "there is no input 1; the model has 1");
  CHECK(millrace_output(c.session, -1, &value) == MILLRACE_BAD_ARGUMENT);
  CHECK(millrace_input(nullptr, 0, &value) == MILLRACE_BAD_ARGUMENT);

  float x[6] = {}, y[6] = {7, 7, 7, 7, 7, 7};
  millrace_tensor input = capi_rows(x, 2);
  millrace_tensor outputs[2] = {};
  CHECK(millrace_run(c.session, &input, 1, outputs, 1) == MILLRACE_BAD_ARGUMENT);
  CHECK(millrace_run(c.session, nullptr, 1, outputs, 2) == MILLRACE_BAD_ARGUMENT);
  outputs[0].data = y;
  outputs[0].capacity = 5 * sizeof(float);
  CHECK(millrace_run(c.session, &input, 1, outputs, 2) == MILLRACE_BAD_ARGUMENT);
  CHECK(message() == "result 'y' is f32[2, 3], 24 bytes, but there is room for 20");
  for (const float each : y) CHECK(each == 7);
  outputs[0].data = nullptr;
  const auto fails = [&](int code) {
    CHECK(millrace_run(c.session, &input, 1, outputs, 2) == code);
    CHECK(outputs[0].owner == nullptr);
    CHECK(outputs[1].data == nullptr);
    input = capi_rows(x, 2);
  };
  input.dims[1] = 2;
  fails(MILLRACE_TYPE_ERROR);
  input.dtype = MILLRACE_F64;
  fails(MILLRACE_TYPE_ERROR);
  input.dtype = 7;
  fails(MILLRACE_BAD_ARGUMENT);
  input.rank = MILLRACE_MOST_DIMS + 1;
  fails(MILLRACE_BAD_ARGUMENT);
  input.rank = -1;
  fails(MILLRACE_BAD_ARGUMENT);
  input.dims[0] = -2;
  fails(MILLRACE_BAD_ARGUMENT);
  input.dims[0] = INT64_MAX / 2;
  fails(MILLRACE_BAD_ARGUMENT);
  input.data = nullptr;
  fails(MILLRACE_BAD_ARGUMENT);
  // And then it still works.
  REQUIRE(millrace_run(c.session, &input, 1, outputs, 2) == MILLRACE_OK);
  CHECK(static_cast<float*>(outputs[0].data)[5] == 1);
  millrace_release(outputs, 2);
}

TEST_CASE("a thread's message is its own, and sizes can be compiled beforehand") {
  testing::TempFolder folder;
  const CapiSession c(capi_model(folder));
  CHECK(millrace_input(c.session, 9, nullptr) == MILLRACE_BAD_ARGUMENT);
  const std::string own = message();
  std::thread([&] {
    CHECK(message().empty());
    CHECK(millrace_output(c.session, 5, nullptr) == MILLRACE_BAD_ARGUMENT);
  }).join();
  CHECK(message() == own);
  const char* names[] = {"batch"};
  const int64_t sizes[] = {5};
  CHECK(millrace_prepare(c.session, names, sizes, 1) == MILLRACE_OK);
  CHECK(millrace_prepare(c.session, nullptr, sizes, 1) == MILLRACE_BAD_ARGUMENT);
  CHECK(millrace_prepare(c.session, names, nullptr, 1) == MILLRACE_BAD_ARGUMENT);
  const char* no_names[] = {nullptr};
  CHECK(millrace_prepare(c.session, no_names, sizes, 1) == MILLRACE_BAD_ARGUMENT);
  CHECK(millrace_prepare(c.session, nullptr, nullptr, 0) != MILLRACE_BAD_ARGUMENT);  // no size is told
  const int64_t wrong[] = {-5};
  CHECK(millrace_prepare(c.session, names, wrong, 1) != MILLRACE_OK);
}

TEST_CASE("options of a caller that was compiled earlier are shorter") {
  testing::TempFolder folder;
  millrace_options options{sizeof(size_t) + sizeof(const char*), "fp32", -7};  // not seen: -7
  millrace_session* session = nullptr;
  REQUIRE(millrace_load(capi_model(folder).c_str(), &options, &session) == MILLRACE_OK);
  millrace_free(session);
  options.precision = "no such precision";
  CHECK(millrace_load(capi_model(folder).c_str(), &options, &session) == MILLRACE_INPUT_ERROR);
  CHECK(session == nullptr);
  CHECK(message().find("no such precision") != std::string::npos);
  millrace_free(nullptr);
}
