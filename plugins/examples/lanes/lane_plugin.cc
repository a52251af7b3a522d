// Gives each container one of four accelerator lanes; lanes 0 and 1 belong to NUMA node 0.
#include <algorithm>

#include <plugins/sdk/plugin.h>

class LanePlugin final : public qrm::sdk::ResourcePlugin {
 public:
  qrm::Status Restore(const qrm::sdk::Grants& grants) override {
    for (const auto& [container, grant] : grants) {
      lanes_[container] = std::stoi(grant.allocation.envs.at("LANE"));
    }
    return qrm::OkStatus();
  }

  qrm::StatusOr<qrm::HintList> Hints(const qrm::ContainerRequest&) override {
    std::vector<qrm::TopologyHint> hints;
    for (const int node : {0, 1}) {
      if (IsFree(2 * node) || IsFree(2 * node + 1)) hints.push_back({{node}, true});
    }
    return hints;  // an empty list: no NUMA node can serve the container
  }

  qrm::StatusOr<qrm::ResourceAllocation> Allocate(const qrm::ContainerRequest& request,
                                                  const qrm::TopologyHint& hint) override {
    for (int lane = 0; lane < 4; ++lane) {
      if (IsFree(lane) && (hint.nodes.Empty() || hint.nodes.Has(lane / 2))) {
        lanes_[request.key] = lane;
        return qrm::ResourceAllocation{
            .is_scalar_resource = true, .quantity = 1, .envs = {{"LANE", std::to_string(lane)}}};
      }
    }
    return qrm::Errorf(qrm::StatusCode::kResourceExhausted, "cannot give a lane: all are taken");
  }

  void Remove(const std::vector<qrm::ContainerKey>& containers) override {
    for (const auto& container : containers) lanes_.erase(container);
  }

 private:
  bool IsFree(int lane) const {
    return std::ranges::none_of(lanes_, [&](const auto& taken) { return taken.second == lane; });
  }
  std::map<qrm::ContainerKey, int> lanes_;
};

int main(int argc, char** argv) {
  LanePlugin plugin;
  return qrm::sdk::PluginMain("example.com/lane", plugin, argc, argv);
}
