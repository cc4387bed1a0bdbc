// Whether a condition is true for a sample whose values somebody gives.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "data/table/query.h"

namespace millrace::data {

enum class Truth : uint8_t { no, yes, unknown };

/// A value of a sample or of the condition; std::monostate: it is missing.
using Cell = std::variant<std::monostate, int64_t, double, std::string_view>;

/// A constant of the condition.
Cell constant_cell(const Query::Operand& operand);

/// unknown when one is missing, or one is a text and the other a number.
Truth truth_of(const std::string& comparison, const Cell& a, const Cell& b);

/// `cell(node, operand)`: the values.
template <typename Cells>
Truth evaluate(const Query& query, size_t at, const Cells& cell) {
  const Query::Node& node = query.nodes()[at];
  switch (node.what) {
    case Query::Node::What::negation: {
      const Truth truth = evaluate(query, static_cast<size_t>(node.left), cell);
      return truth == Truth::unknown ? truth : truth == Truth::yes ? Truth::no : Truth::yes;
    }
    case Query::Node::What::both:
    case Query::Node::What::either: {
      const Truth decides = node.what == Query::Node::What::both ? Truth::no : Truth::yes;
      const Truth left = evaluate(query, static_cast<size_t>(node.left), cell);
      if (left == decides) return left;
      const Truth right = evaluate(query, static_cast<size_t>(node.right), cell);
      return right == decides || left != Truth::unknown ? right : left;
    }
    case Query::Node::What::compare:
      return truth_of(node.comparison, cell(at, 0), cell(at, 1));
    case Query::Node::What::among:
      break;
  }
  const Cell value = cell(at, 0);
  if (std::holds_alternative<std::monostate>(value)) return Truth::unknown;
  Truth truth = Truth::no;
  for (size_t k = 1; k < node.operands.size(); ++k) {
    const Truth one = truth_of("=", value, cell(at, k));
    if (one == Truth::yes) return one;
    // A text is in no list of numbers, and neither is it not in it.
    const auto text = [](const Cell& each) { return std::holds_alternative<std::string_view>(each); };
    if (text(cell(at, k)) != text(value)) truth = Truth::unknown;
  }
  return truth;
}

}  // namespace millrace::data
