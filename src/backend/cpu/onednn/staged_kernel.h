// A kernel made of oneDNN primitives, each for one thread, that our pool runs in stages. Internal to the
// provider: the only header that includes oneDNN's.
#pragma once

#include <array>
#include <dnnl.hpp>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "backend/cpu/kernels/epilogue.h"
#include "base/thread_pool.h"
#include "target/provider.h"
#include "target/shared_constants.h"
#include "target/slot.h"

namespace millrace::onednn {

const dnnl::engine& engine();

/// Whether the CPU multiplies bf16 numbers (AVX512_BF16 or AMX); oneDNN emulates it elsewhere, slower than
/// f32.
bool has_bf16_units();
/// Whether it takes bf16 at all, if only by way of f32.
bool computes_bf16();

/// oneDNN splits work among as many threads as OpenMP would give the calling thread. While one of these lives
/// that is one: primitives are made for, and run on, a single thread.
class OneThread {
 public:
  OneThread();
  ~OneThread();
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  int before_;
};

/// f32 or bf16.
dnnl::memory::data_type data_type(DType dtype);

/// Attributes of every primitive here: scratch memory comes from the caller.
dnnl::primitive_attr attributes();

/// The buffers of a node, known only when its kernel runs. A slot is scratch memory of one running chunk:
/// chunks take turns, so that it stays in the cache. What is kept lasts from one prepare() to the next.
enum class Buffer { operand0, operand1, result, scratch, slot, kept };
using Buffers = std::array<char*, 6>;

/// Where an argument lies: `offset` bytes into a buffer, or at a fixed address.
struct Place {
  Buffer buffer = Buffer::scratch;
  int64_t offset = 0;
  void* fixed = nullptr;
  Place operator+(int64_t bytes) const {
    return {buffer, offset + bytes, fixed ? static_cast<char*>(fixed) + bytes : nullptr};
  }
};

/// A memory argument of a primitive.
struct Argument {
  int name;  // DNNL_ARG_…
  dnnl::memory::desc desc;
  Place place;
};

/// What becomes of a chunk's sums, or where they are copied to: `rows` of them, `channels` wide, which are
/// channels [first, first + channels) of the result at `to`.
struct Ending {
  Place from, to;
  int64_t rows, channels, first;
  int64_t from_row, to_row;  // bytes from one row to the next
};

/// A primitive and the formats of its arguments, which calls share.
struct Form {
  dnnl::primitive primitive;
  std::vector<int> names;  // DNNL_ARG_…
  std::vector<dnnl::memory::desc> descs;
  bool fits(const dnnl::primitive& other, const std::vector<Argument>& arguments) const;
};

/// One execution of a primitive.
struct Call {
  size_t form;
  std::vector<Place> places;  // of its arguments
};

/// oneDNN's objects for one thread that executes calls of a form. An argument takes a kilobyte: there is one
/// for each slot, not one for each chunk.
class Caller {
 public:
  explicit Caller(const Form& form);
  void execute(const Call& call, const Buffers& buffers);

 private:
  dnnl::primitive primitive_;
  dnnl::stream stream_;
  std::vector<dnnl::memory> memories_;
  std::vector<dnnl_exec_arg_t> arguments_;
};

/// Of each slot those of each form, made when a kernel first runs: all of them then, as which slots run which
/// forms is the threads' race, and a later run is to allocate nothing. A copy of a kernel makes its own.
class Callers {
 public:
  Callers() = default;
  Callers(const Callers&) {}
  std::vector<Caller>& of_slot(size_t slot, int slots, const std::vector<std::shared_ptr<const Form>>& forms);

 private:
  std::once_flag made_;
  std::vector<std::vector<Caller>> callers_;
};

/// Stages run one after the other; the chunks of a stage at the same time, the calls of a chunk in order. By
/// rows when the chunks of the last stage make equal pieces of the result, in order.
class StagedKernel : public ChunkedKernel, public RowKernel, public PackingKernel {
 public:
  std::unique_ptr<Kernel> another() const override { return std::make_unique<StagedKernel>(*this); }
  /// Starts a stage: the chunks added from now on run when all earlier ones are done.
  void stage() { open_ = stages_.size(), stages_.emplace_back(); }
  /// The stages added so far run in prepare() only.
  void end_preparation() { preparing_ = stages_.size(); }
  void chunk();
  /// Reserves scratch memory that lasts through all stages.
  Place reserve(int64_t bytes);
  /// Reserves scratch memory for the chunk alone.
  Place reserve_in_chunk(int64_t bytes);
  /// Adds a call to the chunk, with scratch for the primitive, which chunks may share.
  template <typename Description>
  void call(const dnnl::primitive& primitive, const Description& description,
            std::vector<Argument> arguments) {
    const dnnl::memory::desc own = description.scratchpad_desc();
    const auto bytes = static_cast<int64_t>(own.get_size());
    if (bytes > 0) arguments.push_back({DNNL_ARG_SCRATCHPAD, own, reserve_in_chunk(bytes)});
    add_call(primitive, arguments);
  }
  /// Adds a call that copies from one memory format (and dtype) to another.
  void copy(const dnnl::memory::desc& from, Place from_place, const dnnl::memory::desc& to, Place to_place);
  /// What the node does to its sums: each chunk ends with its part of it. Without that it ends with a copy.
  void ends_with(const cpu::Epilogue& epilogue) { epilogue_ = epilogue; }
  void end_chunk(const Ending& ending) { stages_[open_].back().ending = ending; }
  /// Adds chunks to the stage that together copy: parts of the first dimension where that is worth it.
  void copy_in_parts(const dnnl::memory::desc& from, Place from_place, const dnnl::memory::desc& to,
                     Place to_place);
  /// Weights in the format a primitive wants: where they are, if that is their own; a copy made now when they
  /// are constant; else one made in every run, by the stage that stands open, or, when they are steady, in
  /// prepare(), whose one stage is the first.
  Place pack(const dnnl::memory::desc& from, int64_t offset, const dnnl::memory::desc& to,
             const Array* constant, bool steady = false);

  /// Says that the chunks of the last stage are rows.
  void chunks_are_rows() { pieces_ = static_cast<int64_t>(stages_.back().size()); }
  int64_t most_rows() const override { return pieces_; }
  int64_t row_grain(int64_t rows) const override {
    if (pieces_ == 0 || rows <= 0) return 0;
    return pieces_ % rows == 0 ? 1 : rows % pieces_ == 0 ? rows / pieces_ : 0;
  }
  bool rereads_weights() const override { return true; }
  int first_stages() const override { return stages() - 1; }
  void run_rows(int64_t rows, int64_t begin, int64_t end, void* const* operands, void* const* results,
                void* scratch) override {
    const int stage = stages() - 1;
    for (int64_t i = begin * pieces_ / rows; i < end * pieces_ / rows; ++i)
      run_chunk(stage, i, operands, results, scratch);
  }

  /// Is there as long as the kernel and its copies.
  void keep(std::shared_ptr<const void> what) { kept_alive_ = std::move(what); }
  void describe(std::string text) { description_ = std::move(text); }
  void estimate(double nanoseconds) { nanoseconds_ = nanoseconds; }
  int stages() const override { return static_cast<int>(stages_.size() - preparing_); }
  int64_t chunks(int stage) const override {
    return static_cast<int64_t>(stages_[preparing_ + static_cast<size_t>(stage)].size());
  }
  void run_chunk(int stage, int64_t chunk, void* const* operands, void* const* results,
                 void* scratch) override;
  double nanoseconds() const override { return nanoseconds_; }
  void prepare(void* const* operands, void* kept, void* scratch, DeviceContext device) override;
  int64_t kept_bytes() const override { return kept_bytes_; }
  int64_t scratch_bytes() const override { return scratch_bytes_ + slots_bytes(); }
  int64_t slots_bytes() const override { return slots_.count() * slot_bytes_; }
  std::string description() const override { return description_; }

 private:
  struct Chunk {
    std::vector<Call> calls;
    std::optional<Ending> ending;
  };
  void add_call(const dnnl::primitive& primitive, const std::vector<Argument>& arguments);
  void run_calls(const Chunk& chunk, Buffers buffers, void* const* operands);
  std::vector<std::vector<Chunk>> stages_;
  std::vector<std::shared_ptr<const Form>> forms_;
  Callers callers_;
  size_t open_ = 0, preparing_ = 0;  // the stage that chunks are added to; how many run in prepare()
  int64_t kept_bytes_ = 0;
  char* kept_ = nullptr;
  std::shared_ptr<const void> kept_alive_;
  int64_t pieces_ = 0;         // rows of the result, when it has rows
  int64_t scratch_bytes_ = 0;  // without slots
  Slots slots_;
  int cpus_ = available_cpus();  // asked once: it takes system calls
  int64_t slot_bytes_ = 0, chunk_bytes_ = 0;
  cpu::Epilogue epilogue_;
  double nanoseconds_ = 0;
  std::string description_;
};

}  // namespace millrace::onednn
