// What an order costs where samples lie on servers.
#pragma once

#include <string>

#include <millrace/dataset.h>

#include "data/feed/row_plan.h"
#include "data/io/remote_cache.h"

namespace millrace::data {

/// Where the samples do not fit into what is kept of remote files, and their order needs many times as many
/// requests as a block-shuffle would: a line for the user with the figures of both; else "". `rows`: of an
/// epoch.
std::string traffic_advice(const Dataset& samples, RemoteCache& cache, const RowPlan& plan, uint64_t seed,
                           int64_t rows);

}  // namespace millrace::data
