// The product of two matrices, compiled with the flags that were asked for.
#include <vector>

#include "Eigen/Core"

static_assert(Eigen::kStandIn == 1, "another Eigen");

extern "C" void tf_matmul(const double* a, const double* b, double* c, int rows, int inner, int columns) {
  std::vector<double> row(columns);
  for (int i = 0; i < rows; ++i) {
    for (int j = 0; j < columns; ++j) {
      row[j] = 0;
      for (int k = 0; k < inner; ++k) row[j] += a[i * inner + k] * b[k * columns + j];
    }
    for (int j = 0; j < columns; ++j) c[i * columns + j] = row[j];
  }
}
