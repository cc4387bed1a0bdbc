// The text form of graphs, one line a node:
//
//   millrace graph 1
//   %0 = input("pictures") : f32[batch, 4]
//   %1 = constant() {value=f32[]{0.5}} : f32[]
//   %2 = broadcast(%1) {shape=<batch, 4>} : f32[batch, 4]
//   %3 = mul(%0, %2) : f32[batch, 4] @"stem.scale"
//   %4 = neg(%3) : f32[batch, 4] @"stem.scale" backward
//   outputs("scaled": %3)
//
// A node that is computed once more to save memory ends in "again". Result k > 0 of node n is %n.k.
// Attributes: true, 3, 3.0, "text", [1, 2], f32, <2, batch> (a shape), f32[2]{1, 2.5} (an array). Bodies are
// written, indented after "body {", only where the operator does not build them itself. Floats are the
// shortest decimals that read back to the same bits, NaN is written as its bits (0x7fc00000).
#include <algorithm>
#include <charconv>
#include <cmath>

#include <millrace/graph.h>
#include <millrace/narrow_types.h>
#include <millrace/operator.h>

#include "base/format.h"

namespace millrace {
namespace {

constexpr int version = 1;
constexpr int max_depth = 64;  // of bodies within bodies

// ---- writing ----------------------------------------------------------------------------------------------

std::string in_quotes(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\')
      out += {'\\', c};
    else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    else
      out += c;
  }
  return out + "\"";
}

uint64_t bits_of(const Array& array, int64_t i) {
  uint64_t bits = 0;
  const int64_t width = array.dtype().bytes();
  std::memcpy(&bits, static_cast<const char*>(array.data()) + i * width, width);
  return bits;
}

std::string element_text(const Array& array, int64_t i) {
  if (array.dtype() == u64) return std::to_string(static_cast<uint64_t>(array.int_at(i)));
  if (!is_real(array.dtype())) return std::to_string(array.int_at(i));
  const double value = array.at(i);
  if (std::isnan(value)) return fmt::format("{:#x}", bits_of(array, i));
  return array.dtype() == f64 ? fmt::format("{}", value) : fmt::format("{}", static_cast<float>(value));
}

std::string dims_text(const Shape& shape) {
  std::string text = shape.str();  // "[2, batch]"
  return text.substr(1, text.size() - 2);
}

struct AttributeText {
  std::string operator()(bool value) const { return value ? "true" : "false"; }
  std::string operator()(int64_t value) const { return std::to_string(value); }
  std::string operator()(double value) const {
    const std::string text = fmt::format("{}", value);
    return text.find_first_of(".en") == std::string::npos ? text + ".0" : text;  // 'n': inf, nan
  }
  std::string operator()(const std::string& value) const { return in_quotes(value); }
  std::string operator()(const std::vector<int64_t>& value) const {
    return fmt::format("[{}]", fmt::join(value, ", "));
  }
  std::string operator()(DType value) const { return value.name(); }
  std::string operator()(const Shape& value) const { return "<" + dims_text(value) + ">"; }
  std::string operator()(const Array& value) const {
    std::string text = value.type().str() + "{";
    for (int64_t i = 0; i < value.count(); ++i) text += (i ? ", " : "") + element_text(value, i);
    return text + "}";
  }
};

std::string value_text(Value value) {
  return value.output == 0 ? fmt::format("%{}", value.node) : fmt::format("%{}.{}", value.node, value.output);
}

void write_graph(const Graph& graph, const std::string& indent, std::string& out) {
  size_t inputs = 0;
  for (int i = 0; i < graph.size(); ++i) {
    const Node& node = graph.node(i);
    out += fmt::format("{}%{} = {}(", indent, i, node.op->name);
    if (graph.is_input({i, 0})) out += in_quotes(graph.input_names()[inputs++]);
    for (size_t k = 0; k < node.operands.size(); ++k) out += (k ? ", " : "") + value_text(node.operands[k]);
    out += ")";
    std::string attributes;
    for (const auto& [name, value] : node.attributes.items())
      attributes += (attributes.empty() ? " {" : ", ") + name + "=" + std::visit(AttributeText{}, value);
    out += attributes.empty() ? " : " : attributes + "} : ";
    for (size_t r = 0; r < node.types.size(); ++r) out += (r ? ", " : "") + node.types[r].str();
    if (node.origin != Origin()) out += " @" + in_quotes(node.origin.layer.str());
    if (node.origin.phase != Phase::forward) out += fmt::format(" {}", phase_name(node.origin.phase));
    if (node.origin.again) out += " again";
    if (node.op->takes_body()) {
      out += " body {\n";
      write_graph(*node.body, indent + "  ", out);
      out += indent + "}";
    }
    out += "\n";
  }
  out += indent + "outputs(";
  for (size_t k = 0; k < graph.outputs().size(); ++k)
    out += (k ? ", " : "") + in_quotes(graph.output_names()[k]) + ": " + value_text(graph.outputs()[k]);
  out += ")\n";
}

// ---- reading ----------------------------------------------------------------------------------------------

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }
bool is_number(char c) { return is_word(c) || c == '+' || c == '-' || c == '.'; }

/// One line at a time, tokens taken from its front.
class Parser {
 public:
  explicit Parser(std::string_view text) : rest_(text) {}

  Graph parse() {
    if (!next_line()) error("a graph begins with 'millrace graph 1', but the text is empty");
    if (!accept("millrace graph ")) error("a graph begins with 'millrace graph 1'");
    const int64_t found = integer();
    if (found != version)
      error(
          "this is graph text of version {}, but only version {} can be read: use the Millrace that wrote it",
          found, version);
    expect_end();
    Graph graph = parse_graph(0);
    if (next_line()) error("nothing may follow the outputs");
    return graph;
  }

 private:
  template <typename... Args>
  [[noreturn]] void error(fmt::format_string<Args...> pattern, Args&&... args) const {
    fail<InputError>("graph text, line {}: {}", number_, fmt::format(pattern, std::forward<Args>(args)...));
  }

  /// Goes to the next line that is not blank; false at the end.
  bool next_line() {
    while (!rest_.empty()) {
      const size_t end = rest_.find('\n');
      line_ = rest_.substr(0, end);
      rest_ = end == std::string_view::npos ? "" : rest_.substr(end + 1);
      ++number_;
      skip_spaces();
      if (!line_.empty()) return true;
    }
    line_ = {};
    return false;
  }

  void skip_spaces() {
    while (!line_.empty() && (line_.front() == ' ' || line_.front() == '\t' || line_.front() == '\r'))
      line_.remove_prefix(1);
  }

  bool accept(std::string_view token) {
    if (!line_.starts_with(token)) return false;
    line_.remove_prefix(token.size());
    skip_spaces();
    return true;
  }

  void expect(std::string_view token) {
    if (!accept(token)) error("'{}' expected at '{}'", token, line_.substr(0, 40));
  }

  void expect_end() const {
    if (!line_.empty()) error("'{}' is not understood", line_.substr(0, 40));
  }

  template <typename Accepts>
  std::string_view take(Accepts accepts) {
    size_t size = 0;
    while (size < line_.size() && accepts(line_[size])) ++size;
    const std::string_view token = line_.substr(0, size);
    line_.remove_prefix(size);
    skip_spaces();
    return token;
  }

  /// The name of an operator or attribute; messages repeat it and look for the nearest.
  std::string word() {
    const std::string_view token = take(is_word);
    if (token.size() > 200) error("no name is as long as '{}…'", token.substr(0, 40));
    return std::string(token);
  }

  /// The whole token as a number.
  template <typename T>
  T number(std::string_view token, int base = 10) const {
    T value{};
    std::from_chars_result result{};
    if constexpr (std::is_floating_point_v<T>)
      result = std::from_chars(token.data(), token.data() + token.size(), value);
    else
      result = std::from_chars(token.data(), token.data() + token.size(), value, base);
    if (result.ec == std::errc::result_out_of_range) error("the number {} is too large", token.substr(0, 40));
    if (result.ec != std::errc() || result.ptr != token.data() + token.size())
      error("'{}' is not a number", token.substr(0, 40));
    return value;
  }

  int64_t integer() { return number<int64_t>(take(is_number)); }

  std::string string() {
    if (!line_.starts_with("\"")) error("a string is expected at '{}'", line_.substr(0, 40));
    line_.remove_prefix(1);
    std::string out;
    while (true) {
      if (line_.empty()) error("a string is not closed");
      const char c = line_.front();
      line_.remove_prefix(1);
      if (c == '"') break;
      if (c != '\\') {
        out += c;
      } else if (line_.starts_with("x") && line_.size() > 2) {
        out += static_cast<char>(number<uint8_t>(line_.substr(1, 2), 16));
        line_.remove_prefix(3);
      } else if (!line_.empty()) {
        out += line_.front();
        line_.remove_prefix(1);
      }
    }
    skip_spaces();
    return out;
  }

  Shape shape(char close) {
    const size_t end = line_.find(close);
    if (end == std::string_view::npos) error("'{}' is missing", close);
    const std::string text = "f32[" + std::string(line_.substr(0, end)) + "]";
    line_.remove_prefix(end + 1);
    skip_spaces();
    Shape parsed;
    try {
      parsed = Type::parse(text).shape;
    } catch (const Error& e) {
      error("{}", e.what());
    }
    for (const Dim& dim : parsed)
      if (dim.factor() < 0 || dim.factor() >> 48) error("the dimension {} is not in [0, 2^48)", dim.str());
    return parsed;
  }

  DType dtype(std::string_view name) const {
    for (const DType dtype : all_dtypes())
      if (dtype.name() == name) return dtype;
    error("'{}' is neither a dtype nor a number", name.substr(0, 40));
  }

  Type type() {
    const DType found = dtype(take(is_word));
    expect("[");
    return {found, shape(']')};
  }

  void set_element(Array& array, int64_t i, std::string_view token) const {
    const DType dtype = array.dtype();
    if (dtype.is_bool())
      array.set_int(i, number<uint8_t>(token) != 0);
    else if (dtype == u64)
      array.set_int(i, static_cast<int64_t>(number<uint64_t>(token)));
    else if (!is_real(dtype))
      set_whole(array, i, number<int64_t>(token));
    else if (token.starts_with("0x"))
      set_bits(array, i, number<uint64_t>(token.substr(2), 16));
    else if (dtype == f64)
      array.set(i, number<double>(token));
    else
      array.set(i, number<float>(token));
  }

  void set_whole(Array& array, int64_t i, int64_t value) const {
    array.set_int(i, value);
    if (array.int_at(i) != value) error("{} is not a value of {}", value, array.dtype().name());
  }

  static void set_bits(Array& array, int64_t i, uint64_t bits) {
    const int64_t width = array.dtype().bytes();
    std::memcpy(static_cast<char*>(array.data()) + i * width, &bits, width);
  }

  Array array(const Type& of) {
    std::vector<std::string_view> tokens;
    while (!accept("}")) {
      if (!tokens.empty()) expect(",");
      tokens.push_back(take(is_number));
      if (tokens.back().empty()) error("an array is not closed");
    }
    // Compared before memory is asked for: the type may claim any size.
    if (!of.shape.is_static() || of.shape.elements() != static_cast<int64_t>(tokens.size()))
      error("{} values are given for {}", tokens.size(), of.str());
    Array array(of);
    for (size_t i = 0; i < tokens.size(); ++i) set_element(array, static_cast<int64_t>(i), tokens[i]);
    return array;
  }

  Attribute attribute() {
    if (line_.starts_with("\"")) return string();
    if (accept("<")) return shape('>');
    if (accept("[")) {
      std::vector<int64_t> values;
      while (!accept("]")) {
        if (!values.empty()) expect(",");
        values.push_back(integer());
      }
      return values;
    }
    const std::string_view token = take(is_number);
    if (token == "true" || token == "false") return token == "true";
    if (token.empty()) error("a value is missing at '{}'", line_.substr(0, 40));
    if (token == "nan" || token == "-nan" || token == "inf" || token == "-inf") return number<double>(token);
    if (std::isalpha(static_cast<unsigned char>(token[0]))) {
      const DType found = dtype(token);
      if (!accept("[")) return found;
      const Type of{found, shape(']')};
      expect("{");
      return array(of);
    }
    if (token.find_first_of(".eE") != std::string_view::npos) return number<double>(token);
    return number<int64_t>(token);
  }

  Attributes attributes() {
    Attributes found;
    while (!accept("}")) {
      if (!found.items().empty()) expect(",");
      std::string name = word();
      if (found.find(name)) error("attribute '{}' is given twice", name);
      expect("=");
      found.set(std::move(name), attribute());
    }
    return found;
  }

  Value value(const Graph& graph) {
    expect("%");
    const std::string_view token =
        take([](char c) { return std::isdigit(static_cast<unsigned char>(c)) || c == '.'; });
    const size_t dot = token.find('.');
    Value found{number<int32_t>(token.substr(0, dot)), 0};
    if (dot != std::string_view::npos) found.output = number<int32_t>(token.substr(dot + 1));
    if (found.node >= graph.size() || found.output < 0 ||
        found.output >= static_cast<int>(graph.node(found.node).types.size()))
      error("the value %{} is not there yet", token);
    return found;
  }

  std::vector<Value> operands(const Graph& graph) {
    std::vector<Value> found;
    while (!accept(")")) {
      if (!found.empty()) expect(",");
      found.push_back(value(graph));
    }
    return found;
  }

  void parse_outputs(Graph& graph) {
    std::vector<Value> values;
    std::vector<std::string> names;
    while (!accept(")")) {
      if (!values.empty()) expect(",");
      names.push_back(string());
      expect(":");
      values.push_back(value(graph));
    }
    expect_end();
    graph.set_outputs(std::move(values), std::move(names));
  }

  /// Lines up to and with the outputs.
  Graph parse_graph(int depth) {
    if (depth > max_depth) error("bodies are nested more than {} deep", max_depth);
    Graph graph;
    while (true) {
      if (!next_line()) error("the text ends before the outputs");
      if (accept("outputs(")) {
        parse_outputs(graph);
        graph.set_origin("");
        return graph;
      }
      parse_node(graph, depth);
    }
  }

  Origin origin() {
    Origin found(string());
    for (const Phase phase : {Phase::backward, Phase::update})
      if (accept(phase_name(phase))) found.phase = phase;
    found.again = accept("again");
    return found;
  }

  void parse_node(Graph& graph, int depth) {
    expect("%");
    if (number<int64_t>(take(is_word)) != graph.size()) error("the value %{} is expected here", graph.size());
    expect("=");
    const std::string name = word();
    expect("(");
    if (const Operator* op = find_operator(name); op && op->op_class == OpClass::input) {
      std::string input = string();
      expect(")");
      expect(":");
      Type of = type();
      at_line(number_, [&] { graph.input(std::move(input), std::move(of)); });
      return expect_end();
    }
    std::vector<Value> arguments = operands(graph);
    Attributes given = accept("{") ? attributes() : Attributes();
    expect(":");
    std::vector<Type> types;
    do types.push_back(type());
    while (accept(","));
    graph.set_origin(accept("@") ? origin() : Origin());
    const int line = number_;
    std::shared_ptr<const Graph> body;
    if (accept("body {")) {
      expect_end();
      body = std::make_shared<const Graph>(parse_graph(depth + 1));
      if (!next_line()) error("the text ends within a body");
      expect("}");
    }
    expect_end();
    at_line(line, [&] {
      const Operator& op = get_operator(name);
      const Value added =
          body ? graph.add_with_body(op, std::move(arguments), std::move(given), std::move(body))
               : graph.add(op, std::move(arguments), std::move(given));
      if (graph.node(added).types != types) fail<InputError>("the types of {} are not those written", name);
    });
  }

  /// Runs what adds to the graph: wrong operands and attributes are the text's fault here.
  template <typename Adds>
  static void at_line(int line, Adds&& adds) {
    try {
      adds();
    } catch (const std::exception& e) {
      fail<InputError>("graph text, line {}: {}", line, e.what());
    }
  }

  std::string_view rest_, line_;
  int number_ = 0;
};

}  // namespace

std::string Graph::str() const {
  std::string out = fmt::format("millrace graph {}\n", version);
  write_graph(*this, "", out);
  return out;
}

Graph Graph::parse(std::string_view text) { return Parser(text).parse(); }

}  // namespace millrace
