// compile(fn): a pure C++ function over tensors, recorded once for each set of input types and replayed.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include <millrace/tensor.h>

namespace millrace {

/// A recorded function. What it computes may depend only on its arguments and on tensors it captured when it
/// was made (these are constants). Calls are guarded by the number, dtypes and shapes of the arguments;
/// another set is recorded anew. A host read splits the function into segments, each one compiled graph: what
/// follows a read bool is kept for both values; what follows a read number or array, for the last few values.
/// Arithmetic with item() stays in the graph. A value not seen before runs the function again up to that
/// read, with the results of the known segments, and records the rest. Inside another recording or graph
/// capture the function is simply called.
class CompiledFunction {
 public:
  using Function = std::function<std::vector<Tensor>(std::span<const Tensor>)>;
  explicit CompiledFunction(Function function);

  std::vector<Tensor> operator()(std::span<const Tensor> inputs) const;

  struct Counts {
    int64_t calls = 0;
    int64_t recordings = 0;  // calls that ran the C++ function
    int64_t segments = 0;    // segments now held
    int64_t guards = 0;      // sets of input types now held
  };
  Counts counts() const;
  /// Guards, segments, where and why the function is split, and why it was recorded again.
  std::string explain() const;

  /// Sets of input types that are kept; the one used least recently goes first.
  static constexpr size_t guard_capacity = 16;
  /// Continuations that are kept for a read number or array.
  static constexpr size_t continuation_capacity = 8;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

/// A CompiledFunction with the signature of `f`: tensors in, a tensor or a vector of tensors out.
template <typename F>
class Compiled {
 public:
  explicit Compiled(F f)
      : function_([f = std::move(f)](std::span<const Tensor> inputs) { return call(f, inputs); }) {}

  template <typename... T>
  requires(std::is_convertible_v<const T&, Tensor>&&...) auto operator()(const T&... inputs) const {
    const Tensor all[] = {Tensor(inputs)...};
    std::vector<Tensor> results = function_(all);
    if constexpr (std::is_same_v<std::invoke_result_t<const F&, const T&...>, Tensor>)
      return results[0];
    else
      return results;
  }
  std::string explain() const { return function_.explain(); }
  CompiledFunction::Counts counts() const { return function_.counts(); }

 private:
  static std::vector<Tensor> call(const F& f, std::span<const Tensor> x) {
    if constexpr (std::is_invocable_v<const F&, Tensor>)
      return as_vector(f(x[0]));
    else if constexpr (std::is_invocable_v<const F&, Tensor, Tensor>)
      return as_vector(f(x[0], x[1]));
    else if constexpr (std::is_invocable_v<const F&, Tensor, Tensor, Tensor>)
      return as_vector(f(x[0], x[1], x[2]));
    else if constexpr (std::is_invocable_v<const F&, Tensor, Tensor, Tensor, Tensor>)
      return as_vector(f(x[0], x[1], x[2], x[3]));
    else
      static_assert(std::is_invocable_v<const F&, Tensor>,
                    "compile() takes functions of one to four tensors; use CompiledFunction for more");
  }
  static std::vector<Tensor> as_vector(Tensor t) { return {std::move(t)}; }
  static std::vector<Tensor> as_vector(std::vector<Tensor> t) { return t; }

  CompiledFunction function_;
};

/// `auto f = compile([](const Tensor& x) { return x.sum() < 0 ? -x : squeeze(x); });`
template <typename F>
Compiled<F> compile(F f) {
  return Compiled<F>(std::move(f));
}

}  // namespace millrace
