#include "data/io/location.h"

namespace millrace::data {

bool is_hdfs(std::string_view path) {
  return path.starts_with("webhdfs://") || path.starts_with("swebhdfs://") || path.starts_with("hdfs://");
}

bool is_remote(std::string_view path) {
  return path.starts_with("http://") || path.starts_with("https://") || path.starts_with("s3://") ||
         is_hdfs(path);
}

bool is_piped(std::string_view path) { return path == "-" || path.starts_with("pipe:"); }

bool is_elsewhere(std::string_view path) { return is_remote(path) || is_piped(path); }

}  // namespace millrace::data
