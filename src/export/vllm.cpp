// Options of vLLM 0.12: `vllm serve --help`, docs/features/nixl_connector_usage.md, and the proxy of
// tests/v1/kv_connector/nixl_integration.
#include "tangram/export/vllm.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>
#include <utility>

#include "scripts.hpp"
#include "tangram/base/assert.hpp"

namespace tangram::exporting {

namespace {

constexpr int kFrontPort = 8000;   // what clients talk to; `vllm serve` has it by default
constexpr int kFirstPort = 8100;   // of servers, by GPU
constexpr int kSidePort = 5600;    // VLLM_NIXL_SIDE_CHANNEL_PORT's default: where decode asks prefill for a cache
constexpr double kWeights = 1000;  // nginx wants whole weights: of the server with the largest share

int port_of(const VllmServer& server) { return kFirstPort + server.gpu; }

bool is_split(const std::vector<VllmServer>& servers) {
  return std::ranges::any_of(servers, [](const VllmServer& server) { return server.role != VllmRole::kWhole; });
}

std::string_view role_words(VllmRole role) {
  switch (role) {
    case VllmRole::kWhole: return "whole requests";
    case VllmRole::kPrefill: return "prefill";
    case VllmRole::kDecode: return "decode";
  }
  return "";
}

std::string start_of(const VllmServer& server) {
  std::string environment = fmt::format("{}={}", visible_devices_variable(server.vendor), server.gpu);
  std::string connector;
  if (server.role != VllmRole::kWhole) {
    environment += fmt::format(" VLLM_NIXL_SIDE_CHANNEL_HOST={} VLLM_NIXL_SIDE_CHANNEL_PORT={}",
                               shell_word(server.host), kSidePort + server.gpu);
    connector = " \\\n  --kv-transfer-config '{\"kv_connector\":\"NixlConnector\",\"kv_role\":\"kv_both\"}'";
  }
  return fmt::format(
      "# {} on GPU {}, {}\n{} vllm serve \"$model\" --port {} --max-num-seqs {}{} \"$@\" &\nservers+=(\"$!\")\n",
      role_words(server.role), server.gpu, server.gpu_type, environment, port_of(server), server.requests, connector);
}

std::string host_script(const std::string& host, const std::vector<VllmServer>& servers) {
  std::string text = fmt::format(
      "#!/usr/bin/env bash\n"
      "# vLLM's servers on {}. MODEL is a folder, or a name of Hugging Face; options are those of `vllm serve`, for "
      "all.\n"
      "# Usage: nodes/{}.sh MODEL [OPTION...]\n"
      "set -euo pipefail\n"
      "model=${{1:?nodes/{}.sh MODEL [OPTION...]}}\n"
      "shift\n"
      "servers=()\n"
      "trap 'kill \"${{servers[@]}}\" 2>/dev/null || true' EXIT\n",
      host, host, host);
  for (const VllmServer& server : servers) text += start_of(server);
  return text + "wait -n # the first server that ends ends the others\n";
}

// Who has the fewest requests under way for its weight gets the next.
std::string router(const std::vector<VllmServer>& servers) {
  const double most = std::ranges::max_element(servers, {}, &VllmServer::share)->share;
  std::string text =
      "# nginx -c \"$PWD/router.conf\": one address for all servers.\nevents {}\nhttp {\n  upstream servers {\n"
      "    least_conn;\n";
  for (const VllmServer& server : servers) {
    const auto weight = std::max(1L, std::lround(kWeights * server.share / most));
    text += fmt::format("    server {}:{} weight={};  # {}\n", server.host, port_of(server), weight, server.gpu_type);
  }
  return text +
         fmt::format(
             "  }}\n  server {{\n    listen {};\n    location / {{\n      proxy_pass http://servers;\n"
             "      proxy_buffering off;  # tokens as they come\n      proxy_read_timeout 1h;\n    }}\n  }}\n}}\n",
             kFrontPort);
}

std::string ends_of(const std::vector<VllmServer>& servers, VllmRole role, const char* option) {
  std::string hosts;
  std::string ports;
  for (const VllmServer& server : servers) {
    if (server.role != role) continue;
    hosts += " " + shell_word(server.host);
    ports += fmt::format(" {}", port_of(server));
  }
  return fmt::format("  --{}-hosts{} \\\n  --{}-ports{}", option, hosts, option, ports);
}

std::string proxy(const std::vector<VllmServer>& servers) {
  return fmt::format(
      "#!/usr/bin/env bash\n"
      "# One address for prefill and decode: sends a prompt to one server of each. VLLM is a checkout of vLLM.\n"
      "set -euo pipefail\n"
      "exec python3 \"${{VLLM:?a checkout of vLLM}}/tests/v1/kv_connector/nixl_integration/toy_proxy_server.py\" \\\n"
      "  --port {} \\\n{} \\\n{}\n",
      kFrontPort, ends_of(servers, VllmRole::kPrefill, "prefiller"), ends_of(servers, VllmRole::kDecode, "decoder"));
}

}  // namespace

Export export_vllm(const std::vector<VllmServer>& servers) {
  TANGRAM_ASSERT(!servers.empty());
  std::map<std::string, std::vector<VllmServer>> by_host;
  for (const VllmServer& server : servers) by_host[server.host].push_back(server);
  Export out;
  for (const auto& [host, own] : by_host) {
    out.files.push_back({fmt::format("nodes/{}.sh", host), host_script(host, own), true});
  }
  if (is_split(servers)) {
    out.files.push_back({"proxy.sh", proxy(servers), true});
    out.notes.emplace_back(
        "run nodes/HOST.sh MODEL on every host, then VLLM=CHECKOUT ./proxy.sh on one that reaches all");
    out.notes.emplace_back("prefill and decode need nixl on every host (pip install nixl)");
  } else if (servers.size() > 1) {
    out.files.push_back({"router.conf", router(servers), false});
    out.notes.emplace_back("run nodes/HOST.sh MODEL on every host, and nginx with router.conf on one that reaches all");
  } else {
    out.notes.emplace_back("run nodes/HOST.sh MODEL");
  }
  return out;
}

}  // namespace tangram::exporting
