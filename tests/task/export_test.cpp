#include <cstdlib>
#include <doctest/doctest.h>

#include "base/file.h"
#include "task/fake_task.h"

using namespace millrace;
using testing::batch_dim;
using testing::FakeClass;
using testing::FakeInput;
using testing::FakeNumber;
using testing::put;

namespace {

/// Two columns of categories, which are texts in an exported model.
class FakeCategories : public FakeInput {
 public:
  explicit FakeCategories(const std::string& name) : FakeInput(name, {2}) {}
  std::vector<data::Field> fields() const override { return {{"ids", {i64, {batch_dim(), 2}}}}; }
  void describe(nn::ModelOptions& options) const override { options.ids = {3, 4}; }
  std::vector<task::ExportedTexts> exported_texts() const override {
    return {{"ids", 1, "colour", {{"red", 1}, {"green", 2}, {"blue", 3}}},
            {"ids", 0, "size", {{"small", 1}, {"large", 2}}}};
  }
};

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("an exported model gives logits and predictions of its only output, and says what it knows") {
  task::Task task;
  put<FakeInput>(task.inputs, "", Shape{4});
  put<FakeClass>(task.outputs, "", 2);
  task.recipe.model.layers = {"linear 2"};
  task::make_network(task);
  std::vector<std::string> notes;
  const std::string model = task::export_model(task, notes);
  CHECK(notes.empty());
  for (const char* part :
       {"logits", "probabilities", "classes", R"(["class0", "class1"])", "encoding", R"({"fake":1})"}) {
    CAPTURE(part);
    CHECK(has(model, part));
  }
  CHECK_FALSE(has(model, "ai.onnx.ml"));
  CHECK_THROWS_WITH_AS(task::export_model(task, notes, 32, 32), doctest::Contains("does not take pictures"),
                       InputError);
}

// With MILLRACE_ONNX_DUMP=FOLDER the model is also written there; run in ONNX Runtime, the texts of a row and
// their ids must be the same to it.
TEST_CASE("categories are texts in an exported model of several inputs and outputs") {
  task::Task task;
  put<FakeCategories>(task.inputs, "goods");
  put<FakeInput>(task.inputs, "far", Shape{2});
  put<FakeClass>(task.outputs, "animal", 3);
  put<FakeNumber>(task.outputs, "price");
  task::make_network(task);
  std::vector<std::string> notes;
  const std::string model = task::export_model(task, notes);
  CHECK(notes.empty());
  for (const char* part : {"LabelEncoder", "ai.onnx.ml", "keys_strings", "values_int64s", "goods.colour",
                           "goods.size", "green", "far.x", "animal.logits", "animal.probabilities",
                           "price.values", "animal.classes", "goods.encoding"}) {
    CAPTURE(part);
    CHECK(has(model, part));
  }
  CHECK_FALSE(has(model, "goods.ids"));
  if (const char* dump = std::getenv("MILLRACE_ONNX_DUMP"))
    write_file(std::filesystem::path(dump) / "texts_of_categories.onnx.model", model);
}
