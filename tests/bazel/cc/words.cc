#include "tests/bazel/cc/words.h"

#include <sstream>
#include <string>

int count_words(const char* text) {
  std::istringstream stream(text);
  std::string word;
  int count = 0;
  while (stream >> word) ++count;
  return count;
}
