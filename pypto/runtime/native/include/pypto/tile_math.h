// Element-wise work, reductions and expansions on tiles of any element type, for simulated kernels.
//
// Results come first, and only valid parts are read and written. Results are rounded once: 16-bit numbers compute in float,
// exponentials and sums in double. Whole numbers wrap around.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "pypto/fault.h"
#include "pypto/tiles.h"

namespace pypto::tiles {

template <class T>
inline constexpr bool is_real = !std::is_integral_v<T>;

template <class T>
using Wide = std::conditional_t<std::is_same_v<T, double>, double, float>;

template <class T>
inline void require_divisor(T b) {
  if (b == T(0)) throw SimulatorFault("a whole number is divided by zero");
}

// What is done to elements, for each element type.

struct Add {
  template <class T>
  T operator()(T a, T b) const {
    if constexpr (is_real<T>) return static_cast<T>(static_cast<Wide<T>>(a) + static_cast<Wide<T>>(b));
    else return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  }
};
struct Sub {
  template <class T>
  T operator()(T a, T b) const {
    if constexpr (is_real<T>) return static_cast<T>(static_cast<Wide<T>>(a) - static_cast<Wide<T>>(b));
    else return static_cast<T>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
  }
};
struct Mul {
  template <class T>
  T operator()(T a, T b) const {
    if constexpr (is_real<T>) return static_cast<T>(static_cast<Wide<T>>(a) * static_cast<Wide<T>>(b));
    else return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  }
};
struct Div {
  template <class T>
  T operator()(T a, T b) const {
    return static_cast<T>(static_cast<Wide<T>>(a) / static_cast<Wide<T>>(b));
  }
};
// The remainder with the sign of the dividend.
struct Fmod {
  template <class T>
  T operator()(T a, T b) const {
    if constexpr (is_real<T>) {
      return static_cast<T>(std::fmod(static_cast<double>(a), static_cast<double>(b)));
    } else {
      require_divisor(b);
      if constexpr (std::is_signed_v<T>) return b == T(-1) ? T(0) : static_cast<T>(a % b);
      else return static_cast<T>(a % b);
    }
  }
};
// The remainder with the sign of the divisor.
struct Rem {
  template <class T>
  T operator()(T a, T b) const {
    if constexpr (is_real<T>) {
      double rest = std::fmod(static_cast<double>(a), static_cast<double>(b));
      if (rest != 0 && (rest < 0) != (static_cast<double>(b) < 0)) rest += static_cast<double>(b);
      return static_cast<T>(rest);
    } else {
      const T rest = Fmod{}(a, b);
      if constexpr (std::is_signed_v<T>) return rest != 0 && (rest < 0) != (b < 0) ? static_cast<T>(rest + b) : rest;
      else return rest;
    }
  }
};
// The quotient, rounded down.
struct FloorDiv {
  template <class T>
  T operator()(T a, T b) const {
    if constexpr (is_real<T>) {
      return static_cast<T>(std::floor(static_cast<double>(a) / static_cast<double>(b)));
    } else {
      require_divisor(b);
      if constexpr (std::is_signed_v<T>) {
        if (b == T(-1)) return Sub{}(T(0), a);
        return static_cast<T>(a / b - (a % b != 0 && (a % b < 0) != (b < 0) ? 1 : 0));
      } else {
        return static_cast<T>(a / b);
      }
    }
  }
};
struct Max {
  template <class T>
  T operator()(T a, T b) const { return a < b ? b : a; }
};
struct Min {
  template <class T>
  T operator()(T a, T b) const { return b < a ? b : a; }
};
struct And {
  template <class T>
  T operator()(T a, T b) const { return static_cast<T>(a & b); }
};
struct Or {
  template <class T>
  T operator()(T a, T b) const { return static_cast<T>(a | b); }
};
struct Xor {
  template <class T>
  T operator()(T a, T b) const { return static_cast<T>(a ^ b); }
};
// Shifts by at least the width give what shifting bit by bit gives.
template <class T>
inline bool shifts_out(T count) {
  if constexpr (std::is_signed_v<T>) {
    if (count < 0) throw SimulatorFault("a shift by a negative number of bits");
  }
  return static_cast<uint64_t>(count) >= 8 * sizeof(T);
}
struct Shl {
  template <class T>
  T operator()(T a, T b) const { return shifts_out(b) ? T(0) : static_cast<T>(static_cast<uint64_t>(a) << b); }
};
struct Shr {
  template <class T>
  T operator()(T a, T b) const { return shifts_out(b) ? static_cast<T>(a < 0 ? -1 : 0) : static_cast<T>(a >> b); }
};
struct Prelu {
  template <class T>
  T operator()(T a, T slope) const { return a > T(0) ? a : Mul{}(a, slope); }
};
struct ExpDif {
  template <class T>
  T operator()(T a, T b) const { return static_cast<T>(std::exp(static_cast<double>(a) - static_cast<double>(b))); }
};
namespace compare {
struct eq {
  template <class T>
  T operator()(T a, T b) const { return static_cast<T>(a == b ? 1 : 0); }
};
struct ne {
  template <class T>
  T operator()(T a, T b) const { return static_cast<T>(a != b ? 1 : 0); }
};
struct lt {
  template <class T>
  T operator()(T a, T b) const { return static_cast<T>(a < b ? 1 : 0); }
};
struct le {
  template <class T>
  T operator()(T a, T b) const { return static_cast<T>(a <= b ? 1 : 0); }
};
struct gt {
  template <class T>
  T operator()(T a, T b) const { return static_cast<T>(a > b ? 1 : 0); }
};
struct ge {
  template <class T>
  T operator()(T a, T b) const { return static_cast<T>(a >= b ? 1 : 0); }
};
}  // namespace compare

#define PYPTO_REAL_FUNCTION(name, expression)         \
  struct name {                                       \
    template <class T>                                \
    T operator()(T a) const {                         \
      const double x = static_cast<double>(a);        \
      return static_cast<T>(expression);              \
    }                                                 \
  };
PYPTO_REAL_FUNCTION(Exp, std::exp(x))
PYPTO_REAL_FUNCTION(Log, std::log(x))
PYPTO_REAL_FUNCTION(Sqrt, std::sqrt(x))
PYPTO_REAL_FUNCTION(Rsqrt, 1.0 / std::sqrt(x))
PYPTO_REAL_FUNCTION(Recip, 1.0 / x)
PYPTO_REAL_FUNCTION(Sin, std::sin(x))
PYPTO_REAL_FUNCTION(Cos, std::cos(x))
#undef PYPTO_REAL_FUNCTION

struct Neg {
  template <class T>
  T operator()(T a) const {
    if constexpr (is_real<T>) return static_cast<T>(-static_cast<Wide<T>>(a));
    else return Sub{}(T(0), a);
  }
};
struct Abs {
  template <class T>
  T operator()(T a) const {
    if constexpr (is_real<T>) return static_cast<T>(std::fabs(static_cast<Wide<T>>(a)));
    else return a < 0 ? Sub{}(T(0), a) : a;
  }
};
struct Relu {
  template <class T>
  T operator()(T a) const { return a > T(0) ? a : T(0); }
};
struct Not {
  template <class T>
  T operator()(T a) const {
    if constexpr (std::is_same_v<T, bool>) return !a;
    else return static_cast<T>(~a);
  }
};

// Over tiles.

template <class Op, class D, class S>
inline void unary(D& d, S& s) {
  for (int64_t r = 0; r < d.GetValidRow(); ++r)
    for (int64_t c = 0; c < d.GetValidCol(); ++c) at(d, r, c) = Op{}(at(s, r, c));
}

template <class Op, class D, class A, class B>
inline void binary(D& d, A& a, B& b) {
  for (int64_t r = 0; r < d.GetValidRow(); ++r)
    for (int64_t c = 0; c < d.GetValidCol(); ++c) at(d, r, c) = Op{}(at(a, r, c), at(b, r, c));
}

// With a number, which takes the tile's element type.
template <class Op, class D, class S, class N>
inline void scalar(D& d, S& s, N number) {
  const auto n = static_cast<Element<S>>(number);
  for (int64_t r = 0; r < d.GetValidRow(); ++r)
    for (int64_t c = 0; c < d.GetValidCol(); ++c) at(d, r, c) = Op{}(at(s, r, c), n);
}

// With a number on the left.
template <class Op, class D, class S, class N>
inline void scalar_left(D& d, S& s, N number) {
  const auto n = static_cast<Element<S>>(number);
  for (int64_t r = 0; r < d.GetValidRow(); ++r)
    for (int64_t c = 0; c < d.GetValidCol(); ++c) at(d, r, c) = Op{}(n, at(s, r, c));
}

// The first two combined, and the result with the third one.
template <class First, class Second, class D, class A, class B, class C>
inline void ternary(D& d, A& a, B& b, C& third) {
  for (int64_t r = 0; r < d.GetValidRow(); ++r)
    for (int64_t c = 0; c < d.GetValidCol(); ++c)
      at(d, r, c) = Second{}(First{}(at(a, r, c), at(b, r, c)), at(third, r, c));
}

template <class First, class Second, class D, class A, class B, class N>
inline void ternary_scalar(D& d, A& a, B& third, N number) {
  const auto n = static_cast<Element<A>>(number);
  for (int64_t r = 0; r < d.GetValidRow(); ++r)
    for (int64_t c = 0; c < d.GetValidCol(); ++c)
      at(d, r, c) = Second{}(First{}(at(a, r, c), n), at(third, r, c));
}

// Combined where both are valid; elsewhere the one that is.
template <class Op, class D, class A, class B>
inline void part(D& d, A& a, B& b) {
  for (int64_t r = 0; r < d.GetValidRow(); ++r)
    for (int64_t c = 0; c < d.GetValidCol(); ++c) {
      const bool in_a = r < a.GetValidRow() && c < a.GetValidCol(), in_b = r < b.GetValidRow() && c < b.GetValidCol();
      at(d, r, c) = in_a && in_b ? Op{}(at(a, r, c), at(b, r, c)) : in_a ? at(a, r, c) : in_b ? at(b, r, c) : Element<D>(0);
    }
}

template <class D, class N>
inline void fill(D& d, N number) {
  const auto n = static_cast<Element<D>>(number);
  for (int64_t r = 0; r < d.GetValidRow(); ++r)
    for (int64_t c = 0; c < d.GetValidCol(); ++c) at(d, r, c) = n;
}

// A mask has one number for each element, or one bit, the lowest bit of each byte first.
enum class Mask { elements, bits };

template <Mask kind, class M>
inline bool masked(M& mask, int64_t row, int64_t col) {
  if constexpr (kind == Mask::elements) return at(mask, row, col) != Element<M>(0);
  else return (static_cast<uint8_t>(at(mask, row, col / 8)) >> (col % 8)) & 1;
}

template <Mask kind, class D, class M, class A, class B>
inline void select(D& d, M& mask, A& a, B& b) {
  for (int64_t r = 0; r < d.GetValidRow(); ++r)
    for (int64_t c = 0; c < d.GetValidCol(); ++c) at(d, r, c) = masked<kind>(mask, r, c) ? at(a, r, c) : at(b, r, c);
}

template <Mask kind, class D, class M, class A, class N>
inline void select_scalar(D& d, M& mask, A& a, N number) {
  const auto n = static_cast<Element<D>>(number);
  for (int64_t r = 0; r < d.GetValidRow(); ++r)
    for (int64_t c = 0; c < d.GetValidCol(); ++c) at(d, r, c) = masked<kind>(mask, r, c) ? at(a, r, c) : n;
}

// A column beside each column, or a row beside each row.
template <class Op, class D, class A, class B>
inline void with_column(D& d, A& a, B& column) {
  for (int64_t r = 0; r < d.GetValidRow(); ++r)
    for (int64_t c = 0; c < d.GetValidCol(); ++c) at(d, r, c) = Op{}(at(a, r, c), at(column, r, 0));
}

template <class Op, class D, class A, class B>
inline void with_row(D& d, A& a, B& row) {
  for (int64_t r = 0; r < d.GetValidRow(); ++r)
    for (int64_t c = 0; c < d.GetValidCol(); ++c) at(d, r, c) = Op{}(at(a, r, c), at(row, 0, c));
}

template <class D, class B>
inline void column_repeated(D& d, B& column) {
  for (int64_t r = 0; r < d.GetValidRow(); ++r)
    for (int64_t c = 0; c < d.GetValidCol(); ++c) at(d, r, c) = at(column, r, 0);
}

template <class D, class B>
inline void row_repeated(D& d, B& row) {
  for (int64_t r = 0; r < d.GetValidRow(); ++r)
    for (int64_t c = 0; c < d.GetValidCol(); ++c) at(d, r, c) = at(row, 0, c);
}

template <class T>
using Sum = std::conditional_t<is_real<T>, double, T>;

template <class Op, class D, class S>
inline void reduce_rows(D& d, S& s) {
  using E = Element<S>;
  for (int64_t r = 0; r < s.GetValidRow(); ++r) {
    auto value = static_cast<Sum<E>>(at(s, r, 0));
    for (int64_t c = 1; c < s.GetValidCol(); ++c) value = Op{}(value, static_cast<Sum<E>>(at(s, r, c)));
    at(d, r, 0) = static_cast<E>(value);
  }
}

template <class Op, class D, class S>
inline void reduce_columns(D& d, S& s) {
  using E = Element<S>;
  for (int64_t c = 0; c < s.GetValidCol(); ++c) {
    auto value = static_cast<Sum<E>>(at(s, 0, c));
    for (int64_t r = 1; r < s.GetValidRow(); ++r) value = Op{}(value, static_cast<Sum<E>>(at(s, r, c)));
    at(d, 0, c) = static_cast<E>(value);
  }
}

// The position of the first element that no other one beats.
template <class Beats, class D, class S>
inline void arg_rows(D& d, S& s) {
  for (int64_t r = 0; r < s.GetValidRow(); ++r) {
    int64_t best = 0;
    for (int64_t c = 1; c < s.GetValidCol(); ++c)
      if (Beats{}(at(s, r, c), at(s, r, best)) != Element<S>(0)) best = c;
    at(d, r, 0) = static_cast<Element<D>>(best);
  }
}

template <class Beats, class D, class S>
inline void arg_columns(D& d, S& s) {
  for (int64_t c = 0; c < s.GetValidCol(); ++c) {
    int64_t best = 0;
    for (int64_t r = 1; r < s.GetValidRow(); ++r)
      if (Beats{}(at(s, r, c), at(s, best, c)) != Element<S>(0)) best = r;
    at(d, 0, c) = static_cast<Element<D>>(best);
  }
}

// Conversions.

enum class Round { none, rint, round, floor, ceil, trunc };

template <Round mode>
inline double rounded(double x) {
  if constexpr (mode == Round::round) return std::round(x);
  else if constexpr (mode == Round::floor) return std::floor(x);
  else if constexpr (mode == Round::ceil) return std::ceil(x);
  else if constexpr (mode == Round::trunc) return std::trunc(x);
  else return std::nearbyint(x);
}

// Numbers outside of the range of whole numbers become the nearest one there is, and what is no number becomes 0.
template <Round mode, class T, class S>
inline T converted(S value) {
  if constexpr (std::is_same_v<T, bool>) {
    return value != S(0);
  } else if constexpr (is_real<T>) {
    if constexpr (is_real<S>) return static_cast<T>(static_cast<float>(value));
    else if constexpr (sizeof(T) == 2) return static_cast<T>(static_cast<float>(value));
    else return static_cast<T>(value);
  } else if constexpr (is_real<S>) {
    const double x = rounded<mode>(static_cast<double>(value));
    if (x != x) return T(0);
    if (x <= static_cast<double>(std::numeric_limits<T>::min())) return std::numeric_limits<T>::min();
    if (x >= static_cast<double>(std::numeric_limits<T>::max())) return std::numeric_limits<T>::max();
    return static_cast<T>(x);
  } else {
    return static_cast<T>(value);
  }
}

template <Round mode, class D, class S>
inline void convert(D& d, S& s) {
  for (int64_t r = 0; r < d.GetValidRow(); ++r)
    for (int64_t c = 0; c < d.GetValidCol(); ++c) at(d, r, c) = converted<mode, Element<D>>(at(s, r, c));
}

}  // namespace pypto::tiles
