#include <algorithm>
#include <list>
#include <mutex>

#include <millrace/compile.h>

#include "base/format.h"
#include "trace/recorder.h"

namespace millrace {
namespace {

using trace::ReadKind;
using trace::Segment;

/// What was recorded for one set of input types.
struct Entry {
  std::vector<Type> types;
  std::unique_ptr<Segment> root;
};

std::string types_text(const std::vector<Type>& types) {
  std::vector<std::string> texts;
  for (const Type& type : types) texts.push_back(type.str());
  return fmt::format("({})", fmt::join(texts, ", "));
}

/// In words: what differs between two sets of input types.
std::string difference(const std::vector<Type>& before, const std::vector<Type>& now) {
  if (before.size() != now.size()) return fmt::format("{} inputs instead of {}", now.size(), before.size());
  for (size_t i = 0; i < now.size(); ++i)
    if (before[i] != now[i])
      return fmt::format("input {} is {} instead of {}", i, now[i].str(), before[i].str());
  return "nothing";
}

const char* kind_text(ReadKind kind) {
  static constexpr const char* names[] = {"a bool", "a number", "an array"};
  return names[static_cast<size_t>(kind)];
}

std::string shown(const Segment& segment, const std::string& value) {
  return segment.kind == ReadKind::array ? "these elements" : value;
}

void describe(const Segment& segment, int& number, const std::string& indent, std::string& text) {
  ++number;
  text += fmt::format("{}segment {}: {} operations, {} inputs, {} results", indent, number,
                      segment.operations, segment.inputs.size(), segment.results);
  if (!segment.constants.empty()) text += fmt::format(", {} captured constants", segment.constants.size());
  text += '\n';
  if (segment.returns) {
    text += fmt::format("{}returns {} tensors\n", indent, segment.returned.size());
    return;
  }
  text += fmt::format("{}break at {}: the host reads {}\n", indent, trace::place(segment.where),
                      kind_text(segment.kind));
  for (const Segment::Next& next : segment.next) {
    text += fmt::format("{}  when it is {}:\n", indent, shown(segment, next.value));
    describe(*next.segment, number, indent + "    ", text);
  }
}

int64_t count_segments(const Segment& segment) {
  int64_t count = 1;
  for (const Segment::Next& next : segment.next) count += count_segments(*next.segment);
  return count;
}

bool has_symbol(std::span<const Tensor> tensors) {
  const trace::Linear linear = trace::linearise(tensors);
  return std::any_of(linear.leaves.begin(), linear.leaves.end(),
                     [](const Tensor& leaf) { return leaf.is_symbol(); });
}

}  // namespace

struct CompiledFunction::State {
  Function function;
  std::mutex mutex;
  std::list<Entry> entries;  // the one used last first
  int64_t calls = 0, recordings = 0;
  std::list<std::string> events;  // why it was recorded again; the last few

  Entry& entry_for(const std::vector<Type>& types);
  std::vector<Array> run(Entry& entry, const std::vector<Array>& inputs);
  std::vector<Array> record(Entry& entry, std::vector<Segment*> path, std::vector<Array> slots,
                            size_t arguments);
  void note(std::string event) {
    constexpr size_t most = 32;
    events.push_back(fmt::format("call {}: {}", calls, event));
    if (events.size() > most) events.pop_front();
  }
};

Entry& CompiledFunction::State::entry_for(const std::vector<Type>& types) {
  const auto it =
      std::find_if(entries.begin(), entries.end(), [&](const Entry& e) { return e.types == types; });
  if (it != entries.end()) {
    entries.splice(entries.begin(), entries, it);
    return entries.front();
  }
  if (!entries.empty()) note("recorded for new input types: " + difference(entries.front().types, types));
  if (entries.size() == guard_capacity) entries.pop_back();
  entries.push_front({types, nullptr});
  return entries.front();
}

std::vector<Array> CompiledFunction::State::record(Entry& entry, std::vector<Segment*> path,
                                                   std::vector<Array> slots, size_t arguments) {
  ++recordings;
  trace::Recorder recorder(entry.root, std::move(path), std::move(slots), arguments, default_target(),
                           continuation_capacity);
  const std::vector<Tensor> results = function(recorder.arguments());
  return recorder.finish(results);
}

std::vector<Array> CompiledFunction::State::run(Entry& entry, const std::vector<Array>& inputs) {
  std::vector<Array> slots = inputs;
  std::vector<Segment*> path;
  Segment* segment = entry.root.get();
  while (segment) {
    trace::run(*segment, slots);
    if (segment->returns) {
      std::vector<Array> results;
      for (const int slot : segment->returned) results.push_back(slots[slot]);
      return results;
    }
    path.push_back(segment);
    const std::string value = trace::value_read(slots[segment->read], segment->kind);
    Segment* next = segment->find(value);
    if (!next)
      note(fmt::format("recorded again: {} read at {} is {} for the first time", kind_text(segment->kind),
                       trace::place(segment->where), shown(*segment, value)));
    segment = next;
  }
  return record(entry, std::move(path), std::move(slots), inputs.size());
}

CompiledFunction::CompiledFunction(Function function) : state_(std::make_shared<State>()) {
  if (!function) fail<InputError>("there is no function to compile");
  state_->function = std::move(function);
}

std::vector<Tensor> CompiledFunction::operator()(std::span<const Tensor> inputs) const {
  if (trace::current_recorder() || has_symbol(inputs)) return state_->function(inputs);
  evaluate(inputs);
  std::vector<Array> arrays;
  std::vector<Type> types;
  for (const Tensor& input : inputs) {
    arrays.push_back(input.to_array());
    types.push_back(input.type());
  }
  const std::scoped_lock lock(state_->mutex);
  ++state_->calls;
  std::vector<Tensor> results;
  for (Array& array : state_->run(state_->entry_for(types), arrays)) results.emplace_back(std::move(array));
  return results;
}

CompiledFunction::Counts CompiledFunction::counts() const {
  const std::scoped_lock lock(state_->mutex);
  Counts counts{state_->calls, state_->recordings, 0, static_cast<int64_t>(state_->entries.size())};
  for (const Entry& entry : state_->entries)
    if (entry.root) counts.segments += count_segments(*entry.root);
  return counts;
}

std::string CompiledFunction::explain() const {
  const std::scoped_lock lock(state_->mutex);
  std::string text = fmt::format("{} calls, {} recordings\n", state_->calls, state_->recordings);
  for (const Entry& entry : state_->entries) {
    text += fmt::format("guard: inputs {}\n", types_text(entry.types));
    int number = 0;
    if (entry.root) describe(*entry.root, number, "  ", text);
  }
  for (const std::string& event : state_->events) text += event + '\n';
  return text;
}

}  // namespace millrace
