// SQLite with C++ manners. Goes in: statements and values. Comes out: rows, or a SqlError: it ends what the cache was
// about to do, and does not leave the cache.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

struct sqlite3;
struct sqlite3_stmt;

namespace tangram::cache {

class SqlError : public std::runtime_error {
 public:
  SqlError(int code, const std::string& message) : std::runtime_error(message), code_(code) {}
  [[nodiscard]] int code() const { return code_; }  ///< SQLITE_BUSY, SQLITE_CORRUPT, ...

 private:
  int code_;
};

class Database {
 public:
  /// Makes the file if there is none. Waits for other processes where they hold a lock.
  explicit Database(const std::string& file);
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;
  ~Database();

  void run(const std::string& statements) const;
  [[nodiscard]] std::int64_t number(const std::string& query) const;  ///< first column of the first row; none: 0
  [[nodiscard]] sqlite3* handle() const { return handle_; }

 private:
  sqlite3* handle_ = nullptr;
};

/// A prepared statement, its parameters bound in order: `Statement(db, "...?").with(a).with(b)`.
class Statement {
 public:
  Statement(const Database& database, std::string_view text);
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;
  ~Statement();

  Statement& with(std::string_view text);
  Statement& with(std::int64_t number);
  [[nodiscard]] bool next();  ///< to the next row; false: there is none
  void finish();              ///< for statements without rows
  /// For the next set of parameters.
  void again();

  [[nodiscard]] std::string text(int column) const;
  [[nodiscard]] std::int64_t number(int column) const;

 private:
  const Database& database_;
  sqlite3_stmt* handle_ = nullptr;
  int bound_ = 0;
};

/// Takes the lock for writing at once: two that read first and both want to write then would stand in each other's
/// way. Rolled back unless committed.
class Transaction {
 public:
  explicit Transaction(const Database& database);
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  ~Transaction();
  void commit();

 private:
  const Database& database_;
  bool open_ = true;
};

}  // namespace tangram::cache
