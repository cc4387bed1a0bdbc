#include <algorithm>
#include <map>
#include <queue>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <millrace/operator.h>

#include "base/contains.h"
#include "base/format.h"
#include "ir/values.h"
#include "passes/pass.h"

namespace millrace {
namespace {

constexpr size_t max_group_nodes = 160;
constexpr size_t max_group_reads = 160;
/// Each part of a split has the code of what is before the split once more.
constexpr int max_parts = 8;

/// A set of nodes that become one loop nest over `space`.
struct Group {
  Shape space;
  std::vector<int64_t> axes;  // of its reductions
  bool reduces = false;
  std::vector<int> members;   // owned nodes: evaluated once, here
  std::vector<int> inlined;   // nodes also evaluated elsewhere: movement and generators
  int last = -1, first = -1;  // range of owned nodes
};

/// Assigns nodes to groups, consumers first, so that producers can join those who read them.
class Fuser {
 public:
  explicit Fuser(const Graph& graph)
      : graph_(graph), homes_(graph.size()), owner_(graph.size(), -1), users_(users_of(graph)) {
    for (int i = 0; i < graph.size(); ++i)
      if (graph.node(i).op->op_class == OpClass::view && !graph.node(i).op->reshapes()) cuts_.push_back(i);
    compared_.assign(graph.size(), false);
    for (int i = graph.size() - 1; i >= 0; --i)
      for (const int u : users_[i])
        if (node(u).op->errors == ErrorGrowth::decisive || (moves(u) && compared_[u])) compared_[i] = true;
    is_output_.assign(graph.size(), false);
    for (const Value& output : graph.outputs()) is_output_[output.node] = true;
  }

  Graph run() {
    for (int i = graph_.size() - 1; i >= 0; --i) place(i);
    merge_siblings();
    for (size_t g = 0; g < groups_.size(); ++g)
      while (merge_with_producer(static_cast<int>(g))) continue;
    return emit();
  }

 private:
  struct Home {
    int group;
    bool direct;  // evaluated at the nest's own index, not at a computed one
  };

  const Node& node(int i) const { return graph_.node(i); }
  const Shape& shape(int i) const { return node(i).types[0].shape; }

  bool fusible(int i) const {
    const OpClass kind = node(i).op->op_class;
    return kind == OpClass::elementwise || kind == OpClass::reduction || moves(i);
  }
  bool moves(int i) const {
    return node(i).op->op_class == OpClass::movement || node(i).op->op_class == OpClass::generator;
  }
  /// Whether node i loads elements of its operands more than once.
  bool loads_again(int i) const {
    const Operator& op = *node(i).op;
    return op.window && !(op.disjoint && op.disjoint(node(i)));
  }
  /// Cheap to evaluate wherever it is read, even when it is stored too.
  bool free_to_repeat(int i) const { return node(i).op->repeat == Repeat::free; }

  const Home* home_in(int i, int group) const {
    for (const Home& home : homes_[i])
      if (home.group == group) return &home;
    return nullptr;
  }

  int new_group(int i, Shape space) {
    Group group;
    group.space = std::move(space);
    groups_.push_back(std::move(group));
    own(i, static_cast<int>(groups_.size()) - 1, true);
    return static_cast<int>(groups_.size()) - 1;
  }
  void own(int i, int g, bool direct) {
    Group& group = groups_[g];
    group.members.push_back(i);
    group.first = i;
    group.last = std::max(group.last, i);
    homes_[i].push_back({g, direct});
    owner_[i] = g;
    forget_cuts(group);
  }

  /// Whether a group may take node i, too.
  bool has_room(const Group& group, int i) const {
    return group.members.size() + group.inlined.size() < max_group_nodes && reads_fit(group, i);
  }

  /// Whether a group with node i reads no more values than code is compiled for.
  bool reads_fit(const Group& group, int i) const {
    size_t most = node(i).operands.size();
    for (const auto* list : {&group.members, &group.inlined})
      for (const int m : *list) most += node(m).operands.size();
    if (most <= max_group_reads) return true;
    std::set<Value> reads = read_by(group);
    reads.insert(node(i).operands.begin(), node(i).operands.end());
    for (const auto* list : {&group.members, &group.inlined})
      for (const int m : *list) reads.erase({m, 0});
    reads.erase({i, 0});
    return reads.size() <= max_group_reads;
  }

  /// Cuts that a group lies on both sides of.
  void forget_cuts(const Group& group) {
    cuts_.erase(std::upper_bound(cuts_.begin(), cuts_.end(), group.first),
                std::upper_bound(cuts_.begin(), cuts_.end(), group.last));
  }

  /// Whether user u in group g reads node i at g's own index.
  bool reads_directly(int u, const Home& home) const { return home.direct && !moves(u); }

  /// How node i is read by the members of group g.
  struct Access {
    bool any_direct = false, any_indirect = false, windowed = false;
    bool single = true;  // each indirect reader is itself read at g's own index alone
    int indirect_users = 0;
  };
  Access access(int i, int g) const {
    Access a;
    for (int u : users_[i]) {
      const Home* home = home_in(u, g);
      if (!home) continue;
      if (reads_directly(u, *home)) {
        a.any_direct = true;
      } else {
        a.any_indirect = true;
        ++a.indirect_users;
        a.single = a.single && home->direct;
        a.windowed = a.windowed || loads_again(u);
      }
    }
    return a;
  }

  void place(int i) {
    if (!fusible(i)) return;
    std::vector<int> needed;
    bool outside = is_output_[i];
    for (int u : users_[i]) {
      if (homes_[u].empty()) outside = true;
      for (const Home& home : homes_[u])
        if (!contains(needed, home.group)) needed.push_back(home.group);
    }
    if (needed.empty() && !outside) return;  // dead
    if (node(i).op->op_class == OpClass::reduction) {
      const Shape& space = graph_.type(node(i).operands[0]).shape;
      const int g = new_group(i, space);
      groups_[g].reduces = true;
      groups_[g].axes = node(i).attributes.ints("axes");
    } else if (moves(i)) {
      place_movement(i, needed, outside);
    } else {
      place_elementwise(i, needed, outside);
    }
  }

  void place_movement(int i, const std::vector<int>& needed, bool outside) {
    const bool single = node(i).types.size() == 1 && !node(i).op->window;
    bool inlines = single && !outside;
    // A window must not be evaluated more often than it has elements.
    if (!single && !outside && needed.size() == 1 && node(i).types.size() == 1) {
      const Access a = access(i, needed[0]);
      inlines = !a.any_indirect && groups_[needed[0]].space == shape(i);
    }
    for (int g : needed) {
      const Access a = access(i, g);
      if (a.windowed || !reads_fit(groups_[g], i)) inlines = false;
    }
    if (!inlines) new_group(i, shape(i));
    if (inlines || free_to_repeat(i)) repeat_in(i, needed);
  }

  /// Groups that read node i evaluate it themselves.
  void repeat_in(int i, const std::vector<int>& needed) {
    for (int g : needed) {
      homes_[i].push_back({g, !access(i, g).any_indirect});
      groups_[g].inlined.push_back(i);
    }
  }

  /// How many large values a cheap chain ending in node i reads, and how many operators it has. Small
  /// operands (those broadcast into it) do not count.
  struct Chain {
    std::set<Value> reads;
    std::set<int> operators;
    bool cheap = true;
  };
  void follow_chain(int i, Chain& chain) const {
    if (!chain.operators.insert(i).second) return;
    if (node(i).op->repeat > Repeat::cheap || chain.operators.size() > 10) chain.cheap = false;
    for (const Value& operand : node(i).operands) {
      if (!chain.cheap) return;
      const Node& producer = node(operand.node);
      if (producer.op->broadcasts || producer.op->is_given()) {
        const Value from = producer.op->broadcasts ? producer.operands[0] : operand;
        if (graph_.type(from).shape.count() * 4 > shape(i).count()) chain.reads.insert(from);
      } else if (producer.op->op_class == OpClass::elementwise) {
        follow_chain(operand.node, chain);
      } else {
        chain.reads.insert(operand);
      }
    }
  }
  /// Computing the node again costs no more memory traffic than reading it would. Values that are compared
  /// for equality are not repeated: which products join additions differs from nest to nest, and the gradient
  /// of max looks for the element that was the largest to the last bit.
  bool cheap_to_repeat(int i) const {
    if (compared_[i]) return false;
    Chain chain;
    follow_chain(i, chain);
    return chain.cheap && chain.reads.size() <= 1;
  }

  /// Whether node i has one element for each row of a nest over `space`: it leaves the loop over the row's
  /// elements.
  bool one_a_row(int i, const Shape& space) const {
    const Shape& mine = shape(i);
    if (mine.rank() != space.rank()) return false;
    int d = 0;
    while (d < mine.rank() && mine[d] == space[d]) ++d;
    for (int rest = d; rest < mine.rank(); ++rest)
      if (mine[rest].size() != 1) return false;
    return d > 0 && space.count() >= 16 * mine.count();
  }

  void place_elementwise(int i, const std::vector<int>& needed, bool outside) {
    if (!outside && needed.size() == 1) {
      const int g = needed[0];
      const Access a = access(i, g);
      const bool room = has_room(groups_[g], i);
      // As many elements are computed as there are: for one reader, or for the parts of a split.
      const int64_t mine = shape(i).count(), space = groups_[g].space.count();
      const bool parts =
          a.single && !compared_[i] && a.indirect_users <= max_parts && a.indirect_users * space <= mine;
      const bool once = !a.any_indirect ||
                        (!a.any_direct && !a.windowed &&
                         (a.indirect_users == 1 ? space <= mine || one_a_row(i, groups_[g].space) : parts));
      if (room && once) return own(i, g, !a.any_indirect);
    }
    const auto may_repeat = [&](int g) {
      const Access a = access(i, g);
      return !a.windowed && !(a.any_indirect && groups_[g].space.count() > shape(i).count());
    };
    const auto takes = [&](int g) { return may_repeat(g) && reads_fit(groups_[g], i); };
    if (!outside && cheap_to_repeat(i) && std::all_of(needed.begin(), needed.end(), takes))
      return repeat_in(i, needed);
    // Stored: as one more result of a group that computes it anyway, where that makes no cycle.
    for (int g : needed) {
      const Access a = access(i, g);
      if (a.any_indirect || !(groups_[g].space == shape(i)) || !has_room(groups_[g], i)) continue;
      if (!detours({i}, g, g)) return own(i, g, true);
    }
    new_group(i, shape(i));
  }

  /// Whether a path from nodes of group a goes through others than groups a and b into group b. Groups are
  /// entered and left as wholes.
  bool detours(const std::vector<int>& nodes, int a, int b) const {
    std::vector<char> seen(graph_.size(), 0), seen_group(groups_.size(), 0);
    std::vector<int> stack;
    bool found = false;
    const auto follow = [&](int n, bool first) {
      for (int u : users_[n]) {
        if (homes_[u].empty() && !seen[u]) stack.push_back(u);
        for (const Home& home : homes_[u]) {
          if (first && (home.group == a || home.group == b)) continue;
          found = found || home.group == b;
          if (std::exchange(seen_group[home.group], 1)) continue;
          stack.insert(stack.end(), groups_[home.group].members.begin(), groups_[home.group].members.end());
        }
      }
    };
    for (int n : nodes) follow(n, true);
    // No path leads back over a cut, so what is behind one need not be looked at.
    const auto cut = std::upper_bound(cuts_.begin(), cuts_.end(), groups_[b].last);
    const int end = cut == cuts_.end() ? graph_.size() : *cut;
    while (!stack.empty() && !found) {
      const int n = stack.back();
      stack.pop_back();
      if (seen[n] || n >= end) continue;
      seen[n] = 1;
      follow(n, false);
    }
    return found;
  }

  std::set<Value> read_by(const Group& group) const {
    std::set<Value> values;
    for (const auto* list : {&group.members, &group.inlined})
      for (int m : *list)
        for (const Value& operand : node(m).operands) values.insert(operand);
    return values;
  }

  /// Whether all that group a reads of group b is computed and read at the nest's own index.
  bool reads_only_directly(int a, int b) const {
    for (const auto* list : {&groups_[a].members, &groups_[a].inlined})
      for (int m : *list)
        for (const Value& operand : node(m).operands) {
          if (owner_[operand.node] != b) continue;
          if (node(operand.node).op->op_class == OpClass::reduction) return false;
          if (!home_in(operand.node, b)->direct || !reads_directly(m, *home_in(m, a))) return false;
        }
    return true;
  }

  /// Whether a group computes something again that was computed before: it must not move to where that was.
  bool repeats(const Group& group) const {
    return std::any_of(group.members.begin(), group.members.end(),
                       [&](int m) { return node(m).origin.again; });
  }

  /// Whether two groups can be one nest.
  bool can_merge(int a, int b) const {
    return groups_[a].space == groups_[b].space && repeats(groups_[a]) == repeats(groups_[b]) &&
           reads_only_directly(a, b) && reads_only_directly(b, a) && !detours(groups_[a].members, a, b) &&
           !detours(groups_[b].members, b, a);
  }

  /// Reductions of the same space and axes that read a common value, or of which one reads what the other's
  /// nest computes, become one nest: one pass over memory.
  void merge_siblings() {
    for (size_t a = 0; a < groups_.size(); ++a) {
      if (!groups_[a].reduces) continue;
      for (size_t b = a + 1; b < groups_.size(); ++b) {
        const Group &ga = groups_[a], &gb = groups_[b];
        if (!gb.reduces || ga.axes != gb.axes || !(ga.space == gb.space)) continue;
        if (ga.members.size() + gb.members.size() > max_group_nodes) continue;
        const std::set<Value> ra = read_by(ga), rb = read_by(gb);
        if (ra.size() + rb.size() > max_group_reads) continue;
        const bool common = std::any_of(ra.begin(), ra.end(), [&](const Value& v) {
          return rb.count(v) && graph_.type(v).shape.count() == ga.space.count() && ga.space.count() > 1;
        });
        const int ia = static_cast<int>(a), ib = static_cast<int>(b);
        if (common && can_merge(ia, ib)) absorb(ia, ib);
      }
    }
  }

  /// Group g reads, at its own index, what another group over the same space stores: they become one nest,
  /// and the value is not read back from memory. (Several results of one update, of which some are used by
  /// others; a gradient that is summed for a bias and rounded for a product.)
  bool merge_with_producer(int g) {
    const Group& group = groups_[g];
    if (group.reduces) return false;
    for (const auto* list : {&group.members, &group.inlined})
      for (int m : *list)
        for (const Value& operand : node(m).operands) {
          const int from = owner_[operand.node];
          if (from < 0 || from == g) continue;
          const Group& other = groups_[from];
          const size_t nodes =
              group.members.size() + group.inlined.size() + other.members.size() + other.inlined.size();
          if (nodes > max_group_nodes ||
              read_by(group).size() + read_by(other).size() > 2 * max_group_reads || !can_merge(g, from))
            continue;
          // The one that reduces decides how the nest runs.
          if (other.reduces)
            absorb(from, g);
          else
            absorb(g, from);
          return true;
        }
    return false;
  }

  void absorb(int a, int b) {
    Group &into = groups_[a], &from = groups_[b];
    for (auto* list : {&from.members, &from.inlined})
      for (int m : *list) {
        const bool both = home_in(m, a) != nullptr;
        auto& homes = homes_[m];
        if (both)
          homes.erase(std::find_if(homes.begin(), homes.end(), [&](const Home& h) { return h.group == b; }));
        else
          for (Home& home : homes)
            if (home.group == b) home.group = a;
        if (list == &from.inlined) {
          if (!both) into.inlined.push_back(m);
          continue;
        }
        // What one of them stores and the other only repeats is stored.
        owner_[m] = a;
        into.members.push_back(m);
        std::erase(into.inlined, m);
      }
    into.first = std::min(into.first, from.first);
    into.last = std::max(into.last, from.last);
    forget_cuts(into);
    from = {};
  }

  /// The results of a group's own nodes that someone else reads.
  std::vector<Value> results_of(int g) const {
    std::vector<int> members = groups_[g].members;
    std::sort(members.begin(), members.end());
    std::vector<Value> results;
    for (int m : members) {
      for (size_t r = 0; r < node(m).types.size(); ++r) {
        const Value value{m, static_cast<int32_t>(r)};
        const bool read = std::any_of(users_[m].begin(), users_[m].end(), [&](int u) {
          return contains(node(u).operands, value) &&
                 (homes_[u].empty() || std::any_of(homes_[u].begin(), homes_[u].end(),
                                                   [&](const Home& home) { return home.group != g; }));
        });
        if (read || contains(graph_.outputs(), value)) results.push_back(value);
      }
    }
    return results;
  }

  struct Body {
    std::shared_ptr<Graph> graph = std::make_shared<Graph>();
    std::vector<Value> reads;  // old values, in order of the body's inputs
    std::map<Value, Value> map;
  };

  Value emit_into(Body& body, int g, Value value) const {
    if (const auto it = body.map.find(value); it != body.map.end()) return it->second;
    const Array* constant = graph_.constant_value(value);
    const bool inside = home_in(value.node, g) != nullptr;
    if (!inside && !(constant && constant->count() == 1)) {
      const Value input = body.graph->input(fmt::format("x{}", body.reads.size()), graph_.type(value));
      body.reads.push_back(value);
      return body.map[value] = input;
    }
    const Node& n = node(value.node);
    std::vector<Value> operands;
    for (const Value& operand : n.operands) operands.push_back(emit_into(body, g, operand));
    body.graph->set_origin(n.origin);
    const Value added = body.graph->add(*n.op, std::move(operands), n.attributes);
    map_results(body.map, graph_, value.node, added);
    return body.map[value];
  }

  void emit_group(Rewriter& rewrite, int g) const {
    Body body;
    const std::vector<Value> results = results_of(g);
    std::vector<Value> outputs;
    Origin origin;
    for (const Value& value : results) {
      outputs.push_back(emit_into(body, g, value));
      if (origin.empty()) origin = node(value.node).origin;
    }
    body.graph->set_outputs(outputs);
    rewrite.graph().set_origin(origin);
    static const Operator& fused = get_operator("fused");
    const Value added =
        rewrite.graph().add_with_body(fused, rewrite.mapped(body.reads), {}, std::move(body.graph));
    for (size_t r = 0; r < results.size(); ++r)
      rewrite.set(results[r], {added.node, static_cast<int32_t>(r)});
  }

  /// A group stands where its last node stood, or before the first unit that needs it.
  std::vector<int> unit_positions(const std::vector<std::set<int>>& after, std::vector<int> waits) const {
    const int n = graph_.size(), units = static_cast<int>(after.size());
    std::vector<int> order, positions(units);
    for (int u = 0; u < units; ++u) {
      positions[u] = u < n ? u : groups_[u - n].last;
      if (waits[u] == 0) order.push_back(u);
    }
    for (size_t at = 0; at < order.size(); ++at)
      for (const int next : after[order[at]])
        if (--waits[next] == 0) order.push_back(next);
    for (auto u = order.rbegin(); u != order.rend(); ++u)
      for (const int next : after[*u]) positions[*u] = std::min(positions[*u], positions[next]);
    return positions;
  }

  /// Units in an order that respects who reads whom, as near to the old order as possible.
  Graph emit() const {
    const int n = graph_.size();
    std::vector<int> unit(n, -1);  // node → unit: its own number, n + group, or −1 when only inlined
    for (int i = 0; i < n; ++i) {
      if (homes_[i].empty())
        unit[i] = fusible(i) ? -1 : i;
      else if (owner_[i] >= 0)
        unit[i] = n + owner_[i];
    }
    const int units = n + static_cast<int>(groups_.size());
    std::vector<std::set<int>> after(units);
    std::vector<int> waits(units, 0);
    const auto order = [&](int from, int to) {
      if (from >= 0 && from != to && after[from].insert(to).second) ++waits[to];
    };
    const auto reads = [&](int reader, int to) {
      for (const Value& operand : node(reader).operands)
        if (unit[operand.node] >= 0 && !(to >= n && home_in(operand.node, to - n)))
          order(unit[operand.node], to);
    };
    for (int i = 0; i < n; ++i)
      if (unit[i] == i) reads(i, i);
    for (size_t g = 0; g < groups_.size(); ++g)
      for (const auto* list : {&groups_[g].members, &groups_[g].inlined})
        for (int m : *list) reads(m, n + static_cast<int>(g));

    const std::vector<int> positions = unit_positions(after, waits);
    using Entry = std::pair<int, int>;  // (position, unit)
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready;
    int pending = 0;
    for (int u = 0; u < units; ++u) {
      const bool exists = u < n ? unit[u] == u : !groups_[u - n].members.empty();
      if (!exists) continue;
      ++pending;
      if (waits[u] == 0) ready.push({positions[u], u});
    }
    Rewriter rewrite(graph_);
    rewrite.copy_inputs();
    while (!ready.empty()) {
      const int u = ready.top().second;
      ready.pop();
      --pending;
      if (u >= n)
        emit_group(rewrite, u - n);
      else if (!rewrite.has({u, 0}))
        rewrite.copy(u);
      for (int next : after[u])
        if (--waits[next] == 0) ready.push({positions[next], next});
    }
    MILLRACE_CHECK(pending == 0, "fusion made a cycle: {} units are left", pending);
    return rewrite.finish();
  }

  const Graph& graph_;
  std::vector<Group> groups_;
  std::vector<std::vector<Home>> homes_;  // node → groups that evaluate it
  std::vector<int> owner_;                // node → the group that stores it, or −1
  std::vector<std::vector<int>> users_;
  std::vector<int> cuts_;  // nodes, ascending: every group is wholly before or wholly behind each
  std::vector<bool> is_output_, compared_;  // compared: for equality, by a node that reads it
};

}  // namespace

// Chains of element-wise operators with the broadcasts, slices and transposes between them, and the
// reductions at their ends, become `fused` nodes: one loop nest each.
static Graph fuse(const Graph& graph, const PassContext& context) {
  if (!context.target.fuses) return graph;
  return Fuser(graph).run();
}

MILLRACE_PASS(fuse){.name = "fuse",
                    .doc = "chains of element-wise operators become one loop nest",
                    .place = 220,
                    .run = fuse};

}  // namespace millrace
