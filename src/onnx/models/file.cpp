// A network that comes from an ONNX file, whoever wrote it: it goes on being trained.
#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string_view>

#include "base/contains.h"
#include "base/format.h"
#include "nn/models/architecture.h"
#include "nn/models/text_parts.h"
#include "onnx/models/head.h"
#include "onnx/models/open_sizes.h"
#include "onnx/models/texts.h"
#include "onnx/models/trainable.h"
#include "trace/inline.h"

namespace millrace::nn::models {
namespace {

using TextRoles = std::optional<std::vector<onnx::TextRole>>;

/// The two graphs of a file, and its initialisers as parameters and buffers under their names. Of texts there
/// are two graphs for each length: what a file computes of a length is constants then.
class OnnxFile : public Module {
 public:
  OnnxFile(std::shared_ptr<const onnx::Model> model, onnx::ImportOptions options,
           const onnx::Trainable& trainable, TextRoles texts)
      : model_(std::move(model)), options_(std::move(options)), texts_(std::move(texts)) {
    const auto value = [&](const std::string& name) {
      return onnx::array_of(*onnx::find_initialiser(*model_, name), model_->folder).converted(f32);
    };
    onnx::Learning& learning = *options_.learning;
    learning.inputs = {trainable.parameters.begin(), trainable.parameters.end()};
    learning.inputs.insert(trainable.statistics.begin(), trainable.statistics.end());
    first_ = &graphs_of(texts_ ? options_.inputs.begin()->second.shape[1].size() : 0);
    const auto& names = evaluation().graph.input_names();
    const auto used = [&](const std::string& name) {
      return std::find(names.begin(), names.end(), name) != names.end();
    };
    const std::set<std::string> products = onnx::product_weights(evaluation().graph);
    const std::string_view end = ".weight";
    for (const std::string& name : trainable.parameters) {
      if (!used(name)) continue;
      const Array array = value(name);
      if (products.contains(name) && name.ends_with(end) && name.size() > end.size()) {
        const std::vector<int64_t> sizes = array.shape().sizes();
        layers_[name] = &make<Linear>(name.substr(0, name.size() - end.size()), sizes[1], sizes[0], false,
                                      init::values(array));
        continue;
      }
      parameter(name, array.shape(), init::values(array));
    }
    for (const std::string& name : trainable.statistics)
      if (used(name)) buffer(name, value(name));
  }

  Tensor forward_many(std::span<const Tensor> all) override {
    const std::vector<Tensor> inputs =
        texts_ ? onnx::text_inputs(*texts_, all) : std::vector<Tensor>(all.begin(), all.end());
    const Graphs& graphs = texts_ ? graphs_of(all[0].dim(1).size()) : *first_;
    const onnx::Imported& own = training() ? graphs.training : graphs.evaluation;
    const std::vector<std::string>& names = own.graph.input_names();
    std::vector<Tensor> given;
    for (size_t i = 0; i < names.size(); ++i) {
      const Tensor* const learnt = i < inputs.size() ? nullptr : find(names[i]);
      if (i < inputs.size())
        given.push_back(as(inputs[i], own.graph.type(own.graph.inputs()[i]).dtype));
      else if (const auto layer = layers_.find(names[i]); layer != layers_.end() && layer->second->adapter())
        given.push_back(layer->second->weight + layer->second->adapter()->added());
      else
        given.push_back(learnt ? *learnt : Tensor(Array(i64, {2})));  // the key: inline_graph() has another
    }
    const std::vector<Tensor> results = trace::inline_graph(own.graph, given);
    for (size_t k = 0; training() && k < own.norms.size(); ++k)
      move(own.norms[k], std::span(results).subspan(1 + 3 * k, 3));
    return results[0];
  }

  /// The type of its result, with open sizes.
  const Type& result() const { return evaluation().graph.type(evaluation().graph.outputs()[0]); }
  const onnx::Imported& evaluation() const { return first_->evaluation; }
  /// How many numbers a new head would be given: of planes, the number of these.
  Dim features() const {
    const Shape& shape = result().shape;
    return shape.rank() == 4 ? shape[1] : shape.back();
  }
  size_t norms() const { return first_->training.norms.size(); }
  int64_t fixed_norms() const { return first_->training.fixed_norms; }

 private:
  struct Graphs {
    onnx::Imported evaluation, training;
  };

  const Graphs& graphs_of(int64_t length) {
    if (const auto at = graphs_.find(length); at != graphs_.end()) return at->second;
    onnx::ImportOptions options = options_;
    if (texts_)
      for (auto& [name, type] : options.inputs) type.shape[1] = length;
    const auto read = [&](bool training) {
      options.learning->training = training;
      return onnx::import_open(*model_, options);
    };
    try {
      return graphs_.emplace(length, Graphs{read(false), read(true)}).first->second;
    } catch (const InputError& error) {
      if (!first_) throw;
      fail<InputError>("{}; texts of another length than {} do not go in: input.sequences = \"padded\"",
                       error.what(), graphs_.begin()->first);
    }
  }

  static Tensor as(const Tensor& x, DType dtype) { return x.dtype() == dtype ? x : cast(x, dtype); }

  /// Moves running statistics as nn::BatchNorm does, by the unbiased variance.
  void move(const onnx::LearningNorm& norm, std::span<const Tensor> batch) {
    Shape each = batch[0].shape();
    each.erase(each.begin() + 1);
    const int64_t count = each.count();
    if (count < 2)
      fail<TypeError>("batch norm cannot train on {}: more than one value a channel is needed",
                      batch[0].type().str());
    const double momentum = norm.momentum;
    const double unbiased = static_cast<double>(count) / static_cast<double>(count - 1);
    Tensor &mean = *find(norm.mean), &variance = *find(norm.variance);
    mean = mean * (1 - momentum) + as(batch[1], f32) * momentum;
    variance = variance * (1 - momentum) + as(batch[2], f32) * (momentum * unbiased);
  }

  std::shared_ptr<const onnx::Model> model_;
  onnx::ImportOptions options_;
  TextRoles texts_;
  std::map<int64_t, Graphs> graphs_;  // by the length of texts
  const Graphs* first_ = nullptr;
  /// Matrices of products, by their names: layers that may get adapters. The graphs compute with them.
  std::map<std::string, Linear*> layers_;
};

/// The file's network, and a linear layer of our own behind it where the head is new.
class OnnxNetwork : public Module {
 public:
  explicit OnnxNetwork(std::shared_ptr<OnnxFile> file) : file_(child("", std::move(file))) {}

  /// `averages`: the file gives features of each token of a text.
  void add_head(int64_t width, bool averages) {
    averages_ = averages;
    const Dim features = file_->features();
    head_ = &make<Linear>(find("head.weight") ? "new_head" : "head", features.size(), width);
  }

  Tensor forward_many(std::span<const Tensor> inputs) override {
    const Tensor y = (*file_)(inputs);
    if (!head_) return y;
    if (averages_) return (*head_)(mean_of_present(y, inputs.size() > 1 ? &inputs[1] : nullptr));
    return (*head_)(y.rank() == 4 ? mean(y, {2, 3}) : y);
  }

 private:
  std::shared_ptr<OnnxFile> file_;
  Linear* head_ = nullptr;
  bool averages_ = false;
};

/// What the file takes: its inputs, or the value that model.input_value names.
std::vector<InputSpec> file_inputs(const onnx::Model& model, const Settings& settings,
                                   const std::vector<Type>& given) {
  std::vector<InputSpec> inputs;
  if (const std::string& enter = settings.text("input_value"); !enter.empty()) {
    if (given.size() != 1)
      fail<InputError>("model.input_value is for an input of one tensor, and there are {}", given.size());
    return {{enter, given[0]}};
  }
  for (const onnx::ValueInfo& input : model.graph.inputs) {
    if (onnx::find_initialiser(model, input.name)) continue;
    const std::optional<DType> dtype = onnx::dtype_of(input.data_type);
    if (!dtype || input.form != onnx::ValueInfo::Form::tensor)
      fail<InputError>(
          "the file takes '{}', which is no tensor of numbers: model.input_value names a value behind that",
          input.name);
    InputSpec spec{input.name, {*dtype, {}}};
    for (size_t d = 0; d < input.shape.size(); ++d)
      spec.type.shape.push_back(d == 0                     ? Dim::named("batch")
                                : input.shape[d].size >= 0 ? Dim(input.shape[d].size)
                                                           : Dim::named(input.shape[d].name));
    inputs.push_back(std::move(spec));
  }
  return inputs;
}

/// What the model takes then, by the names that models of texts have for it.
std::vector<InputSpec> texts_given(const ModelOptions& options) {
  static constexpr std::array names = {"tokens", "segments"};
  std::vector<InputSpec> inputs;
  for (size_t i = 0; i < options.given.size(); ++i)
    inputs.push_back({names[i], options.given[i], 0, static_cast<double>(options.vocabulary)});
  return inputs;
}

/// What only the graph of the file tells: a tokenizer that is too large for it, and that it knows no padding.
void check_texts(const std::vector<InputSpec>& inputs, const std::vector<onnx::TextRole>& roles,
                 const ModelOptions& options, const OnnxFile& file, std::vector<std::string>& notes) {
  for (size_t i = 0; i < roles.size(); ++i)
    if (roles[i] == onnx::TextRole::tokens)
      onnx::check_vocabulary(file.evaluation().graph, inputs[i].name, options.vocabulary);
  if (options.given.size() > 1 && !contains(roles, onnx::TextRole::mask))
    notes.push_back(
        "it takes no mask: what pads a text is read as tokens of number 0, so the same text in a longer row "
        "may give another result");
}

std::string listed(const std::vector<Type>& types) {
  std::vector<std::string> texts;
  for (const Type& type : types) texts.push_back(type.str());
  return fmt::format("{}", fmt::join(texts, ", "));
}

/// Whether what a model is given are texts: tokens, and segments where they are padded.
bool are_texts(const ModelOptions& options) {
  if (options.given.empty() || options.input.rank() != 1) return false;
  return std::all_of(options.given.begin(), options.given.end(), [&](const Type& type) {
    return type.dtype == i64 && type.shape.rank() == 2 && type.shape[1] == options.input[0];
  });
}

/// What of texts each input of the file is, which gets their shapes.
TextRoles roles_for(std::vector<InputSpec>& inputs, const ModelOptions& options) {
  TextRoles roles = are_texts(options) ? onnx::text_roles(inputs) : std::nullopt;
  if (!roles) return roles;
  if (options.given.size() > 2)
    fail<InputError>(
        "rows of several texts are not for a model from a file, which would see them as one: "
        "input.sequences = \"padded\", \"buckets\" or \"windows\"");
  const int64_t length = options.input[0].size();
  for (InputSpec& input : inputs) {
    if (const Dim own = input.type.shape[1]; own.is_static() && own.size() != length)
      fail<InputError>(
          "it takes texts of {} tokens and no other number ('{}'): input.length = {}, input.sequences = "
          "\"padded\"",
          own.size(), input.name, own.size());
    input.type.shape = options.given[0].shape;
  }
  return roles;
}

/// What the file takes, in the shapes that it is given.
std::vector<InputSpec> inputs_for(std::vector<InputSpec> inputs, const onnx::Model& model,
                                  const Settings& settings, const std::vector<Type>& given) {
  if (given.empty()) return inputs;
  std::vector<Type> wanted;
  for (const InputSpec& input : inputs) wanted.push_back(input.type);
  bool fits = given.size() == inputs.size();
  // f64 are columns of a table as they are, which the file standardises.
  for (size_t i = 0; fits && i < inputs.size(); ++i) {
    const DType have = given[i].dtype, want = wanted[i].dtype;
    fits = given[i].shape.rank() == wanted[i].shape.rank() &&
           ((have.is_float() && want.is_float() && want != f64) || (have.is_int() && want.is_int()));
    inputs[i].type.shape = given[i].shape;
  }
  if (fits) return inputs;
  const std::string inner = onnx::prepared_input(model);
  fail<InputError>(
      "{} takes {} ('{}'), and is given {}{}", settings.text("onnx_file"), listed(wanted),
      inputs.empty() ? "" : inputs[0].name, listed(given),
      inner.empty() ? ""
                    : fmt::format(": if it prepares its input by itself, model.input_value = \"{}\" goes in "
                                  "behind that",
                                  inner));
}

/// The files that hold elements of its tensors.
std::vector<std::string> external_data(const std::string& file) {
  std::vector<std::string> files;
  const onnx::Model model = onnx::read_model(file);
  for (const onnx::TensorProto& tensor : model.graph.initialisers)
    if (const auto found = tensor.external.find("location"); found != tensor.external.end())
      if (std::find(files.begin(), files.end(), found->second) == files.end()) files.push_back(found->second);
  return files;
}

Model onnx_file(const std::string& kind, const Settings& settings, const ModelOptions& options) {
  const std::string& path = settings.text("onnx_file");
  if (path.empty())
    fail<InputError>("model.kind = \"onnx\" is a file: name it, as model.kind = \"model.onnx\"");
  const auto read_model = std::make_shared<const onnx::Model>(onnx::read_model(path));
  const onnx::Model& model = *read_model;
  Model made;
  made.kind = kind;
  std::vector<InputSpec> inputs = file_inputs(model, settings, options.given);
  const TextRoles texts = roles_for(inputs, options);
  if (!texts) inputs = inputs_for(std::move(inputs), model, settings, options.given);
  onnx::ImportOptions import;
  for (const InputSpec& input : inputs) import.inputs[input.name] = input.type;
  made.inputs = texts ? texts_given(options) : inputs;
  onnx::Learning& learning = import.learning.emplace();
  learning.enter = settings.text("input_value");
  const int64_t width = options.tokens ? options.vocabulary : options.classes;
  const bool named = !settings.text("output_value").empty();
  onnx::End end = named ? onnx::End{settings.text("output_value"), ""} : onnx::logits_of(model);
  const std::string& head = settings.text("head");
  const auto read = [&] {
    learning.outputs = {end.value};
    const onnx::Trainable trainable = onnx::trainable(model, import);
    return std::make_shared<OnnxFile>(read_model, import, trainable, texts);
  };
  try {
    std::shared_ptr<OnnxFile> file = read();
    const auto rank = [&] { return file->result().shape.rank(); };
    const bool fits = rank() == (options.tokens ? 3 : 2) && file->result().shape.back() == width;
    const bool fresh = width > 0 && (head == "replace" || (head == "auto" && !fits));
    const auto of_tokens = [&] { return texts && !options.tokens && rank() == 3; };
    if (fresh && !named && !of_tokens()) {
      end = onnx::features_of(model, end.value);
      file = read();
    }
    const bool ranked = rank() == (options.tokens ? 3 : 2) || (rank() == 4 && !options.tokens) || of_tokens();
    if (fresh && (!ranked || !file->features().is_static()))
      fail<InputError>(
          "a new head stands behind [batch, {}], and '{}' is {}: model.output_value names another value",
          options.tokens ? "length, features" : "features", end.value, file->result().str());
    if (file->parameters().empty() && !fresh)
      fail<InputError>("none of its initialisers is a weight: there is nothing to train");
    if (texts) check_texts(inputs, *texts, options, *file, made.notes);
    auto network = std::make_shared<OnnxNetwork>(file);
    if (fresh) network->add_head(width, of_tokens());
    size_t tensors = file->parameters().size();
    made.notes.push_back(
        fmt::format("{}: {} parameters in {} tensors, {} batch norms{}", path, file->parameter_count(),
                    tensors, file->norms(),
                    fresh ? fmt::format("; the head behind {}'{}' is new",
                                        of_tokens() ? "the mean over tokens of " : "", end.value)
                          : ""));
    if (!end.note.empty() && !fresh) made.notes.push_back(end.note);
    if (file->fixed_norms() > 0)
      made.notes.push_back(
          fmt::format("{} batch norms have statistics that the file computes: they stay as they are",
                      file->fixed_norms()));
    if (onnx::batch_norms_folded(model))
      made.notes.push_back(
          "it has convolutions with biases and no batch norms: if the export folded these in, it trains "
          "without, and learns worse than a file that has them (docs/onnx.md says how to export one)");
    made.module = std::move(network);
  } catch (const InputError& error) {
    fail<InputError>("{}: {}", path, error.what());
  }
  return made;
}

}  // namespace

MILLRACE_ARCHITECTURE(onnx){
    .name = "onnx",
    .doc = "an ONNX file, named as the kind itself (\"model.onnx\"), that goes on being trained",
    .takes = "",
    .settings =
        {{.name = "onnx_file", .doc = "the .onnx file", .usual = std::string(), .path = true},
         {"input_value",
          "a value of the file that what it is given stands for, where it would prepare its input by "
          "itself; empty: its inputs",
          std::string()},
         {"output_value",
          "a value of the file that it ends with; empty: its first output, without a softmax at the "
          "end, or in front of a head that is new",
          std::string()},
         {.name = "head",
          .doc =
              "the file's last product: \"keep\" it, \"replace\" it by a new one, or \"auto\": keep it where "
              "it gives as many numbers as are wanted",
          .usual = std::string("auto"),
          .choices = {"auto", "keep", "replace"}}},
    .ending = ".onnx",
    .file = "onnx_file",
    .beside = external_data,
    .make = onnx_file,
};

}  // namespace millrace::nn::models
