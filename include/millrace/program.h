// A graph made ready to run: kernels, memory, replay.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include <millrace/array.h>
#include <millrace/graph.h>
#include <millrace/pass.h>

namespace millrace {

class Arenas;
class CancelToken;
class Executable;
class Program;

/// Options of compilation.
struct CompileOptions {
  /// The device to run on: "cpu", "ref", or one that the program added (device.h).
  std::string target = "cpu";
  /// "fp32", or "bf16": products, convolutions, attention in bf16, everything else and all state in f32.
  /// Where bf16 would be slower than f32 it means fp32; Program::precision() tells. "bf16-pure" computes as
  /// "bf16" does; a TrainStep then stores parameters and state as bf16. "fp16" rounds what matrix products
  /// and convolutions read and make to f16, as a GPU would (f32 kernels compute with the rounded values: for
  /// reproducing such trainings, not for speed).
  std::string precision = "fp32";
  /// Only algorithms that differ from the plain computation by no more than the order of sums (no Winograd
  /// convolutions).
  bool exact = false;
  /// Of a session's model: its graph is what passes made of one before, so only kernels are built.
  bool ready = false;
  /// Of a session's model that has any sizes: problems nearly as large as each other (of a text a token
  /// longer) have one choice, so that not each has its kernels timed, nor weights packed in another form.
  bool choose_alike = false;
  /// Most bytes that a run may need, inputs and outputs included; 0: as many as it takes. A training step
  /// then computes activations again for its backward pass where that saves most.
  int64_t memory = 0;
  /// Sizes for named dimensions.
  Bindings bindings = {};
  /// Output i is written into the memory of input donations[i] (parameters and optimiser state updated in
  /// place).
  std::map<int, int> donations = {};
  /// Arrays for some inputs, as bind_input() gives them, so that the program allocates none for these.
  std::map<int, Array> inputs = {};
  /// Choices recorded by an earlier compilation of the same graph (Program::choices()); used where they fit.
  std::map<std::string, std::string> choices = {};
  /// A program that updates the same parameters and keeps the same copies of them: both use one set of
  /// copies.
  const Program* share_copies = nullptr;
};

/// One kernel call of a program, and its cost in operations and bytes.
struct LaunchInfo {
  std::string operation;         // "conv2d", "fused(mul add)"
  Origin origin;                 // of a fused group: of its first result that has one
  std::string provider, kernel;  // who built it; implementation, chunks
  std::string declined;          // why providers that come first do not take it
  std::string types;             // of the results, with layouts
  bool reduces = false;          // a fused group with reductions
  double flops = 0;              // a multiply-add is two, exp is one; padding of convolutions is not counted
  int bits = 32;                 // of the numbers that products are made of
  /// Bytes of operands and results (scratch is not counted). `distance`: bytes that launches touch from one
  /// use of this memory to the other, the step being repeated; where that exceeds a cache, these bytes come
  /// from (go to) beyond it.
  struct Traffic {
    double bytes = 0, distance = 0;
    bool write = false;
  };
  std::vector<Traffic> traffic;
  double bytes() const;
  std::vector<int> reads;  // launches of the step whose results it reads
};

/// A graph compiled for a device and for its shapes: the plan, kernels and constants, packed where kernels
/// want them so. Nothing changes it: any number of programs may run it at the same time, on any threads, and
/// what it holds is in memory once. The graph's own constants are copied, and not needed any more.
class Executable {
 public:
  /// Compiles; throws as Program::compile() does. `inputs` and `share_copies` of the options are a program's
  /// and mean nothing here.
  static std::shared_ptr<const Executable> compile(const Graph& graph, const CompileOptions& options = {});
  ~Executable();

  /// The name of the device that it was compiled for.
  const std::string& device() const;
  /// What it keeps of the graph's constants: packed where kernels want them so, else as they are. Executables
  /// that are there at the same time share memory where these are the same bytes.
  std::vector<Array> constants() const;
  /// Bytes that each program of it needs: intermediates, inputs and outputs. (An input that is bound to an
  /// array of the caller's is the caller's.)
  int64_t program_bytes() const;
  /// Of these, bytes of the intermediates.
  int64_t arena_bytes() const;
  /// About the bytes that it takes itself, constants aside: plan, kernels and their code.
  int64_t plan_bytes() const;

 private:
  friend class Program;
  friend struct Compiler;
  struct Impl;
  explicit Executable(std::unique_ptr<const Impl> impl);
  std::unique_ptr<const Impl> impl_;
};

/// Replays a compiled graph. Inputs and outputs are Arrays owned by the program (fill inputs before run(),
/// read outputs after); donated outputs share their input's array. run() does not allocate.
class Program {
 public:
  /// Compiles; throws TypeError for unbound dimensions and arrays or donations of the wrong type, InputError
  /// for donations that cannot be and for too little memory (naming the least), InternalError for defects.
  static Program compile(const Graph& graph, const CompileOptions& options = {});
  /// One more program of what was compiled once, with an arena, inputs and outputs of its own. TypeError for
  /// arrays of another type than the inputs that they are for. `share_copies` as in CompileOptions. `arenas`,
  /// of the library: it has an arena of these during a run, and outputs that are bound before one.
  explicit Program(std::shared_ptr<const Executable> executable, const std::map<int, Array>& inputs = {},
                   const Program* share_copies = nullptr, const std::shared_ptr<Arenas>& arenas = nullptr);
  /// What it runs.
  const std::shared_ptr<const Executable>& executable() const;
  Program(Program&&) noexcept;
  Program& operator=(Program&&) noexcept;
  ~Program();

  /// The array bound to an input or output; row-major. Writing to an input's memory sets it; an array of the
  /// same type may be assigned. InputError when there is no such input or output.
  Array& input(int i);
  const Array& output(int i) const;
  int input_count() const;
  int output_count() const;
  /// Binds an input to foreign memory of the same type, without a copy. TypeError when the type is another.
  void bind_input(int i, Array array);
  /// The same for an output, which is then written there: it must not overlap an input, nor another output.
  /// InputError when it is written into an input anyway.
  void bind_output(int i, const Array& array);

  /// TypeError when an input was assigned an array of another type, or an array without memory is bound;
  /// InputError when two inputs share memory and one of them is updated in place.
  void run();
  /// Ends with a CancelledError soon after the token is cancelled, between two launches: what it writes is
  /// half written then, and may be run again.
  void run(const CancelToken& cancel);
  /// Of the pool's threads, how many may work for one run, the caller included; 0: all. Results do not depend
  /// on it.
  void set_threads(int most);

  /// Bytes of the arena (intermediates and scratch), known before the first run.
  int64_t arena_bytes() const;
  /// Bytes of inputs, outputs and constants.
  int64_t bound_bytes() const;
  /// The largest tensors alive at the peak: (bytes, operator and location), largest first.
  std::vector<std::pair<int64_t, std::string>> peak_breakdown(int count) const;
  /// The arithmetic in use, "fp32", "bf16" or "fp16": "fp32" where CompileOptions asked for bf16 and this
  /// machine has no units for it.
  const std::string& precision() const;
  /// Choices made by timing, to be stored and handed back through CompileOptions.
  const std::map<std::string, std::string>& choices() const;
  /// One line a launch: kernel, provider, layouts, why others declined.
  std::string explain() const;
  /// Copies of donated inputs, those that are kept from run to run first made by the first run, and again by
  /// a run that finds an input written to by anyone else.
  std::vector<CopyInfo> copies() const;
  /// How often kept copies were made outside of the update.
  int64_t times_copied() const;
  /// What the compilation did, in order.
  const std::vector<PassInfo>& passes() const;
  /// The launches of a run, in order.
  std::vector<LaunchInfo> launches() const;
  /// Switches the recording of times on (forgetting earlier ones) or off.
  void set_profiling(bool on);
  /// Times of the runs since then, in nanoseconds of the steady clock: the begin of every launch, the end of
  /// the last one, and the end of the run (outputs that are copied come last).
  std::vector<std::vector<int64_t>> run_times() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace millrace
