// What a short program does with an error: its sentence on standard error, and exit status 1.
#pragma once

#include <cstdlib>
#include <iostream>
#include <type_traits>
#include <utility>

#include "kvasir/result.h"

template <class T>
T check(kvasir::Result<T> result) {
  if (!result) {
    std::cerr << result.error().message() << "\n";
    std::exit(1);
  }
  if constexpr (!std::is_void_v<T>) return *std::move(result);
}

// The model's file, the first argument of every example.
inline const char* model_file(int count, char** arguments) {
  if (count == 2) return arguments[1];
  std::cerr << "usage: " << arguments[0] << " MODEL.gguf\n";
  std::exit(2);
}
