#include <filesystem>

#include "base/file.h"
#include "base/format.h"
#include "data/text/tokenizer.h"

namespace millrace::data {

std::shared_ptr<const Tokenizer> open_tokenizer(const std::string& text) {
  if (text == "byte") return byte_tokenizer();
  fail<InputError>("the tokenizer '{}' is not known: it is \"byte\"", text);
}

}  // namespace millrace::data
