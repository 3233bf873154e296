// The handle of a collective on device tensors that runs on the host.
#pragma once

#include <ATen/core/ivalue.h>
#include <torch/csrc/distributed/c10d/Work.hpp>

#include <functional>
#include <string>
#include <vector>

namespace cuda_morph_sim {

// What an error of a collective says of it.
struct CollectiveName {
  std::string backend;
  std::string operation;
  int rank;
  int size;
};

// Names the collective in an error of the transport; an error of PyTorch's own stays as it is.
std::exception_ptr describe_failure(std::exception_ptr error, const CollectiveName& name);

class DeviceWork final : public c10d::Work {
 public:
  // `finish` turns what travelled into the result, once, before anyone sees the work completed.
  DeviceWork(
      CollectiveName name,
      c10d::OpType type,
      std::vector<c10::intrusive_ptr<c10d::Work>> parts,
      std::vector<at::Tensor> outputs,
      std::function<void()> finish);

  bool isCompleted() override;
  bool isSuccess() const override;
  std::exception_ptr exception() const override;
  int sourceRank() const override;
  std::vector<at::Tensor> result() override;
  void synchronize() override;
  bool wait(std::chrono::milliseconds timeout) override;
  void blockCurrentStream() override;
  void abort() override;
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override;

 private:
  void follow_parts();
  void complete(const std::exception_ptr& error);
  void complete_in_background();
  std::exception_ptr wait_for_parts(std::chrono::milliseconds timeout);

  CollectiveName name_of_;
  std::vector<c10::intrusive_ptr<c10d::Work>> parts_;
  std::vector<at::Tensor> outputs_;
  std::function<void()> finish_;
  c10::intrusive_ptr<c10::ivalue::Future> future_;
  // Sends and receives of gloo have no future and only complete in their `wait`.
  bool passive_ = false;
  bool watched_ = false;
};

} // namespace cuda_morph_sim
