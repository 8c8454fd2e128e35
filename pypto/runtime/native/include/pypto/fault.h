// What the simulator finds wrong with a kernel.
#pragma once

#include <stdexcept>

namespace pypto {

// Ends the task; the host reports it together with the operation that ran. Named alike in kernel and orchestration objects,
// which is how one catches what the other throws.
class SimulatorFault : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace pypto
