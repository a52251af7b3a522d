// Gives each container one of four accelerator lanes: two near NUMA node 0, two near 1 if any.
#include <algorithm>
#include <ranges>

#include <plugins/sdk/plugin.h>

class LanePlugin final : public qrm::sdk::ResourcePlugin {
 public:
  qrm::Status Restore(const qrm::sdk::Grants& grants) override {
    lanes_.clear();
    for (auto& [key, grant] : grants) lanes_[key] = std::stoi(grant.allocation->envs.at("LANE"));
    return qrm::OkStatus();
  }

  qrm::StatusOr<qrm::HintList> Hints(const qrm::ContainerRequest&) override {
    std::vector<qrm::TopologyHint> hints;
    for (const int lane : {0, 1, 2, 3}) {
      if (IsFree(lane)) hints.push_back({{NodeOf(lane)}, true});
    }
    return hints;  // an empty list: no NUMA node can serve the container
  }

  qrm::StatusOr<qrm::ResourceAllocation> Allocate(const qrm::ContainerRequest& request,
                                                  const qrm::TopologyHint& hint) override {
    for (int lane = 0; lane < 4; ++lane) {
      if (IsFree(lane) && (hint.nodes.Empty() || hint.nodes.Has(NodeOf(lane)))) {
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
  int NodeOf(int lane) const { return nodes_.Has(lane / 2) ? lane / 2 : 0; }
  bool IsFree(int lane) const { return std::ranges::count(lanes_ | std::views::values, lane) == 0; }
  const qrm::NumaMask nodes_ = qrm::sdk::OnlineNumaNodes();
  std::map<qrm::ContainerKey, int> lanes_;
};

int main(int argc, char** argv) {
  LanePlugin plugin;
  return qrm::sdk::PluginMain("example.com/lane", plugin, argc, argv);
}
