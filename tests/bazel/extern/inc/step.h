#pragma once

inline float step() { return 0.5F; }
