// Gathering, scattering and sorting for simulated kernels; see tiles.h.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <vector>

#include "pypto/bounds.h"
#include "pypto/signals.h"
#include "pypto/tiles.h"

namespace pypto::tiles {

// The elements at flat positions of the source.
template <class D, class S, class I>
inline void gather(D& d, S& s, I& index, int64_t rows, int64_t cols) {
  for (int64_t r = 0; r < d.GetValidRow(); ++r)
    for (int64_t c = 0; c < d.GetValidCol(); ++c) {
      const int64_t flat = require_index(at(index, r, c), rows * cols, "the source of pl.gather");
      at(d, r, c) = at(s, flat / cols, flat % cols);
    }
}

// The elements that an index chooses along one axis.
template <class D, class S, class I>
inline void gather_along(D& d, S& s, I& index, int64_t axis) {
  for (int64_t r = 0; r < d.GetValidRow(); ++r)
    for (int64_t c = 0; c < d.GetValidCol(); ++c) {
      const int64_t size = axis == 0 ? s.GetValidRow() : s.GetValidCol();
      const int64_t i = require_index(at(index, r, c), size, "the axis that pl.gather gathers along");
      at(d, r, c) = axis == 0 ? at(s, i, c) : at(s, r, i);
    }
}

// Blocks of 32 bytes at byte offsets in the source.
template <class D, class S, class I>
inline void gather_blocks(D& d, S& s, I& offset, int64_t rows, int64_t cols) {
  constexpr int64_t kBlock = 32, kElements = kBlock / sizeof(Element<D>), kSource = sizeof(Element<S>);
  static_assert(sizeof(Element<S>) == sizeof(Element<D>));
  for (int64_t r = 0; r < d.GetValidRow(); ++r)
    for (int64_t c = 0; c < d.GetValidCol(); ++c) {
      const int64_t byte = static_cast<int64_t>(at(offset, r, c / kElements)) + c % kElements * kSource;
      const int64_t flat = require_index(byte / kSource, rows * cols, "the source of pl.gatherb");
      at(d, r, c) = std::bit_cast<Element<D>>(at(s, flat / cols, flat % cols));
    }
}

// Whether a pattern (1 P0101, 2 P1010, 3 P0001, 4 P0010, 5 P0100, 6 P1000, 7 P1111; the first element is the last digit)
// chooses a column.
inline bool chosen(int64_t pattern, int64_t col) {
  if (pattern == 7) return true;
  return pattern <= 2 ? col % 2 == pattern - 1 : col % 4 == pattern - 3;
}

template <class D, class S>
inline void gather_mask(D& d, S& s, int64_t pattern) {
  for (int64_t r = 0; r < s.GetValidRow(); ++r) {
    int64_t to = 0;
    for (int64_t c = 0; c < s.GetValidCol(); ++c)
      if (chosen(pattern, c)) at(d, r, to++) = std::bit_cast<Element<D>>(at(s, r, c));
  }
}

// The source's elements where the pattern chooses, zeros elsewhere.
template <class D, class S>
inline void scatter_mask(D& d, S& s, int64_t pattern) {
  for (int64_t r = 0; r < d.GetValidRow(); ++r) {
    int64_t from = 0;
    for (int64_t c = 0; c < d.GetValidCol(); ++c) {
      const bool here = chosen(pattern, c) && r < s.GetValidRow() && from < s.GetValidCol();
      at(d, r, c) = here ? at(s, r, from++) : static_cast<Element<D>>(0);
    }
  }
}

// For each row the flat positions, counted from `offset`, of the elements that compare with the row's key, and how many
// there are. mode: 0 equal, 1 greater.
template <class D, class N, class S, class K>
inline void gather_compare(D& d, N& number, S& s, K& key, int64_t mode, int64_t offset, int64_t cols, int64_t out_cols) {
  for (int64_t r = 0; r < s.GetValidRow(); ++r) {
    const float limit = static_cast<float>(key.GetValidRow() == 1 ? at(key, 0, r) : at(key, r, 0));
    int64_t found = 0;
    for (int64_t c = 0; c < s.GetValidCol(); ++c) {
      const float value = static_cast<float>(at(s, r, c));
      if (mode == 0 ? value != limit : !(value > limit)) continue;
      if (found == out_cols)
        throw SimulatorFault("pl.gather_compare finds more than out_cols elements in row " + std::to_string(r));
      at(d, r, found++) = static_cast<Element<D>>(offset + r * cols + c);
    }
    for (int64_t c = found; c < out_cols; ++c) at(d, r, c) = static_cast<Element<D>>(0);
    at(number, r, 0) = static_cast<Element<N>>(found);
  }
}

// d[index[r, c], c] = s[r, c]; the last one wins.
template <class D, class S, class I>
inline void scatter(D& d, S& s, I& index) {
  for (int64_t r = 0; r < s.GetValidRow(); ++r)
    for (int64_t c = 0; c < s.GetValidCol(); ++c)
      at(d, require_index(at(index, r, c), d.GetValidRow(), "the rows of pl.scatter's dst"), c) = at(s, r, c);
}

// d[r, index[r, c]] = s[r, c].
template <class D, class S, class I>
inline void scatter_along(D& d, S& s, I& index, int64_t axis) {
  for (int64_t r = 0; r < index.GetValidRow(); ++r)
    for (int64_t c = 0; c < index.GetValidCol(); ++c) {
      const int64_t size = axis == 0 ? d.GetValidRow() : d.GetValidCol();
      const int64_t i = require_index(at(index, r, c), size, "the axis that pl.scatter scatters along");
      (axis == 0 ? at(d, i, c) : at(d, r, i)) = at(s, r, c);
    }
}

// Row index[k] of d becomes row k of s; the index counts row by row.
template <class D, class I, class S>
inline void scatter_rows(D& d, I& index, S& s, int64_t index_cols) {
  for (int64_t k = 0; k < s.GetValidRow(); ++k) {
    const int64_t row = require_index(at(index, k / index_cols, k % index_cols), d.GetValidRow(), "the rows of pl.scatter_update's input");
    for (int64_t c = 0; c < s.GetValidCol(); ++c) at(d, row, c) = at(s, k, c);
  }
}

// One element of a tensor, as a number. The tile stands for what ptoas was shown to be written.
template <class T, class E>
inline auto read_memory(T&, E* memory, int64_t offset) {
  bounds::require_inside(memory + offset, sizeof(E), false);
  if constexpr (std::is_integral_v<E>)
    return static_cast<int64_t>(memory[offset]);
  else
    return static_cast<float>(memory[offset]);
}

// A block of a tensor, `rows` by `cols` elements with `stride` between its rows, at a place of a tile; or transposed.
template <class D, class E>
inline void insert_memory(D& d, E* memory, int64_t stride, int64_t row, int64_t col, int64_t rows, int64_t cols,
                          int64_t turned) {
  require_inside("pl.gather_row writes", d, row, turned ? cols : rows, col, turned ? rows : cols);
  for (int64_t r = 0; r < rows; ++r) {
    bounds::require_inside(memory + r * stride, cols * static_cast<int64_t>(sizeof(E)), false);
    for (int64_t c = 0; c < cols; ++c)
      (turned ? at(d, row + c, col + r) : at(d, row + r, col + c)) = memory[r * stride + c];
  }
}

// What an index outside of a tensor means: 0 an error, 1 clamp, 2 wrap, 3 zero (or, when scattering, nothing).
inline int64_t placed(int64_t index, int64_t size, int64_t outside, const char* what) {
  if (index >= 0 && index < size) return index;
  if (outside == 1) return index < 0 ? 0 : size - 1;
  if (outside == 2) return (index % size + size) % size;
  if (outside == 3) return -1;
  return require_index(index, size, what);
}

// Rows of a tensor: d[k, :] = memory[index[k], :].
template <class D, class I, class E>
inline void gather_memory_rows(D& d, I& index, E* memory, int64_t rows, int64_t stride, int64_t cols, int64_t outside) {
  for (int64_t k = 0; k < d.GetValidRow(); ++k) {
    const int64_t row = placed(index.GetValidRow() == 1 ? at(index, 0, k) : at(index, k, 0), rows, outside, "the rows of pl.mgather's tensor");
    if (row >= 0) bounds::require_inside(memory + row * stride, cols * static_cast<int64_t>(sizeof(E)), false);
    for (int64_t c = 0; c < d.GetValidCol(); ++c) at(d, k, c) = row < 0 ? static_cast<E>(0) : memory[row * stride + c];
  }
}

// Elements of a tensor at flat positions.
template <class D, class I, class E>
inline void gather_memory(D& d, I& index, E* memory, int64_t rows, int64_t stride, int64_t cols, int64_t outside) {
  for (int64_t r = 0; r < d.GetValidRow(); ++r)
    for (int64_t c = 0; c < d.GetValidCol(); ++c) {
      const int64_t flat = placed(at(index, r, c), rows * cols, outside, "pl.mgather's tensor");
      if (flat < 0) {
        at(d, r, c) = static_cast<E>(0);
        continue;
      }
      E* element = memory + flat / cols * stride + flat % cols;
      bounds::require_inside(element, sizeof(E), false);
      at(d, r, c) = *element;
    }
}

template <class S, class I, class E>
inline void scatter_memory(S& s, I& index, E* memory, int64_t rows, int64_t stride, int64_t cols) {
  for (int64_t r = 0; r < s.GetValidRow(); ++r)
    for (int64_t c = 0; c < s.GetValidCol(); ++c) {
      const int64_t flat = require_index(at(index, r, c), rows * cols, "pl.mscatter's tensor");
      E* element = memory + flat / cols * stride + flat % cols;
      bounds::require_inside(element, sizeof(E), true);
      *element = at(s, r, c);
    }
}

// Rows of a tensor: memory[index[k], :] = s[k, :]; the index counts row by row.
template <class S, class I, class E>
inline void scatter_memory_rows(S& s, I& index, E* memory, int64_t rows, int64_t stride, int64_t cols,
                                int64_t index_cols) {
  for (int64_t k = 0; k < s.GetValidRow(); ++k) {
    const int64_t place = at(index, k / index_cols, k % index_cols);
    const int64_t row = require_index(place, rows, "the rows of pl.scatter_update's input");
    bounds::require_inside(memory + row * stride, cols * static_cast<int64_t>(sizeof(E)), true);
    for (int64_t c = 0; c < s.GetValidCol(); ++c) memory[row * stride + c] = at(s, k, c);
  }
}

// Pairs of a value and its 32-bit position, 8 bytes each: the values of a sorted run as 4 or 8 bytes of elements.
template <class E>
struct Pair {
  E value;
  uint32_t position;
};

template <class E>
inline constexpr int64_t kPairElements = 8 / static_cast<int64_t>(sizeof(E));

template <class S>
inline Pair<Element<S>> pair_at(S& s, int64_t row, int64_t number) {
  using E = Element<S>;
  constexpr int64_t n = kPairElements<E>;
  std::array<E, n> raw{};
  for (int64_t i = 0; i < n; ++i) raw[static_cast<size_t>(i)] = at(s, row, number * n + i);
  Pair<E> pair{raw[0], 0};
  std::memcpy(&pair.position, reinterpret_cast<const std::byte*>(raw.data()) + 4, 4);
  return pair;
}

template <class D>
inline void put_pair(D& d, int64_t row, int64_t number, const Pair<Element<D>>& pair) {
  using E = Element<D>;
  constexpr int64_t n = kPairElements<E>;
  std::array<E, n> raw{};
  raw[0] = pair.value;
  std::memcpy(reinterpret_cast<std::byte*>(raw.data()) + 4, &pair.position, 4);
  for (int64_t i = 0; i < n; ++i) std::memcpy(&at(d, row, number * n + i), &raw[static_cast<size_t>(i)], sizeof(E));
}

// Each block of 32 elements of a row, from the largest to the smallest, as pairs with their positions.
template <class D, class S, class I>
inline void sort32(D& d, S& s, I& index) {
  for (int64_t r = 0; r < s.GetValidRow(); ++r)
    for (int64_t begin = 0; begin < s.GetValidCol(); begin += 32) {
      std::vector<Pair<Element<S>>> block;
      for (int64_t c = begin; c < begin + 32 && c < s.GetValidCol(); ++c)
        block.push_back({at(s, r, c), static_cast<uint32_t>(at(index, r, c))});
      std::stable_sort(block.begin(), block.end(), [](const auto& a, const auto& b) { return a.value > b.value; });
      for (size_t i = 0; i < block.size(); ++i) put_pair(d, r, begin + static_cast<int64_t>(i), block[i]);
    }
}

// Merges sorted runs of pairs from one row each; earlier runs first among equal values.
template <class D, class Run>
inline void merge(D& d, int64_t row, int64_t begin, std::vector<std::vector<Run>>& runs, bool exhausted) {
  std::vector<size_t> next(runs.size(), 0);
  for (int64_t out = begin;; ++out) {
    size_t pick = runs.size();
    for (size_t i = 0; i < runs.size(); ++i)
      if (next[i] < runs[i].size() && (pick == runs.size() || runs[i][next[i]].value > runs[pick][next[pick]].value))
        pick = i;
    if (pick == runs.size()) return;
    put_pair(d, row, out, runs[pick][next[pick]++]);
    if (exhausted && next[pick] == runs[pick].size()) return;
  }
}

// Every four neighbouring runs of `length` elements of a row become one; what is left over is copied.
template <class D, class S>
inline void merge_blocks(D& d, S& s, int64_t length) {
  using E = Element<S>;
  constexpr int64_t n = kPairElements<E>;
  for (int64_t r = 0; r < s.GetValidRow(); ++r) {
    const int64_t pairs = s.GetValidCol() / n, block = length / n;
    for (int64_t begin = 0; begin < pairs; begin += 4 * block) {
      std::vector<std::vector<Pair<E>>> runs;
      for (int64_t first = begin; first < begin + 4 * block && first < pairs; first += block) {
        runs.emplace_back();
        for (int64_t i = first; i < first + block && i < pairs; ++i) runs.back().push_back(pair_at(s, r, i));
      }
      merge(d, r, begin, runs, false);
    }
  }
}

// Two to four sorted runs, one tile each, become one.
template <class D, class... S>
inline void merge_runs(D& d, int64_t exhausted, S&... sources) {
  using E = Element<D>;
  for (int64_t r = 0; r < d.GetValidRow(); ++r) {
    std::vector<std::vector<Pair<E>>> runs;
    const auto add = [&](auto& source) {
      runs.emplace_back();
      for (int64_t i = 0; i < source.GetValidCol() / kPairElements<E>; ++i) runs.back().push_back(pair_at(source, r, i));
    };
    (add(sources), ...);
    merge(d, r, 0, runs, exhausted != 0);
  }
}

}  // namespace pypto::tiles
