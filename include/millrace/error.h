// Errors that Millrace throws. Every message says what is wrong, where, and what to do about it.
#pragma once

#include <stdexcept>
#include <string>

namespace millrace {

/// Base of every error; `what()` is meant for the user as it stands.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The user's input is wrong: a recipe, a command line, a file's content.
class InputError : public Error {
 public:
  using Error::Error;
};

/// Shapes or dtypes do not fit an operator. The message names the operator, its operand types and the layer.
class TypeError : public Error {
 public:
  using Error::Error;
};

/// A file could not be read or written (missing, truncated, disk full).
class IoError : public Error {
 public:
  using Error::Error;
};

/// Millrace itself is inconsistent: a defect to report, never the user's fault.
class InternalError : public Error {
 public:
  using Error::Error;
};

}  // namespace millrace
