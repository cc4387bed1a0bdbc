// What every function of the C interface is made in: nothing is thrown across it.
#pragma once

#include <algorithm>
#include <cstring>
#include <exception>
#include <new>

#include <millrace/error.h>
#include <millrace/millrace.h>

#include "base/format.h"

namespace millrace::capi {

/// The call itself is wrong.
class ArgumentError : public Error {
 public:
  using Error::Error;
};

/// Keeps the message for millrace_error_message().
millrace_status failed(millrace_status status, const char* what) noexcept;

/// Runs what may throw; nothing is thrown across the interface.
template <typename Body>
millrace_status guarded(const Body& body) noexcept {
  try {
    body();
    return MILLRACE_OK;
  } catch (const ArgumentError& e) {
    return failed(MILLRACE_BAD_ARGUMENT, e.what());
  } catch (const InputError& e) {
    return failed(MILLRACE_INPUT_ERROR, e.what());
  } catch (const TypeError& e) {
    return failed(MILLRACE_TYPE_ERROR, e.what());
  } catch (const IoError& e) {
    return failed(MILLRACE_IO_ERROR, e.what());
  } catch (const InternalError& e) {
    return failed(MILLRACE_INTERNAL_ERROR, e.what());
  } catch (const std::bad_alloc&) {
    return failed(MILLRACE_NO_MEMORY, "there is not enough memory");
  } catch (const Error& e) {  // what else is thrown as Error: memory that could not be had
    return failed(MILLRACE_NO_MEMORY, e.what());
  } catch (const std::exception& e) {
    return failed(MILLRACE_INTERNAL_ERROR, e.what());
  } catch (...) {
    return failed(MILLRACE_INTERNAL_ERROR, "something that is no exception of C++ was thrown");
  }
}

inline void require(bool there, const char* name) {
  if (!there) fail<ArgumentError>("'{}' is a null pointer", name);
}

/// A caller's options; those of one that was compiled earlier are shorter: what they lack is 0.
template <typename Options>
Options options_of(const Options* options) {
  Options given{};
  if (!options) return given;
  if (options->size < sizeof options->size)
    fail<ArgumentError>("the options' size is {}; set it to the sizeof of their type", options->size);
  std::memcpy(&given, options, std::min(options->size, sizeof given));
  return given;
}

/// Makes what a caller gets a handle of, from a file; null after an error.
template <typename Handle, typename Options, typename Make>
millrace_status loaded(const char* path, const Options* options, Handle** handle, const char* name,
                       const Make& make) noexcept {
  return guarded([&] {
    require(path, "path");
    require(handle, name);
    *handle = nullptr;
    *handle = make(options_of(options));
  });
}

}  // namespace millrace::capi
