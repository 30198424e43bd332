// vLLM servers on the GPUs of a fleet. Goes in: a server for each GPU. Comes out: the files of one folder: a script for
// each host, and what stands in front of the servers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tangram/export/export.hpp"

namespace tangram::exporting {

enum class VllmRole : std::uint8_t { kWhole, kPrefill, kDecode };

struct VllmServer {
  std::string host;
  int gpu = 0;  ///< on the host
  std::string gpu_type;
  std::string vendor;  ///< of the GPU: says by which variable a process is given one
  VllmRole role = VllmRole::kWhole;
  double share = 0;  ///< of all requests
  int requests = 1;  ///< at a time
};

/// nodes/HOST.sh MODEL [OPTION...] starts the servers of a host. In front of whole models stands nginx
/// (router.conf, weights by shares), of prefill and decode the proxy that comes with vLLM's NixlConnector (proxy.sh).
/// One server at least; roles are whole alone, or prefill and decode.
[[nodiscard]] Export export_vllm(const std::vector<VllmServer>& servers);

}  // namespace tangram::exporting
