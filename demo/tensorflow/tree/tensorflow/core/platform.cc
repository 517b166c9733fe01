// What the library was compiled with.
#include <string>

namespace {
std::string Features() {
  std::string found;
#ifdef __SSE4_1__
  found += "sse4_1 ";
#endif
#ifdef __SSE4_2__
  found += "sse4_2 ";
#endif
#ifdef __AVX__
  found += "avx ";
#endif
#ifdef __AVX2__
  found += "avx2 ";
#endif
#ifdef __FMA__
  found += "fma ";
#endif
#ifdef __AVX512F__
  found += "avx512f ";
#endif
#ifdef TENSORFLOW_WITH_HDFS
  found += "hdfs ";
#endif
#ifdef TENSORFLOW_WITH_KAFKA
  found += "kafka ";
#endif
#ifdef GOOGLE_CUDA
  found += "cuda ";
#endif
  return found;
}
}  // namespace

extern "C" const char* tf_features() {
  static const std::string found = Features();
  return found.c_str();
}
