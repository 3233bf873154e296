// needs cuda_runtime.h one day
#include <vector>
