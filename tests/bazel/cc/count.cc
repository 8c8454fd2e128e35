#include <iostream>
#include <stdexcept>
#include <string>

#include "tests/bazel/cc/letters.h"
#include "tests/bazel/cc/words.h"

int main(int argc, char** argv) {
  try {
    if (argc < 2) throw std::invalid_argument("no text");
    const std::string text = argv[1];
    std::cout << count_words(text.c_str()) << " words, " << count_letters(text.c_str()) << " letters\n";
  } catch (const std::exception& error) {
    std::cout << "error: " << error.what() << "\n";
  }
}
