// Between the C++ that ptoas 0.1.1 writes and the PTO-ISA headers: overloads for calls that lack an operand, and operations that
// the headers do not have in the needed form. Include it behind pto/pto-inst.hpp.
//
// Every overload has a number or kind of arguments that the headers do not define, so that nothing of theirs is hidden;
// but for conversions to whole numbers, where theirs leave open what a number outside of the range becomes, and for some
// quotients, where theirs stop at a divisor of 0 and others give infinity, as devices do.
// Where the headers ask for a scratch tile, an operand takes its place: the CPU simulator never writes it. On a device the
// scratch tile must be a tile of its own.
#pragma once

namespace pto {

// Row reductions: ptoas leaves the scratch tile out. A result column may have more rows than the source, because columns are
// padded to full blocks; the headers want equal numbers, so that case is computed here.
namespace pypto_compat {

template <class D, class S, class Combine>
inline void reduce_rows(D &d, S &s, Combine combine)
{
    for (int r = 0; r < s.GetValidRow(); ++r) {
        auto value = combine.first(s.data()[GetTileElementOffset<S>(r, 0)]);
        for (int c = 1; c < s.GetValidCol(); ++c) value = combine(value, s.data()[GetTileElementOffset<S>(r, c)]);
        d.data()[GetTileElementOffset<D>(r, 0)] = static_cast<typename D::DType>(value);
    }
}

// Sums of half stand in float, as in the headers.
struct Sum {
    template <class T> float first(T x) const { return static_cast<float>(x); }
    template <class T> float operator()(float sum, T x) const { return sum + static_cast<float>(x); }
};
struct Max {
    template <class T> T first(T x) const { return x; }
    template <class T> T operator()(T a, T b) const { return a < b ? b : a; }
};
}  // namespace pypto_compat

template <class D, class S> inline void TROWSUM(D &d, S &s)
{
    if constexpr (D::Rows == S::Rows) TROWSUM(d, s, s);
    else pypto_compat::reduce_rows(d, s, pypto_compat::Sum{});
}

template <class D, class S> inline void TROWMAX(D &d, S &s)
{
    if constexpr (D::Rows == S::Rows) TROWMAX(d, s, s);
    else pypto_compat::reduce_rows(d, s, pypto_compat::Max{});
}

// Transposition of the valid part; the headers' TTRANS wants valid sizes that are known alike on both sides.
template <class D, class S> inline void PYPTO_TRANSPOSE(D &d, S &s)
{
    for (int r = 0; r < s.GetValidRow(); ++r)
        for (int c = 0; c < s.GetValidCol(); ++c)
            d.data()[GetTileElementOffset<D>(c, r)] = s.data()[GetTileElementOffset<S>(r, c)];
}

// Conversions to whole numbers: what is outside of their range becomes the nearest one, what is no number 0, as on devices.
template <class D, class S>
    requires(is_tile_data_v<D> && is_tile_data_v<S> && is_float_like_v<typename S::DType> &&
             std::is_integral_v<typename D::DType>)
inline void TCVT(D &d, S &s, RoundMode mode)
{
    using E = typename D::DType;
    constexpr double low = std::numeric_limits<E>::min(), high = std::numeric_limits<E>::max();
    for (int r = 0; r < s.GetValidRow(); ++r)
        for (int c = 0; c < s.GetValidCol(); ++c) {
            const double x = applyRoundingToIntegral(static_cast<double>(s.data()[GetTileElementOffset<S>(r, c)]), mode);
            d.data()[GetTileElementOffset<D>(r, c)] =
                x != x ? E(0) : x <= low ? std::numeric_limits<E>::min()
                                         : x >= high ? std::numeric_limits<E>::max() : static_cast<E>(x);
        }
}

template <class D, class S>
    requires(is_tile_data_v<D> && is_tile_data_v<S> && is_float_like_v<typename S::DType>)
inline void TDIVS(D &d, typename D::DType scalar, S &s)
{
    for (int r = 0; r < s.GetValidRow(); ++r)
        for (int c = 0; c < s.GetValidCol(); ++c)
            d.data()[GetTileElementOffset<D>(r, c)] = static_cast<typename D::DType>(
                static_cast<float>(scalar) / static_cast<float>(s.data()[GetTileElementOffset<S>(r, c)]));
}

template <class D, class S>
    requires(is_tile_data_v<D> && is_tile_data_v<S> && is_float_like_v<typename S::DType>)
inline void TRECIP(D &d, S &s)
{
    TDIVS(d, typename D::DType(1), s);
}

template <class D, class A, class B>
    requires(is_tile_data_v<D> && is_tile_data_v<A> && is_tile_data_v<B> && is_float_like_v<typename D::DType>)
inline void TROWEXPANDDIV(D &d, A &a, B &column)
{
    for (int r = 0; r < d.GetValidRow(); ++r)
        for (int c = 0; c < d.GetValidCol(); ++c)
            d.data()[GetTileElementOffset<D>(r, c)] = static_cast<typename D::DType>(
                static_cast<float>(a.data()[GetTileElementOffset<A>(r, c)]) /
                static_cast<float>(column.data()[GetTileElementOffset<B>(r, 0)]));
}

// Store with a conversion, float accumulator to half: the headers' TSTORE wants equal element sizes.
template <class G, class T>
    requires(is_global_data_v<G> && is_tile_data_v<T> && sizeof(typename G::DType) != sizeof(typename T::DType))
inline void TSTORE(G &g, T &t)
{
    const int64_t row = g.GetStride(GlobalTensorDim::DIM_3), column = g.GetStride(GlobalTensorDim::DIM_4);
    for (int r = 0; r < t.GetValidRow(); ++r)
        for (int c = 0; c < t.GetValidCol(); ++c)
            g.data()[r * row + c * column] = static_cast<typename G::DType>(t.data()[GetTileElementOffset<T>(r, c)]);
}

}  // namespace pto
