// Constants, and what kernels make of them: in memory once, however many executables want the same bytes.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/array.h>

#include "ir/late_array.h"

namespace millrace {

/// Stands for a constant's bytes.
Digest digest_of(const Array& constant);

/// Stands for those of what is computed of constants, in a way that `how` says with all that it depends on
/// besides their bytes.
Digest digest_of_result(std::string_view how, std::span<const Array> operands);

/// What `make` writes into an array of that type, which is full of zeros: a form of the constant. `form`
/// names it, with all that it depends on besides the constant's type and bytes. Whoever asks while somebody
/// has a copy of the array gets the same one. Nobody may write to it.
Array shared_form(const Array& constant, const std::string& form, const Type& type,
                  const std::function<void(Array& array)>& make);

/// The constant itself: a copy, as whoever gave it may write to his, but where that is nobody's.
Array shared_constant(const Array& constant, bool nobodys = false);

/// Bytes of all that the two above have given and somebody still has.
int64_t shared_constant_bytes();

/// A form under its name.
struct NamedForm {
  std::string form;
  Array array;
};

/// The forms of a constant that somebody has now, by their names.
std::vector<NamedForm> forms_of(const Array& constant);

/// A constant that lies where nobody changes it (in a file that is mapped), and forms of it that were made
/// before.
struct OfferedConstant {
  Array array;
  /// Stands for its bytes, which nobody reads to learn which they are: what two such constants have in
  /// common only if they are the same.
  std::string identity;
  std::vector<NamedForm> forms;
};

/// While one of these lives, shared_form() gives these forms of these constants (known by their addresses)
/// rather than make them.
class OfferedConstants {
 public:
  explicit OfferedConstants(std::vector<OfferedConstant> constants);
  ~OfferedConstants();
  OfferedConstants(const OfferedConstants&) = delete;
  OfferedConstants& operator=(const OfferedConstants&) = delete;

 private:
  std::vector<const void*> addresses_;
};

/// What a kernel offers that makes forms of operands that are constants: of its second one, or, where it
/// launches others, of theirs.
class PackingKernel {
 public:
  virtual ~PackingKernel() = default;
  /// What it reads instead; empty: it reads its operands.
  const std::vector<Array>& packed() const { return packed_; }
  /// Whether it never reads an operand itself, which may then lack memory.
  virtual bool reads_packed(size_t operand) const { return operand == 1 && !packed_.empty(); }

 protected:
  std::vector<Array> packed_;
};

}  // namespace millrace
