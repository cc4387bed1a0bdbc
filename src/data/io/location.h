// What a name of a file points to.
#pragma once

#include <string_view>

namespace millrace::data {

/// True for "http://…", "https://…", "s3://…" and what is_hdfs(); all else is a path.
bool is_remote(std::string_view path);
/// True for "hdfs://…", "webhdfs://…" and "swebhdfs://…".
bool is_hdfs(std::string_view path);
/// True for "pipe:COMMAND" and "-".
bool is_piped(std::string_view path);
/// Remote or piped: not to be looked for among the local files.
bool is_elsewhere(std::string_view path);

}  // namespace millrace::data
