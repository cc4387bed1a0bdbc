// Hostile built models. The first byte says what the rest is: a whole file, or its description and graphs
// (behind each other, with a zero between; the graphs may be those for any sizes), which then get sound
// checksums, as an attacker would give them.
// Nothing is compiled or run: who opens a built model runs its code.
#include "model_formats/mill.h"

#include <algorithm>
#include <string>

#include <millrace/session.h>

#include "base/section_file.h"
#include "fuzz/folder.h"
#include "fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace millrace;
  if (size < 1) return 0;
  const std::filesystem::path path = fuzz::folder() / "input.mill";
  const std::string_view rest = fuzz::text(data + 1, size - 1);
  if (data[0] % 2 == 0) {
    fuzz::put("input.mill", {data + 1, size - 1});
  } else {
    const size_t zero = std::min(rest.find('\0'), rest.size());
    SectionWriter writer(path, mill::kMagic, mill::kVersion);
    writer.add("weights", std::string(512, '\1'));
    writer.add("packed", std::string(512, '\2'));
    writer.add("objects", data[0] % 4 == 1 ? std::string_view() : rest.substr(0, 40));
    const std::string_view graphs = rest.substr(std::min(zero + 1, rest.size()));
    writer.add("graphs", graphs);
    writer.add("any", data[0] % 8 < 4 ? std::string_view() : graphs);
    writer.add("description", rest.substr(0, zero));
    writer.commit();
  }
  fuzz::refuse_or_take([&] {
    const SessionModel model = mill::load(path);
    for (const Bindings& sizes : mill::sizes_of(path)) (void)model.graph(sizes);
    (void)mill::describe(path);
    try {
      (void)model.graph({{"batch", 3}});
    } catch (const Error&) {  // it was not built for that, or this is no graph
    }
    mill::verify(path);
    (void)Session(model);
  });
  return 0;
}
