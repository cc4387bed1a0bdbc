// A database of runs (SQLite 3): one file for as many runs as are told to use it, also at a time.
//
// runs(id, path, begun, state, version, recipe), params(run, key, value), metrics(run, step, name, value,
// time)
#include <functional>
#include <sqlite3.h>
#include <vector>

#include <millrace/version.h>

#include "base/format.h"
#include "base/utc_time.h"
#include "track/log_kind.h"

namespace millrace::track {
namespace {

constexpr const char* schema = R"sql(
CREATE TABLE IF NOT EXISTS runs (
  id INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE, begun TEXT NOT NULL, state TEXT NOT NULL,
  version TEXT NOT NULL, recipe TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS params (
  run INTEGER NOT NULL REFERENCES runs(id), key TEXT NOT NULL, value TEXT NOT NULL, PRIMARY KEY (run, key))
  WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS metrics (
  run INTEGER NOT NULL REFERENCES runs(id), name TEXT NOT NULL, step INTEGER NOT NULL, value REAL,
  time REAL NOT NULL, PRIMARY KEY (run, name, step)) WITHOUT ROWID;
)sql";

/// How long another program's lock is waited for, in milliseconds: when a training begins or ends, and while
/// it runs (a checkpoint waits for what is written).
constexpr int lock_patience = 60'000, short_lock_patience = 3'000;
/// Seconds between two tries of a database that could not be written.
constexpr double pause_between_tries = 10;
/// Points that wait for it. The oldest go first.
constexpr size_t most_rows_kept = 1'000'000;

/// A database file, with errors as exceptions.
class Database {
 public:
  explicit Database(std::string path) : path_(std::move(path)) {
    std::error_code ignored;
    const std::filesystem::path folder = std::filesystem::path(path_).parent_path();
    if (!folder.empty()) std::filesystem::create_directories(folder, ignored);
    const int code =
        ::sqlite3_open_v2(path_.c_str(), &base_, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, nullptr);
    if (code != SQLITE_OK) {
      const std::string why = base_ ? ::sqlite3_errmsg(base_) : "no memory";
      ::sqlite3_close(base_);
      fail<IoError>("{}: cannot open the database of runs: {}", path_, why);
    }
    // Other trainings may write at the same time.
    wait_for_others(lock_patience);
  }
  ~Database() { ::sqlite3_close_v2(base_); }
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  void wait_for_others(int milliseconds) { ::sqlite3_busy_timeout(base_, milliseconds); }
  void run(const char* sql) { require(::sqlite3_exec(base_, sql, nullptr, nullptr, nullptr)); }
  /// The same of what SQLite does not wait with when two programs make a database at the same time.
  void run_when_free(const char* sql) {
    constexpr int pause = 20, tries = lock_patience / pause;  // milliseconds
    int code = ::sqlite3_exec(base_, sql, nullptr, nullptr, nullptr);
    for (int i = 0; i < tries && (code & 0xff) == SQLITE_BUSY; ++i) {
      ::sqlite3_sleep(pause);
      code = ::sqlite3_exec(base_, sql, nullptr, nullptr, nullptr);
    }
    require(code);
  }
  void require(int code) const {
    if (code == SQLITE_OK || code == SQLITE_DONE || code == SQLITE_ROW) return;
    const std::string why = ::sqlite3_errmsg(base_);
    if (code == SQLITE_NOTADB)
      fail<InputError>("{}: is no SQLite database; choose another file in train.log", path_);
    if (code == SQLITE_CORRUPT)
      fail<IoError>("{}: the database of runs is damaged ({}); choose another file in train.log", path_, why);
    fail<IoError>("{}: cannot write the database of runs: {}", path_, why);
  }
  sqlite3* handle() const { return base_; }

 private:
  std::string path_;
  sqlite3* base_ = nullptr;
};

class Statement {
 public:
  Statement(const Database& base, const char* sql) : base_(base) {
    base.require(::sqlite3_prepare_v2(base.handle(), sql, -1, &statement_, nullptr));
  }
  ~Statement() { ::sqlite3_finalize(statement_); }
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  Statement& bind(int place, int64_t value) {
    base_.require(::sqlite3_bind_int64(statement_, place, value));
    return *this;
  }
  Statement& bind(int place, double value) {  // NaN becomes NULL
    base_.require(::sqlite3_bind_double(statement_, place, value));
    return *this;
  }
  Statement& bind(int place, const std::string& value) {
    base_.require(::sqlite3_bind_text(statement_, place, value.data(), static_cast<int>(value.size()),
                                      SQLITE_TRANSIENT));
    return *this;
  }
  /// Runs it; true when it gives a row, whose first column number() has until the next call.
  bool step() {
    const int code = ::sqlite3_step(statement_);
    base_.require(code);
    return code == SQLITE_ROW;
  }
  int64_t number() const { return ::sqlite3_column_int64(statement_, 0); }
  void reset() { ::sqlite3_reset(statement_); }

 private:
  const Database& base_;
  sqlite3_stmt* statement_ = nullptr;
};

class RunDatabase final : public Sink {
 public:
  RunDatabase(const std::string& path, const LoggedRun& run)
      : base_(path), path_(path), message_(run.message) {
    base_.run_when_free("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;");
    base_.run_when_free(schema);
    base_.run("BEGIN IMMEDIATE");
    begin(run);
    base_.run("COMMIT");
    insert_ = std::make_unique<Statement>(
        base_, "INSERT OR REPLACE INTO metrics (run, name, step, value, time) VALUES (?, ?, ?, ?, ?)");
  }

  void write(const Record& record) override {
    now_ = record.time;
    if (!thinned_.wanted(record)) return;
    const Names& names = *record.names;
    for (size_t i = 0; i < names.curves.size(); ++i) {
      // Those of an epoch are under their keys: the loss of all its steps is no curve of steps.
      const std::string& name = names.summary ? names.keys[i] : names.curves[i];
      if (name.empty() || name == "epoch") continue;
      waiting_.push_back({names.summary && names.curves[i].empty() ? "epoch/" + name : name, record.step,
                          record.values[i], record.time});
    }
  }
  void flush() override {
    if (!waiting_.empty() && now_ >= again_) (void)store(away_ ? 0 : short_lock_patience);
  }
  void finish(const std::string& state) override {
    if (!store(lock_patience, &state) && !waiting_.empty())
      message_(
          fmt::format("{}: {} points are not there, but all are in metrics.jsonl", path_, waiting_.size()));
  }

 private:
  void begin(const LoggedRun& run) {
    const std::string path = std::filesystem::absolute(run.folder).lexically_normal().string();
    Statement find(base_, "SELECT id FROM runs WHERE path = ?");
    const bool known = find.bind(1, path).step();
    if (known) id_ = find.number();
    if (!known) {
      Statement add(base_,
                    "INSERT INTO runs (path, begun, state, version, recipe) VALUES (?, ?, 'running', ?, ?)");
      add.bind(1, path).bind(2, utc_time()).bind(3, std::string(version())).bind(4, run.recipe).step();
      id_ = ::sqlite3_last_insert_rowid(base_.handle());
    } else {
      Statement forget(base_, "DELETE FROM metrics WHERE run = ? AND step > ?");
      forget.bind(1, id_).bind(2, run.resume_step).step();
      set_state("running");
    }
    for (const auto& [key, value] : run.params) {
      Statement add(base_, "INSERT OR REPLACE INTO params (run, key, value) VALUES (?, ?, ?)");
      add.bind(1, id_).bind(2, key).bind(3, value).step();
    }
  }
  /// Writes all that waits, and the state where one is given. What cannot be written now (another program
  /// keeps a lock, the disk is full) ends no training: it is told once, and tried again later.
  bool store(int milliseconds, const std::string* state = nullptr) {
    try {
      base_.wait_for_others(milliseconds);
      base_.run("BEGIN IMMEDIATE");
      for (const Row& row : waiting_) {
        insert_->bind(1, id_).bind(2, row.name).bind(3, row.step).bind(4, row.value).bind(5, row.time);
        insert_->step();
        insert_->reset();
      }
      if (state) set_state(*state);
      base_.run("COMMIT");
    } catch (const Error& error) {
      insert_->reset();
      ::sqlite3_exec(base_.handle(), "ROLLBACK", nullptr, nullptr, nullptr);
      again_ = now_ + pause_between_tries;
      if (!away_)
        message_(
            fmt::format("{} (training goes on, and what is missing there is written later)", error.what()));
      away_ = true;
      if (waiting_.size() > most_rows_kept)
        waiting_.erase(waiting_.begin(), waiting_.end() - static_cast<ptrdiff_t>(most_rows_kept));
      return false;
    }
    away_ = false;
    waiting_.clear();
    return true;
  }
  void set_state(const std::string& state) {
    Statement update(base_, "UPDATE runs SET state = ? WHERE id = ?");
    update.bind(1, state).bind(2, id_).step();
  }

  struct Row {
    std::string name;
    int64_t step = 0;
    double value = 0, time = 0;
  };

  Database base_;
  std::string path_;
  std::function<void(const std::string&)> message_;
  int64_t id_ = 0;
  std::unique_ptr<Statement> insert_;
  Thinned thinned_;
  std::vector<Row> waiting_;
  double now_ = 0, again_ = 0;
  bool away_ = false;
};

std::unique_ptr<Sink> open_sqlite(const Settings& settings, const LoggedRun& run) {
  return std::make_unique<RunDatabase>((run.base / settings.text("FILE")).string(), run);
}

}  // namespace

MILLRACE_LOG(sqlite){
    .name = "sqlite",
    .doc = "a database of runs, one for as many as use it: tables runs, params and metrics",
    .settings = {{.name = "FILE", .doc = "of the database", .usual = std::string(), .path = true}},
    .open = open_sqlite};

}  // namespace millrace::track
