// Any text as the journal of an interrupted pack: what is taken is written as what says the same, or it
// begins anew.
#include "data/tools/pack/pack_journal.h"

#include <cstdlib>

#include "base/file.h"
#include "fuzz/folder.h"
#include "fuzz/fuzz.h"

using namespace millrace::data;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto journal = parse_pack_journal(millrace::fuzz::text(data, size));
  if (!journal) return 0;
  if (journal->done < 0 || journal->samples < 0) std::abort();
  const auto folder = millrace::fuzz::folder();
  for (const ShardEntry& shard : journal->shards)
    if ((folder / shard.name).parent_path() != folder || shard.samples < 0) std::abort();
  const auto path = journal_path(folder, "a");
  write_journal(path, *journal);
  const std::string written = millrace::read_text(path);
  write_journal(path, *read_journal(path));
  if (millrace::read_text(path) != written) std::abort();
  return 0;
}
