// millrace.h, by the session of C++.
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <millrace/millrace.h>
#include <millrace/narrow_types.h>
#include <millrace/session.h>
#include <millrace/version.h>

#include "base/format.h"
#include "capi/guarded.h"

namespace {

using namespace millrace;
using namespace millrace::capi;

struct LastMessage {
  std::string text;
  const char* plain = "";  // when there was no memory for a text
};

LastMessage& last_message() {
  thread_local LastMessage message;
  return message;
}

}  // namespace

millrace_status millrace::capi::failed(millrace_status status, const char* what) noexcept {
  LastMessage& message = last_message();
  try {
    message.text = what;
    message.plain = nullptr;
  } catch (...) {
    message.plain = "there is no memory for the error's message";
  }
  return status;
}

namespace {

constexpr std::pair<Kind, int32_t> kKinds[] = {{Kind::boolean, 1},
                                               {Kind::unsigned_int, 2},
                                               {Kind::signed_int, 3},
                                               {Kind::floating, 4},
                                               {Kind::brain_floating, 5},
                                               {e4m3fn, 6},
                                               {e4m3fnuz, 7},
                                               {e5m2, 8},
                                               {e5m2fnuz, 9},
                                               {e8m0, 10},
                                               {e2m1, 11}};

/// 0: C has no number for it.
int32_t code_of(DType dtype) {
  for (const auto& [kind, code] : kKinds)
    if (kind == dtype.kind) return MILLRACE_DTYPE(code, dtype.bits);
  return 0;
}

struct NamedDType {
  int32_t code;
  DType dtype;
  std::string name;
};

/// Null: no dtype has this number.
const NamedDType* dtype_of(int32_t code) {
  static const std::vector<NamedDType> known = [] {
    std::vector<NamedDType> all;
    for (const DType& dtype : all_dtypes()) all.push_back({code_of(dtype), dtype, dtype.name()});
    return all;
  }();
  for (const NamedDType& each : known)
    if (each.code == code && code != 0) return &each;
  return nullptr;
}

/// A description whose pointers stay valid.
struct Described {
  explicit Described(const SessionValue& value) : name(value.name), dtype(code_of(value.type.dtype)) {
    if (dtype == 0) fail<InputError>("'{}' is {}, which C has no number for", name, value.type.str());
    names.reserve(value.type.shape.size());
    for (const Dim& dim : value.type.shape) {
      dims.push_back(dim.is_static() ? dim.size() : -1);
      names.push_back(dim.is_static() ? "" : dim.str());
      pointers.push_back(dim.is_static() ? nullptr : names.back().c_str());
    }
  }
  Described(const Described&) = delete;
  Described& operator=(const Described&) = delete;

  std::string name;
  int32_t dtype;
  std::vector<int64_t> dims;
  std::vector<std::string> names;
  std::vector<const char*> pointers;
};

}  // namespace

struct millrace_session {
  explicit millrace_session(Session loaded) : session(std::move(loaded)) {
    for (const SessionValue& value : session.inputs()) inputs.emplace_back(value);
    for (const SessionValue& value : session.outputs()) outputs.emplace_back(value);
  }
  Session session;
  std::deque<Described> inputs, outputs;
};

namespace {

millrace_status describe(const millrace_session* session, const char* what, int32_t index,
                         millrace_value* value, std::deque<Described> millrace_session::*list) {
  return guarded([&] {
    require(session, "session");
    require(value, "value");
    const std::deque<Described>& all = session->*list;
    if (index < 0 || index >= static_cast<int32_t>(all.size()))
      fail<ArgumentError>("there is no {} {}; the model has {}", what, index, all.size());
    const Described& one = all[index];
    *value = {one.name.c_str(), one.dtype, static_cast<int32_t>(one.dims.size()), one.dims.data(),
              one.pointers.data()};
  });
}

/// The caller's array, where it lies.
Array array_of(const millrace_tensor& tensor, const std::string& name) {
  const NamedDType* const known = dtype_of(tensor.dtype);
  if (!known) fail<ArgumentError>("'{}': {} is the number of no dtype", name, tensor.dtype);
  if (tensor.rank < 0 || tensor.rank > MILLRACE_MOST_DIMS)
    fail<ArgumentError>("'{}' has {} dimensions; from 0 to {} there may be", name, tensor.rank,
                        MILLRACE_MOST_DIMS);
  Type type{known->dtype, Shape(std::vector<int64_t>(tensor.dims, tensor.dims + tensor.rank))};
  if (const std::string fault = type.fault(); !fault.empty())
    fail<ArgumentError>("'{}' cannot be {}: {}", name, type.str(), fault);
  static char nothing[64];
  if (!tensor.data && type.bytes() > 0) fail<ArgumentError>("'{}': its data are a null pointer", name);
  return Array(std::move(type), tensor.data ? tensor.data : nothing, nullptr);
}

/// The memory that a result is written into: the caller's, or none yet.
Array place_of(const millrace_tensor& tensor, const std::string& name, const Type& type) {
  if (!tensor.data || type.bytes() == 0) return {};
  if (tensor.capacity < type.bytes())
    fail<ArgumentError>("result '{}' is {}, {} bytes, but there is room for {}", name, type.str(),
                        type.bytes(), tensor.capacity);
  return Array(type, tensor.data, nullptr);
}

void require_counts(const millrace_session& session, const millrace_tensor* inputs, int32_t input_count,
                    const millrace_tensor* outputs, int32_t output_count) {
  require(inputs || input_count == 0, "inputs");
  require(outputs || output_count == 0, "outputs");
  if (input_count != static_cast<int32_t>(session.inputs.size()))
    fail<ArgumentError>("the model takes {} inputs, {} are given", session.inputs.size(), input_count);
  if (output_count != static_cast<int32_t>(session.outputs.size()))
    fail<ArgumentError>("the model has {} outputs, there is room for {}", session.outputs.size(),
                        output_count);
}

}  // namespace

const char* millrace_version(void) { return version(); }
int32_t millrace_api_version(void) { return MILLRACE_API_VERSION; }

const char* millrace_error_message(void) {
  const LastMessage& message = last_message();
  return message.plain ? message.plain : message.text.c_str();
}

const char* millrace_dtype_name(int32_t dtype) {
  const NamedDType* const known = dtype_of(dtype);
  return known ? known->name.c_str() : nullptr;
}

millrace_status millrace_load(const char* path, const millrace_options* options, millrace_session** session) {
  return loaded(path, options, session, "session", [&](const millrace_options& given) {
    SessionOptions wanted;
    if (given.precision) wanted.precision = given.precision;
    if (given.executables != 0) wanted.executables = given.executables;
    return new millrace_session(Session::load(path, wanted));
  });
}

void millrace_free(millrace_session* session) { delete session; }

int32_t millrace_input_count(const millrace_session* session) {
  return session ? static_cast<int32_t>(session->inputs.size()) : 0;
}
int32_t millrace_output_count(const millrace_session* session) {
  return session ? static_cast<int32_t>(session->outputs.size()) : 0;
}
millrace_status millrace_input(const millrace_session* session, int32_t index, millrace_value* value) {
  return describe(session, "input", index, value, &millrace_session::inputs);
}
millrace_status millrace_output(const millrace_session* session, int32_t index, millrace_value* value) {
  return describe(session, "output", index, value, &millrace_session::outputs);
}

int32_t millrace_data_axis(const millrace_session* session, int32_t output) {
  if (!session || output < 0 || output >= millrace_output_count(session)) return -1;
  return session->session.outputs()[static_cast<size_t>(output)].data_axis;
}

millrace_status millrace_prepare(const millrace_session* session, const char* const* names,
                                 const int64_t* sizes, int32_t count) {
  return guarded([&] {
    require(session, "session");
    require(count <= 0 || (names && sizes), "names or sizes");
    Bindings bindings;
    for (int32_t i = 0; i < count; ++i) {
      require(names[i], "a name");
      bindings[names[i]] = sizes[i];
    }
    session->session.prepare(bindings);
  });
}

millrace_status millrace_run(const millrace_session* session, const millrace_tensor* inputs,
                             int32_t input_count, millrace_tensor* outputs, int32_t output_count) {
  return guarded([&] {
    require(session, "session");
    require_counts(*session, inputs, input_count, outputs, output_count);
    std::vector<Array> given;
    given.reserve(static_cast<size_t>(input_count));
    for (int32_t i = 0; i < input_count; ++i)
      given.push_back(array_of(inputs[i], session->inputs[static_cast<size_t>(i)].name));
    std::vector<std::unique_ptr<Array>> owners(static_cast<size_t>(output_count));
    for (int32_t i = 0; i < output_count; ++i)
      if (!outputs[i].data) owners[static_cast<size_t>(i)] = std::make_unique<Array>();
    std::vector<Array> results = session->session.run(given, [&](int output, const Type& type) {
      const std::string& name = session->outputs[static_cast<size_t>(output)].name;
      if (type.shape.rank() > MILLRACE_MOST_DIMS)
        fail<ArgumentError>("result '{}' has {} dimensions; C has room for {}", name, type.shape.rank(),
                            MILLRACE_MOST_DIMS);
      return place_of(outputs[output], name, type);
    });
    // Nothing fails from here on.
    for (size_t i = 0; i < results.size(); ++i) {
      millrace_tensor& output = outputs[i];
      const Type& type = results[i].type();
      output.dtype = code_of(type.dtype);
      output.rank = type.shape.rank();
      for (int d = 0; d < output.rank; ++d) output.dims[d] = type.shape[d].size();
      output.owner = nullptr;
      if (!owners[i]) continue;
      output.data = results[i].data();
      *owners[i] = std::move(results[i]);
      output.owner = owners[i].release();
    }
  });
}

void millrace_release(millrace_tensor* outputs, int32_t count) {
  for (int32_t i = 0; outputs && i < count; ++i) {
    if (!outputs[i].owner) continue;
    delete static_cast<Array*>(outputs[i].owner);
    outputs[i].owner = nullptr;
    outputs[i].data = nullptr;
  }
}
