// The loader of streams.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "data/feed/loader_options.h"
#include "data/feed/loader_state.h"
#include "data/formats/streams/stream.h"

namespace millrace::data {

/// For a Loader of pictures out of a stream, in the order "sequential" or "shuffle-buffer N": the next sample is drawn at random from N
/// that were read, and the next of the stream takes its place. Bad samples are left out. It looks at the first good picture; the
/// rest is read from the first next() on, where too little memory for the buffer is InputError as soon as it is certain, at the
/// same sample always. When the stream ends it is read again. `classes` are all that there are; labels are
/// their numbers or names. Options: those of caches and mixtures of indexed sources are not for streams. Each of
/// several ranks reads the whole stream and decodes its own samples: they take every `ranks`-th of the order drawn, bad ones,
/// which the others cannot know of, being left out of this rank's batch (`valid`). InputError or IoError.
std::unique_ptr<LoaderState> streamed(std::unique_ptr<Stream> stream, std::vector<std::string> classes,
                                      LoaderOptions options);
/// Several streams, each with a buffer of its own, mixed by LoaderOptions::shares (Loader::set_shares()): the stream that the next
/// sample is drawn from depends on seed and place, as in mixtures of indexed sources. Batch::indices are number · streams + stream.
std::unique_ptr<LoaderState> streamed(std::vector<NamedStream> streams, std::vector<std::string> classes,
                                      LoaderOptions options);

}  // namespace millrace::data
