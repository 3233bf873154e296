#include "process_group.h"

#include "collective_call.h"

namespace cuda_morph_sim {

using c10d::OpType;

namespace {

Tensors flat(const TensorLists& lists) {
  Tensors all;
  for (const auto& list : lists) {
    all.insert(all.end(), list.begin(), list.end());
  }
  return all;
}

} // namespace

DeviceGroup::DeviceGroup(
    std::string name, c10::intrusive_ptr<c10d::Backend> host, GroupLimits limits)
    : Backend(host->getRank(), host->getSize()),
      name_(std::move(name)),
      host_(std::move(host)),
      limits_(std::move(limits)),
      options_(c10::make_intrusive<Options>(name_, host_->getBackendOptions()->timeout)) {}

c10::intrusive_ptr<c10d::Backend::Options> DeviceGroup::getBackendOptions() {
  return options_;
}

void DeviceGroup::setTimeout(std::chrono::milliseconds timeout) {
  host_->setTimeout(timeout);
  options_->timeout = timeout;
}

WorkPointer DeviceGroup::track(c10::intrusive_ptr<DeviceWork> work) {
  std::lock_guard<std::mutex> lock(live_mutex_);
  live_.erase(
      std::remove_if(
          live_.begin(), live_.end(), [](const auto& one) { return one.use_count() == 0; }),
      live_.end());
  live_.emplace_back(work);
  if (coalescing_) {
    coalesced_.push_back(work);
  }
  return work;
}

// The parts start at once; what is coalesced is their handle.
void DeviceGroup::startCoalescing() {
  coalescing_ = true;
  coalesced_.clear();
}

WorkPointer DeviceGroup::endCoalescing() {
  coalescing_ = false;
  if (coalesced_.empty()) {
    return nullptr;
  }
  Tensors outputs;
  std::vector<WorkPointer> parts;
  for (auto& work : coalesced_) {
    for (auto& tensor : work->result()) {
      outputs.push_back(std::move(tensor));
    }
    parts.push_back(std::move(work));
  }
  coalesced_.clear();
  return track(c10::make_intrusive<DeviceWork>(
      CollectiveName{name_, "a batch", getRank(), getSize()},
      OpType::COALESCED,
      std::move(parts),
      std::move(outputs),
      std::function<void()>()));
}

void DeviceGroup::setSequenceNumberForGroup() {
  host_->setSequenceNumberForGroup();
}

uint64_t DeviceGroup::getSequenceNumberForGroup() {
  return host_->getSequenceNumberForGroup();
}

void DeviceGroup::abort() {
  decltype(live_) pending;
  {
    std::lock_guard<std::mutex> lock(live_mutex_);
    ended_ = "was aborted";
    pending.swap(live_);
  }
  for (auto& one : pending) {
    if (auto work = one.lock()) {
      work->abort();
    }
  }
}

void DeviceGroup::shutdown() {
  std::lock_guard<std::mutex> lock(live_mutex_);
  if (ended_.empty()) {
    ended_ = "was shut down";
  }
}

WorkPointer DeviceGroup::broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) {
  Collective call(*this, "broadcast", OpType::BROADCAST);
  auto hosts = call.outputs(tensors);
  return call.run([&] { return host_->broadcast(hosts, options); });
}

WorkPointer DeviceGroup::allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) {
  Collective call(*this, "all_reduce", OpType::ALLREDUCE);
  auto adapted = options;
  adapted.reduceOp = call.reduction(options.reduceOp, tensors);
  auto hosts = call.all_in_place(tensors);
  return call.run([&] { return host_->allreduce(hosts, adapted); });
}

WorkPointer DeviceGroup::allreduce_coalesced(
    Tensors& tensors, const c10d::AllreduceCoalescedOptions& options) {
  Collective call(*this, "all_reduce", OpType::ALLREDUCE_COALESCED);
  auto adapted = options;
  adapted.reduceOp = call.reduction(options.reduceOp, tensors);
  auto hosts = call.all_in_place(tensors);
  return call.run([&] { return host_->allreduce_coalesced(hosts, adapted); });
}

WorkPointer DeviceGroup::reduce(Tensors& tensors, const c10d::ReduceOptions& options) {
  Collective call(*this, "reduce", OpType::REDUCE);
  auto adapted = options;
  adapted.reduceOp = call.reduction(options.reduceOp, tensors);
  const bool root = options.rootRank == getRank();
  Tensors hosts;
  for (const auto& tensor : tensors) {
    // Gloo adds up in place on the way to the root; only the root's tensor may change.
    hosts.push_back(root ? call.in_place(tensor) : call.reduced_input(tensor).clone());
  }
  return call.run([&] { return host_->reduce(hosts, adapted); });
}

WorkPointer DeviceGroup::allgather(
    TensorLists& results, Tensors& tensors, const c10d::AllgatherOptions& options) {
  Collective call(*this, "all_gather", OpType::ALLGATHER);
  auto from = call.inputs(tensors);
  auto to = call.output_lists(results);
  return call.run([&] { return host_->allgather(to, from, options); });
}

WorkPointer DeviceGroup::_allgather_base(
    at::Tensor& result, at::Tensor& tensor, const c10d::AllgatherOptions& options) {
  Collective call(*this, "all_gather", OpType::_ALLGATHER_BASE);
  auto from = call.input(tensor);
  auto to = call.output(result);
  return call.run([&] { return host_->_allgather_base(to, from, options); });
}

WorkPointer DeviceGroup::allgather_coalesced(
    TensorLists& results, Tensors& tensors, const c10d::AllgatherOptions& options) {
  Collective call(*this, "all_gather", OpType::ALLGATHER_COALESCED);
  auto from = call.inputs(tensors);
  auto to = call.output_lists(results);
  return call.run([&] { return host_->allgather_coalesced(to, from, options); });
}

WorkPointer DeviceGroup::allgather_into_tensor_coalesced(
    Tensors& results, Tensors& tensors, const c10d::AllgatherOptions& options) {
  Collective call(*this, "all_gather", OpType::ALLGATHER_COALESCED);
  auto from = call.inputs(tensors);
  auto to = call.outputs(results);
  return call.run([&] { return host_->allgather_into_tensor_coalesced(to, from, options); });
}

WorkPointer DeviceGroup::gather(
    TensorLists& results, Tensors& tensors, const c10d::GatherOptions& options) {
  Collective call(*this, "gather", OpType::GATHER);
  auto from = call.inputs(tensors);
  auto to = call.output_lists(results);
  return call.run([&] { return host_->gather(to, from, options); });
}

WorkPointer DeviceGroup::scatter(
    Tensors& results, TensorLists& tensors, const c10d::ScatterOptions& options) {
  Collective call(*this, "scatter", OpType::SCATTER);
  auto from = call.input_lists(tensors);
  auto to = call.outputs(results);
  return call.run([&] { return host_->scatter(to, from, options); });
}

WorkPointer DeviceGroup::reduce_scatter(
    Tensors& results, TensorLists& tensors, const c10d::ReduceScatterOptions& options) {
  Collective call(*this, "reduce_scatter", OpType::REDUCE_SCATTER);
  auto adapted = options;
  adapted.reduceOp = call.reduction(options.reduceOp, flat(tensors));
  TensorLists from;
  for (const auto& list : tensors) {
    Tensors& row = from.emplace_back();
    for (const auto& tensor : list) {
      row.push_back(call.reduced_input(tensor));
    }
  }
  auto to = call.outputs(results);
  return call.run([&] { return host_->reduce_scatter(to, from, adapted); });
}

WorkPointer DeviceGroup::_reduce_scatter_base(
    at::Tensor& result, at::Tensor& tensor, const c10d::ReduceScatterOptions& options) {
  Collective call(*this, "reduce_scatter", OpType::_REDUCE_SCATTER_BASE);
  auto adapted = options;
  adapted.reduceOp = call.reduction(options.reduceOp, {tensor});
  auto from = call.reduced_input(tensor);
  auto to = call.output(result);
  return call.run([&] { return host_->_reduce_scatter_base(to, from, adapted); });
}

WorkPointer DeviceGroup::reduce_scatter_tensor_coalesced(
    Tensors& results, Tensors& tensors, const c10d::ReduceScatterOptions& options) {
  Collective call(*this, "reduce_scatter", OpType::REDUCE_SCATTER_TENSOR_COALESCED);
  auto adapted = options;
  adapted.reduceOp = call.reduction(options.reduceOp, tensors);
  Tensors from;
  for (const auto& tensor : tensors) {
    from.push_back(call.reduced_input(tensor));
  }
  auto to = call.outputs(results);
  return call.run([&] { return host_->reduce_scatter_tensor_coalesced(to, from, adapted); });
}

WorkPointer DeviceGroup::alltoall_base(
    at::Tensor& result,
    at::Tensor& tensor,
    std::vector<int64_t>& result_sizes,
    std::vector<int64_t>& tensor_sizes,
    const c10d::AllToAllOptions& options) {
  Collective call(*this, "all_to_all", OpType::ALLTOALL_BASE);
  auto from = call.input(tensor);
  auto to = call.output(result);
  return call.run(
      [&] { return host_->alltoall_base(to, from, result_sizes, tensor_sizes, options); });
}

WorkPointer DeviceGroup::alltoall(
    Tensors& results, Tensors& tensors, const c10d::AllToAllOptions& options) {
  Collective call(*this, "all_to_all", OpType::ALLTOALL);
  auto from = call.inputs(tensors);
  auto to = call.outputs(results);
  return call.run([&] { return host_->alltoall(to, from, options); });
}

WorkPointer DeviceGroup::send(Tensors& tensors, int target, int tag) {
  Collective call(*this, "send", OpType::SEND);
  auto hosts = call.inputs(tensors);
  return call.run([&] { return host_->send(hosts, target, tag); });
}

WorkPointer DeviceGroup::recv(Tensors& tensors, int source, int tag) {
  Collective call(*this, "recv", OpType::RECV);
  auto hosts = call.outputs(tensors);
  return call.run([&] { return host_->recv(hosts, source, tag); });
}

WorkPointer DeviceGroup::recvAnysource(Tensors& tensors, int tag) {
  Collective call(*this, "recv", OpType::RECVANYSOURCE);
  auto hosts = call.outputs(tensors);
  return call.run([&] { return host_->recvAnysource(hosts, tag); });
}

WorkPointer DeviceGroup::barrier(const c10d::BarrierOptions& options) {
  Collective call(*this, "barrier", OpType::BARRIER);
  return call.run([&] { return host_->barrier(options); });
}

} // namespace cuda_morph_sim
