// Matrix products by oneDNN.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "target/provider.h"

namespace millrace::onednn {

std::unique_ptr<Kernel> build_matmul(const KernelRequest& request);

/// Begins what such choices of kernels (Program::choices()) will need, on another thread: for who knows them
/// before there is anything to build.
void prepare_for(const std::map<std::string, std::string>& choices);

}  // namespace millrace::onednn
