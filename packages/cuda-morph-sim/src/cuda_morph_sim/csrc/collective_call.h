// One collective on its way to the host: what it may do, and the tensors that travel for it.
#pragma once

#include "process_group.h"
#include "tensor_alias.h"

#include <algorithm>

namespace cuda_morph_sim {

using Tensors = std::vector<at::Tensor>;
using TensorLists = std::vector<std::vector<at::Tensor>>;
using WorkPointer = c10::intrusive_ptr<c10d::Work>;

namespace detail {


inline std::string upper(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), ::toupper);
  return text;
}

inline const char* reduction_name(c10d::ReduceOp::RedOpType op) {
  static constexpr const char* kNames[] = {
      "sum", "avg", "product", "min", "max", "band", "bor", "bxor", "premul_sum", "unused"};
  return kNames[op];
}

// Gloo moves these only; others travel as bytes.
inline bool moves(c10::ScalarType type) {
  switch (type) {
    case c10::ScalarType::Float:
    case c10::ScalarType::Double:
    case c10::ScalarType::Half:
    case c10::ScalarType::BFloat16:
    case c10::ScalarType::Char:
    case c10::ScalarType::Byte:
    case c10::ScalarType::Int:
    case c10::ScalarType::Long:
      return true;
    default:
      return false;
  }
}

} // namespace detail

// One collective on its way to the host: checks its tensors, makes their aliases, and collects what
// is left to do when it is over.
class Collective {
 public:
  Collective(DeviceGroup& group, const char* operation, c10d::OpType type)
      : group_(group), operation_(operation), type_(type) {
    TORCH_CHECK(group.ended_.empty(), group.name_, ": the process group ", group.ended_);
    const auto& known = group.limits_.operations;
    TORCH_CHECK(
        known.empty() || known.count(operation) != 0,
        "Backend ",
        group.name_,
        " does not support ",
        operation);
  }

  at::Tensor input(const at::Tensor& tensor) {
    return travelling(tensor, nullptr);
  }

  at::Tensor output(const at::Tensor& tensor) {
    at::Tensor host;
    auto carrier = travelling(tensor, &host);
    outputs_.push_back(tensor);
    if (averages_) {
      later([carrier, size = group_.getSize()]() mutable {
        c10::isIntegralType(carrier.scalar_type(), true) ? carrier.div_(size, "trunc")
                                                         : carrier.div_(size);
      });
    }
    if (host.defined()) {
      later([host, carrier]() mutable { host.copy_(carrier); });
    }
    return carrier;
  }

  Tensors inputs(const Tensors& tensors) {
    return each(tensors, [this](const at::Tensor& one) { return input(one); });
  }

  Tensors outputs(const Tensors& tensors) {
    return each(tensors, [this](const at::Tensor& one) { return output(one); });
  }

  TensorLists input_lists(const TensorLists& lists) {
    TensorLists result;
    for (const auto& list : lists) {
      result.push_back(inputs(list));
    }
    return result;
  }

  TensorLists output_lists(const TensorLists& lists) {
    TensorLists result;
    for (const auto& list : lists) {
      result.push_back(outputs(list));
    }
    return result;
  }

  // Says which reduction the host is to make. Call it before the tensors are handed over.
  c10d::ReduceOp reduction(const c10d::ReduceOp& op, const Tensors& tensors) {
    const std::string name = detail::reduction_name(op.op_);
    const auto& known = group_.limits_.reductions;
    const bool flags = !tensors.empty() && tensors[0].scalar_type() == c10::ScalarType::Bool;
    TORCH_CHECK(
        known.empty() || known.count(name) != 0,
        "Cannot use ReduceOp.",
        detail::upper(name),
        " with ",
        detail::upper(group_.name_));
    TORCH_CHECK(
        !flags || op.op_ != c10d::ReduceOp::AVG, "Cannot use ReduceOp.AVG with Boolean inputs");
    reduces_ = true;
    if (flags) {
      return flag_reduction(op);
    }
    if (op.op_ == c10d::ReduceOp::AVG) {
      averages_ = true;
      return c10d::ReduceOp::SUM;
    }
    if (op.op_ == c10d::ReduceOp::PREMUL_SUM) {
      const auto* factor = dynamic_cast<c10d::PreMulSumSupplement*>(op.supplement_.get());
      TORCH_CHECK(factor != nullptr, "ReduceOp.PREMUL_SUM needs its factor");
      factor_ = factor->tensor_factor.defined() ? factor->tensor_factor.cpu()
                                                : at::scalar_tensor(factor->double_factor);
      return c10d::ReduceOp::SUM;
    }
    return op;
  }

  // A tensor that is both input and output; its factor, if any, is applied in place.
  at::Tensor in_place(const at::Tensor& tensor) {
    auto carrier = output(tensor);
    if (factor_.defined()) {
      carrier.mul_(factor_);
    }
    return carrier;
  }

  Tensors all_in_place(const Tensors& tensors) {
    return each(tensors, [this](const at::Tensor& one) { return in_place(one); });
  }

  // An input that must stay as it is.
  at::Tensor reduced_input(const at::Tensor& tensor) {
    auto carrier = input(tensor);
    return factor_.defined() ? carrier.mul(factor_).to(carrier.scalar_type()) : carrier;
  }

  template <typename Launch>
  WorkPointer run(Launch launch) {
    const CollectiveName name{group_.name_, operation_, group_.getRank(), group_.getSize()};
    std::vector<WorkPointer> parts;
    try {
      parts.push_back(launch());
    } catch (...) {
      std::rethrow_exception(describe_failure(std::current_exception(), name));
    }
    return group_.track(c10::make_intrusive<DeviceWork>(
        name, type_, std::move(parts), std::move(outputs_), in_order(std::move(steps_))));
  }

 private:
  template <typename Make>
  static Tensors each(const Tensors& tensors, Make make) {
    Tensors result;
    result.reserve(tensors.size());
    for (const auto& one : tensors) {
      result.push_back(make(one));
    }
    return result;
  }

  static c10d::ReduceOp flag_reduction(const c10d::ReduceOp& op) {
    switch (op.op_) {
      case c10d::ReduceOp::SUM:
        return c10d::ReduceOp::MAX;
      case c10d::ReduceOp::PRODUCT:
        return c10d::ReduceOp::MIN;
      default:
        return op;
    }
  }

  void check(const at::Tensor& tensor) const {
    TORCH_CHECK(
        is_on_device(tensor) && tensor.layout() == c10::kStrided,
        "Tensors must be ",
        c10::DeviceTypeName(kDeviceType),
        " and dense");
    const auto& known = group_.limits_.dtypes;
    TORCH_CHECK(
        known.empty() || known.count(tensor.scalar_type()) != 0,
        "Input tensor data type is not supported for ",
        detail::upper(group_.name_),
        " process group: ",
        c10::toString(tensor.scalar_type()));
  }

  // The CPU tensor that travels for a device tensor. Where it is not the tensor's own bytes,
  // `host` gets the tensor that the result has to be written to.
  at::Tensor travelling(const at::Tensor& tensor, at::Tensor* host) {
    check(tensor);
    auto alias = make_lasting_host_alias(tensor);
    for (const auto& [wide, narrow] : group_.limits_.narrowed) {
      if (tensor.scalar_type() == wide) {
        if (host != nullptr) {
          *host = alias;
        }
        return alias.to(narrow);
      }
    }
    const bool bytes = reduces_ ? tensor.scalar_type() == c10::ScalarType::Bool
                                : !detail::moves(tensor.scalar_type());
    return bytes ? alias.view(c10::ScalarType::Byte) : alias;
  }

  void later(std::function<void()> step) {
    steps_.push_back(std::move(step));
  }

  static std::function<void()> in_order(std::vector<std::function<void()>> steps) {
    if (steps.empty()) {
      return {};
    }
    return [steps = std::move(steps)] {
      at::NoGradGuard no_grad;
      for (const auto& step : steps) {
        step();
      }
    };
  }

  DeviceGroup& group_;
  const char* operation_;
  c10d::OpType type_;
  bool reduces_ = false;
  bool averages_ = false;
  at::Tensor factor_;
  Tensors outputs_;
  std::vector<std::function<void()>> steps_;
};

} // namespace cuda_morph_sim
