#include <map>

#include "base/words.h"
#include "onnx/import/call.h"

using namespace millrace;
using onnx::Ints;

namespace {

struct Equation {
  std::vector<std::string> operands;
  std::string result;
};

/// Without blanks; an ellipsis is the dimensions that have no letter, written as capital letters of its own.
Equation parsed(onnx::ImportCall& call) {
  std::string text = call.text("equation");
  std::erase(text, ' ');
  const size_t arrow = text.find("->");
  Equation e;
  e.operands = split(text.substr(0, arrow));
  if (static_cast<int>(e.operands.size()) != call.count())
    call.refuse("its equation has another number of terms than it has inputs");
  std::string ellipsis;
  for (size_t k = 0; k < e.operands.size(); ++k) {
    std::string& term = e.operands[k];
    const size_t dots = term.find("...");
    if (dots == std::string::npos) continue;
    const int extra = call.rank(static_cast<int>(k)) - static_cast<int>(term.size()) + 3;
    if (extra < 0 || extra > 8) call.refuse("its equation does not fit its inputs");
    std::string letters;
    for (int i = 0; i < extra; ++i) letters += static_cast<char>(1 + 8 - extra + i);
    term.replace(dots, 3, letters);
    if (letters.size() > ellipsis.size()) ellipsis = letters;
  }
  if (arrow != std::string::npos) {
    e.result = text.substr(arrow + 2);
    if (const size_t dots = e.result.find("..."); dots != std::string::npos)
      e.result.replace(dots, 3, ellipsis);
    return e;
  }
  std::map<char, int> seen;
  for (const std::string& term : e.operands)
    for (const char letter : term) ++seen[letter];
  e.result = ellipsis;
  for (const auto& [letter, times] : seen)
    if (times == 1 && letter > 8) e.result += letter;
  return e;
}

/// The diagonal where a letter stands twice.
Value without_repeats(onnx::ImportCall& call, Value x, std::string& term) {
  for (size_t i = 0; i < term.size(); ++i)
    for (size_t k = i + 1; k < term.size(); ++k) {
      if (term[i] != term[k]) continue;
      const Shape shape = call.b.shape(x);
      const Value one = call.places(shape, static_cast<int64_t>(i)),
                  other = call.places(shape, static_cast<int64_t>(k));
      x = call.b.sum(call.b.select(call.graph.add("equal", {one, other}), x, call.fill(x, 0)),
                     {static_cast<int64_t>(k)}, false);
      term.erase(k--, 1);
    }
  return x;
}

/// With dimensions in the order of `all`, those that it lacks of size 1.
Value spread(onnx::ImportCall& call, Value x, const std::string& term, const std::string& all) {
  Ints order;
  Shape shape;
  for (const char letter : all) {
    const size_t at = term.find(letter);
    if (at != std::string::npos) order.push_back(static_cast<int64_t>(at));
    shape.push_back(at == std::string::npos ? Dim(1) : call.b.shape(x)[at]);
  }
  return call.b.reshape(call.b.transpose(x, order), shape);
}

/// Two terms as a product of matrices: letters of both and the result are a batch, of both alone are summed.
Value product(onnx::ImportCall& call, Value a, const std::string& of_a, Value b, const std::string& of_b,
              const std::string& kept, std::string& result) {
  std::string batch, rows, summed, columns;
  for (const char letter : of_a) {
    const bool both = of_b.find(letter) != std::string::npos, out = kept.find(letter) != std::string::npos;
    (both ? (out ? batch : summed) : rows) += letter;
  }
  for (const char letter : of_b)
    if (of_a.find(letter) == std::string::npos) columns += letter;
  const auto size = [&](const std::string& letters, const std::string& term, Value x) {
    int64_t all = 1;
    for (const char letter : letters) all *= call.b.shape(x)[term.find(letter)].size();
    return all;
  };
  const int64_t n = size(batch, of_a, a), r = size(rows, of_a, a), k = size(summed, of_a, a),
                c = size(columns, of_b, b);
  const Value left = call.b.reshape(spread(call, a, of_a, batch + rows + summed), {n, r, k}),
              right = call.b.reshape(spread(call, b, of_b, batch + summed + columns), {n, k, c});
  Shape shape;
  for (const char letter : batch + rows) shape.push_back(call.b.shape(a)[of_a.find(letter)]);
  for (const char letter : columns) shape.push_back(call.b.shape(b)[of_b.find(letter)]);
  result = batch + rows + columns;
  return call.b.reshape(call.b.matmul(left, right), shape);
}

}  // namespace

MILLRACE_ONNX_IMPORT(Einsum) {
  Equation e = parsed(call);
  std::vector<Value> terms;
  for (int k = 0; k < call.count(); ++k) {
    terms.push_back(without_repeats(call, call[k], e.operands[static_cast<size_t>(k)]));
    if (call.b.shape(terms.back()).rank() != static_cast<int>(e.operands[static_cast<size_t>(k)].size()))
      call.refuse("its equation does not fit its inputs");
  }
  Value x = terms[0];
  std::string term = e.operands[0];
  for (size_t k = 1; k < terms.size(); ++k) {
    std::string kept = e.result;
    for (size_t later = k + 1; later < terms.size(); ++later) kept += e.operands[later];
    bool alike = call.b.dtype(x).is_float();  // no dimension of size 1 meets another
    for (const char letter : term)
      if (const size_t at = e.operands[k].find(letter); at != std::string::npos)
        alike = alike && call.b.shape(x)[term.find(letter)] == call.b.shape(terms[k])[at];
    if (alike) {
      x = product(call, x, term, terms[k], e.operands[k], kept, term);
      continue;
    }
    std::string all = term;
    for (const char letter : e.operands[k])
      if (all.find(letter) == std::string::npos) all += letter;
    x = call.b.mul(spread(call, x, term, all), spread(call, terms[k], e.operands[k], all));
    term = all;
  }
  Ints out;
  std::string left;
  for (size_t d = 0; d < term.size(); ++d)
    if (e.result.find(term[d]) == std::string::npos)
      out.push_back(static_cast<int64_t>(d));
    else
      left += term[d];
  if (!out.empty()) x = call.b.sum(x, out, false);
  return {spread(call, x, left, e.result)};
}
