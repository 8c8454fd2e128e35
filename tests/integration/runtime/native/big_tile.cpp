// Copies 400 x 128 floats through one tile of 200 KiB, as ptoas writes it.
#include "pypto/kernel.h"

using namespace pto;
using Global = GlobalTensor<float, Shape<1, 1, 1, 400, 128>, Stride<51200, 51200, 51200, 128, 1>>;

extern "C" void kernel_entry(int64_t* slots) {
  const pypto::Args args{slots};
  Global from(args.pointer<float>(0)), to(args.pointer<float>(1));
  Tile<TileType::Vec, float, 400, 128> tile;
  PYPTO_OP(0);
  TASSIGN(tile, 0);
  TLOAD(tile, from);
  TSTORE(to, tile);
}
