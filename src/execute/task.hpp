// A coroutine that runs when it is awaited and hands its value to who awaits it. One per rank stands at the root; what
// it awaits lives in its frame, so that destroying the root ends everything the rank was doing.
//
// A rank's coroutines form an explicit stack, and a loop outside of all of them resumes the innermost: a thousand
// awaited values in a row need no more of the thread's stack than one, whether or not the compiler makes tail calls.
#pragma once

#include <coroutine>
#include <exception>
#include <optional>
#include <utility>
#include <vector>

namespace tangram::execute {

template <class T>
class Task;

/// The coroutines of one rank that wait for each other, innermost last.
struct CallStack {
  std::vector<std::coroutine_handle<>> frames;
  bool blocked = false;  ///< the innermost waits for another rank

  void run() {
    blocked = false;
    while (!blocked && !frames.empty()) frames.back().resume();
  }
};

namespace detail {

struct PromiseBase {
  CallStack* stack = nullptr;
  std::exception_ptr failure;

  struct Final {
    [[nodiscard]] bool await_ready() const noexcept { return false; }
    template <class Promise>
    void await_suspend(std::coroutine_handle<Promise> finished) const noexcept {
      finished.promise().stack->frames.pop_back();
    }
    void await_resume() const noexcept {}
  };
  [[nodiscard]] std::suspend_always initial_suspend() const noexcept { return {}; }
  [[nodiscard]] Final final_suspend() const noexcept { return {}; }
  void unhandled_exception() { failure = std::current_exception(); }
};

template <class T>
struct Promise : PromiseBase {
  std::optional<T> value;
  Task<T> get_return_object();
  void return_value(T result) { value.emplace(std::move(result)); }
  T take() { return std::move(*value); }
};

template <>
struct Promise<void> : PromiseBase {
  Task<void> get_return_object();
  void return_void() const noexcept {}
  void take() const noexcept {}
};

}  // namespace detail

template <class T>
class [[nodiscard]] Task {
 public:
  using promise_type = detail::Promise<T>;
  using Handle = std::coroutine_handle<promise_type>;

  explicit Task(Handle handle) : handle_(handle) {}
  Task(Task&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Task& operator=(Task&&) = delete;
  Task(const Task&) = delete;
  Task& operator=(const Task&) = delete;
  ~Task() {
    if (handle_) handle_.destroy();
  }

  [[nodiscard]] bool await_ready() const noexcept { return false; }
  template <class Promise>
  void await_suspend(std::coroutine_handle<Promise> awaiting) {
    begin(*awaiting.promise().stack);
  }
  T await_resume() {
    rethrow();
    return handle_.promise().take();
  }

  /// Of the root: puts it on its stack; whether it is through, and what it threw.
  void begin(CallStack& stack) {
    handle_.promise().stack = &stack;
    stack.frames.push_back(handle_);
  }
  [[nodiscard]] bool done() const { return handle_.done(); }
  void rethrow() const {
    if (handle_.promise().failure) std::rethrow_exception(handle_.promise().failure);
  }

 private:
  Handle handle_;
};

namespace detail {

template <class T>
Task<T> Promise<T>::get_return_object() {
  return Task<T>(std::coroutine_handle<Promise>::from_promise(*this));
}
inline Task<void> Promise<void>::get_return_object() {
  return Task<void>(std::coroutine_handle<Promise>::from_promise(*this));
}

}  // namespace detail

}  // namespace tangram::execute
