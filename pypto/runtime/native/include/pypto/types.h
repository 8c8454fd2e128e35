// Element types and tensor handles.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "pypto/abi.h"

namespace pypto {

enum class DType : int32_t {
  FP32 = 1,
  FP16 = 2,
  BF16 = 3,
  INT8 = 4,
  INT16 = 5,
  INT32 = 6,
  INT64 = 7,
  UINT8 = 8,
  UINT16 = 9,
  UINT32 = 10,
  UINT64 = 11,
  BOOL = 12,
};

// An error that ends the run with its text.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Size of one element in bytes; throws for a value outside the enumeration.
inline int64_t size_of(DType dtype) {
  switch (dtype) {
    case DType::INT8:
    case DType::UINT8:
    case DType::BOOL:
      return 1;
    case DType::FP16:
    case DType::BF16:
    case DType::INT16:
    case DType::UINT16:
      return 2;
    case DType::FP32:
    case DType::INT32:
    case DType::UINT32:
      return 4;
    case DType::INT64:
    case DType::UINT64:
      return 8;
  }
  throw Error("unknown element type " + std::to_string(static_cast<int32_t>(dtype)));
}

inline bool is_float(DType dtype) {
  return dtype == DType::FP32 || dtype == DType::FP16 || dtype == DType::BF16;
}

// Kernels compute element offsets in 32 bits, so that no buffer may have more elements than this.
inline constexpr int64_t kMaxElements = INT32_MAX;

// On AArch64, GCC has _Float16 in C++ from version 13 on, and before that another name for the same numbers.
#if defined(__aarch64__) && !defined(__clang__) && __GNUC__ < 13
using Half = __fp16;
#else
using Half = _Float16;
#endif

// A handle of a strided block in global memory. Copying it copies the handle, never the elements.
class Tensor {
 public:
  using Extents = std::array<int64_t, abi::kMaxRank>;

  Tensor() = default;

  // Keeps memory that the run owns.
  using Owner = std::shared_ptr<const void>;

  // Root of handles whose accesses order no tasks.
  static constexpr int32_t kUntracked = INT32_MAX;

  // `root` numbers the allocation that the memory belongs to.
  Tensor(void* data, DType dtype, int rank, const Extents& shape, const Extents& strides, int32_t root,
         Owner owner = nullptr)
      : data_(static_cast<std::byte*>(data)),
        dtype_(dtype),
        rank_(rank),
        root_(root),
        shape_(shape),
        strides_(strides),
        owner_(std::move(owner)) {}

  void* data() const { return data_; }
  DType dtype() const { return dtype_; }
  int rank() const { return rank_; }
  int32_t root() const { return root_; }
  const Owner& owner() const { return owner_; }
  const Extents& shape() const { return shape_; }
  const Extents& strides() const { return strides_; }

  // Length of an axis, in elements.
  int64_t dim(int axis) const { return shape_[checked_axis(axis)]; }

  // Distance between neighbours along an axis, in elements.
  int64_t stride(int axis) const { return strides_[checked_axis(axis)]; }

  // A block of the same memory; it can be empty, but no task is given such a one. Throws when it does not lie inside
  // this tensor.
  Tensor view(std::initializer_list<int64_t> offsets, std::initializer_list<int64_t> sizes) const {
    if (static_cast<int>(offsets.size()) != rank_ || static_cast<int>(sizes.size()) != rank_)
      throw Error("view of a tensor of rank " + std::to_string(rank_) + " with " + std::to_string(offsets.size()) +
                  " offsets and " + std::to_string(sizes.size()) + " sizes");
    Tensor result = *this;
    int64_t skipped = 0;
    for (int axis = 0; axis < rank_; ++axis) {
      const int64_t offset = offsets.begin()[axis], size = sizes.begin()[axis], length = shape_[axis];
      if (size < 0)
        throw Error("a slice that ends before it begins: of axis " + std::to_string(axis) + ", elements " +
                    std::to_string(offset) + " up to " + std::to_string(offset + size) + " were asked for");
      if (offset < 0 || offset > length || size > length - offset)
        throw Error("view outside its tensor: axis " + std::to_string(axis) + " has length " + std::to_string(length) +
                    ", but elements " + std::to_string(offset) + " to " + std::to_string(offset) + "+" +
                    std::to_string(size) + " were asked for");
      skipped += offset * strides_[axis];
      result.shape_[axis] = size;
    }
    result.data_ += skipped * size_of(dtype_);
    return result;
  }

  // A block of the same memory as far as it lies in this tensor. A size of -1, and an offset outside, mean the whole axis.
  Tensor part(std::initializer_list<int64_t> offsets, std::initializer_list<int64_t> sizes) const {
    Tensor result = *this;
    int64_t skipped = 0;
    for (int axis = 0; axis < rank_; ++axis) {
      const int64_t offset = offsets.begin()[axis], size = sizes.begin()[axis], length = shape_[axis];
      if (size < 0 || offset < 0 || offset >= length) continue;
      skipped += offset * strides_[axis];
      result.shape_[axis] = size < length - offset ? size : length - offset;
    }
    result.data_ += skipped * size_of(dtype_);
    return result;
  }

  // The same elements without some axes of length 1, given in ascending order.
  Tensor without(std::initializer_list<int> axes) const {
    Tensor result = *this;
    result.rank_ = 0;
    for (int axis = 0; axis < rank_; ++axis) {
      if (std::find(axes.begin(), axes.end(), axis) != axes.end()) {
        if (dim(axis) != 1) throw Error("axis " + std::to_string(axis) + " is longer than 1 and cannot be dropped");
        continue;
      }
      result.shape_[result.rank_] = shape_[axis];
      result.strides_[result.rank_++] = strides_[axis];
    }
    for (int axis = result.rank_; axis < rank_; ++axis) result.shape_[axis] = result.strides_[axis] = 0;
    return result;
  }

  // The same elements in another shape. Throws unless they lie side by side and are as many.
  Tensor reshaped(std::initializer_list<int64_t> lengths) const {
    int64_t have = 1, want = 1;
    for (int axis = rank_ - 1; axis >= 0; --axis) {
      if (shape_[axis] != 1 && strides_[axis] != have)
        throw Error("pl.reshape of a part of a tensor whose rows do not lie side by side");
      have *= shape_[axis];
    }
    for (const int64_t length : lengths) want *= length;
    if (have != want)
      throw Error("pl.reshape of " + std::to_string(have) + " elements into a shape of " + std::to_string(want));
    Tensor result = *this;
    result.rank_ = static_cast<int>(lengths.size());
    result.shape_ = result.strides_ = {};
    int64_t stride = 1;
    for (int axis = result.rank_ - 1; axis >= 0; --axis) {
      result.shape_[axis] = lengths.begin()[axis];
      result.strides_[axis] = stride;
      stride *= result.shape_[axis];
    }
    return result;
  }

  // The same elements; accesses through this handle order no tasks.
  Tensor untracked() const {
    Tensor result = *this;
    if (result.root_ >= 0) result.root_ = kUntracked;
    return result;
  }

  // Lets go of the memory: this handle is not used again.
  void release() { owner_.reset(); }

  // One element as a number. Only for tensors that no task writes.
  template <class T>
  T element(std::initializer_list<int64_t> indices) const {
    if (static_cast<int>(indices.size()) != rank_) throw Error("an element needs one index per axis");
    Extents all{};
    std::copy(indices.begin(), indices.end(), all.begin());
    return element<T>(all);
  }

  template <class T>
  T element(const Extents& indices) const {
    int64_t place = 0;
    for (int axis = 0; axis < rank_; ++axis) {
      const int64_t index = indices[static_cast<size_t>(axis)];
      if (index < 0 || index >= shape_[axis])
        throw Error("pl.read of element " + std::to_string(index) + " of an axis of length " +
                    std::to_string(shape_[axis]));
      place += index * strides_[axis];
    }
    const std::byte* at = data_ + place * size_of(dtype_);
    switch (dtype_) {
      case DType::FP32: return static_cast<T>(load<float>(at));
      case DType::FP16: return static_cast<T>(static_cast<float>(load<Half>(at)));
      case DType::BF16: return static_cast<T>(__builtin_bit_cast(float, static_cast<uint32_t>(load<uint16_t>(at)) << 16));
      case DType::INT8: return static_cast<T>(load<int8_t>(at));
      case DType::INT16: return static_cast<T>(load<int16_t>(at));
      case DType::INT32: return static_cast<T>(load<int32_t>(at));
      case DType::INT64: return static_cast<T>(load<int64_t>(at));
      case DType::UINT8: return static_cast<T>(load<uint8_t>(at));
      case DType::UINT16: return static_cast<T>(load<uint16_t>(at));
      case DType::UINT32: return static_cast<T>(load<uint32_t>(at));
      case DType::UINT64: return static_cast<T>(load<uint64_t>(at));
      case DType::BOOL: return static_cast<T>(load<uint8_t>(at) != 0);
    }
    throw Error("unknown element type");
  }

 private:
  template <class S>
  static S load(const std::byte* at) {
    S value;
    std::memcpy(&value, at, sizeof(value));
    return value;
  }

  int checked_axis(int axis) const {
    if (axis < 0 || axis >= rank_)
      throw Error("axis " + std::to_string(axis) + " of a tensor of rank " + std::to_string(rank_));
    return axis;
  }

  std::byte* data_ = nullptr;
  DType dtype_ = DType::FP32;
  int rank_ = 0;
  int32_t root_ = -1;
  Extents shape_{};
  Extents strides_{};
  Owner owner_;  // of a workspace; parameters have none
};

}  // namespace pypto
