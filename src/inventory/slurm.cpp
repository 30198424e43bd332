#include "slurm_node.hpp"

namespace tangram::inventory {

Expected<Inventory> from_slurm(const Request& request, std::span<const cluster::GpuType> devices) {
  Collector collector(request, devices, "slurm");
  for (const profiles::SourceFile& file : request.files) {
    if (trimmed(file.text).starts_with('{')) {
      const auto document = io::parse_json(file.text, file.path);
      if (document) {
        read_slurm_json(*document, collector);
      } else {
        collector.add_error(document.error());
      }
    } else {
      io::Document document;
      document.file = file.path == "-" ? "<stdin>" : file.path;
      document.text = file.text;
      read_slurm_text(document, collector);
    }
  }
  return collector.finish();
}

}  // namespace tangram::inventory
