#include "trace/recorder.h"

#include "base/contains.h"
#include "base/format.h"

namespace millrace::trace {

Recorder*& current_recorder() {
  thread_local Recorder* recorder = nullptr;
  return recorder;
}

Recorder::Recorder(std::unique_ptr<Segment>& root, std::vector<Segment*> path, std::vector<Array> slots,
                   size_t arguments, std::string target, size_t capacity)
    : root_(root),
      path_(std::move(path)),
      slots_(std::move(slots)),
      target_(std::move(target)),
      capacity_(capacity),
      next_slot_(static_cast<int>(arguments)),
      outer_(current_recorder()) {
  for (size_t i = 0; i < arguments; ++i) {
    arguments_.emplace_back(slots_[i]);
    known_[{arguments_.back().node().get(), 0}] = static_cast<int>(i);
  }
  kept_ = arguments_;
  current_recorder() = this;
}

Recorder::~Recorder() { current_recorder() = outer_; }

int Recorder::slot_of(const Tensor& tensor, Segment& segment) {
  const Slot slot = key_of(tensor);
  if (const auto it = known_.find(slot); it != known_.end()) return it->second;
  if (tensor.is_symbol())
    fail<TypeError>(
        "'{}' is captured by a compiled function, but it has no value; hand it over as an argument",
        tensor.node()->name);
  const int number = next_slot_ + static_cast<int>(segment.constants.size());
  segment.constants.push_back(tensor.node()->values[tensor.output()]);
  kept_.push_back(tensor);
  known_[slot] = number;
  return number;
}

Recorder::Piece Recorder::make(const Linear& linear, const std::vector<Slot>& computed) {
  Piece piece{std::make_unique<Segment>(), computed};
  Segment& segment = *piece.segment;
  for (const Tensor& leaf : linear.leaves) segment.inputs.push_back(slot_of(leaf, segment));
  segment.operations = static_cast<int>(linear.operations.size());
  segment.results = static_cast<int>(computed.size());
  segment.structure = fmt::format("{}\n{}", structure(linear, computed), segment.inputs);
  const int first = next_slot_ + static_cast<int>(segment.constants.size());
  for (size_t i = 0; i < computed.size(); ++i) known_[computed[i]] = first + static_cast<int>(i);
  return piece;
}

void Recorder::enter(Piece piece, const Linear& linear) {
  Segment& made = *piece.segment;
  const size_t index = reads_++;
  next_slot_ += static_cast<int>(made.constants.size()) + made.results;
  if (index < path_.size()) {
    if (path_[index]->structure != made.structure)
      fail<TypeError>(
          "a compiled function computed something else when it was run again with the same arguments; it may "
          "depend only on its arguments and on constants");
    last_ = path_[index];
    return;
  }
  if (!piece.computed.empty()) made.executable = find_compiled(linear, piece.computed, target_);
  run(made, slots_);
  if (last_) {
    last_ = last_->add(answer_, std::move(piece.segment), capacity_);
  } else {
    root_ = std::move(piece.segment);
    last_ = root_.get();
  }
}

void Recorder::read(const Tensor& tensor, ReadKind kind, const std::source_location& where) {
  if (tensor.node()->is_constant()) return;
  const Slot slot = key_of(tensor);
  if (!tensor.node()->is_operation() && !known_.contains(slot)) return;  // a captured constant
  const Linear linear = linearise(std::span(&tensor, 1));
  std::vector<Slot> computed;
  for (const TensorNode* node : linear.shared)
    for (size_t r = 0; r < node->types.size(); ++r) computed.push_back({node, static_cast<int>(r)});
  const int first = next_slot_;
  Piece piece = make(linear, computed);
  piece.segment->kind = kind;
  piece.segment->where = where;
  piece.segment->read = known_.at(slot);
  piece.segment->structure += fmt::format("\nread {} {}", static_cast<int>(kind), piece.segment->read);
  int next = first + static_cast<int>(piece.segment->constants.size());
  enter(std::move(piece), linear);
  for (TensorNode* node : linear.shared) {
    std::vector<Array> results;
    for (size_t r = 0; r < node->types.size(); ++r) results.push_back(slots_[next++]);
    kept_.emplace_back(node->shared_from_this());
    node->settle(std::move(results));
  }
  answer_ = value_read(slots_[last_->read], kind);
}

std::vector<Array> Recorder::finish(const std::vector<Tensor>& results) {
  std::vector<Slot> computed;
  for (const Tensor& result : results) {
    if (!result.defined()) fail<TypeError>("a compiled function returned a tensor without a value");
    const Slot slot = key_of(result);
    if (result.node()->is_operation() && !contains(computed, slot)) computed.push_back(slot);
  }
  const Linear linear = linearise(results);
  Piece piece = make(linear, computed);
  Segment& segment = *piece.segment;
  segment.returns = true;
  for (const Tensor& result : results) segment.returned.push_back(slot_of(result, segment));
  segment.structure += fmt::format("\nreturn {}", segment.returned);
  const std::vector<int> returned = segment.returned;
  enter(std::move(piece), linear);
  if (reads_ <= path_.size())
    fail<TypeError>(
        "a compiled function read fewer values when it was run again with the same arguments; it may depend "
        "only on its arguments and on constants");
  std::vector<Array> values;
  for (const int slot : returned) values.push_back(slots_[slot]);
  return values;
}

}  // namespace millrace::trace
