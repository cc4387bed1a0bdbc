#include <filesystem>

#include "base/file.h"
#include "base/format.h"
#include "data/codecs/text/tokenizer.h"

namespace millrace::data {

std::shared_ptr<const Tokenizer> open_tokenizer(const std::string& text) {
  if (text == "byte") return byte_tokenizer();
  std::filesystem::path path = text;
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) path /= "tokenizer.json";
  if (!std::filesystem::exists(path, ignored))
    fail<InputError>(
        "there is no tokenizer '{}': give \"byte\", a tokenizer.json of Hugging Face or a vocab.txt of "
        "WordPiece",
        text);
  const std::string content = read_text(path);
  const size_t first = content.find_first_not_of(" \t\r\n");
  return first != std::string::npos && content[first] == '{' ? parse_tokenizer_json(content, path.string())
                                                             : parse_vocabulary(content, path.string());
}

}  // namespace millrace::data
