#include "collective_work.h"

#include "tensor_alias.h"

#include <ATen/core/jit_type.h>
#include <c10/util/Exception.h>

#include <atomic>
#include <thread>

namespace cuda_morph_sim {
namespace {

std::string first_line(const std::string& text) {
  return text.substr(0, text.find('\n'));
}

std::vector<c10::Device> devices_of(const std::vector<at::Tensor>& tensors) {
  std::vector<c10::Device> devices;
  for (const auto& tensor : tensors) {
    if (is_on_device(tensor)) {
      devices.push_back(tensor.device());
    }
  }
  return devices;
}

} // namespace

std::exception_ptr describe_failure(std::exception_ptr error, const CollectiveName& name) {
  try {
    std::rethrow_exception(error);
  } catch (const c10::Error&) {
    return error;
  } catch (const std::exception& transport) {
    return std::make_exception_ptr(c10::DistBackendError(
        {__func__, __FILE__, static_cast<uint32_t>(__LINE__)},
        c10::str(
            name.backend,
            ": ",
            name.operation,
            " failed on rank ",
            name.rank,
            " of ",
            name.size,
            ": another rank has ended or does not answer; its own output says why. (",
            first_line(transport.what()),
            ")")));
  } catch (...) {
    return error;
  }
}

DeviceWork::DeviceWork(
    CollectiveName name,
    c10d::OpType type,
    std::vector<c10::intrusive_ptr<c10d::Work>> parts,
    std::vector<at::Tensor> outputs,
    std::function<void()> finish)
    : Work(name.rank, type),
      name_of_(std::move(name)),
      parts_(std::move(parts)),
      outputs_(std::move(outputs)),
      finish_(std::move(finish)),
      future_(c10::make_intrusive<c10::ivalue::Future>(
          c10::ListType::ofTensors(), devices_of(outputs_))) {
  follow_parts();
}

// Completes with the last part. The parts' callbacks own what they need: they may outlive us.
void DeviceWork::follow_parts() {
  std::vector<c10::intrusive_ptr<c10::ivalue::Future>> futures;
  try {
    for (const auto& part : parts_) {
      futures.push_back(part->getFuture());
    }
  } catch (const c10::Error&) {
    passive_ = true;
    return;
  }
  struct Shared {
    std::atomic<size_t> open;
    std::atomic<bool> failed{false};
  };
  auto shared = std::make_shared<Shared>();
  shared->open = futures.size();
  for (const auto& one : futures) {
    one->addCallback([shared,
                      name = name_of_,
                      future = future_,
                      outputs = outputs_,
                      finish = finish_](c10::ivalue::Future& part) {
      if (part.hasError()) {
        if (!shared->failed.exchange(true)) {
          future->setErrorIfNeeded(describe_failure(part.exception_ptr(), name));
        }
      }
      if (--shared->open > 0 || shared->failed) {
        return;
      }
      try {
        if (finish) {
          finish();
        }
        if (!future->completed()) {
          future->markCompleted(c10::IValue(outputs));
        }
      } catch (...) {
        future->setErrorIfNeeded(std::current_exception());
      }
    });
  }
}

void DeviceWork::complete(const std::exception_ptr& error) {
  if (error != nullptr) {
    future_->setErrorIfNeeded(error);
    return;
  }
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (completed_) {
      return;
    }
    completed_ = true;
  }
  if (finish_) {
    finish_();
  }
  if (!future_->completed()) {
    future_->markCompleted(c10::IValue(outputs_));
  }
}

std::exception_ptr DeviceWork::wait_for_parts(std::chrono::milliseconds timeout) {
  try {
    for (const auto& part : parts_) {
      TORCH_CHECK(part->wait(timeout), name_of_.backend, ": ", name_of_.operation, " was aborted");
    }
    return nullptr;
  } catch (...) {
    return describe_failure(std::current_exception(), name_of_);
  }
}

// Somebody wants to know about a passive work without waiting for it.
void DeviceWork::complete_in_background() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!passive_ || watched_ || completed_) {
      return;
    }
    watched_ = true;
  }
  auto self = c10::intrusive_ptr<DeviceWork>::unsafe_reclaim_from_nonowning(this);
  std::thread([self] { self->complete(self->wait_for_parts(kNoTimeout)); }).detach();
}

bool DeviceWork::isCompleted() {
  complete_in_background();
  return future_->completed();
}

bool DeviceWork::isSuccess() const {
  return future_->hasValue();
}

std::exception_ptr DeviceWork::exception() const {
  return future_->exception_ptr();
}

int DeviceWork::sourceRank() const {
  return parts_.front()->sourceRank();
}

std::vector<at::Tensor> DeviceWork::result() {
  return outputs_;
}

// Work runs in program order: once it is done, every stream may use its results.
void DeviceWork::synchronize() {}

void DeviceWork::blockCurrentStream() {
  wait(kNoTimeout);
}

bool DeviceWork::wait(std::chrono::milliseconds timeout) {
  bool alone = false;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    alone = passive_ && !watched_ && !completed_;
  }
  if (alone) {
    complete(wait_for_parts(timeout));
  } else if (timeout != kNoTimeout) {
    const auto end = std::chrono::steady_clock::now() + timeout;
    while (!future_->completed()) {
      TORCH_CHECK(
          std::chrono::steady_clock::now() < end,
          name_of_.backend,
          ": ",
          name_of_.operation,
          " did not complete within ",
          timeout.count(),
          " ms");
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
  } else {
    future_->wait();
  }
  if (future_->hasError()) {
    std::rethrow_exception(future_->exception_ptr());
  }
  return true;
}

void DeviceWork::abort() {
  if (future_->completed()) {
    return;
  }
  future_->setErrorIfNeeded(std::make_exception_ptr(c10::DistBackendError(
      {__func__, __FILE__, static_cast<uint32_t>(__LINE__)},
      c10::str(name_of_.backend, ": ", name_of_.operation, " was aborted"))));
  if (passive_) {
    for (const auto& part : parts_) {
      part->abort();
    }
  }
}

c10::intrusive_ptr<c10::ivalue::Future> DeviceWork::getFuture() {
  complete_in_background();
  return future_;
}

} // namespace cuda_morph_sim
