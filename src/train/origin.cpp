#include "train/origin.h"

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sys/utsname.h>

#include <millrace/version.h>

#include "base/cpu.h"
#include "base/digest.h"
#include "base/file.h"
#include "base/format.h"
#include "base/mapped_file.h"
#include "base/thread_pool.h"
#include "base/utc_time.h"
#include "base/words.h"

namespace millrace::train {

using ordered = nlohmann::ordered_json;

namespace {

/// The arguments that the process was started with; none where there is no /proc.
std::vector<std::string> own_command() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  std::vector<std::string> words = split(text, '\0');
  words.pop_back();  // each ends with a 0
  return words;
}

std::string own_digest() {
  try {
    const MappedFile file("/proc/self/exe");
    return *hex_digest("xxh3_128", file.bytes());
  } catch (const Error&) {
    return {};
  }
}

std::string system_name() {
  utsname name{};
  return ::uname(&name) == 0 ? fmt::format("{} {}", name.sysname, name.release) : "";
}

Origin origin_of(const nlohmann::json& json) {
  Origin origin;
  json.at("time").get_to(origin.time);
  json.at("step").get_to(origin.step);
  json.at("command").get_to(origin.command);
  json.at("folder").get_to(origin.folder);
  json.at("version").get_to(origin.version);
  json.at("program").get_to(origin.program);
  json.at("cpu").get_to(origin.cpu);
  json.at("system").get_to(origin.system);
  json.at("threads").get_to(origin.threads);
  json.at("seed").get_to(origin.seed);
  for (const auto& each : json.at("data"))
    origin.data.push_back({each.at("role").get<std::string>(),
                           {each.at("source").get<std::string>(), each.at("samples").get<int64_t>(),
                            each.at("read").get<int64_t>(), each.at("digest").get<std::string>()}});
  return origin;
}

}  // namespace

const data::Fingerprint* Origin::find(const std::string& role) const {
  for (const Data& each : data)
    if (each.role == role) return &each.print;
  return nullptr;
}

Origin origin_now(int64_t step, int64_t seed) {
  std::error_code ignored;
  Origin origin;
  origin.time = utc_time();
  origin.step = step;
  origin.command = own_command();
  origin.folder = std::filesystem::current_path(ignored).string();
  origin.version = version();
  origin.program = own_digest();
  origin.cpu = cpu_name();
  origin.system = system_name();
  origin.threads = ThreadPool::global().threads();
  origin.seed = seed;
  return origin;
}

std::string origin_json(const Origin& origin) {
  ordered data = ordered::array();
  for (const auto& [role, print] : origin.data)
    data.push_back({{"role", role},
                    {"source", print.source},
                    {"samples", print.samples},
                    {"read", print.read},
                    {"digest", print.digest}});
  const ordered json = {{"time", origin.time},
                        {"step", origin.step},
                        {"command", origin.command},
                        {"folder", origin.folder},
                        {"version", origin.version},
                        {"program", origin.program},
                        {"cpu", origin.cpu},
                        {"system", origin.system},
                        {"threads", origin.threads},
                        {"seed", origin.seed},
                        {"data", data}};
  return json.dump(-1, ' ', false, ordered::error_handler_t::replace);
}

void write_origin(const RunFolder& run, const Origin& origin) {
  const std::filesystem::path path = run.origin();
  std::error_code error;
  if (std::filesystem::exists(path, error)) {
    // What a kill or a full disk left of a line must not become a part of the next one.
    const std::string text = read_text(path);
    const size_t whole = text.empty() ? 0 : text.rfind('\n') + 1;
    if (whole != text.size()) std::filesystem::resize_file(path, whole, error);
  }
  // Added to, not written anew: where the disk is nearly full, that takes no second copy.
  append_lines(path, origin_json(origin) + "\n", "write where the run comes from");
}

std::vector<Origin> parse_origins(std::string_view text, const std::string& name) {
  std::vector<Origin> origins;
  int line = 0;
  for (const std::string& written : lines_in(text, true)) {
    ++line;
    try {
      origins.push_back(origin_of(nlohmann::json::parse(written)));
    } catch (const nlohmann::json::exception&) {
      fail<InputError>("{}:{}: says nothing of where the run comes from; remove the line", name, line);
    }
  }
  return origins;
}

std::vector<Origin> read_origins(const RunFolder& run) {
  std::error_code ignored;
  if (!std::filesystem::exists(run.origin(), ignored)) return {};
  return parse_origins(read_text(run.origin()), run.origin().string());
}

}  // namespace millrace::train
