// A folder of files as a data set. Columns are __key__ (the path below the folder), label (the name of
// the folder that a file lies in, where there are folders) and the content: image, audio, text (all are .txt)
// or data.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <millrace/dataset.h>

namespace millrace::data {

/// Writes each sample as a file OUT/LABEL/KEY.EXTENSION; the extension is that of the content, and not put
/// behind a key that ends with it. The folder appears when it is complete (made beside it as OUT.partial
/// first). InputError when OUT exists, two samples would have one name, or a column is none of those above
/// (picture, audio, text, json or bytes; label an integer or a text).
std::unique_ptr<DatasetWriter> create_folder(const std::string& path, const std::vector<Column>& columns);

}  // namespace millrace::data
