// Rows of texts as a feed plans them.
#pragma once

#include <cstdint>
#include <memory>

#include "data/feed/row_plan.h"
#include "data/feed/sequences/plan.h"
#include "data/feed/sequences/token_part.h"

namespace millrace::data {

/// The rows of an epoch. Windows and packed rows are extracts; a padded row is a sample of the data set (the
/// number that the text has there), so that other parts can read the same one. Of `plan`, `batch` are the
/// rows of all ranks together, `length` and next_token are set by `options`. Where no batches are left out
/// (whole_batches false), every epoch has the order of epoch 0. InputError: rows that fill no batch, an order
/// that texts do not take.
std::unique_ptr<RowPlan> token_rows(std::shared_ptr<const Texts> texts, const TokenOptions& options,
                                    PlanOptions plan);

}  // namespace millrace::data
