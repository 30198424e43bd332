// The fleet as the user wrote it. Goes in: cluster.json (tangram.cluster/1). Comes out: nodes with their GPUs and a
// function that tells the link between any two of them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tangram/base/expected.hpp"
#include "tangram/cluster/gpu.hpp"

namespace tangram::cluster {

/// GPUs of one type in one node, connected alike. A node with two types has two groups.
struct DeviceGroup {
  GpuType device;  ///< with the node's measured overrides already applied
  int count = 0;
  int clique = 0;  ///< GPUs that reach each other over `link`: count, or 2 for NVLink pairs; divides count
  Link link;       ///< inside a clique, per GPU
  bool operator==(const DeviceGroup&) const = default;
};

struct Node {
  std::string name;  ///< host name, unique
  std::vector<DeviceGroup> groups;
  Link host_link;  ///< between cliques and groups of this node (the host bus), per GPU
  Link network;    ///< all network cards together, one direction
  std::map<std::string, std::string> labels;
  Dollars price_per_hour{0};  ///< whole node; 0: sum of the GPUs' catalogue prices
  bool operator==(const Node&) const = default;
};

/// Nodes whose label `key` has value `a` on one side and `b` on the other see at most this link per node. An empty `a`
/// (and `b`) with `same` true: both have any same value ("inside a rack"); with `same` false: different values
/// ("between racks"). Later rules win over earlier ones where several match.
struct LinkRule {
  std::string key;
  bool same = false;
  std::string a;
  std::string b;
  Link link;
  bool operator==(const LinkRule&) const = default;
};

struct Fleet {
  std::string name;
  std::vector<Node> nodes;  ///< sorted by name (natural order), so that the file's order never matters
  std::vector<LinkRule> rules;
  std::vector<Link> measured;        ///< nodes x nodes, row-major, symmetric; empty, or bandwidth 0: not measured
  std::string digest;                ///< of the canonical content
  std::vector<std::string> assumed;  ///< what edits did not say, and what was taken, for people

  [[nodiscard]] int gpu_count() const;
  /// Link between two different nodes: measured where given, else the smaller of both networks and of the last
  /// matching rule; latency is the larger of the three.
  [[nodiscard]] Link between(std::size_t a, std::size_t b) const;
  bool operator==(const Fleet&) const = default;
};

/// Reads tangram.cluster/1. Every mistake becomes a diagnostic with its place. `file` names the text in errors.
[[nodiscard]] Expected<Fleet> read_fleet(std::string text, std::string file);

/// The canonical form, in which every node stands by itself; read_fleet of it gives the same fleet.
[[nodiscard]] std::string write_fleet(const Fleet& fleet);

/// GPU types that come with the program (configs/gpus, embedded at build time), sorted by name.
[[nodiscard]] const std::vector<GpuType>& catalogue();

/// Reads tangram.gpus/1, whose records may be like those of the catalogue: the catalogue with these in place of its own
/// of the same name.
[[nodiscard]] Expected<std::vector<GpuType>> read_catalogue(std::string text, std::string file);

}  // namespace tangram::cluster
