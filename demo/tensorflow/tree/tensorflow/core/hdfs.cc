// HDFS through libhdfs.so, which is loaded where the first file is asked for, as TensorFlow's hadoop_file_system.cc does.
#ifdef TENSORFLOW_WITH_HDFS
#include <dlfcn.h>

#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <string>

namespace {
struct FileInfo {  // hdfsFileInfo of hdfs.h
  int kind;
  char* name;
  time_t modified;
  int64_t size;
  int16_t replication;
  int64_t block_size;
  char* owner;
  char* group;
  int16_t permissions;
  time_t accessed;
};

std::string result;

const char* Answer(const std::string& text) {
  result = text;
  return result.c_str();
}

void* Library(std::string* problem) {
  const char* home = std::getenv("HADOOP_HDFS_HOME");
  const std::string path = (home == nullptr ? std::string() : std::string(home) + "/lib/native/") + "libhdfs.so";
  void* library = dlopen(path.c_str(), RTLD_NOW);
  if (library == nullptr) *problem = dlerror();
  return library;
}

template <typename Function>
Function Find(void* library, const char* name) {
  return reinterpret_cast<Function>(dlsym(library, name));
}
}  // namespace

// "=" and the names in a directory of HDFS, a line each; or "!" and the problem.
extern "C" const char* tf_hdfs_list(const char* name_node, const char* path) {
  std::string problem;
  void* library = Library(&problem);
  if (library == nullptr) return Answer("!" + problem);
  auto* builder = Find<void* (*)()>(library, "hdfsNewBuilder")();
  Find<void (*)(void*, const char*)>(library, "hdfsBuilderSetNameNode")(builder, name_node);
  void* file_system = Find<void* (*)(void*)>(library, "hdfsBuilderConnect")(builder);
  if (file_system == nullptr) return Answer("!" + std::string(name_node) + " does not answer");
  int count = 0;
  auto* found = Find<FileInfo* (*)(void*, const char*, int*)>(library, "hdfsListDirectory")(file_system, path, &count);
  if (found == nullptr) return Answer("!" + std::string(path) + " cannot be listed");
  std::string names = "=";
  for (int i = 0; i < count; ++i) {
    const std::string name = found[i].name;
    names += name.substr(name.rfind('/') + 1) + "\n";
  }
  Find<void (*)(FileInfo*, int)>(library, "hdfsFreeFileInfo")(found, count);
  return Answer(names);
}
#endif  // TENSORFLOW_WITH_HDFS
