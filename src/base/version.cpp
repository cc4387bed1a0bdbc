#include <millrace/version.h>

namespace millrace {

const char* version() { return MILLRACE_VERSION; }

}  // namespace millrace
