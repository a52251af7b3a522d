// Runs a fuzz target on files, without libFuzzer: as the product is compiled, and in its memory.
//   fuzz_NAME FILE...
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size);

int main(int argc, char** argv) {
  constexpr std::chrono::seconds kMostTime{1};
  for (int i = 1; i < argc; ++i) {
    std::ifstream file(argv[i], std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    const auto begin = std::chrono::steady_clock::now();
    LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(text.data()), text.size());
    if (std::chrono::steady_clock::now() - begin > kMostTime) {
      std::cerr << argv[i] << " takes more than a second\n";
      return EXIT_FAILURE;
    }
  }
  std::cout << argc - 1 << " inputs\n";
  return EXIT_SUCCESS;
}
