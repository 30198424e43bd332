#include "tangram/cache/database.hpp"

#include <sqlite3.h>

namespace tangram::cache {
namespace {

constexpr int kPatienceMs = 10'000;  // what others write is written in far less

[[noreturn]] void complain(sqlite3* handle, int code) {
  throw SqlError(code & 0xff, handle == nullptr ? sqlite3_errstr(code) : sqlite3_errmsg(handle));
}

}  // namespace

Database::Database(const std::string& file) {
  const int code = sqlite3_open_v2(file.c_str(), &handle_, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, nullptr);
  if (code != SQLITE_OK) {
    const SqlError error(code & 0xff, sqlite3_errmsg(handle_));
    sqlite3_close(handle_);
    throw error;
  }
  sqlite3_busy_timeout(handle_, kPatienceMs);
}

Database::~Database() { sqlite3_close(handle_); }

void Database::run(const std::string& statements) const {
  const int code = sqlite3_exec(handle_, statements.c_str(), nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) complain(handle_, code);
}

std::int64_t Database::number(const std::string& query) const {
  Statement statement(*this, query);
  return statement.next() ? statement.number(0) : 0;
}

Statement::Statement(const Database& database, std::string_view text) : database_(database) {
  const int code = sqlite3_prepare_v2(database.handle(), text.data(), static_cast<int>(text.size()), &handle_, nullptr);
  if (code != SQLITE_OK) complain(database.handle(), code);
}

Statement::~Statement() { sqlite3_finalize(handle_); }

Statement& Statement::with(std::string_view text) {
  // The library copies the text: SQLITE_TRANSIENT is a cast of its own, in the style of C.
  const auto copied = reinterpret_cast<sqlite3_destructor_type>(-1);  // NOLINT
  const int code = sqlite3_bind_text64(handle_, ++bound_, text.data(), text.size(), copied, SQLITE_UTF8);
  if (code != SQLITE_OK) complain(database_.handle(), code);
  return *this;
}

Statement& Statement::with(std::int64_t number) {
  const int code = sqlite3_bind_int64(handle_, ++bound_, number);
  if (code != SQLITE_OK) complain(database_.handle(), code);
  return *this;
}

bool Statement::next() {
  const int code = sqlite3_step(handle_);
  if (code != SQLITE_ROW && code != SQLITE_DONE) complain(database_.handle(), code);
  return code == SQLITE_ROW;
}

void Statement::finish() {
  while (next()) {
  }
  again();
}

void Statement::again() {
  sqlite3_reset(handle_);
  bound_ = 0;
}

std::string Statement::text(int column) const {
  const auto* bytes = static_cast<const char*>(sqlite3_column_blob(handle_, column));
  const auto length = static_cast<std::size_t>(sqlite3_column_bytes(handle_, column));
  return bytes == nullptr ? std::string() : std::string(bytes, length);
}

std::int64_t Statement::number(int column) const { return sqlite3_column_int64(handle_, column); }

Transaction::Transaction(const Database& database) : database_(database) { database_.run("BEGIN IMMEDIATE"); }

Transaction::~Transaction() {
  // A failure that ended the transaction by itself makes this one fail, and nothing is to be done about either.
  if (open_) sqlite3_exec(database_.handle(), "ROLLBACK", nullptr, nullptr, nullptr);
}

void Transaction::commit() {
  database_.run("COMMIT");
  open_ = false;
}

}  // namespace tangram::cache
