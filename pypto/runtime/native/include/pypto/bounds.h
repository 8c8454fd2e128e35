// Loads and stores of a simulated kernel, held to the tensors that its task was given.
//
// Offsets inside a kernel may come from run-time numbers, so that only here is it known where an access goes.
#pragma once

#include <cstdint>
#include <string>

#include "pypto/abi.h"
#include "pypto/fault.h"

namespace pypto::bounds {
namespace {

struct Spans {
  const abi::Span* first;
  int32_t count;
};

// What the calling thread's task may touch.
thread_local Spans allowed{nullptr, 0};

[[noreturn]] inline void refuse(uint64_t begin, int64_t bytes, bool writes) {
  const std::string verb = writes ? "writes" : "reads";
  const abi::Span* nearest = nullptr;
  for (const abi::Span* span = allowed.first; span != allowed.first + allowed.count; ++span)
    if (span->begin <= begin && (nearest == nullptr || span->begin > nearest->begin)) nearest = span;
  if (nearest == nullptr) throw SimulatorFault(verb + " memory in front of all tensors of the task");
  const uint64_t offset = begin - nearest->begin, size = nearest->end - nearest->begin;
  const std::string which = "argument " + std::to_string(nearest->argument) + " of the task";
  if (writes && begin + static_cast<uint64_t>(bytes) <= nearest->end)
    throw SimulatorFault("writes " + which + ", which is an input");
  throw SimulatorFault(verb + " bytes " + std::to_string(offset) + " to " +
                          std::to_string(offset + static_cast<uint64_t>(bytes) - 1) + " of " + which + ", which has " +
                          std::to_string(size) + " bytes");
}

// Throws unless all of the bytes belong to one tensor of the task, which it may write if it does.
inline void require_inside(const void* address, int64_t bytes, bool writes) {
  const uint64_t begin = reinterpret_cast<uintptr_t>(address);
  const uint64_t end = begin + static_cast<uint64_t>(bytes);
  for (int32_t i = 0; i < allowed.count; ++i) {
    const abi::Span& span = allowed.first[i];
    if (span.begin <= begin && begin <= end && end <= span.end && (span.writes || !writes)) return;
  }
  refuse(begin, bytes, writes);
}

}  // namespace
}  // namespace pypto::bounds

#if defined(__CPU_SIM)

namespace pypto::bounds {
namespace {

// Throws unless the tile's valid part lies in the tile, and the block of global memory in a tensor of the task.
template <class Global, class Tile>
void check(Global& global, Tile& tile, bool writes) {
  if (tile.GetValidRow() < 0 || tile.GetValidRow() > Tile::Rows || tile.GetValidCol() < 0 ||
      tile.GetValidCol() > Tile::Cols)
    throw SimulatorFault("the valid part " + std::to_string(tile.GetValidRow()) + " x " +
                            std::to_string(tile.GetValidCol()) + " exceeds the tile of " +
                            std::to_string(Tile::Rows) + " x " + std::to_string(Tile::Cols));
  __int128 last = 0;
  for (const auto axis : {::pto::GlobalTensorDim::DIM_0, ::pto::GlobalTensorDim::DIM_1, ::pto::GlobalTensorDim::DIM_2,
                          ::pto::GlobalTensorDim::DIM_3, ::pto::GlobalTensorDim::DIM_4}) {
    const int64_t length = global.GetShape(axis), stride = global.GetStride(axis);
    if (length < 0 || stride < 0) throw SimulatorFault("a block of global memory with a negative size or stride");
    if (length == 0) return;
    last += static_cast<__int128>(length - 1) * stride;
  }
  using Element = typename Global::DType;
  const __int128 bytes = (last + 1) * static_cast<__int128>(sizeof(Element));
  require_inside(global.data(), bytes > INT64_MAX ? INT64_MAX : static_cast<int64_t>(bytes), writes);
}

template <class Tile, class Global, class... Rest>
void load(Tile& tile, Global& global, Rest&... rest) {
  check(global, tile, false);
  ::pto::TLOAD(tile, global, rest...);
}

template <class Global, class Tile, class... Rest>
void store(Global& global, Tile& tile, Rest&... rest) {
  check(global, tile, true);
  ::pto::TSTORE(global, tile, rest...);
}

// Adds to what the tensor holds. Tasks that write one place run one after another, so that nobody else writes meanwhile.
template <class Global, class Tile>
void add(Global& global, Tile& tile) {
  check(global, tile, true);
  using Element = typename Global::DType;
  const int64_t row = global.GetStride(::pto::GlobalTensorDim::DIM_3);
  const int64_t column = global.GetStride(::pto::GlobalTensorDim::DIM_4);
  for (int r = 0; r < tile.GetValidRow(); ++r)
    for (int c = 0; c < tile.GetValidCol(); ++c) {
      Element& element = global.data()[r * row + c * column];
      element = static_cast<Element>(element + static_cast<Element>(tile.data()[::pto::GetTileElementOffset<Tile>(r, c)]));
    }
}

}  // namespace
}  // namespace pypto::bounds

// From here on: what ptoas wrote.
#define TLOAD(...) ::pypto::bounds::load(__VA_ARGS__)
#define TSTORE(...) ::pypto::bounds::store(__VA_ARGS__)

#endif
