// A random graph, drawn by numbers of the input, gives on cpu what it gives on ref.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <millrace/program.h>

#include "backend/ref/evaluate.h"
#include "fuzz/fuzz.h"
#include "support/random_graph.h"

using namespace millrace;

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  setenv("XDG_CACHE_HOME", "build/fuzz/cache", 0);  // kernels that nobody will want again
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  uint64_t seed = 0;
  std::memcpy(&seed, data, std::min(size, sizeof seed));
  const test::RandomGraph g = test::random_graph(seed, 4 + static_cast<int>(seed % 40));
  const std::vector<Array> expected = ref::evaluate(g.graph, g.inputs);
  Program program = Program::compile(g.graph);
  const std::vector<Array> found = test::run(program, g.inputs);
  for (size_t o = 0; o < expected.size(); ++o)
    if (!(test::difference(found[o], expected[o]) < 2e-4)) {
      std::fprintf(stderr, "output %zu differs\n%s", o, g.graph.str().c_str());
      std::abort();
    }
  return 0;
}
