// Sessions: a model that is there to be run.
//
// Session::load() opens what one of the model formats recognises (a run folder) and answers from then on,
// whoever asks, from any number of threads at the same time:
//
//   const Session session = Session::load("runs/letters-1");
//   for (const SessionValue& input : session.inputs())      // image: u8[batch, 1, 28, 28]
//     std::cout << input.name << ": " << input.type.str() << "\n";
//   const std::vector<Array> results = session.run({{pictures}});  // in the order of outputs()
//
// Inputs and outputs are those of the exported model: arrays as samples are decoded, logits and predictions.
// Dimensions are numbers or names, such as `batch` and `length`; any size may be given for a name. The arrays
// given are read where they lie, results are the caller's.
//
// What is in memory. Weights are constants of the graph, folded and packed, in memory once for all sets of
// sizes that want the same bytes; or arrays that all share (SessionModel::weights). For each set of sizes
// there is an Executable (program.h), compiled when such sizes are first asked for, while those that are
// there go on running. Those used last are kept (SessionOptions::executables). Each has as many programs as
// ever ran it at the same time, and callers share them; all programs take turns with the memory for what is
// in between (where SessionOptions::memory says how much there may be, each has its own). So a result does
// not depend on who else asks, bit for bit. All of it goes with the last copy of the session.
//
// Sizes in between. Of a dimension that the model lets be filled up (rows of a batch, which do not see each
// other) not every size gets an executable: a run takes the next size of 1, 2, 3, 4, 6, 8, 12, 16, 24, …, is
// filled up with zeros, and its results are cut. Who knows the sizes to come says so by prepare(): these run
// as they are.
//
// Who uses it. Prediction by a trained run (`millrace predict`) makes arrays of samples and
// hands them to a session; anyone else makes the arrays himself. A session knows graphs and arrays, neither
// training nor recipes nor kinds of data: a model format (session/format.h) gives it a SessionModel, and
// whoever has a graph can make one without a file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <millrace/array.h>
#include <millrace/cancel.h>
#include <millrace/graph.h>
#include <millrace/program.h>

namespace millrace {

/// An input or output: a name, and a type whose dimensions are numbers or names.
struct SessionValue {
  std::string name;
  Type type;
  /// Of an output: the axis along which how large it is depends on what is computed (the boxes that a
  /// detector finds); -1: none. A result is as large as it is in truth.
  int data_axis = -1;
};

/// A model as a session takes it.
struct SessionModel {
  std::vector<SessionValue> inputs, outputs;
  /// Its graph for these sizes of the inputs' named dimensions, from `inputs`, and `weights` behind them, to
  /// `outputs`; dimensions may still be named in it. Outputs with a `data_axis` are as large as they can be,
  /// and behind all outputs stands one more for each of these, i64[]: how much of it counts. InputError for
  /// sizes that the model cannot have. One at a time calls it.
  std::function<Graph(const Bindings&)> graph;
  /// Of a model that lies in a file that is mapped: IoError when that is no longer as it was. Called after
  /// runs, once a millisecond at most. Empty: it lies in memory.
  std::function<void()> require_unchanged;
  /// What its graph for these sizes was made by beside their sums and products (a smaller one of two, whether
  /// two are equal), a line each: where these lines differ the graph may be another one. Empty: nothing.
  std::function<std::vector<std::string>(const Bindings&)> decisions;
  /// Weights that are no constants of the graph: nothing is folded and packed, which saves time at the
  /// beginning and memory, and takes more time in each run.
  std::vector<Array> weights;
  /// Named dimensions along which nothing in the model looks at another place: always the first one of a
  /// type.
  std::vector<std::string> independent;
  /// Bytes of the weights that the graph has as constants, where they are known before it is made; else 0.
  int64_t constant_bytes = 0;
  /// Precision, target, choices of kernels …
  CompileOptions compile;
  /// Lines for the user about what was loaded (a damaged checkpoint that was passed over).
  std::vector<std::string> notes;
};

struct SessionOptions {
  /// As in CompileOptions; empty: the model's own.
  std::string precision = {};
  /// Most sets of sizes whose executables are kept; 0: as many as take 256 MB besides weights and what runs
  /// need (some hundred), and 8 at least.
  int executables = 0;
  /// Most memory that it keeps, such as "200MB"; empty: as much as it takes.
  std::string memory = {};
  /// Of the process's threads, how many may work for one run, and how many runs of run_async() are made at
  /// the same time; 0: all of them.
  int threads = 0;
};

/// Cheap to copy: copies are the same session.
class Session {
 public:
  /// InputError when no model format recognises what is there, with what a format makes of damaged files.
  static Session load(const std::filesystem::path& path, const SessionOptions& options = {});
  /// InputError when the model lacks its graph, or says what cannot be.
  explicit Session(SessionModel model, const SessionOptions& options = {});

  const std::vector<SessionValue>& inputs() const;
  const std::vector<SessionValue>& outputs() const;
  const std::vector<std::string>& notes() const;

  /// Results in the order of outputs(). TypeError when the arrays are not those of inputs(), InputError when
  /// the model cannot have such sizes, or they need more memory than allowed. CancelledError soon after the
  /// token was cancelled: between two launches, not while it compiles.
  std::vector<Array> run(std::span<const Array> inputs,
                         const CancelToken& cancel = CancelToken::never()) const;
  /// Where a result goes, told its number and type before the model runs (behind that, where the size depends
  /// on data): an array of that type that the caller has, or an empty one for new memory.
  using Place = std::function<Array(int output, const Type& type)>;
  /// The same; results are written where `place` says. They may overlap inputs, not each other.
  std::vector<Array> run(std::span<const Array> inputs, const Place& place,
                         const CancelToken& cancel = CancelToken::never()) const;
  /// The first on a thread of the library: in the order of calls, of all sessions as many at the same time as
  /// the process has threads. The arrays must not change meanwhile. Who lets go of the session and of the
  /// future does not end the run.
  std::future<std::vector<Array>> run_async(std::vector<Array> inputs,
                                            const CancelToken& cancel = CancelToken::never()) const;
  /// The sizes of all named dimensions that these arrays have. TypeError.
  Bindings sizes(std::span<const Array> inputs) const;
  /// Compiles for such sizes, which are then run as they are. The same errors.
  void prepare(const Bindings& sizes) const;

  /// Choices of kernels made by timing so far (Program::choices()).
  std::map<std::string, std::string> choices() const;
  struct Counts {
    int64_t compiled = 0;  // executables so far
    int kept = 0;          // of these
    int programs = 0;      // of the kept ones, those that no caller runs now
    int64_t weights = 0;   // bytes of constants, packed and as they are, and of SessionModel::weights
    int64_t bytes = 0;     // all that it keeps: these, and what its programs need
  };
  Counts counts() const;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace millrace
