// Loads rows of a matrix into a tile and stores them, as ptoas writes it; sizes and offsets are the task's numbers.
#include "pypto/kernel.h"

using namespace pto;
using Global = GlobalTensor<float, Shape<1, 1, 1, DYNAMIC, 16>, Stride<DYNAMIC, DYNAMIC, DYNAMIC, 16, 1>>;
using Block = Tile<TileType::Vec, float, 8, 16, BLayout::RowMajor, DYNAMIC, 16>;

extern "C" void kernel_entry(int64_t* slots) {
  const pypto::Args args{slots};
  const int rows = args.value<int32_t>(2);
  const auto global = [&](int index, int offset) {
    return Global(args.pointer<float>(index) + offset, Shape<1, 1, 1, DYNAMIC, 16>(rows),
                  Stride<DYNAMIC, DYNAMIC, DYNAMIC, 16, 1>(16 * rows, 16 * rows, 16 * rows));
  };
  Global from = global(0, args.value<int32_t>(3)), to = global(1, args.value<int32_t>(4));
  Block tile(args.value<int32_t>(5));
  TASSIGN(tile, 0);
  PYPTO_OP(0);
  TLOAD(tile, from);
  PYPTO_OP(1);
  TSTORE(to, tile);
}
