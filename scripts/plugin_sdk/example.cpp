// A parallelizer in plain C++: data parallelism over the whole shape with every ZeRO stage, for planners that are
// native programs. Needs nothing but a JSON library; build and try it with
//
//   g++ -std=c++17 -O2 example.cpp -o example_cpp        (Debian: nlohmann-json3-dev)
//   tangram parallelizers test ./example_cpp
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

namespace {

using Json = nlohmann::json;

/// Lines of JSON over the descriptor that TANGRAM_FD names; stdout and stderr stay free for whatever one likes.
class Channel {
 public:
  explicit Channel(int descriptor) : descriptor_(descriptor) {}

  void send(const Json& message) const {
    const std::string line = message.dump() + "\n";
    for (std::size_t sent = 0; sent < line.size();) {
      const ssize_t got = write(descriptor_, line.data() + sent, line.size() - sent);
      if (got <= 0) std::exit(0);  // the host is gone
      sent += static_cast<std::size_t>(got);
    }
  }

  /// False: the host is gone.
  bool receive(Json& message) {
    std::size_t end = 0;
    while ((end = buffer_.find('\n')) == std::string::npos) {
      char chunk[1 << 16];
      const ssize_t got = read(descriptor_, chunk, sizeof chunk);
      if (got <= 0) return false;
      buffer_.append(chunk, static_cast<std::size_t>(got));
    }
    message = Json::parse(buffer_.substr(0, end));
    buffer_.erase(0, end + 1);
    return true;
  }

 private:
  int descriptor_;
  std::string buffer_;
};

Json error(const Json& query, const char* code, const char* message) {
  return {{"type", "error"}, {"id", query["id"]}, {"code", code}, {"message", message}};
}

Json solve(const Json& query, const Json& shape) {
  const int gpus = shape["nodes"].get<int>() * shape["per_node"].get<int>();
  if (query["microbatch"].get<int>() % gpus != 0) return error(query, "unsupported", "a GPU without a sample");
  Json plans = Json::array();
  for (int zero = 0; zero <= (gpus > 1 ? 3 : 0); ++zero) {
    const Json allowed = "zero" + std::to_string(zero);
    const auto& allow = query["allow"];
    if (zero > 0 && std::find(allow.begin(), allow.end(), allowed) == allow.end()) continue;
    const Json stage{{"blocks", query["slice"]["blocks"]}, {"degrees", {{"dp", gpus}}}, {"zero", zero}};
    plans.push_back({{"stages", Json::array({stage})}});
  }
  return {{"type", "result"}, {"id", query["id"]}, {"plans", plans}};
}

}  // namespace

int main() {
  const char* descriptor = std::getenv("TANGRAM_FD");
  if (descriptor == nullptr) {
    std::cerr << "a parallelizer of Tangram: tangram parallelizers test PROGRAM\n";
    return 2;
  }
  Channel channel(std::atoi(descriptor));
  channel.send({{"type", "hello"}, {"protocol", 1}, {"name", "example-cpp"}, {"version", "1"}});
  std::map<std::string, Json> materials;  // what questions refer to by digest
  for (Json message; channel.receive(message);) {
    if (message["type"] == "bye") break;
    if (message["type"] == "load" && message.contains("shape")) materials[message["digest"]] = message["shape"];
    if (message["type"] == "solve") channel.send(solve(message, materials[message["shape"]]));
  }
}
