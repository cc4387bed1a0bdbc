#include "backend/cpu/onednn/staged_kernel.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/cpu.h"
#include "base/format.h"
#include "target/slot.h"

// OpenMP's own functions; its header and compiler flag are not needed for more.
extern "C" {
void omp_set_num_threads(int);
int omp_get_max_threads(void);
}

namespace millrace::onednn {

namespace {

/// The library takes it before its first use only.
void cap_instructions() {
  [[maybe_unused]] static const bool done = [] {
    const std::string& cap = cpu_cap();
    if (!cap.empty())
      dnnl::set_max_cpu_isa(cap == "avx2"     ? dnnl::cpu_isa::avx2
                            : cap == "avx512" ? dnnl::cpu_isa::avx512_core_vnni
                                              : dnnl::cpu_isa::avx512_core_bf16);
    return true;
  }();
}

}  // namespace

const dnnl::engine& engine() {
  cap_instructions();
  static const dnnl::engine cpu(dnnl::engine::kind::cpu, 0);
  return cpu;
}

/// The codes of instruction sets are bit sets: one that contains another's bits has its instructions too.
static bool has(dnnl::cpu_isa wanted) {
  cap_instructions();
  const auto isa = static_cast<unsigned>(dnnl::get_effective_cpu_isa()), bits = static_cast<unsigned>(wanted);
  return (isa & bits) == bits;
}

bool has_bf16_units() { return has(dnnl::cpu_isa::avx512_core_bf16); }

bool computes_bf16() { return has(dnnl::cpu_isa::avx512_core); }

OneThread::OneThread() : before_(omp_get_max_threads()) {
  if (before_ != 1) omp_set_num_threads(1);
}

OneThread::~OneThread() {
  if (before_ != 1) omp_set_num_threads(before_);
}

dnnl::memory::data_type data_type(DType dtype) {
  MILLRACE_CHECK(dtype == f32 || dtype == bf16, "{}", dtype.name());
  return dtype == f32 ? dnnl::memory::data_type::f32 : dnnl::memory::data_type::bf16;
}

dnnl::primitive_attr attributes() {
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attr;
}

bool Form::fits(const dnnl::primitive& other, const std::vector<Argument>& arguments) const {
  if (primitive.get() != other.get() || names.size() != arguments.size()) return false;
  for (size_t i = 0; i < names.size(); ++i)
    if (names[i] != arguments[i].name || descs[i] != arguments[i].desc) return false;
  return true;
}

Caller::Caller(const Form& form) : primitive_(form.primitive), stream_(engine()) {
  for (size_t i = 0; i < form.names.size(); ++i) {
    memories_.emplace_back(form.descs[i], engine(), static_cast<void*>(nullptr));
    arguments_.push_back({form.names[i], memories_.back().get()});
  }
}

std::vector<Caller>& Callers::of_slot(size_t slot, int slots,
                                      const std::vector<std::shared_ptr<const Form>>& forms) {
  std::call_once(made_, [&] {
    callers_.resize(static_cast<size_t>(slots));
    for (std::vector<Caller>& each : callers_) {
      each.reserve(forms.size());
      for (const auto& form : forms) each.emplace_back(*form);
    }
  });
  return callers_[slot];
}

// Through the C interface: the C++ one builds a vector of arguments each time.
void Caller::execute(const Call& call, const Buffers& buffers) {
  for (size_t i = 0; i < arguments_.size(); ++i) {
    const Place& place = call.places[i];
    dnnl_memory_set_data_handle(
        arguments_[i].memory,
        place.fixed ? place.fixed : buffers[static_cast<int>(place.buffer)] + place.offset);
  }
  const dnnl_status_t status = dnnl_primitive_execute(primitive_.get(), stream_.get(),
                                                      static_cast<int>(arguments_.size()), arguments_.data());
  MILLRACE_CHECK(status == dnnl_success, "oneDNN reports status {}", static_cast<int>(status));
}

namespace {

constexpr int64_t round_up(int64_t bytes) { return (bytes + 63) / 64 * 64; }

}  // namespace

void StagedKernel::chunk() {
  stages_[open_].emplace_back();
  chunk_bytes_ = 0;
  slots_ = Slots(std::max(slots_.count(), static_cast<int>(stages_[open_].size())), cpus_);
}

Place StagedKernel::reserve_in_chunk(int64_t bytes) {
  const Place place{Buffer::slot, chunk_bytes_};
  chunk_bytes_ += round_up(bytes);
  slot_bytes_ = std::max(slot_bytes_, chunk_bytes_);
  return place;
}

Place StagedKernel::reserve(int64_t bytes) {
  const Place place{Buffer::scratch, scratch_bytes_};
  scratch_bytes_ += round_up(bytes);
  return place;
}

void StagedKernel::add_call(const dnnl::primitive& primitive, const std::vector<Argument>& arguments) {
  Call call{0, {}};
  while (call.form < forms_.size() && !forms_[call.form]->fits(primitive, arguments)) ++call.form;
  if (call.form == forms_.size()) {
    Form form{primitive, {}, {}};
    for (const Argument& a : arguments) {
      form.names.push_back(a.name);
      form.descs.push_back(a.desc);
    }
    forms_.push_back(std::make_shared<const Form>(std::move(form)));
  }
  for (const Argument& a : arguments) call.places.push_back(a.place);
  stages_[open_].back().calls.push_back(std::move(call));
}

void StagedKernel::copy(const dnnl::memory::desc& from, Place from_place, const dnnl::memory::desc& to,
                        Place to_place) {
  const dnnl::reorder::primitive_desc desc(engine(), from, engine(), to, attributes());
  call(dnnl::reorder(desc), desc, {{DNNL_ARG_FROM, from, from_place}, {DNNL_ARG_TO, to, to_place}});
}

namespace {
// How many neighbours along the first dimension a blocked format keeps together.
int64_t block_of(const dnnl::memory::desc& desc) {
  int64_t block = 1;
  const dnnl::memory::dims blocks = desc.get_inner_blks(), dims = desc.get_inner_idxs();
  for (size_t i = 0; i < blocks.size(); ++i)
    if (dims[i] == 0) block *= blocks[i];
  return block;
}

/// What distinguishes a format.
std::string words_of(const dnnl::memory::desc& desc) {
  MILLRACE_CHECK(desc.get_format_kind() == dnnl::memory::format_kind::blocked, "a format without words");
  return fmt::format("{} {} {} {} {} {}", static_cast<int>(desc.get_data_type()), desc.get_dims(),
                     desc.get_padded_dims(), desc.get_strides(), desc.get_inner_blks(),
                     desc.get_inner_idxs());
}

// True for bf16 weights [O, I, kh, kw] in rows that become pairs of I: that copy is slow (1 ns an element),
// and two copies through channels-last are fast (0.4 ns).
bool pairs_columns(const dnnl::memory::desc& from, const dnnl::memory::desc& to) {
  const dnnl::memory::dims blocks = to.get_inner_blks(), dims = to.get_inner_idxs(), sizes = from.get_dims();
  return from.get_data_type() == dnnl::memory::data_type::bf16 && sizes.size() == 4 &&
         sizes[2] * sizes[3] > 1 && blocks.size() == 2 && blocks[1] == 2 && dims[1] == 1;
}

}  // namespace

void StagedKernel::copy_in_parts(const dnnl::memory::desc& from, Place from_place,
                                 const dnnl::memory::desc& to, Place to_place) {
  const dnnl::memory::dims sizes = from.get_dims();
  int64_t elements = 1;
  for (int64_t size : sizes) elements *= size;
  // Parts begin where blocks do; a format that pads its last block is copied whole.
  const int64_t block = std::max(block_of(from), block_of(to));
  const int64_t parts = sizes[0] % block == 0 ? std::clamp<int64_t>(elements / 16384, 1, 8) : 1;
  const int64_t step = parts == 1 ? sizes[0] : (sizes[0] / parts + block - 1) / block * block;
  for (int64_t begin = 0; begin < sizes[0]; begin += step) {
    dnnl::memory::dims part = sizes, offsets(sizes.size(), 0);
    part[0] = std::min(step, sizes[0] - begin);
    offsets[0] = begin;
    chunk();
    const dnnl::memory::desc source = from.submemory_desc(part, offsets),
                             target = to.submemory_desc(part, offsets);
    if (!pairs_columns(from, to)) {
      copy(source, from_place, target, to_place);
      continue;
    }
    const dnnl::memory::desc between(part, from.get_data_type(), dnnl::memory::format_tag::acdb);
    const Place place = reserve_in_chunk(static_cast<int64_t>(between.get_size()));
    copy(source, from_place, between, place);
    copy(between, place, target, to_place);
  }
}

Place StagedKernel::pack(const dnnl::memory::desc& from, int64_t offset, const dnnl::memory::desc& to,
                         const Array* constant, bool steady) {
  const auto bytes = static_cast<int64_t>(to.get_size());
  if (!constant) {
    if (from == to) return {Buffer::operand1, offset};
    if (!steady) {
      const Place place = reserve(bytes);
      copy_in_parts(from, {Buffer::operand1, offset}, to, place);
      return place;
    }
    const Place place{Buffer::kept, kept_bytes_};
    kept_bytes_ += round_up(bytes);
    const size_t open = std::exchange(open_, 0);
    copy_in_parts(from, {Buffer::operand1, offset}, to, place);
    open_ = open;
    return place;
  }
  // Not before it is needed: a constant may come late (ir/late_array.h).
  const auto data = [&] { return static_cast<char*>(const_cast<void*>(constant->data())) + offset; };
  if (from == to) {
    packed_.push_back(*constant);  // shares, and keeps, its memory
    return {.fixed = data()};
  }
  packed_.push_back(
      shared_form(*constant, fmt::format("onednn {} {} {}", offset, words_of(from), words_of(to)),
                  {u8, {bytes}}, [&](Array& packed) {
                    dnnl::memory source(from, engine(), data()), target(to, engine(), packed.data());
                    dnnl::stream stream(engine());
                    dnnl::reorder(source, target).execute(stream, source, target);
                  }));
  return {.fixed = packed_.back().data()};
}

void StagedKernel::run_chunk(int stage, int64_t chunk, void* const* operands, void* const* results,
                             void* scratch) {
  run_calls(stages_[preparing_ + static_cast<size_t>(stage)][static_cast<size_t>(chunk)],
            {static_cast<char*>(operands[0]), static_cast<char*>(operands[1]), static_cast<char*>(results[0]),
             static_cast<char*>(scratch), nullptr, kept_},
            operands);
}

void StagedKernel::prepare(void* const* operands, void* kept, void* scratch, DeviceContext device) {
  kept_ = static_cast<char*>(kept);
  const Buffers shared{
      nullptr, static_cast<char*>(operands[1]), nullptr, static_cast<char*>(scratch), nullptr, kept_};
  for (size_t s = 0; s < preparing_; ++s)
    device.threads().parallel(static_cast<int64_t>(stages_[s].size()), [&](int64_t i) {
      run_calls(stages_[s][static_cast<size_t>(i)], shared, operands);
    });
}

void StagedKernel::run_calls(const Chunk& chunk, Buffers buffers, void* const* operands) {
  const OneThread one_thread;
  const Slot slot(slots_);
  buffers[static_cast<int>(Buffer::slot)] =
      buffers[static_cast<int>(Buffer::scratch)] + scratch_bytes_ + slot.index() * slot_bytes_;
  std::vector<Caller>& callers = callers_.of_slot(static_cast<size_t>(slot.index()), slots_.count(), forms_);
  for (const Call& each : chunk.calls) callers[each.form].execute(each, buffers);
  if (!chunk.ending) return;
  const Ending& e = *chunk.ending;
  const auto at = [&](const Place& place) { return buffers[static_cast<int>(place.buffer)] + place.offset; };
  const char* from = at(e.from);
  char* to = at(e.to);
  if (!epilogue_.present) {
    const auto bytes = static_cast<size_t>(e.channels) * sizeof(float);
    for (int64_t r = 0; r < e.rows; ++r, from += e.from_row, to += e.to_row) std::memcpy(to, from, bytes);
    return;
  }
  cpu::Epilogue::At rest = epilogue_.at(operands, e.first, e.to.offset);
  for (int64_t r = 0; r < e.rows; ++r, from += e.from_row, to += e.to_row) {
    epilogue_(reinterpret_cast<const float*>(from), rest, to, e.channels);
    if (rest.added) rest.added += e.to_row;
  }
}

}  // namespace millrace::onednn
