#include "pypto/region.h"

// A block as [begin, element, rank, shape..., steps in bytes...].
static pypto::Region region(const int64_t* numbers) {
  pypto::Region result;
  result.begin = numbers[0];
  result.element = numbers[1];
  result.rank = static_cast<int>(numbers[2]);
  int64_t last = 0;
  for (int64_t axis = 0; axis < numbers[2]; ++axis) {
    const size_t i = static_cast<size_t>(axis);
    result.shape[i] = numbers[3 + axis];
    result.steps[i] = numbers[3 + numbers[2] + axis];
    last += (result.shape[i] - 1) * result.steps[i];
  }
  result.end = result.begin + last + result.element;
  return result;
}

PYPTO_EXPORT int32_t regions_overlap(const int64_t* a, const int64_t* b) { return overlaps(region(a), region(b)); }
PYPTO_EXPORT int32_t region_covers(const int64_t* a, const int64_t* b) { return region(a).covers(region(b)); }
