// Runs a fuzz target on files, without libFuzzer: as the product is compiled, and in its memory.
//   fuzz_NAME FILE...
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size);

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    std::ifstream file(argv[i], std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    const std::clock_t begin = std::clock();
    LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(text.data()), text.size());
    if (std::clock() - begin > CLOCKS_PER_SEC) {
      std::cerr << argv[i] << " takes more than a second of CPU time\n";
      return EXIT_FAILURE;
    }
  }
  std::cout << argc - 1 << " inputs\n";
  return EXIT_SUCCESS;
}
