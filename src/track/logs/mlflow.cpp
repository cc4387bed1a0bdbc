// MLflow's tracking server, by its REST interface (mlflow.org/docs/latest/rest-api.html).
#include <cctype>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>

#include <millrace/error.h>

#include "base/file.h"
#include "base/format.h"
#include "data/io/http_client.h"
#include "track/aside.h"
#include "track/log_kind.h"

namespace millrace::track {
namespace {

using nlohmann::json;

/// The server's limits for one request.
constexpr size_t most_metrics = 1000, most_params = 100;
/// Of a parameter's value, in bytes.
constexpr size_t longest_value = 6000;
/// Points that wait for a server which is away. The oldest go first, and that is told.
constexpr size_t most_kept = 200'000;
/// Between two tries when the server does not answer.
constexpr double patience = 10;
/// A server that says nothing for so long hangs: nobody should wait much longer for a log.
constexpr long longest_silence = 10;  // NOLINT: libcurl's type

/// What the server does not take, and would not take if it were sent again.
class Refused final : public IoError {
 public:
  using IoError::IoError;
};

struct MlflowAddress {
  std::string server, experiment;
};

MlflowAddress address_of(const Settings& settings) {
  MlflowAddress address{settings.text("URL"), settings.text("EXPERIMENT")};
  if (!address.server.starts_with("http"))
    fail<InputError>(
        "mlflow wants the address of a server, and the name of an experiment: \"mlflow http://localhost:5000 "
        "letters\"");
  while (address.server.ends_with('/')) address.server.pop_back();
  return address;
}

/// A metric's or parameter's name with what the server takes in one: letters, digits and "_-. :/".
std::string accepted_name(const std::string& name) {
  std::string result;
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte & 0xc0) == 0x80) continue;  // the further bytes of a letter that is none of ASCII
    const bool taken =
        byte < 128 && (std::isalnum(byte) || std::string_view("_-. :/").find(c) != std::string_view::npos);
    result += taken ? c : '_';
  }
  return result;
}

int64_t milliseconds(double seconds) { return static_cast<int64_t>(seconds * 1000); }

class Mlflow final : public Sink {
 public:
  Mlflow(const MlflowAddress& address, const LoggedRun& run) : address_(address), message_(run.message) {
    const std::filesystem::path noted = run.folder / "mlflow.json";
    if (run.resume_step < 0 || !go_on(noted)) begin(run, noted);
  }

  void write(const Record& record) override {
    const Names& names = *record.names;
    for (size_t i = 0; i < names.curves.size(); ++i) {
      const std::string& name = names.summary ? names.keys[i] : names.curves[i];
      // NaN is no number of JSON; the step at which a loss was none stands in metrics.jsonl.
      if (name.empty() || name == "epoch" || !std::isfinite(record.values[i])) continue;
      waiting_.push_back(
          {{"key", accepted_name(names.summary && names.curves[i].empty() ? "epoch/" + name : name)},
           {"value", record.values[i]},
           {"timestamp", milliseconds(record.time)},
           {"step", record.step}});
    }
    now_ = record.time;
  }
  void flush() override {
    if (now_ < again_) return;  // the server was away a moment ago
    send(1);
  }
  void finish(const std::string& state) override {
    send(away_ ? 1 : 0);
    if (const size_t missing = waiting_.size() + refused_; missing > 0)
      message_(fmt::format("{}: {}; {} points are not there, but all are in metrics.jsonl", address_.server,
                           waiting_.empty() ? "has refused some" : "does not answer", missing));
    if (away_) return;
    try {
      (void)call("runs/update",
                 {{"run_id", id_},
                  {"status", state == "finished" ? "FINISHED" : "KILLED"},
                  {"end_time", milliseconds(now_)}},
                 1);
    } catch (const Error&) {  // told above, or the next time
    }
  }

 private:
  json call(const std::string& what, const json& body, int attempts = 0) const {
    data::HttpRequest request;
    request.url = address_.server + "/api/2.0/mlflow/" + what;
    request.post = body.dump(-1, ' ', false, json::error_handler_t::replace);
    request.attempts = attempts;
    request.stall_seconds = longest_silence;
    const data::HttpResponse answer = data::http_get(request);
    const json told = json::parse(answer.body, nullptr, false);
    if (answer.status / 100 != 2) {
      const bool worded = told.is_object() && told.contains("message") && told["message"].is_string();
      fail<Refused>("{}: refuses {}: {}", address_.server, what,
                    worded ? told["message"].get<std::string>() : fmt::format("status {}", answer.status));
    }
    if (!told.is_object())
      fail<IoError>("{}: its answer to {} is not one of MLflow's", address_.server, what);
    return told;
  }

  std::string experiment() const {
    try {
      return call("experiments/create", {{"name", address_.experiment}})
          .at("experiment_id")
          .get<std::string>();
    } catch (const Refused&) {  // it is there
      data::HttpRequest request;
      request.stall_seconds = longest_silence;
      request.url = address_.server +
                    "/api/2.0/mlflow/experiments/get-by-name?experiment_name=" + escaped(address_.experiment);
      const data::HttpResponse answer = data::http_get(request);
      const json told = json::parse(answer.body, nullptr, false);
      if (answer.status != 200 || !told.is_object()) throw;
      return told.at("experiment").at("experiment_id").get<std::string>();
    }
  }
  /// For a query of an address (RFC 3986).
  static std::string escaped(const std::string& text) {
    std::string result;
    for (const char c : text) {
      const auto byte = static_cast<unsigned char>(c);
      const bool plain = byte < 128 && (std::isalnum(byte) || c == '-' || c == '_' || c == '.' || c == '~');
      result += plain ? std::string(1, c) : fmt::format("%{:02X}", byte);
    }
    return result;
  }

  void begin(const LoggedRun& run, const std::filesystem::path& noted) {
    const auto start = std::chrono::system_clock::now().time_since_epoch();
    const json made = call(
        "runs/create",
        {{"experiment_id", experiment()},
         {"run_name", run.folder.filename().string()},
         {"start_time", std::chrono::duration_cast<std::chrono::milliseconds>(start).count()},
         {"tags", {{{"key", "millrace.run"}, {"value", std::filesystem::absolute(run.folder).string()}}}}});
    id_ = made.at("run").at("info").at("run_id").get<std::string>();
    json params = json::array();
    for (const auto& [key, value] : run.params) {
      params.push_back({{"key", accepted_name(key)}, {"value", value.substr(0, longest_value)}});
      if (params.size() < most_params && key != run.params.back().first) continue;
      (void)call("runs/log-batch", {{"run_id", id_}, {"params", params}});
      params = json::array();
    }
    write_file(noted, json{{"server", address_.server}, {"run_id", id_}}.dump() + "\n");
  }
  /// The run that this one was before; false where it is not known.
  bool go_on(const std::filesystem::path& noted) {
    std::error_code ignored;
    if (!std::filesystem::exists(noted, ignored)) return false;
    const json told = json::parse(read_text(noted), nullptr, false);
    if (!told.is_object() || told.value("server", "") != address_.server || !told.contains("run_id"))
      return false;
    id_ = told["run_id"].get<std::string>();
    try {
      (void)call("runs/update", {{"run_id", id_}, {"status", "RUNNING"}}, 1);
    } catch (const Refused&) {
      throw;
    } catch (const Error& error) {  // it may come back
      tell_away(error);
    }
    return true;
  }

  void send(int attempts) {
    while (!waiting_.empty()) {
      const size_t count = std::min(waiting_.size(), most_metrics);
      const std::vector<json> batch(waiting_.begin(), waiting_.begin() + static_cast<ptrdiff_t>(count));
      try {
        (void)call("runs/log-batch", {{"run_id", id_}, {"metrics", batch}}, attempts);
      } catch (const Refused& error) {  // and would again: what comes later is another matter
        if (refused_ == 0) message_(fmt::format("{} (training goes on without these points)", error.what()));
        refused_ += count;
      } catch (const Error& error) {
        again_ = now_ + patience;
        tell_away(error);
        if (waiting_.size() > most_kept)
          waiting_.erase(waiting_.begin(), waiting_.end() - static_cast<ptrdiff_t>(most_kept));
        return;
      }
      away_ = false;
      waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<ptrdiff_t>(count));
    }
  }
  void tell_away(const Error& error) {
    if (!away_)
      message_(fmt::format("{} (training goes on, and what is missing there is sent later)", error.what()));
    away_ = true;
  }

  MlflowAddress address_;
  std::function<void(const std::string&)> message_;
  std::string id_;
  std::vector<json> waiting_;
  double now_ = 0, again_ = 0;
  bool away_ = false;
  size_t refused_ = 0;  // points
};

void check_mlflow(const Settings& settings) { (void)address_of(settings); }

std::unique_ptr<Sink> open_mlflow(const Settings& settings, const LoggedRun& run) {
  const MlflowAddress address = address_of(settings);
  try {
    // A server that hangs must hold up no other log, and no checkpoint.
    return std::make_unique<Aside>(std::make_unique<Mlflow>(address, run));
  } catch (const json::exception&) {
    fail<IoError>("{}: its answers are not those of MLflow; check the address in train.log", address.server);
  }
}

}  // namespace

MILLRACE_LOG(mlflow){.name = "mlflow",
                     .doc = "MLflow's tracking server, ten steps a second at most",
                     .settings = {{"URL", "of the server", std::string()},
                                  {"EXPERIMENT", "that the run is one of", std::string("millrace")}},
                     .open = open_mlflow,
                     .check = check_mlflow};

}  // namespace millrace::track
