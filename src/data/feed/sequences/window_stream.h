// A stream of texts as one of windows of tokens.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "data/codecs/text/tokenizer.h"
#include "data/formats/streams/stream.h"

namespace millrace::data {

struct WindowOptions {
  std::shared_ptr<const Tokenizer> tokenizer;
  /// The column of the texts of such a sample; InputError where there is none.
  std::function<std::string(const Dataset& sample)> column;
  std::string separator;  // put behind each text
  int64_t length = 256;   // tokens from one window to the next
  int64_t behind = 0;     // tokens of the next window that a window has, too: its last targets
};

/// All texts joined and cut into windows, as they come; what is left at the end of a pass fills none. A
/// record is a window: its samples() have one column, called as that of the texts, of Bytes that are the ids,
/// int32. A text that cannot be read is a record with a fault. A place in it is found again by reading all
/// before.
std::unique_ptr<Stream> window_stream(std::unique_ptr<Stream> texts, WindowOptions options);

}  // namespace millrace::data
