// Operations on tiles that ptoas has no instruction for, for simulated kernels: what generated kernels call.
//
// Results come first. Sizes named `rows` and `cols` are those of the tile without what fills it up to blocks of 32 bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include "pypto/fault.h"

namespace pypto::tiles {

template <class T>
inline auto& at(T& tile, int64_t row, int64_t col) {
  return tile.data()[::pto::GetTileElementOffset<T>(row, col)];
}

template <class T>
using Element = std::remove_cv_t<std::remove_reference_t<decltype(std::declval<T&>().data()[0])>>;

// Throws unless a block lies in the valid part of a tile.
template <class T>
inline void require_inside(const char* what, T& tile, int64_t row, int64_t rows, int64_t col, int64_t cols) {
  if (row >= 0 && col >= 0 && row + rows <= tile.GetValidRow() && col + cols <= tile.GetValidCol()) return;
  throw SimulatorFault(std::string(what) + " rows " + std::to_string(row) + " to " + std::to_string(row + rows - 1) +
                       " and columns " + std::to_string(col) + " to " + std::to_string(col + cols - 1) +
                       " of a tile of " + std::to_string(tile.GetValidRow()) + " x " +
                       std::to_string(tile.GetValidCol()) + " valid elements");
}

// An index that came from memory.
inline int64_t require_index(int64_t index, int64_t size, const char* what) {
  if (index >= 0 && index < size) return index;
  throw SimulatorFault("the index " + std::to_string(index) + " is outside of " + what + ", which has " +
                       std::to_string(size));
}

// What fills up: 0 zero, 1 the largest number, 2 the smallest one; infinities where there are some.
template <class E>
inline E pad_element(int64_t kind) {
  if (kind == 0) return static_cast<E>(0);
  if constexpr (std::is_integral_v<E>) {
    return kind == 1 ? std::numeric_limits<E>::max() : std::numeric_limits<E>::min();
  } else {
    return static_cast<E>(kind == 1 ? __builtin_inff() : -__builtin_inff());
  }
}

// The source, and a value where it is not valid. Source and result may be one tile.
template <class D, class S>
inline void fillpad(D& d, S& s, int64_t kind, int64_t rows, int64_t cols) {
  const auto pad = pad_element<Element<D>>(kind);
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < cols; ++c)
      at(d, r, c) = r < s.GetValidRow() && c < s.GetValidCol() ? at(s, r, c) : pad;
}

// Writes the valid part of the source into the result.
template <class D, class S>
inline void insert(D& d, S& s, int64_t row, int64_t col) {
  require_inside("pl.assemble writes", d, row, s.GetValidRow(), col, s.GetValidCol());
  for (int64_t r = 0; r < s.GetValidRow(); ++r)
    for (int64_t c = 0; c < s.GetValidCol(); ++c) at(d, row + r, col + c) = at(s, r, c);
}

// The part of the source at an offset.
template <class D, class S>
inline void extract(D& d, S& s, int64_t row, int64_t col) {
  require_inside("pl.extract reads", s, row, d.GetValidRow(), col, d.GetValidCol());
  for (int64_t r = 0; r < d.GetValidRow(); ++r)
    for (int64_t c = 0; c < d.GetValidCol(); ++c) at(d, r, c) = at(s, row + r, col + c);
}

// Between tiles of equal storage.
template <class D, class S>
inline void copy(D& d, S& s) {
  for (int64_t r = 0; r < s.GetValidRow(); ++r)
    for (int64_t c = 0; c < s.GetValidCol(); ++c) at(d, r, c) = at(s, r, c);
}

// For loops that only compute numbers.
template <class T>
inline void nothing(T&) {}

// The same elements, row by row, in another shape.
template <class D, class S>
inline void reshape(D& d, S& s, int64_t source_cols, int64_t rows, int64_t cols) {
  for (int64_t i = 0; i < rows * cols; ++i) at(d, i / cols, i % cols) = at(s, i / source_cols, i % source_cols);
}

// The same bytes, row by row, as elements of another type.
template <class D, class S>
inline void reinterpret(D& d, S& s, int64_t source_rows, int64_t source_cols, int64_t cols) {
  std::vector<Element<S>> bytes;
  bytes.reserve(static_cast<size_t>(source_rows * source_cols));
  for (int64_t i = 0; i < source_rows * source_cols; ++i) bytes.push_back(at(s, i / source_cols, i % source_cols));
  const int64_t count = source_rows * source_cols * static_cast<int64_t>(sizeof(Element<S>) ) / static_cast<int64_t>(sizeof(Element<D>));
  for (int64_t i = 0; i < count; ++i)
    std::memcpy(&at(d, i / cols, i % cols), reinterpret_cast<const std::byte*>(bytes.data()) + i * sizeof(Element<D>),
                sizeof(Element<D>));
}

// Numbers that count up or down along one row.
template <class D>
inline void count(D& d, int64_t start, int64_t descending) {
  for (int64_t c = 0; c < d.GetValidCol(); ++c)
    at(d, 0, c) = static_cast<Element<D>>(descending ? start - c : start + c);
}

// Ones below a diagonal, or from it upwards; zeros elsewhere.
template <class D>
inline void triangle(D& d, int64_t diagonal, int64_t upper) {
  for (int64_t r = 0; r < d.GetValidRow(); ++r)
    for (int64_t c = 0; c < d.GetValidCol(); ++c)
      at(d, r, c) = static_cast<Element<D>>((upper ? c >= r + diagonal : c <= r + diagonal) ? 1.0f : 0.0f);
}

// Random bits; the counter goes on by the tile's columns from row to row, as TRANDOM has it.
template <class D>
inline void random(D& d, int64_t key0, int64_t key1, int64_t counter0, int64_t counter1, int64_t counter2,
                   int64_t counter3, int64_t rounds) {
  ::pto::TRandomKey key{static_cast<uint32_t>(key0), static_cast<uint32_t>(key1)};
  ::pto::TRandomCounter counter{static_cast<uint32_t>(counter0), static_cast<uint32_t>(counter1),
                                static_cast<uint32_t>(counter2), static_cast<uint32_t>(counter3)};
  if (rounds == 7)
    ::pto::TRANDOM_IMPL<7>(d, key, counter);
  else
    ::pto::TRANDOM_IMPL<10>(d, key, counter);
}

// One element of a tile. The first tile stands for what ptoas was shown to be written.
template <class T, class S>
inline auto read(T&, S& s, int64_t row, int64_t col) {
  require_inside("pl.read reads", s, row, 1, col, 1);
  using E = Element<S>;
  if constexpr (std::is_integral_v<E>)
    return static_cast<int64_t>(at(s, row, col));
  else
    return static_cast<float>(at(s, row, col));
}

// One element of a tile; the others stay.
template <class D, class Number>
inline void write(D& d, int64_t row, int64_t col, Number value) {
  require_inside("pl.write writes", d, row, 1, col, 1);
  at(d, row, col) = static_cast<Element<D>>(value);
}

}  // namespace pypto::tiles

#include "pypto/tile_math.h"
