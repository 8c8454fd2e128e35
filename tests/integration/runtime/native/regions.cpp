#include <algorithm>
#include <random>
#include <vector>

#include "pypto/abi.h"
#include "pypto/accesses.h"
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

// Random accesses to one tensor, kept by address and in a list: how often the two disagree about who has to be waited for.
PYPTO_EXPORT int64_t accesses_disagree(uint64_t seed, int32_t steps) {
  std::mt19937_64 random(seed);
  const auto below = [&](int64_t end) { return static_cast<int64_t>(random() % static_cast<uint64_t>(end)); };
  pypto::Accesses by_address;
  std::vector<pypto::PastAccess> list;
  int64_t disagreements = 0, forgotten = -1;
  for (int64_t task = 0; task < steps; ++task) {
    const int64_t rows = 1 + below(4), columns = 1 + below(12), row = below(17 - rows), column = below(33 - columns);
    pypto::Access access{};
    access.region = {4096 + (row * 32 + column) * 4, 0, 4, 2, {rows, columns}, {32 * 4, 4}};
    access.region.end = access.region.begin + ((rows - 1) * 32 + columns) * 4;
    access.writes = below(2) == 0;
    const pypto::Origin origin{below(3), below(2)};
    if (below(16) == 0) forgotten = std::max(forgotten, task - 1 - below(8));
    std::vector<int64_t> one, other;
    by_address.conflicts(
        origin, access, [&](int64_t earlier) { return earlier <= forgotten; }, [&](int64_t earlier) { one.push_back(earlier); });
    for (const pypto::PastAccess& earlier : list)
      if (earlier.task > forgotten && !earlier.apart_from(origin, access) && overlaps(earlier.region, access.region))
        other.push_back(earlier.task);
    std::sort(one.begin(), one.end());
    disagreements += one != other;
    if (access.writes) {
      by_address.remove_covered(origin, access);
      std::erase_if(list, [&](const pypto::PastAccess& earlier) { return earlier.covered_by(origin, access); });
    }
    by_address.add(pypto::PastAccess(task, origin, access));
    list.emplace_back(task, origin, access);
    if (below(64) == 0) {
      by_address.remove_if([&](int64_t earlier) { return earlier <= forgotten; });
      std::erase_if(list, [&](const pypto::PastAccess& earlier) { return earlier.task <= forgotten; });
      disagreements += by_address.size() != list.size();
    }
  }
  return disagreements;
}
