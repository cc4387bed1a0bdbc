// What inputs of tables share: rows of numbers, standardised in the graph, and ids of categories.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/encode/table_encoder.h"
#include "data/feed/array_part.h"
#include "task/input.h"

namespace millrace::task {

class TableInput : public Input {
 public:
  TableInput(Section section, data::TableEncoder encoder)
      : Input(std::move(section)), encoder_(std::move(encoder)) {}

  std::string encoding() const override { return encoder_.json(); }
  std::vector<std::string> notes() const override;
  std::vector<std::string> unreadable(const data::Dataset& samples) const override;
  std::vector<std::string> unknown(const data::Dataset& samples) const override;
  std::vector<data::Field> fields() const override { return row_fields(); }
  std::vector<Tensor> graph(std::span<const Tensor> fields, bool training) const override;
  void describe(nn::ModelOptions& options) const override;
  std::vector<std::string> architectures() const override;
  std::string gives() const override { return "table"; }
  std::shared_ptr<const data::Part> part(const Reading& reading, Purpose purpose) const override;
  std::vector<std::string> columns() const override { return encoder_.columns(); }
  std::vector<std::string> text_columns() const override { return encoder_.text_columns(); }
  std::string text(std::span<const Array> row) const override;
  std::vector<ExportedTexts> exported_texts() const override;

 protected:
  const data::TableEncoder& encoder() const { return encoder_; }
  /// The arrays of a row of the table, [batch, columns].
  std::vector<data::Field> row_fields() const;
  /// Reads them. InputError where the samples lack a column.
  data::ArrayReader reader(const Reading& reading, Purpose purpose) const;
  data::ArrayPartOptions part_options(const Reading& reading, Purpose purpose) const;

 private:
  int64_t numbers() const;
  int64_t ids() const { return static_cast<int64_t>(encoder_.categories().size()); }
  std::string flags_text() const;
  std::string known_values(const std::string& column) const;
  std::function<void(const data::Row&, std::span<std::byte* const>)> hiding() const;

  data::TableEncoder encoder_;
};

/// What a kind of table can be told, and what its members do.
std::vector<Setting> table_settings();
std::vector<std::string> table_columns(const data::Dataset& samples, const std::vector<std::string>& taken);
data::TableEncoder learn_table(const Section& section, const Reading& reading);
void check_table(const Section& section, const Recipe& recipe);
std::string draft_table(const data::Dataset& samples, const std::vector<std::string>& columns);

}  // namespace millrace::task
