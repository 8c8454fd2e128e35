#include <math.h>
#include <stdio.h>

#include "tests/bazel/cc/letters.h"

int main(void) {
  printf("%d letters, %f\n", count_letters("a b c"), sqrt(count_letters("abcd")));
  return count_letters("one two") == 6 ? 0 : 1;
}
