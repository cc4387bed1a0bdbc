// Optimisers, learning-rate schedules, and training steps compiled whole: forward, backward, clipping,
// update, metrics.
#pragma once

#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <millrace/graph.h>
#include <millrace/nn.h>
#include <millrace/program.h>
#include <millrace/schedule.h>
#include <millrace/tensor.h>

namespace millrace::optim {

/// Parameters treated differently: the first group that `applies` counts.
struct Group {
  std::function<bool(const std::string& name, const Type& type)> applies;
  double lr_scale = 1;
  std::optional<double> weight_decay = {};
};

/// What all optimisers share.
struct Options {
  double weight_decay = 0;
  /// Gradients are limited to ±clip_value each, then to a total norm of clip_norm (0: no limit).
  double clip_value = 0, clip_norm = 0;
  std::vector<Group> groups = {};
  /// Tables of which a batch reads some rows (embeddings): only those rows are updated. What momentum,
  /// averages and weight decay would do to the others is left out, not made up for later; which is why it is
  /// not the default. (SGD without momentum and Adagrad, both without weight decay, do nothing to them and
  /// never touch them.)
  bool lazy = false;
};

/// One parameter's update under construction.
struct Update {
  Graph& graph;
  Value parameter, gradient;
  Value lr;  // scalar
  double weight_decay;
  std::vector<Value> scalars;  // Optimizer::scalars, as scalars of the graph
  std::vector<Value> state;    // the parameter's state arrays; update() replaces them with the new ones
  std::string name = {};       // the parameter's
};

/// An array that an optimiser keeps for a parameter.
struct StateArray {
  std::string name;
  Type type;
};

/// A rule that changes parameters by gradients. All arithmetic is in f32. Where parameters are stored as bf16
/// (nn::Module::store_parameters) so is their state; both are read as f32, and the new ones are rounded
/// stochastically by random numbers of the step's key.
class Optimizer {
 public:
  /// InputError for a negative or infinite decay, a negative limit, or a group without a rule.
  explicit Optimizer(Options common);
  virtual ~Optimizer() = default;
  /// Names of the arrays kept for each parameter, of its type, zero at first.
  virtual std::vector<std::string> state_names() const { return {}; }
  /// The arrays kept for one parameter, where they are not state_names() of its type.
  virtual std::vector<StateArray> state_of(const std::string& name, const Type& type) const;
  /// Numbers that only depend on the step (1, 2 …), computed on the host.
  virtual std::vector<double> scalars(int64_t /*step*/) const { return {}; }
  /// Appends the update, element by element; returns the new parameter. Parameter, gradient and state may be
  /// some rows of a table.
  virtual Value update(Update& update) const = 0;
  /// Whether rows without a gradient may be left out.
  virtual bool rows_suffice(double /*weight_decay*/) const { return options.lazy; }
  /// > 0: a step's gradients are those at the parameters plus so much of the gradient's direction (sam()).
  virtual double ascent() const { return 0; }

  const Options options;
};

/// Stochastic gradient descent; weight decay is added to the gradient (L2), momentum and Nesterov's form as
/// PyTorch (Sutskever et al., 2013, without dampening).
struct SgdOptions {
  double momentum = 0;
  bool nesterov = false;
  Options common = {};
};
std::shared_ptr<const Optimizer> sgd(const SgdOptions& options = {});

struct AdagradOptions {
  double epsilon = 1e-10;
  Options common = {};
};
/// Duchi, Hazan and Singer, 2011; weight decay is added to the gradient.
std::shared_ptr<const Optimizer> adagrad(const AdagradOptions& options = {});

struct AdamOptions {
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  Options common = {};
};
/// Kingma and Ba, arXiv 1412.6980; weight decay is added to the gradient.
std::shared_ptr<const Optimizer> adam(const AdamOptions& options = {});
/// Loshchilov and Hutter, arXiv 1711.05101: weight decay is decoupled (p −= lr·decay·p).
std::shared_ptr<const Optimizer> adamw(const AdamOptions& options = {});

struct RmspropOptions {
  double alpha = 0.99, epsilon = 1e-8, momentum = 0;
  bool centred = false;  // the second moment less the square of the first
  Options common = {};
};
/// Tieleman and Hinton, 2012; centred as Graves, arXiv 1308.0850; momentum and decay as PyTorch.
std::shared_ptr<const Optimizer> rmsprop(const RmspropOptions& options = {});

struct NadamOptions {
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8, momentum_decay = 4e-3;
  bool decoupled = false;  // weight decay, as AdamW has it; else it is added to the gradient
  Options common = {};
};
/// Dozat, 2016, with the momentum schedule that PyTorch takes from it.
std::shared_ptr<const Optimizer> nadam(const NadamOptions& options = {});

struct RadamOptions {
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  bool decoupled = false;
  Options common = {};
};
/// Liu et al., arXiv 1908.03265: without the second moment until its variance can be told.
std::shared_ptr<const Optimizer> radam(const RadamOptions& options = {});

struct LionOptions {
  double beta1 = 0.9, beta2 = 0.99;
  Options common = {};
};
/// Chen et al., arXiv 2302.06675: the sign of a momentum; weight decay is decoupled.
std::shared_ptr<const Optimizer> lion(const LionOptions& options = {});

struct LambOptions {
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-6;
  Options common = {};
};
/// You et al., arXiv 1904.00962: AdamW's step of each parameter made as long as the parameter itself (where
/// one of both is 0: as it is).
std::shared_ptr<const Optimizer> lamb(const LambOptions& options = {});

struct AdafactorOptions {
  double beta2_decay = -0.8, epsilon = 1e-3, clip = 1;
  Options common = {};
};
/// Shazeer and Stern, arXiv 1804.04235, as PyTorch: of the second moment of a matrix (of more dimensions:
/// with all but the first one joined) only the means of rows and columns are kept, in f32. lr is relative to
/// the size of the parameter, at least `epsilon`, and at most 1 / sqrt(step); updates of a root mean square
/// above `clip` are scaled down to it.
std::shared_ptr<const Optimizer> adafactor(const AdafactorOptions& options = {});

struct MuonOptions {
  double momentum = 0.95;
  bool nesterov = true;
  int64_t iterations = 5;
  /// Updates are times 0.2·sqrt(max(rows, columns)), which makes them as large as AdamW's (arXiv 2502.16982);
  /// false: times sqrt(max(1, rows / columns)), Jordan's own.
  bool match_adamw = true;
  /// Of what AdamW updates: parameters of less than two dimensions, and those that this is true for.
  double beta1 = 0.9, beta2 = 0.95, epsilon = 1e-8;
  std::function<bool(const std::string& name)> by_adamw = {};
  Options common = {};
};
/// Jordan et al., 2024: the momentum of a matrix (of more dimensions: with all but the first one joined),
/// made nearly orthogonal by Newton and Schulz's iteration; weight decay is decoupled.
std::shared_ptr<const Optimizer> muon(const MuonOptions& options = {});

/// Foret et al., arXiv 2010.01412: `base` with the gradients at parameters + rho · gradient / norm of all
/// gradients. Loss, metrics and buffers are those at the parameters; both passes draw the same random
/// numbers.
std::shared_ptr<const Optimizer> sam(std::shared_ptr<const Optimizer> base, double rho = 0.05);

/// A named input of a step.
struct TensorSpec {
  std::string name;
  Type type;
};

/// A named output tensor.
using NamedTensor = std::pair<std::string, Tensor>;
using NamedArray = std::pair<std::string, Array>;

/// What a training function returns: the scalar loss, and scalars to report.
struct StepResult {
  Tensor loss;
  std::vector<NamedTensor> metrics = {};
};
using StepFunction = std::function<StepResult(nn::Module& model, std::span<const Tensor> inputs)>;

/// Dynamic loss scaling (Micikevicius et al., arXiv 1710.03740), which precision "fp16" trains with: the loss
/// is multiplied before the backward pass, so that small gradients do not vanish in f16, and gradients are
/// divided before they are clipped. A step with a gradient that is not finite is skipped and halves the
/// scale; it doubles after `growth_steps` steps without one.
struct LossScaling {
  double initial = 65536;
  int64_t growth_steps = 2000;
};

class TrainStep;

struct TrainOptions {
  uint64_t seed = 0;  // of random operators (dropout)
  /// Target, precision, recorded choices …; donations and bindings are set by the step. With precision
  /// "bf16-pure" the step stores the model's parameters as bf16 (nn::Module::store_parameters), and its own
  /// state too.
  CompileOptions compile = {};
  LossScaling loss_scaling = {};  // of precision "fp16"
  /// The batch is worked off in so many equal parts, one after the other, within the one program: gradients
  /// are summed for one update, and activations need the memory of one part. Data inputs whose first
  /// dimension is the batch (that of the first input) are cut along it, others are handed whole to each part.
  /// Loss and metrics are the means over the parts; the loss must be a mean over its items for the update to
  /// be the whole batch's. Batch norm's statistics are each part's, the running ones go from part to part;
  /// each part draws random numbers of its own.
  int64_t accumulate = 1;
  /// Decay of a moving average of parameters and f32 buffers, which is part of the step's state: "ema.NAME",
  /// in f32, without the weight of what they began with. 0: none.
  double ema = 0;
  /// Leaves out the update of a step whose loss is above set_loss_limit() or whose gradients are not finite,
  /// within the step's graph; their norm is then a metric, "grad_norm". Updates wait for all gradients.
  bool guard = false;
  /// TrainStep::norms() are there: sums that the updates' own kernels make on the way.
  bool norms = false;
  /// A step of the same model, optimiser and precision whose state this one shares: for batches of other
  /// sizes. Which of them runs may change with every step; set_step() takes the count over.
  const TrainStep* share = nullptr;
};

/// What a training step may have beside the update.
struct StepExtras {
  bool averages = false;  // TrainOptions::ema
  bool guard = false, norms = false;
};

/// The graph of a training step. Inputs: data, learning rates (one a group, the default group last), the
/// optimiser's scalars (then, with a guard, the loss limit; with an average, its weight of the new), the
/// random key i64[2] (seed, step), then parameters, buffers and optimiser state. Outputs: loss, metrics, then
/// what replaces parameters, buffers and state (donations), then the squares of norms.
struct TrainGraph {
  Graph graph;
  std::map<int, int> donations;
  std::vector<std::string> parameters, buffers, state;  // names of those inputs
  std::vector<std::string> metrics;
  int data_inputs = 0, lr_inputs = 0, scalar_inputs = 0;
  bool averages = false;  // the last of the scalars is the weight of the new in them
  bool guard = false;
  /// Of these trainable parameters the last outputs are sums of squares, three each: of the gradient before
  /// clipping, of the parameter before the update, of the update.
  std::vector<std::string> normed;
  /// With loss scaling: the first state inputs are "loss_scale" (f32), "good_steps" since it changed and
  /// "skipped_steps" (i64), and the last metric is the "loss_scale" that the step was made with.
  bool scales_loss = false;
  int key_input() const { return data_inputs + lr_inputs + scalar_inputs; }
  int first_parameter() const { return key_input() + 1; }
  int first_buffer() const { return first_parameter() + static_cast<int>(parameters.size()); }
  int first_state() const { return first_buffer() + static_cast<int>(buffers.size()); }
};

/// Records `function` on symbols, in training mode, and appends gradients and updates. An update that would
/// come from a loss (or, with clip_norm, a gradient norm) that is not finite is not made. With `scaling` the
/// loss is scaled; `parts` is TrainOptions::accumulate. Throws TypeError when the loss is no scalar or a
/// shape is not static, InputError for a scaling that cannot be and for a batch that cannot be divided into
/// equal parts.
TrainGraph build_train_graph(nn::Module& model, const std::vector<TensorSpec>& inputs,
                             const StepFunction& function, const Optimizer& optimizer,
                             const LossScaling* scaling = nullptr, int64_t parts = 1,
                             const StepExtras& extras = {});

/// Euclidean norms of one parameter in a step. Of an embedding whose rows are updated alone: of those rows.
struct ParameterNorms {
  std::string name;
  double gradient = 0;  // before clipping
  double weight = 0;    // before the update
  double update = 0;    // of what it was changed by
};

/// A compiled training step. It shares memory with the model's parameters and buffers, which are updated in
/// place.
class TrainStep {
 public:
  TrainStep(std::shared_ptr<nn::Module> model, const std::vector<TensorSpec>& inputs,
            const StepFunction& function, std::shared_ptr<const Optimizer> optimizer,
            const TrainOptions& options = {});

  int input_count() const { return made_.data_inputs; }
  /// The memory of a data input, to be filled before run().
  Array& input(int i) { return program_.input(i); }
  /// Uses the caller's memory for a data input, without a copy.
  void bind_input(int i, Array array) { program_.bind_input(i, std::move(array)); }

  /// One step with this learning rate (times each group's scale). InputError when it is not finite.
  void run(double lr);
  /// One step with a learning rate for each group, the default group last.
  void run(std::span<const double> lrs);
  /// One step, compared with the same step on the reference back end (slow: for finding defects of the
  /// compiler). Empty when they agree; else the output that differs most by what rounding explains, and the
  /// first operation whose result differs. Of parameters, buffers and optimiser state the changes are
  /// compared, each by its own size. What rounding explains is measured, by steps of the reference whose
  /// products are a little off.
  std::string run_verified(double lr);
  double loss() const;
  std::vector<std::pair<std::string, double>> metrics() const;

  /// Steps done, and those of them whose update was not made (left_out(); loss scaling counts its own in the
  /// state); set when resuming. Optimisers that count go by updates.
  int64_t step() const { return step_; }
  int64_t left_out() const { return left_out_; }
  void set_step(int64_t step, int64_t left_out = 0);
  /// Steps that changed the parameters.
  int64_t updates() const;
  /// With a guard: a loss above it makes no update. Infinite at first.
  void set_loss_limit(double limit) { loss_limit_ = limit; }
  /// Of the last run's parameters that train, with TrainOptions::norms; else empty.
  std::vector<ParameterNorms> norms() const;
  bool scales_loss() const { return made_.scales_loss; }
  /// Optimiser state by name ("exp_avg.layers.0.weight"); the memory is the step's own and may be written.
  std::vector<NamedArray> state() const;

  /// Whether the last run's loss, and the norm of its gradients where Options::clip_norm or a guard asked for
  /// it, were finite, and the loss within its limit; when they were not, parameters, buffers and optimiser
  /// state stayed as they were. With loss scaling gradients are only at fault when they are not finite even
  /// at a scale of 2^-14: a skipped step is sound.
  bool sound() const;
  /// After a run that was not sound: the first input, parameter or operation, of the forward pass or else of
  /// the backward pass, whose values are not finite, with its layer; empty when all are finite. Uses the
  /// inputs of the last run.
  std::string find_non_finite() const;

  const Graph& graph() const { return made_.graph; }
  Program& program() { return program_; }
  const Program& program() const { return program_; }

 private:
  void bind_model();
  /// Runs the program and counts.
  void run_program();
  /// Was the last update made, as far as loss and norm say?
  bool within_limits() const;
  std::vector<double> group_rates(double lr) const;
  /// Sets every input of the program for a step.
  void prepare(std::span<const double> lrs);
  /// Of the chosen nodes, described; empty when all are finite.
  std::string first_non_finite(const std::vector<char>& needed) const;

  std::shared_ptr<nn::Module> model_;
  std::shared_ptr<const Optimizer> optimizer_;
  TrainOptions options_;
  TrainGraph made_;
  std::vector<Array> state_;
  Program program_;
  std::vector<nn::Named> tensors_;  // parameters and buffers
  std::vector<Tensor> bound_;       // what each of them was when its memory was bound
  int64_t step_ = 0, left_out_ = 0;
  double loss_limit_ = std::numeric_limits<double>::infinity();
};

using EvalFunction =
    std::function<std::vector<NamedTensor>(nn::Module& model, std::span<const Tensor> inputs)>;

/// The inference graph of a model (evaluation mode), dimensions of the inputs may be named. Parameters and
/// buffers become inputs after the data (`parameters_as_inputs`), else constants whose location is their
/// name.
Graph build_eval_graph(nn::Module& model, const std::vector<TensorSpec>& inputs, const EvalFunction& function,
                       bool parameters_as_inputs);

/// A model compiled for evaluation at the sizes it is asked for (the four used last are kept). It reads the
/// model's parameters where they are.
class EvalStep {
 public:
  EvalStep(std::shared_ptr<nn::Module> model, const std::vector<TensorSpec>& inputs,
           const EvalFunction& function, const CompileOptions& options = {});
  ~EvalStep();

  /// Results in the order of `function`, valid until the next run of the same sizes. TypeError when inputs do
  /// not fit.
  std::vector<Array> run(std::span<const Array> inputs);
  const Graph& graph() const { return graph_; }
  const std::vector<std::string>& output_names() const { return graph_.output_names(); }
  /// The program of the last run, for profiles.
  Program& program();

 private:
  struct Compiled;
  std::shared_ptr<nn::Module> model_;
  std::vector<TensorSpec> inputs_;
  Graph graph_;
  CompileOptions options_;
  std::vector<std::unique_ptr<Compiled>> programs_;  // most recent first
};

/// Slow weights that follow the fast ones (Zhang et al., arXiv 1907.08610): slow = decay·slow + (1 −
/// decay)·fast, then fast = slow; for all f32 parameters and buffers. InputError when parameters are stored
/// as bf16.
class Lookahead {
 public:
  explicit Lookahead(nn::Module& model);
  void update(double decay);
  std::vector<NamedArray>& slow() { return slow_; }

 private:
  nn::Module& model_;
  std::vector<NamedArray> slow_;
};

}  // namespace millrace::optim
