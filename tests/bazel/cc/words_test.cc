#include "tests/bazel/cc/words.h"

int main() { return count_words("one two  three") == 3 ? 0 : 1; }
