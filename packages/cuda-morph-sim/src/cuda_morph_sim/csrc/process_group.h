// A process group for the simulated device under a vendor's name: gloo on the device's bytes.
#pragma once

#include "collective_work.h"

#include <torch/csrc/distributed/c10d/Backend.hpp>

#include <set>
#include <string>

namespace cuda_morph_sim {

// What a vendor's library can do. An empty set limits nothing.
struct GroupLimits {
  std::set<std::string> operations;
  std::set<std::string> reductions;
  std::set<c10::ScalarType> dtypes;
  // Dtypes that travel in a narrower one, as on devices that have no 64 bits.
  std::vector<std::pair<c10::ScalarType, c10::ScalarType>> narrowed;
};

// Forwards every collective to `host`, a group for CPU tensors, with aliases of the device's
// tensors: nothing is copied, except for what the vendor's library would convert.
class DeviceGroup final : public c10d::Backend {
 public:
  DeviceGroup(std::string name, c10::intrusive_ptr<c10d::Backend> host, GroupLimits limits);

  const std::string getBackendName() const override {
    return name_;
  }
  c10::intrusive_ptr<Options> getBackendOptions() override;
  void setTimeout(std::chrono::milliseconds timeout) override;
  bool supportsCoalescing() const override {
    return true;
  }
  void startCoalescing() override;
  c10::intrusive_ptr<c10d::Work> endCoalescing() override;
  void setSequenceNumberForGroup() override;
  uint64_t getSequenceNumberForGroup() override;
  void abort() override;
  void shutdown() override;

  c10::intrusive_ptr<c10d::Work> broadcast(
      std::vector<at::Tensor>&, const c10d::BroadcastOptions&) override;
  c10::intrusive_ptr<c10d::Work> allreduce(
      std::vector<at::Tensor>&, const c10d::AllreduceOptions&) override;
  c10::intrusive_ptr<c10d::Work> allreduce_coalesced(
      std::vector<at::Tensor>&, const c10d::AllreduceCoalescedOptions&) override;
  c10::intrusive_ptr<c10d::Work> reduce(
      std::vector<at::Tensor>&, const c10d::ReduceOptions&) override;
  c10::intrusive_ptr<c10d::Work> allgather(
      std::vector<std::vector<at::Tensor>>&,
      std::vector<at::Tensor>&,
      const c10d::AllgatherOptions&) override;
  c10::intrusive_ptr<c10d::Work> _allgather_base(
      at::Tensor&, at::Tensor&, const c10d::AllgatherOptions&) override;
  c10::intrusive_ptr<c10d::Work> allgather_coalesced(
      std::vector<std::vector<at::Tensor>>&,
      std::vector<at::Tensor>&,
      const c10d::AllgatherOptions&) override;
  c10::intrusive_ptr<c10d::Work> allgather_into_tensor_coalesced(
      std::vector<at::Tensor>&, std::vector<at::Tensor>&, const c10d::AllgatherOptions&) override;
  c10::intrusive_ptr<c10d::Work> gather(
      std::vector<std::vector<at::Tensor>>&,
      std::vector<at::Tensor>&,
      const c10d::GatherOptions&) override;
  c10::intrusive_ptr<c10d::Work> scatter(
      std::vector<at::Tensor>&,
      std::vector<std::vector<at::Tensor>>&,
      const c10d::ScatterOptions&) override;
  c10::intrusive_ptr<c10d::Work> reduce_scatter(
      std::vector<at::Tensor>&,
      std::vector<std::vector<at::Tensor>>&,
      const c10d::ReduceScatterOptions&) override;
  c10::intrusive_ptr<c10d::Work> _reduce_scatter_base(
      at::Tensor&, at::Tensor&, const c10d::ReduceScatterOptions&) override;
  c10::intrusive_ptr<c10d::Work> reduce_scatter_tensor_coalesced(
      std::vector<at::Tensor>&,
      std::vector<at::Tensor>&,
      const c10d::ReduceScatterOptions&) override;
  c10::intrusive_ptr<c10d::Work> alltoall_base(
      at::Tensor&,
      at::Tensor&,
      std::vector<int64_t>&,
      std::vector<int64_t>&,
      const c10d::AllToAllOptions&) override;
  c10::intrusive_ptr<c10d::Work> alltoall(
      std::vector<at::Tensor>&,
      std::vector<at::Tensor>&,
      const c10d::AllToAllOptions&) override;
  c10::intrusive_ptr<c10d::Work> send(std::vector<at::Tensor>&, int, int) override;
  c10::intrusive_ptr<c10d::Work> recv(std::vector<at::Tensor>&, int, int) override;
  c10::intrusive_ptr<c10d::Work> recvAnysource(std::vector<at::Tensor>&, int) override;
  c10::intrusive_ptr<c10d::Work> barrier(const c10d::BarrierOptions&) override;

 private:
  friend class Collective;
  c10::intrusive_ptr<c10d::Work> track(c10::intrusive_ptr<DeviceWork> work);

  std::string name_;
  c10::intrusive_ptr<c10d::Backend> host_;
  GroupLimits limits_;
  c10::intrusive_ptr<Options> options_;
  std::mutex live_mutex_;
  std::vector<c10::weak_intrusive_ptr<DeviceWork>> live_;
  std::string ended_;
  bool coalescing_ = false;
  std::vector<c10::intrusive_ptr<DeviceWork>> coalesced_;
};

} // namespace cuda_morph_sim
