// Layers and architectures. A module owns named parameters and buffers and maps tensors to tensors.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <millrace/settings.h>
#include <millrace/tensor.h>

namespace millrace::nn {

/// Fills an f32 parameter. Random numbers are keyed by seed and the parameter's full name, so that the same
/// seed gives the same weights whatever else the model has.
using Initialiser = std::function<void(Array& parameter, uint64_t seed, const std::string& name)>;

/// Initialisers. fan_in of [out, in, …] is in × window; fan_out is out × window.
namespace init {
Initialiser constant(double value);
Initialiser uniform(double low, double high);
Initialiser normal(double mean, double deviation);
/// Normal, drawn again outside ±2 deviations.
Initialiser trunc_normal(double deviation);
/// U(±sqrt(6 / ((1 + a²) · fan_in))) and N(0, 2 / ((1 + a²) · fan_in)) (He et al., arXiv 1502.01852);
/// PyTorch's Linear and Conv2d use a = sqrt(5).
Initialiser kaiming_uniform(double a = 0);
Initialiser kaiming_normal(double a = 0);
/// U(±gain·sqrt(6 / (fan_in + fan_out))), N(0, gain²·2 / (fan_in + fan_out)) (Glorot and Bengio, 2010).
Initialiser xavier_uniform(double gain = 1);
Initialiser xavier_normal(double gain = 1);
/// Identity for convolutions: input channel i passes to output channel i; other output channels are as `rest`
/// has them.
Initialiser dirac(Initialiser rest = {});
/// Orthonormal rows or columns (Saxe et al., arXiv 1312.6120), times gain.
Initialiser orthogonal(double gain = 1);
/// Fixed values.
Initialiser values(Array array);
}  // namespace init

/// A parameter or buffer of a module under its full name ("layers.0.conv1.weight").
struct Named {
  std::string name;
  Tensor* tensor;
  bool trainable;  // of parameters: false when frozen
};

/// Base of layers. Modules are held by shared_ptr and not copied. Names equal those of PyTorch's state_dict
/// for the same structure.
class Module {
 public:
  Module() = default;
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;
  virtual ~Module() = default;

  /// Runs the module under its name (messages and graphs show it).
  Tensor operator()(const Tensor& x);
  Tensor operator()(std::span<const Tensor> inputs);

  /// One input. Override this, or forward_many for several.
  virtual Tensor forward(const Tensor& x);
  virtual Tensor forward_many(std::span<const Tensor> inputs);

  /// In order of registration, depth first.
  std::vector<Named> parameters();
  std::vector<Named> buffers();
  /// The parameter or buffer of that full name, or null.
  Tensor* find(const std::string& name);
  int64_t parameter_count();

  /// Draws every parameter and resets every buffer.
  void initialise(uint64_t seed);
  /// Training mode (batch statistics, dropout) or evaluation mode, for all children too.
  void train(bool on = true);
  void eval() { train(false); }
  bool training() const { return training_; }
  /// Stores the parameters (not the buffers) as f32 or bf16; values are rounded to the nearest. bf16 halves
  /// their memory: training and evaluation steps and exports read them as f32, and training rounds its
  /// updates stochastically. A call of the model outside of those wants f32.
  void store_parameters(DType dtype);
  /// Freezes (or thaws) the parameters whose full name satisfies `which`.
  void set_trainable(const std::function<bool(const std::string&)>& which, bool trainable);

  const std::string& name() const { return name_; }
  /// Itself and all modules in it under their full names, outer ones first.
  std::vector<std::pair<std::string, Module*>> modules();

 protected:
  // InputError when a name is used twice within a module, or a child with parameters is registered twice.

  /// Registers a parameter; it has a type but no value until initialise() or a load.
  Tensor& parameter(const std::string& name, const Shape& shape, Initialiser initialiser,
                    bool trainable = true);
  /// Registers a buffer, which training does not change by gradients; forward() may assign a new value in
  /// training mode.
  Tensor& buffer(const std::string& name, Array initial);
  /// Registers a child; "" adds nothing to the names of its parameters.
  template <typename M>
  std::shared_ptr<M> child(const std::string& name, std::shared_ptr<M> module) {
    adopt(name, module);
    return module;
  }
  /// Makes and registers a child.
  template <typename M, typename... Args>
  M& make(const std::string& name, Args&&... args) {
    return *child(name, std::make_shared<M>(std::forward<Args>(args)...));
  }
  /// Takes a child out; it keeps its values.
  void remove_child(const std::string& name);

 private:
  struct Entry {
    std::string name;
    Tensor tensor;
    Initialiser initialiser;  // of parameters
    Array initial;            // of buffers
    bool trainable = false;
  };
  void adopt(const std::string& name, std::shared_ptr<Module> module);
  void check_new(const std::string& name) const;
  void visit(const std::string& prefix, const std::function<void(const std::string&, Entry&)>& f);

  std::string name_;
  bool training_ = true;
  bool in_default_ = false;    // inside forward_many() as it stands here
  std::deque<Entry> entries_;  // stable addresses
  std::vector<std::shared_ptr<Module>> children_;
};

/// A low-rank adapter (LoRA, Hu et al., arXiv 2106.09685): x·Aᵀ·Bᵀ · alpha / rank, parameters a [rank, in]
/// and b [out, rank], which begins as 0.
class Adapter : public Module {
 public:
  Adapter(int64_t in, int64_t out, int64_t rank, double alpha);
  Tensor forward(const Tensor& x) override;
  /// B·A · alpha / rank: what it adds to a weight.
  Tensor added() const;
  /// weight + B·A · alpha / rank, as f32.
  Array merged(const Array& weight);

 private:
  Tensor &a_, &b_;
  double scale_;
};

/// y = x·Wᵀ + b over the last dimension, and what an adapter adds to that.
class Linear : public Module {
 public:
  /// Weights begin as `init` has them, else as PyTorch's.
  Linear(int64_t in, int64_t out, bool bias = true, Initialiser init = {});
  Tensor forward(const Tensor& x) override;
  /// Registers an adapter, the child "lora"; null takes it away. InputError for a rank that is not below both
  /// sizes (it would be no saving).
  void adapt(int64_t rank, double alpha);
  void adapt(std::shared_ptr<Adapter> adapter);
  const std::shared_ptr<Adapter>& adapter() const { return adapter_; }
  Tensor& weight;
  Tensor* bias = nullptr;

 private:
  std::shared_ptr<Adapter> adapter_;
};

/// While it lives, what adapters add is in the weights, and a model has the parameters that it has without
/// them: to be exported. At its end all is as it was.
class MergedAdapters {
 public:
  explicit MergedAdapters(Module& model);
  ~MergedAdapters();
  MergedAdapters(const MergedAdapters&) = delete;

 private:
  struct Kept {
    Linear* layer;
    std::shared_ptr<Adapter> adapter;
    Tensor weight;
  };
  std::vector<Kept> kept_;
};

struct ConvOptions {
  int64_t stride = 1, padding = 0, dilation = 1, groups = 1;
  bool bias = true;
  Initialiser init = {}, bias_init = {};  // PyTorch's default when empty
};

/// 2-D convolution of [N, C, H, W] with square kernels.
class Conv2d : public Module {
 public:
  Conv2d(int64_t in, int64_t out, int64_t kernel, const ConvOptions& options = {});
  Tensor forward(const Tensor& x) override;
  Tensor& weight;
  Tensor* bias = nullptr;

 private:
  Conv2dOptions options_;
};

struct BatchNormOptions {
  double epsilon = 1e-5, momentum = 0.1;
  bool train_weight = true;  // false: the scale stays 1
};

/// Normalises each channel (dimension 1) of [N, C] or [N, C, H, W] over the batch in training, by the running
/// statistics in evaluation (Ioffe and Szegedy, arXiv 1502.03167). running = (1 − momentum)·running +
/// momentum·batch, the variance unbiased, as PyTorch does.
class BatchNorm : public Module {
 public:
  explicit BatchNorm(int64_t channels, const BatchNormOptions& options = {});
  Tensor forward(const Tensor& x) override;
  Tensor& weight;
  Tensor& bias;
  Tensor& running_mean;
  Tensor& running_var;
  Tensor& num_batches_tracked;

 private:
  BatchNormOptions options_;
};
using BatchNorm1d = BatchNorm;
using BatchNorm2d = BatchNorm;

/// Over the last dimension.
class LayerNorm : public Module {
 public:
  explicit LayerNorm(int64_t width, double epsilon = 1e-5);
  Tensor forward(const Tensor& x) override;
  Tensor& weight;
  Tensor& bias;

 private:
  double epsilon_;
};

class RMSNorm : public Module {
 public:
  explicit RMSNorm(int64_t width, double epsilon = 1e-6);
  Tensor forward(const Tensor& x) override;
  Tensor& weight;

 private:
  double epsilon_;
};

/// Rows of a table by i64 positions.
class Embedding : public Module {
 public:
  Embedding(int64_t rows, int64_t width);
  Tensor forward(const Tensor& indices) override;
  Tensor& weight;
};

/// Self-attention of [N, length, width] with one projection to q, k and v (children qkv and proj). Of grouped
/// heads, heads / shared_heads neighbours of q share one head of k and v.
class MultiheadAttention : public Module {
 public:
  /// `shared_heads` divides `heads`; 0: as many. Throws InputError.
  MultiheadAttention(int64_t width, int64_t heads, bool causal = false, int64_t shared_heads = 0);
  Tensor forward(const Tensor& x) override;

 private:
  int64_t heads_, shared_heads_;
  bool causal_;
  Linear& qkv_;
  Linear& proj_;
};
/// The attention of MultiheadAttention between its projections: qkv [N, length, (heads + 2·shared_heads)·w],
/// q's heads first, then k's and v's → [N, length, heads·w]. `shared_heads` 0: as many as heads. `mask` as in
/// attention(), [N, 1, 1, length] for padding. Throws TypeError.
Tensor self_attention(const Tensor& qkv, int64_t heads, bool causal, int64_t shared_heads = 0,
                      const Tensor& mask = {});

struct RecurrentOptions {
  int64_t layers = 1;  // each reads the outputs of the one before
  bool bias = true;
  bool batch_first = false;  // sequences are [N, length, width] instead of [length, N, width]
  bool bidirectional = false;
  double dropout = 0;  // of the outputs between two layers, in training
};

/// What LSTM and GRU share: layers of cells over a sequence, each one loop (`scan`) of the graph. Parameters
/// as PyTorch names and draws them: weight_ih_l0, weight_hh_l0, bias_ih_l0, bias_hh_l0, weight_ih_l0_reverse
/// …, from U(±1 / sqrt(hidden)).
class Recurrent : public Module {
 public:
  struct Result {
    Tensor output;  // [length, N, hidden], or [N, length, hidden]; twice as wide in both directions
    std::vector<Tensor> state;  // after the last step, each [layers · directions, N, hidden]
  };
  /// x: f32 [length, N, in], or [N, length, in] (batch_first). `state`: as in Result, zeros when empty.
  /// `lengths`: i64 [N], of sequences that are padded behind so many steps: what is padded changes nothing,
  /// its outputs are 0, and the state is the one after the last real step (PyTorch's packed sequences).
  Result run(const Tensor& x, std::span<const Tensor> state = {}, const Tensor& lengths = {});
  /// The outputs of run().
  Tensor forward(const Tensor& x) override;

 protected:
  struct Weights {
    Tensor *input = nullptr, *hidden = nullptr;            // [gates · hidden, in], [gates · hidden, hidden]
    Tensor *input_bias = nullptr, *hidden_bias = nullptr;  // [gates · hidden], or null
  };
  Recurrent(int64_t in, int64_t hidden, int64_t gates, int64_t states, const RecurrentOptions& options);
  /// One step: x [N, in] and each state [N, hidden] to the next state; the first is the output.
  virtual std::vector<Tensor> cell(const Tensor& x, std::span<const Tensor> state,
                                   const Weights& weights) const = 0;
  /// Gate number `index` of [N, gates · hidden].
  Tensor gate(const Tensor& gates, int64_t index) const;

 private:
  int64_t in_, hidden_;
  size_t states_;
  RecurrentOptions options_;
  std::vector<Weights> weights_;  // layer by layer, forward then reverse
};

/// Long short-term memory (Hochreiter and Schmidhuber, 1997) with forget gate; gates in the order i, f, g, o.
/// State: h, c.
class LSTM : public Recurrent {
 public:
  LSTM(int64_t in, int64_t hidden, const RecurrentOptions& options = {});

 protected:
  std::vector<Tensor> cell(const Tensor& x, std::span<const Tensor> state,
                           const Weights& weights) const override;
};

/// Gated recurrent unit (Cho et al., arXiv 1406.1078) in PyTorch's form; gates in the order r, z, n. State:
/// h.
class GRU : public Recurrent {
 public:
  GRU(int64_t in, int64_t hidden, const RecurrentOptions& options = {});

 protected:
  std::vector<Tensor> cell(const Tensor& x, std::span<const Tensor> state,
                           const Weights& weights) const override;
};

/// Zeroes elements with probability p while training.
class Dropout : public Module {
 public:
  explicit Dropout(double p);
  Tensor forward(const Tensor& x) override;

 private:
  double p_;
};

/// A layer without parameters.
class Function : public Module {
 public:
  explicit Function(std::function<Tensor(const Tensor&)> f);
  Tensor forward(const Tensor& x) override { return f_(x); }

 private:
  std::function<Tensor(const Tensor&)> f_;
};
std::shared_ptr<Module> relu();
std::shared_ptr<Module> relu6();
std::shared_ptr<Module> gelu();
std::shared_ptr<Module> silu();
std::shared_ptr<Module> sigmoid();
std::shared_ptr<Module> tanh();
std::shared_ptr<Module> softmax(int axis = -1);
/// Windows of `kernel` with a step of `stride` (0: the kernel).
std::shared_ptr<Module> max_pool2d(int64_t kernel, int64_t stride = 0, int64_t padding = 0);
std::shared_ptr<Module> avg_pool2d(int64_t kernel, int64_t stride = 0, int64_t padding = 0);
/// [N, C, H, W] → [N, C], the mean.
std::shared_ptr<Module> global_avg_pool();
std::shared_ptr<Module> flatten();

/// Pictures [N, C, H, W] of u8 (or f32) to f32: (x / 255 − mean) / deviation a channel; part of the graph, so
/// that training, evaluation, serving and export share it. Mean and deviation are constants of the graph.
class Normalise : public Module {
 public:
  Normalise(const std::vector<double>& mean, const std::vector<double>& deviation);
  Tensor forward(const Tensor& x) override;

 private:
  Tensor scale_, shift_;
};

/// One layer after the other: children "0", "1", … by their places, or of names of their own.
class Sequential : public Module {
 public:
  explicit Sequential(std::vector<std::shared_ptr<Module>> layers = {});
  Tensor forward(const Tensor& x) override;
  void append(std::shared_ptr<Module> layer);
  /// "" adds nothing to the names of its parameters.
  void append(const std::string& name, std::shared_ptr<Module> layer);
  size_t size() const { return layers_.size(); }

 private:
  std::vector<std::shared_ptr<Module>> layers_;
};

/// Of the children of a Residual.
struct ResidualNames {
  std::string body = "body", shortcut = "shortcut";
};

/// x + body(x), or shortcut(x) + body(x); then an activation, where one is given.
class Residual : public Module {
 public:
  explicit Residual(std::shared_ptr<Module> body, std::shared_ptr<Module> shortcut = {},
                    std::shared_ptr<Module> activation = {}, const ResidualNames& names = {});
  Tensor forward(const Tensor& x) override;

 private:
  std::shared_ptr<Module> body_, shortcut_, activation_;
};

/// What the inputs of a model are; the first dimension is the named one `batch`.
struct InputSpec {
  std::string name;
  Type type;
  double low = 0, high = 1;  // benchmarks draw integers in [low, high)
};

/// How a model's output is judged by default.
enum class Task { classes, tokens, binary };

/// A model with what it takes.
struct Model {
  std::string kind;
  std::shared_ptr<Module> module;
  std::vector<InputSpec> inputs;
  Task task = Task::classes;
  /// Sets what comes from data (empty: nothing does): to be called once, after initialise(), with some
  /// thousand training samples as the model's input has them.
  std::function<void(const Array& samples)> fit = {};
  /// Lines for who trains it: what an architecture that comes from a file made of it.
  std::vector<std::string> notes = {};
};

struct ModelOptions {
  /// Outputs: classes, or numbers that are predicted; 0: the architecture's usual number.
  int64_t classes = 0;
  Shape input = {};          // one sample, e.g. [3, 32, 32]; empty: the architecture's usual one
  int64_t vocabulary = 256;  // of models of texts
  /// Of those and "table", as far as they have them; others have sizes of their own. 0: as usual (128, 4, 4).
  int64_t width = 0, depth = 0, heads = 0;
  double dropout = 0;
  bool tokens = false;  // "encoder" gives logits of tokens at each place instead of classes
  /// Of models of tables: how many columns of numbers, and of each column of categories how many ids. "table"
  /// takes numbers f32 [batch, numbers], where there are any, then ids i64 [batch, ids.size()], where there
  /// are any.
  int64_t numbers = 0;
  std::vector<int64_t> ids = {};
  /// What its inputs will be, where that is known: for architectures that come from files.
  std::vector<Type> given = {};
};

/// Built-in architectures by name ("resnet18", …). InputError names the nearest for an unknown name.
Model make_model(const std::string& kind, const ModelOptions& options = {});
std::vector<std::string> model_kinds();

/// A Sequential from lines such as "conv 32 3", "batch-norm", "relu", "max-pool 2", "flatten", "linear 10",
/// for one sample of shape `input`. InputError says which line is wrong and why.
Model make_layers(const std::vector<std::string>& lines, const Shape& input, DType dtype = f32);
/// The names that make_layers knows, with their arguments.
std::vector<std::string> layer_kinds();

/// A layer that make_layers() knows by name.
struct LayerKind {
  std::string name;
  std::string doc = {};
  /// What stands behind the name. Those in CAPITALS are words that must be there, in their order: numbers, a
  /// text, or last a list of texts, which takes all that are left. Of others true or false is the name or
  /// nothing, and numbers are name=number, at any place: CHANNELS, KERNEL and stride as "conv 32 3 stride=2".
  std::vector<Setting> settings = {};
  /// `x` is a symbol of the layer's input. InputError and TypeError get the line in front.
  std::shared_ptr<Module> (*make)(const Settings& settings, const Tensor& x) = nullptr;
};
/// Adds a layer to those of the library: lines name it. InputError when its name is taken or no word, or
/// `doc` or `make` is missing.
const LayerKind& register_layer(const LayerKind& kind);

/// The model with Normalise in front of it: takes pictures as u8. Names of parameters stay.
Model normalised(Model model, const std::vector<double>& mean, const std::vector<double>& deviation);

/// The type of a module's result in evaluation mode; nothing is computed and the module stays as it is.
Type output_type(Module& module, std::span<const Type> inputs);

/// Scalar mean loss of a task with the targets that the benchmarks use (classes: i64 [N], tokens: i64 [N,
/// length], binary: f32 [N]).
Tensor task_loss(Task task, const Tensor& output, const Tensor& target);

}  // namespace millrace::nn
