// Which bytes a tensor handle covers, and whether two handles share one.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "pypto/types.h"

namespace pypto {

// The bytes of a strided block: begin + sum(index_i * step_i) + [0, element).
struct Region {
  int64_t begin = 0;  // address of the first byte
  int64_t end = 0;    // one past the last byte
  int64_t element = 1;
  int rank = 0;
  Tensor::Extents shape{};
  Tensor::Extents steps{};  // bytes

  static Region of(const Tensor& tensor) {
    Region region;
    region.element = size_of(tensor.dtype());
    region.begin = static_cast<int64_t>(reinterpret_cast<uintptr_t>(tensor.data()));
    int64_t last = 0;
    for (int axis = 0; axis < tensor.rank(); ++axis) {
      if (tensor.dim(axis) == 1) continue;  // its step reaches nothing
      region.shape[region.rank] = tensor.dim(axis);
      region.steps[region.rank] = tensor.stride(axis) * region.element;
      last += (tensor.dim(axis) - 1) * region.steps[region.rank++];
    }
    region.end = region.begin + last + region.element;
    return region;
  }

  // Whether the block is row-major without gaps, so that every byte between begin and end belongs to it.
  bool dense() const {
    int64_t bytes = element;
    for (int axis = rank - 1; axis >= 0; --axis) {
      if (steps[axis] != bytes) return false;
      bytes *= shape[axis];
    }
    return true;
  }

  // Whether each byte of `other` is certainly in this block; may say no to a block that is.
  bool covers(const Region& other) const {
    if (other.begin < begin || other.end > end) return false;
    return dense() || (begin == other.begin && element == other.element && rank == other.rank &&
                       shape == other.shape && steps == other.steps);
  }
};

namespace detail {

// Whether sum(step_i * x_i) == target has a solution with low_i <= x_i <= high_i. Gives up with "yes".
class BoundedSum {
 public:
  void add(int64_t step, int64_t low, int64_t high) {
    for (int i = 0; i < count_; ++i) {
      if (terms_[i].step == step) {
        terms_[i].low += low;
        terms_[i].high += high;
        return;
      }
    }
    terms_[count_++] = {step, low, high, 0, 0};
  }

  bool reaches(int64_t target) {
    std::sort(terms_.begin(), terms_.begin() + count_, [](const Term& a, const Term& b) { return a.step > b.step; });
    int64_t least = 0, most = 0;
    for (int i = count_ - 1; i >= 0; --i) {
      terms_[i].least = least;
      terms_[i].most = most;
      least += terms_[i].step * terms_[i].low;
      most += terms_[i].step * terms_[i].high;
    }
    return solve(0, target);
  }

 private:
  struct Term {
    int64_t step, low, high;
    int64_t least, most;  // what the terms after this one can add up to
  };

  static int64_t floor_divide(int64_t a, int64_t b) { return a / b - (a % b != 0 && a < 0 ? 1 : 0); }

  bool solve(int index, int64_t target) {
    if (index == count_) return target == 0;
    if (--budget_ < 0) return true;
    const Term& term = terms_[index];
    const int64_t low = std::max(term.low, -floor_divide(term.most - target, term.step));
    const int64_t high = std::min(term.high, floor_divide(target - term.least, term.step));
    for (int64_t x = low; x <= high; ++x)
      if (solve(index + 1, target - x * term.step)) return true;
    return false;
  }

  std::array<Term, 2 * abi::kMaxRank + 1> terms_{};
  int count_ = 0;
  int budget_ = 512;
};

}  // namespace detail

// Whether two blocks share a byte: exact for blocks of one row-major tensor, else possibly too cautious, never too lax.
inline bool overlaps(const Region& a, const Region& b) {
  if (a.end <= b.begin || b.end <= a.begin) return false;
  if (a.dense() && b.dense()) return true;
  detail::BoundedSum sum;
  sum.add(1, -(b.element - 1), a.element - 1);
  for (int axis = 0; axis < a.rank; ++axis) sum.add(a.steps[axis], 0, a.shape[axis] - 1);
  for (int axis = 0; axis < b.rank; ++axis) sum.add(b.steps[axis], -(b.shape[axis] - 1), 0);
  return sum.reaches(b.begin - a.begin);
}

}  // namespace pypto
