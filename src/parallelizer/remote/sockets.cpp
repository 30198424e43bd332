#include "sockets.hpp"

#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include "tangram/base/problem.hpp"

namespace tangram::parallelizer {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr int kBacklog = 1024;  // agents of a whole cluster call at the same moment
constexpr int kIdleSeconds = 10;
constexpr int kProbeSeconds = 5;
constexpr int kProbes = 3;
constexpr int kSilenceMilliseconds = 30'000;

Diagnostics no_network(const char* what) {
  return {problem(ErrorKind::kPlugin, "no-network", fmt::format("{}: {}", what, std::strerror(errno)),
                  "workers on other machines call back over TCP")};
}

int left(Clock::time_point deadline) {
  const auto time = std::chrono::ceil<milliseconds>(deadline - Clock::now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(time, 0, 60'000));
}

void set(int socket, int level, int option, int value) { setsockopt(socket, level, option, &value, sizeof value); }

/// Both versions of IP where the machine has both.
Descriptor listening_socket() {
  for (const int family : {AF_INET6, AF_INET}) {
    Descriptor socket(::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (!socket.open()) continue;
    sockaddr_storage any{};
    any.ss_family = static_cast<sa_family_t>(family);  // address and port are zero: any
    const socklen_t size = family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
    if (family == AF_INET6) set(socket.number(), IPPROTO_IPV6, IPV6_V6ONLY, 0);
    if (bind(socket.number(), reinterpret_cast<const sockaddr*>(&any), size) != 0) continue;
    if (listen(socket.number(), kBacklog) == 0) return socket;
  }
  return {};
}

/// The port follows the family in sockaddr_in and sockaddr_in6 alike.
int port_of(const Descriptor& socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (getsockname(socket.number(), reinterpret_cast<sockaddr*>(&address), &size) != 0) return 0;
  in_port_t port = 0;
  std::memcpy(&port, reinterpret_cast<const char*>(&address) + sizeof(sa_family_t), sizeof port);
  return ntohs(port);
}

bool is_link_local(const sockaddr* address) {
  sockaddr_in6 six{};
  std::memcpy(&six, address, sizeof six);
  return IN6_IS_ADDR_LINKLOCAL(&six.sin6_addr) != 0;
}

std::vector<std::string> own_addresses(int port) {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return {};
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(list, freeifaddrs);
  std::vector<std::string> found[4];  // IPv4, IPv6, then the loopbacks
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr || (entry->ifa_flags & IFF_UP) == 0) continue;
    const bool six = entry->ifa_addr->sa_family == AF_INET6;
    if (!six && entry->ifa_addr->sa_family != AF_INET) continue;
    if (six && is_link_local(entry->ifa_addr)) continue;
    char host[NI_MAXHOST];
    const socklen_t size = six ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
    if (getnameinfo(entry->ifa_addr, size, host, sizeof host, nullptr, 0, NI_NUMERICHOST) != 0) continue;
    const bool loopback = (entry->ifa_flags & IFF_LOOPBACK) != 0;
    const std::size_t group = (six ? 1U : 0U) + (loopback ? 2U : 0U);
    found[group].push_back(six ? fmt::format("[{}]:{}", host, port) : fmt::format("{}:{}", host, port));
  }
  std::vector<std::string> addresses;
  for (const auto& group : found) addresses.insert(addresses.end(), group.begin(), group.end());
  return addresses;
}

bool connected(const Descriptor& socket, const addrinfo& to, milliseconds patience) {
  if (connect(socket.number(), to.ai_addr, to.ai_addrlen) == 0) return true;
  if (errno != EINPROGRESS) return false;
  pollfd event{socket.number(), POLLOUT, 0};
  if (poll(&event, 1, static_cast<int>(patience.count())) != 1) return false;
  int error = 0;
  socklen_t size = sizeof error;
  return getsockopt(socket.number(), SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error == 0;
}

}  // namespace

Expected<Listener> listen_anywhere() {
  Listener listener{listening_socket(), {}};
  if (!listener.socket.open()) return fail(no_network("cannot listen for workers"));
  listener.addresses = own_addresses(port_of(listener.socket));
  if (listener.addresses.empty()) return fail(no_network("this machine has no network address"));
  return listener;
}

Descriptor connect_to(const std::string& address, milliseconds patience) {
  const std::size_t colon = address.rfind(':');
  if (colon == std::string::npos) return {};
  std::string host = address.substr(0, colon);
  if (host.size() > 2 && host.front() == '[') host = host.substr(1, host.size() - 2);
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  wanted.ai_flags = AI_NUMERICSERV;
  addrinfo* list = nullptr;
  if (getaddrinfo(host.c_str(), address.substr(colon + 1).c_str(), &wanted, &list) != 0) return {};
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(list, freeaddrinfo);
  for (const addrinfo* to = list; to != nullptr; to = to->ai_next) {
    Descriptor socket(::socket(to->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (!socket.open() || !connected(socket, *to, patience)) continue;
    prepare(socket);
    return socket;
  }
  return {};
}

void prepare(const Descriptor& socket) {
  make_non_blocking(socket);
  set(socket.number(), IPPROTO_TCP, TCP_NODELAY, 1);
  set(socket.number(), SOL_SOCKET, SO_KEEPALIVE, 1);
  set(socket.number(), IPPROTO_TCP, TCP_KEEPIDLE, kIdleSeconds);
  set(socket.number(), IPPROTO_TCP, TCP_KEEPINTVL, kProbeSeconds);
  set(socket.number(), IPPROTO_TCP, TCP_KEEPCNT, kProbes);
  set(socket.number(), IPPROTO_TCP, TCP_USER_TIMEOUT, kSilenceMilliseconds);
}

bool send_all(const Descriptor& socket, std::string_view text, milliseconds patience) {
  const auto deadline = Clock::now() + patience;
  while (!text.empty()) {
    const ssize_t sent = send(socket.number(), text.data(), text.size(), MSG_NOSIGNAL);
    if (sent >= 0) {
      text.remove_prefix(static_cast<std::size_t>(sent));
      continue;
    }
    if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR) return false;
    pollfd event{socket.number(), POLLOUT, 0};
    if (poll(&event, 1, left(deadline)) == 0) return false;
  }
  return true;
}

bool receive_some(const Descriptor& socket, std::string& incoming, milliseconds patience) {
  pollfd event{socket.number(), POLLIN, 0};
  if (poll(&event, 1, static_cast<int>(patience.count())) <= 0) return true;
  char chunk[4096];
  const ssize_t got = recv(socket.number(), chunk, sizeof chunk, MSG_DONTWAIT);
  if (got > 0) incoming.append(chunk, static_cast<std::size_t>(got));
  return got > 0 || (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR));
}

}  // namespace tangram::parallelizer
