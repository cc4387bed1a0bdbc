#include <cmath>
#include <map>

#include "onnx/import/call.h"

using namespace millrace;
using onnx::Ints;
using onnx::Item;
using onnx::Texts;

namespace {

/// Keys or values of an encoder: numbers or texts.
struct Listed {
  std::optional<Array> numbers;
  std::vector<std::string> texts;
  size_t size() const { return numbers ? static_cast<size_t>(numbers->count()) : texts.size(); }
};

Listed listed_in(onnx::ImportCall& call, const onnx::TensorProto& tensor) {
  if (tensor.is_text()) return {{}, onnx::texts_of(tensor).values};
  const Array numbers = array_of(tensor, call.folder);
  return {numbers.reshaped({numbers.count()}), {}};
}

/// The attribute named `what` with one of ONNX's endings.
std::optional<Listed> listed(onnx::ImportCall& call, const std::string& what) {
  const auto attribute = [&](const char* ending) { return call.node.find(what + ending); };
  if (const auto* a = attribute("_strings")) return Listed{{}, a->texts};
  if (const auto* a = attribute("_int64s")) {
    Array numbers(i64, {static_cast<int64_t>(a->integers.size())});
    std::copy(a->integers.begin(), a->integers.end(), numbers.as<int64_t>().begin());
    return Listed{numbers, {}};
  }
  if (attribute("_floats")) {
    const std::vector<double> numbers = call.numbers(what + "_floats");
    return Listed{Array::of(f32, {std::ssize(numbers)}, numbers), {}};
  }
  if (const auto* a = attribute("_tensor"); a && a->tensor) return listed_in(call, *a->tensor);
  return std::nullopt;
}

/// What stands where no key is; of the type of the values.
Listed otherwise(onnx::ImportCall& call, const Listed& values) {
  if (const auto* a = call.node.find("default_tensor"); a && a->tensor) return listed_in(call, *a->tensor);
  if (!values.numbers) return {{}, {call.text("default_string", "_Unused")}};
  Array one(values.numbers->dtype(), {1});
  if (one.dtype().is_float())
    one.set(0, call.number("default_float", 0));
  else
    one.set_int(0, call.integer("default_int64", -1));
  return {one, {}};
}

}  // namespace

/// A table from keys to values. Of numbers it is a gather: each is compared with all keys. Texts, on either
/// side, are known now.
MILLRACE_ONNX_IMPORT(ai_onnx_ml_LabelEncoder) {
  const std::optional<Listed> keys = listed(call, "keys"), values = listed(call, "values");
  if (!keys || !values || keys->size() != values->size() || keys->size() == 0)
    call.refuse("its keys and values are not as many, or it is of ai.onnx.ml before version 2");
  const Listed fallback = otherwise(call, *values);
  const auto n = static_cast<int64_t>(keys->size());
  if (fallback.size() != 1 || fallback.numbers.has_value() != values->numbers.has_value() ||
      (values->numbers && fallback.numbers->dtype() != values->numbers->dtype()))
    call.refuse("its default is of another type than its values");

  // The place of each element among the keys; n where it is none of them.
  Shape shape;
  Ints known;
  Value places;
  if (!keys->numbers) {
    const Texts& x = call.texts(0);
    shape = Shape(x.shape);
    std::map<std::string, int64_t> place;
    for (int64_t i = 0; i < n; ++i) place.emplace(keys->texts[static_cast<size_t>(i)], i);
    for (const std::string& text : x.values) {
      const auto found = place.find(text);
      known.push_back(found == place.end() ? n : found->second);
    }
  } else {
    const DType dtype = call.dtype(0);
    shape = call.shape(0);
    if (dtype != keys->numbers->dtype()) call.refuse("its input is of another type than its keys");
    if (shape.count() > (int64_t{1} << 28) / n) call.refuse("it has too many elements and keys");
    const Shape pairs{shape.count(), n};
    const Value x = call.b.broadcast(call.b.reshape(call[0], {shape.count(), 1}), pairs);
    const Value key = call.b.broadcast(call.constant(keys->numbers->reshaped({1, n})), pairs);
    Value same = call.graph.add("equal", {x, key});
    if (dtype.is_float())  // NaN is a key, too
      same = call.graph.add("logical_or",
                            {same, call.graph.add("logical_and", {call.graph.add("is_nan", {x}),
                                                                  call.graph.add("is_nan", {key})})});
    const Value own = call.places(pairs, 1);
    places = call.graph.add("min", {call.b.select(same, own, call.fill(own, static_cast<double>(n)))},
                            {{"axes", Ints{1}}});
    if (!values->numbers) {
      const Array* now = call.graph.constant_value(call[0]);
      if (!now)
        throw onnx::UnknownInputs("it makes texts of numbers that are not known before the model runs",
                                  onnx::inputs_behind(call.graph, {call[0]}));
      for (int64_t i = 0; i < now->count(); ++i) {
        const double given = now->at(i);
        int64_t at = 0;
        while (at < n && given != keys->numbers->at(at) &&
               !(std::isnan(given) && std::isnan(keys->numbers->at(at))))
          ++at;
        known.push_back(at);
      }
    }
  }
  if (!values->numbers) {
    Texts out{shape.sizes(), {}};
    for (const int64_t at : known)
      out.values.push_back(at == n ? fallback.texts[0] : values->texts[static_cast<size_t>(at)]);
    return {Item::of(std::move(out))};
  }
  if (!places.valid()) places = call.ints_constant(known);
  const Value all = call.concat({call.constant(*values->numbers), call.constant(*fallback.numbers)}, 0);
  return {call.b.reshape(call.gather(all, places, 0), shape)};
}

MILLRACE_ONNX_IMPORT(ai_onnx_ml_ArrayFeatureExtractor) {
  const int64_t many = call.shape(1).count();
  const Value at = call.b.reshape(call.b.cast(call[1], i64), {many});
  const Value picked = call.gather(call[0], at, call.rank(0) - 1);
  return {call.rank(0) == 1 ? call.b.reshape(picked, {1, many}) : picked};
}

MILLRACE_ONNX_IMPORT(ai_onnx_ml_Binarizer) {
  const Value x = call[0];
  const Value above = call.compare("greater", x, call.number("threshold", 0));
  return {call.b.cast(above, call.dtype(0))};
}
